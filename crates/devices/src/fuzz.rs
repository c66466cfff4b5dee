//! Fuzz: what a stranger's bytes go through, for the targets in `fuzz/`. Nothing else uses it.
//!
//! Each of these panics where a promise of its room does not hold.

pub use crate::agent::fuzz::{agent_metadata, agent_report, agent_words};
pub use crate::ipmi::fuzz::{ipmi_fru, ipmi_message, ipmi_packet};
pub use crate::redfish::fuzz::{redfish_message, redfish_session, redfish_system};

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_target_takes_any_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for target in [ipmi_fru, ipmi_message, ipmi_packet, redfish_message, redfish_session, redfish_system] {
                target(&bytes);
            }
        }

        #[test]
        fn the_targets_of_redfish_take_anything_that_looks_like_it(
            power in "Off|On|Paused|off|", plug in "[./a1%?]{0,8}", nested in "[{}\\[\\]\",:]{0,20}",
        ) {
            let system = format!("{plug}\n{{\"PowerState\":\"{power}\",\"Members\":[{{\"@odata.id\":\"/{plug}\"}}]}}");
            redfish_system(system.as_bytes());
            redfish_message(format!("{{\"error\":{{\"message\":\"{plug}\",\"@Message.ExtendedInfo\":[{nested}]}}}}").as_bytes());
            redfish_session(format!("/redfish/v1/{plug}\nt\n{{\"@odata.id\":\"{plug}\"}}").as_bytes());
        }
    }
}
