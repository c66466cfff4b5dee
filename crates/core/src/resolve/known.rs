//! Resolve / known: which parameters a native driver understands.
//!
//! Promise: a name that nobody would ever read is refused with what to write instead: whoever wrote `cypher` or
//! `ssl_secure` believes in it. An agent has names of its own, which only its metadata knows; those are not looked at here.

use palisade_api::template::Driver;

use super::Problem;
use super::parameters::{Layer, canonical};

/// What every driver understands that has an address.
const EVERYWHERE: [&str; 5] = ["ip", "ipport", "username", "password", "serial"];
const REDFISH: [&str; 5] = ["plug", "session", "ca", "fingerprint", "ssl_insecure"];
const IPMI: [&str; 4] = ["cipher", "privlvl", "hexadecimal_kg", "guid_order"];

/// Refuses the first parameter of a layer that the driver does not understand.
pub(super) fn only_known(driver: Driver, layer: &Layer<'_>) -> Result<(), Problem> {
    let Some((own, word)) = of(driver) else { return Ok(()) };
    let secret = layer.secret.iter().flat_map(|secret| secret.keys.keys());
    let known = |name: &str| EVERYWHERE.iter().chain(own).any(|known| *known == canonical(name));
    if secret.clone().any(|name| name == "serial") {
        let why = "a serial number is no secret, and is read aloud when it does not match; put `serial` into perNode";
        return Err(Problem { field: layer.at.clone(), why: why.to_owned() });
    }
    let Some(name) = layer.texts.keys().chain(secret).find(|name| !known(name)) else { return Ok(()) };
    let all: Vec<&str> = EVERYWHERE.iter().chain(own).copied().collect();
    let help = instead(driver, &canonical(name))
        .map_or_else(|| format!("put the name right, or remove it; it understands {}", all.join(", ")), str::to_owned);
    Err(Problem { field: layer.at.clone(), why: format!("the driver {word} does not understand `{name}`: {help}") })
}

/// The names of a driver's own, and its name; nothing for one that is not there yet.
const fn of(driver: Driver) -> Option<(&'static [&'static str], &'static str)> {
    match driver {
        Driver::Redfish => Some((&REDFISH, "redfish")),
        Driver::Ipmi => Some((&IPMI, "ipmi")),
        Driver::SnmpPdu => None,
    }
}

/// For names that the fence agents for the same devices have, or the other driver.
fn instead(driver: Driver, name: &str) -> Option<&'static str> {
    match (driver, name) {
        (_, "lanplus") => Some("IPMI 2.0 is the only one that it speaks; remove it"),
        (_, "auth") => Some("both sides prove that they know the password; remove it"),
        (_, "method" | "power_wait" | "power_timeout" | "retry_on" | "delay" | "stonith_status_sleep") => Some(
            "off is always sent and read back until it is steady; remove it, and see `stableOff` of the FenceConfig",
        ),
        (_, "timeout" | "login_timeout" | "shell_timeout" | "ipmitool_timeout") => {
            Some("how long a call may take is the template's own field `timeout`; remove it here")
        }
        (Driver::Ipmi, "plug") => Some("a BMC is in one machine; remove it"),
        (Driver::Ipmi, "ca" | "fingerprint" | "ssl_insecure") => {
            Some("IPMI has no certificates: both sides prove that they know the password; remove it")
        }
        (Driver::Redfish, "ssl" | "ssl_secure") => {
            Some("TLS is always used and certificates are verified; remove it, and see `ca` and `fingerprint`")
        }
        (Driver::Redfish, "redfish_uri") => Some("the service is at /redfish/v1; remove it"),
        (Driver::Redfish, "cipher" | "privlvl" | "hexadecimal_kg" | "guid_order") => {
            Some("that is of IPMI; remove it, or set native.driver to ipmi")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use palisade_api::parameters::SecretRef;

    use super::*;

    fn refused(driver: Driver, name: &str) -> Option<String> {
        let texts = BTreeMap::from([(name.to_owned(), "x".to_owned())]);
        let layer = Layer { at: "here".to_owned(), texts: &texts, secret: None };
        only_known(driver, &layer).err().map(|problem| problem.to_string())
    }

    #[test]
    fn what_a_driver_reads_is_let_through_in_every_spelling() {
        for name in ["ip", "ipaddr", "login", "passwd", "serial", "cipher", "privlvl", "hexadecimal-kg", "guid_order"] {
            assert_eq!(refused(Driver::Ipmi, name), None, "{name}");
        }
        for name in ["ipport", "port", "plug", "systems-uri", "session", "ca", "fingerprint", "ssl-insecure"] {
            assert_eq!(refused(Driver::Redfish, name), None, "{name}");
        }
        assert_eq!(refused(Driver::SnmpPdu, "anything"), None, "there is no driver that could say");
    }

    #[test]
    fn a_name_that_nobody_reads_is_refused_with_the_way_out() {
        let why = refused(Driver::Ipmi, "cypher").unwrap();
        assert!(why.starts_with("here: the driver ipmi does not understand `cypher`: put the name right"), "{why}");
        assert!(why.ends_with("serial, cipher, privlvl, hexadecimal_kg, guid_order"), "{why}");
        for (driver, name, words) in [
            (Driver::Ipmi, "lanplus", "the only one that it speaks"),
            (Driver::Ipmi, "port", "a BMC is in one machine"),
            (Driver::Ipmi, "ssl_insecure", "no certificates"),
            (Driver::Redfish, "ssl-secure", "certificates are verified"),
            (Driver::Redfish, "cipher", "set native.driver to ipmi"),
            (Driver::Redfish, "login_timeout", "the template's own field `timeout`"),
        ] {
            let why = refused(driver, name).unwrap();
            assert!(why.contains(words), "{name}: {why}");
        }
    }

    #[test]
    fn a_name_in_a_secret_is_looked_at_too() {
        for (name, words) in [("pasword", "does not understand `pasword`"), ("serial", "put `serial` into perNode")] {
            let keys = BTreeMap::from([(name.to_owned(), "key".to_owned())]);
            let (texts, secret) = (BTreeMap::new(), SecretRef { name: "bmc".to_owned(), keys });
            let layer = Layer { at: "here".to_owned(), texts: &texts, secret: Some(&secret) };
            assert!(only_known(Driver::Redfish, &layer).is_err_and(|problem| problem.why.contains(words)), "{name}");
        }
    }
}
