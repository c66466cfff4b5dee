//! IPMI / capabilities: what a BMC says of itself before anyone has logged in.
//!
//! Nothing of it is proven: it is used for words, and to stop before a BMC that says itself that it cannot do what we need.

use super::message::{APP, Reply, Request};

const GET_CHANNEL_AUTHENTICATION_CAPABILITIES: u8 = 0x38;

/// The channel that this is asked on, with what is new in IPMI 2.0.
const THIS_CHANNEL: u8 = 0x0e;
const EXTENDED: u8 = 0x80;

/// What is asked: what it takes to log in with this privilege.
pub(super) fn question(privilege: u8) -> [u8; 2] {
    [THIS_CHANNEL | EXTENDED, privilege]
}

/// The request for it.
pub(super) fn request(question: &[u8; 2]) -> Request<'_> {
    Request { function: APP, command: GET_CHANNEL_AUTHENTICATION_CAPABILITIES, data: question }
}

/// What a BMC says it can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Capabilities {
    /// Whether it takes sessions of IPMI 2.0, if it says so.
    pub(super) ipmi_2: Option<bool>,
    /// Whether it has a key of its own, if it says so.
    pub(super) has_kg: Option<bool>,
}

impl Capabilities {
    /// A reply that refuses or is too short leaves open what it can do: some BMCs do not know this question well.
    pub(super) fn of(reply: &Reply) -> Self {
        let [_channel, kinds, status, extended, ..] = reply.data.as_slice() else { return Self::default() };
        if reply.code != 0 {
            return Self::default();
        }
        let says_more = kinds & 0x80 != 0;
        Self { ipmi_2: Some(says_more && extended & 0x02 != 0), has_kg: says_more.then_some(status & 0x20 != 0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u8, data: &[u8]) -> Capabilities {
        Capabilities::of(&Reply { code, data: data.to_vec() })
    }

    #[test]
    fn what_a_bmc_does_not_say_stays_open() {
        assert_eq!(of(0, &[0x01, 0x80, 0x04, 0x02, 0, 0, 0, 0]).ipmi_2, Some(true));
        assert_eq!(of(0, &[0x01, 0x15, 0x04, 0x00, 0, 0, 0, 0]).ipmi_2, Some(false));
        assert_eq!(of(0, &[0x01, 0x80, 0x24, 0x03, 0, 0, 0, 0]).has_kg, Some(true));
        assert_eq!(of(0xcc, &[]), Capabilities::default());
        assert_eq!(of(0, &[1, 2]), Capabilities::default());
    }
}
