//! IPMI / identity: whose machine a BMC is in, by the GUID of the system, and by its serial number where somebody asks for it.
//!
//! Promise: a UUID is told only if it is plain how it was meant. The GUID of the BMC itself (Get Device GUID) is never taken
//! for the machine's.
//!
//! The specification sends a GUID backwards, SMBIOS has its first three fields backwards, RFC 4122 nothing, and BMCs do any
//! of the three. A wrong guess would have the right machine taken for another one, and never fenced.

use super::codes::{self, DONE, UNKNOWN_COMMAND};
use super::inventory;
use super::login::BadLogin;
use super::message::{APP, Request};
use super::session::Session;
use crate::{Failure, Identity};

const GET_SYSTEM_GUID: u8 = 0x37;

/// In which order a BMC sends the bytes of its system's GUID.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GuidOrder {
    /// In the only one of the three in which it looks like a UUID. If there are several or none, the GUID is not told.
    #[default]
    Plain,
    /// As in the tables of the firmware, where a node's systemUUID comes from.
    Smbios,
    /// Backwards, as the specification of IPMI has it.
    Ipmi,
    /// Forwards.
    Rfc4122,
}

impl GuidOrder {
    /// As a template names it.
    pub fn of(word: &str) -> Result<Self, BadLogin> {
        match word.trim().to_lowercase().as_str() {
            "smbios" => Ok(Self::Smbios),
            "ipmi" => Ok(Self::Ipmi),
            "rfc4122" => Ok(Self::Rfc4122),
            other => Err(BadLogin(format!("the order of the GUID is {other:?}; it is smbios, ipmi or rfc4122"))),
        }
    }

    /// The UUID that these bytes are.
    fn read(self, sent: [u8; 16]) -> Option<String> {
        // Not set, both of them.
        if sent == [0x00; 16] || sent == [0xff; 16] {
            return None;
        }
        match self {
            Self::Plain => {
                let mut likely = [smbios(sent), ipmi(sent), sent].into_iter().filter(looks_like_a_uuid);
                let first = likely.next()?;
                likely.all(|other| other == first).then(|| text(first))
            }
            Self::Smbios => Some(text(smbios(sent))),
            Self::Ipmi => Some(text(ipmi(sent))),
            Self::Rfc4122 => Some(text(sent)),
        }
    }
}

/// Reads whose machine this is.
pub(super) async fn read(session: &mut Session, order: GuidOrder, serial: bool) -> Result<Identity, Failure> {
    let uuid = uuid(session, order).await?;
    let serial = if serial { inventory::serial(session).await } else { None };
    Ok(Identity { uuid, serial })
}

async fn uuid(session: &mut Session, order: GuidOrder) -> Result<Option<String>, Failure> {
    let asked = "the GUID of the system";
    let request = Request { function: APP, command: GET_SYSTEM_GUID, data: &[] };
    let reply = session.ask(&request, asked, None).await?.reply;
    match (reply.code, <[u8; 16]>::try_from(reply.data.as_slice())) {
        (DONE, Ok(guid)) => Ok(order.read(guid)),
        (DONE, Err(_)) => {
            Err(Failure::Unknown(format!("{asked}: the answer has {} bytes instead of 16", reply.data.len())))
        }
        // It has none.
        (UNKNOWN_COMMAND, _) => Ok(None),
        (code, _) => Err(codes::not_done(code, asked)),
    }
}

fn smbios(mut sent: [u8; 16]) -> [u8; 16] {
    let [one, two, three, four, five, six, seven, eight, ..] = &mut sent;
    for (left, right) in [(one, four), (two, three), (five, six), (seven, eight)] {
        std::mem::swap(left, right);
    }
    sent
}

fn ipmi(mut sent: [u8; 16]) -> [u8; 16] {
    sent.reverse();
    sent
}

/// By its version (1 to 5, which is what firmware makes) and variant.
fn looks_like_a_uuid(bytes: &[u8; 16]) -> bool {
    let [_, _, _, _, _, _, version, _, variant, ..] = bytes;
    (1..=5).contains(&(version >> 4)) && variant >> 6 == 0b10
}

fn text(bytes: [u8; 16]) -> String {
    let digits = format!("{:032x}", u128::from_be_bytes(bytes));
    let dash = |index| matches!(index, 8 | 12 | 16 | 20).then_some('-');
    digits.chars().enumerate().flat_map(|(index, digit)| dash(index).into_iter().chain([digit])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Version 4, and with its first fields turned it would be of version 5.
    const UUID: &str = "4c1d7e02-93aa-4f5b-b1c0-0cc47a123456";

    fn bytes(uuid: &str) -> [u8; 16] {
        u128::from_str_radix(&uuid.replace('-', ""), 16).unwrap().to_be_bytes()
    }

    #[test]
    fn each_order_is_read_as_it_was_sent() {
        assert_eq!(GuidOrder::Rfc4122.read(bytes(UUID)).unwrap(), UUID);
        assert_eq!(GuidOrder::Smbios.read(smbios(bytes(UUID))).unwrap(), UUID);
        assert_eq!(GuidOrder::Ipmi.read(ipmi(bytes(UUID))).unwrap(), UUID);
    }

    #[test]
    fn a_uuid_is_told_only_if_it_is_plain() {
        let sent = bytes("4c1d7e02-93aa-4fcb-b1c0-0cc47a123456");
        assert_eq!(GuidOrder::Plain.read(sent).unwrap(), text(sent));
        assert_eq!(GuidOrder::Plain.read(smbios(sent)).unwrap(), text(sent));
        assert_eq!(GuidOrder::Plain.read(bytes(UUID)), None);
        assert_eq!(GuidOrder::Plain.read(bytes("00000000-0000-0000-0000-0cc47a123456")), None);
    }

    #[test]
    fn what_was_never_set_is_no_identity() {
        for order in [GuidOrder::Plain, GuidOrder::Smbios, GuidOrder::Ipmi, GuidOrder::Rfc4122] {
            assert_eq!((order.read([0x00; 16]), order.read([0xff; 16])), (None, None));
        }
    }

    #[test]
    fn an_order_is_named() {
        assert_eq!(GuidOrder::of(" SMBIOS "), Ok(GuidOrder::Smbios));
        assert!(GuidOrder::of("auto").is_err());
    }
}
