//! IPMI / fuzz: bytes of strangers, as they come in at each place. See [`crate::fuzz`].
#![expect(clippy::missing_panics_doc, reason = "a panic is what a fuzzer looks for")]

use super::capabilities::Capabilities;
use super::fru::{self, Area};
use super::keys::Told;
use super::login::{Login, Suite};
use super::message::{APP, Request};
use super::packet::{self, Kind, Packet};
use super::seal;

/// Datagrams.
pub fn ipmi_packet(bytes: &[u8]) {
    let _ = packet::read_plain(bytes);
    for kind in [Kind::OpenSessionReply, Kind::Rakp2, Kind::Rakp4] {
        let _ = packet::read_outside(bytes, kind);
    }
    if let Some(packet) = Packet::read(bytes) {
        assert!(packet.payload.len() <= bytes.len());
        let _ = (packet.code(12), packet.code(16));
    }
    let Ok(login) = Login::new("fence", "s3cret") else { return };
    for suite in [Suite::Three, Suite::Seventeen] {
        let told = Told {
            suite,
            login: &login,
            role: 0x13,
            console_session: 1,
            bmc_session: 2,
            console_random: [3; 16],
            bmc_random: [4; 16],
            guid: [5; 16],
        };
        assert!(!told.proven_by(bytes), "anyone can prove the password");
        let keys = told.keys();
        assert!(seal::open(&keys, 7, bytes).is_none(), "a packet was believed that nobody sealed");
        // A stranger who has the keys, which only the BMC has, can still say anything.
        if let Some(packet) = seal::seal(&keys, 7, 9, [6; 16], bytes) {
            let opened = seal::open(&keys, 7, &packet);
            assert!(opened.is_some_and(|opened| opened.message == bytes), "what was sealed is not what is opened");
        }
    }
}

/// Messages in a session.
pub fn ipmi_message(bytes: &[u8]) {
    let Some((number, bytes)) = bytes.split_first() else { return };
    let request = Request { function: APP, command: 0x37, data: &[] };
    if let Some(reply) = request.answered_by(bytes, *number) {
        assert!(reply.data.len() < bytes.len(), "more was read than came");
        let _ = Capabilities::of(&reply);
    }
    let written = Request { data: bytes, ..request }.bytes(*number);
    assert_eq!(written.len(), bytes.len() + 7);
}

/// Inventories.
pub fn ipmi_fru(bytes: &[u8]) {
    for (_, begins) in fru::areas(bytes) {
        assert!(begins >= fru::UNIT, "an area lies in the header");
    }
    // The sums are no secret: whoever writes an inventory writes them, too.
    let mut summed = bytes.to_vec();
    if let Some((last, rest)) = summed.split_last_mut() {
        *last = rest.iter().fold(0_u8, |sum, byte| sum.wrapping_sub(*byte));
    }
    for whole in [bytes, &summed] {
        for area in [Area::Chassis, Area::Board, Area::Product] {
            if let Some(serial) = area.serial(whole) {
                assert!(!serial.is_empty() && serial.trim() == serial, "{serial:?}");
                assert!(serial.chars().all(|c| (' '..='~').contains(&c)), "{serial:?}");
                assert!(serial.len() <= 126, "a field has at most 63 bytes, and a byte at most two digits");
            }
        }
    }
}
