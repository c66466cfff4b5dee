//! IPMI / packet: what surrounds a payload on the wire: RMCP, and in it a session header of IPMI 1.5 or of RMCP+.
//!
//! Promise: any bytes can be read, and none panic; what does not fit is `None`, and `None` is never an answer.
//! Never: trusts a length that the bytes do not have; writes an authenticated packet of IPMI 1.5.
//!
//! ```text
//! RMCP      06 00 ff 07                                            version, -, no acknowledgement wanted, class IPMI
//! IPMI 1.5  00 | sequence 4 | session 4 | length 1 | payload       before a session: all zero
//! RMCP+     06 | type 1 | session 4 | sequence 4 | length 2 | payload | ff.. | pads 1 | 07 | code
//! ```
//! Numbers are sent with their lowest byte first. `type` holds two flags: 80 encrypted, 40 authenticated (only then is there
//! anything behind the payload).

/// Version 1.0 of RMCP, and the class of messages that IPMI is.
const VERSION: u8 = 0x06;
const CLASS: u8 = 0x07;

/// What every packet begins with.
const RMCP: [u8; 4] = [VERSION, 0x00, 0xff, CLASS];

/// IPMI 1.5 without authentication.
const NO_AUTHENTICATION: u8 = 0x00;

/// The format of RMCP+.
const RMCP_PLUS: u8 = 0x06;

const ENCRYPTED: u8 = 0x80;
const AUTHENTICATED: u8 = 0x40;

/// What stands between the pads and the code of an authenticated packet.
const NEXT_HEADER: u8 = 0x07;

/// What a payload of RMCP+ is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Message,
    OpenSession,
    OpenSessionReply,
    Rakp1,
    Rakp2,
    Rakp3,
    Rakp4,
}

impl Kind {
    fn number(self) -> u8 {
        match self {
            Self::Message => 0x00,
            Self::OpenSession => 0x10,
            Self::OpenSessionReply => 0x11,
            Self::Rakp1 => 0x12,
            Self::Rakp2 => 0x13,
            Self::Rakp3 => 0x14,
            Self::Rakp4 => 0x15,
        }
    }

    fn of(number: u8) -> Option<Self> {
        let all = [
            Self::Message,
            Self::OpenSession,
            Self::OpenSessionReply,
            Self::Rakp1,
            Self::Rakp2,
            Self::Rakp3,
            Self::Rakp4,
        ];
        all.into_iter().find(|kind| kind.number() == number)
    }
}

/// A packet before a session, in the format of IPMI 1.5: only so is a BMC asked what it can do.
pub(super) fn plain(payload: &[u8]) -> Option<Vec<u8>> {
    let length = u8::try_from(payload.len()).ok()?;
    let mut packet = RMCP.to_vec();
    packet.push(NO_AUTHENTICATION);
    packet.extend([0; 8]);
    packet.push(length);
    packet.extend(payload);
    Some(packet)
}

/// The payload of such a packet. One byte more is allowed: some old network chips needed a pad at certain lengths.
pub(super) fn read_plain(datagram: &[u8]) -> Option<&[u8]> {
    let mut bytes = Reader::of_rmcp(datagram)?;
    let (NO_AUTHENTICATION, 0, 0) = (bytes.byte()?, bytes.number()?, bytes.number()?) else { return None };
    let length = bytes.byte()?;
    let payload = bytes.take(length.into())?;
    (bytes.rest().len() <= 1).then_some(payload)
}

/// A packet of RMCP+ outside of a session: a step of the handshake.
pub(super) fn outside(kind: Kind, payload: &[u8]) -> Option<Vec<u8>> {
    header(kind.number(), 0, 0, payload)
}

/// The payload of such a packet, if it is of this kind.
pub(super) fn read_outside(datagram: &[u8], wanted: Kind) -> Option<&[u8]> {
    let packet = Packet::read(datagram)?;
    let bare = !packet.encrypted && !packet.authenticated;
    (bare && packet.kind == wanted && packet.session == 0).then_some(packet.payload)
}

/// A packet of a session, up to where its code begins. What it is made of from the fourth byte on is what the code is of.
pub(super) fn inside(session: u32, sequence: u32, encrypted: &[u8]) -> Option<Vec<u8>> {
    let mut packet = header(Kind::Message.number() | ENCRYPTED | AUTHENTICATED, session, sequence, encrypted)?;
    let behind_rmcp = packet.len().saturating_sub(RMCP.len());
    // The code is of a whole number of four bytes; two of them are the count of pads and the next header.
    let pads = (4 - (behind_rmcp + 2) % 4) % 4;
    packet.extend([0xff].repeat(pads));
    packet.push(u8::try_from(pads).ok()?);
    packet.push(NEXT_HEADER);
    Some(packet)
}

/// What the code of a packet of a session is of.
pub(super) fn covered(packet: &[u8]) -> &[u8] {
    packet.get(RMCP.len()..).unwrap_or_default()
}

fn header(kind: u8, session: u32, sequence: u32, payload: &[u8]) -> Option<Vec<u8>> {
    let length = u16::try_from(payload.len()).ok()?;
    let mut packet = RMCP.to_vec();
    packet.extend([RMCP_PLUS, kind]);
    packet.extend(session.to_le_bytes());
    packet.extend(sequence.to_le_bytes());
    packet.extend(length.to_le_bytes());
    packet.extend(payload);
    Some(packet)
}

/// A packet of RMCP+ as it came: nothing about it is proven yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub(super) kind: Kind,
    pub(super) encrypted: bool,
    pub(super) authenticated: bool,
    pub(super) session: u32,
    pub(super) sequence: u32,
    pub(super) payload: &'a [u8],
    /// Everything from behind RMCP.
    whole: &'a [u8],
    /// What is behind the payload.
    trailer: &'a [u8],
}

impl<'a> Packet<'a> {
    pub(super) fn read(datagram: &'a [u8]) -> Option<Self> {
        let mut bytes = Reader::of_rmcp(datagram)?;
        let whole = bytes.rest();
        if bytes.byte()? != RMCP_PLUS {
            return None;
        }
        let flags = bytes.byte()?;
        let kind = Kind::of(flags & !(ENCRYPTED | AUTHENTICATED))?;
        let (session, sequence, length) = (bytes.number()?, bytes.number()?, bytes.short()?);
        let payload = bytes.take(length.into())?;
        let (encrypted, authenticated) = (flags & ENCRYPTED != 0, flags & AUTHENTICATED != 0);
        Some(Self { kind, encrypted, authenticated, session, sequence, payload, whole, trailer: bytes.rest() })
    }

    /// What a code of this length would have to be of, and that code.
    pub(super) fn code(&self, length: usize) -> Option<(&'a [u8], &'a [u8])> {
        let (closing, code) = self.trailer.split_at_checked(self.trailer.len().checked_sub(length)?)?;
        let [pads @ .., count, NEXT_HEADER] = closing else { return None };
        if !self.authenticated || usize::from(*count) != pads.len() {
            return None;
        }
        let covered = self.whole.get(..self.whole.len().checked_sub(length)?)?;
        Some((covered, code))
    }
}

/// Bytes that are taken from the front. What is not there is `None`.
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn of_rmcp(datagram: &'a [u8]) -> Option<Self> {
        // The second byte is reserved, the third the number of a message that nobody wants acknowledged.
        let ([VERSION, _, _, CLASS], rest) = datagram.split_first_chunk()? else { return None };
        Some(Self(rest))
    }

    pub(super) fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn short(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_question_before_a_session_is_what_the_specification_shows() {
        // Get Channel Authentication Capabilities, as any tool sends it.
        let asked = plain(&[0x20, 0x18, 0xc8, 0x81, 0x00, 0x38, 0x8e, 0x04, 0xb5]).unwrap();
        let mut shown = vec![0x06, 0x00, 0xff, 0x07, 0x00, 0, 0, 0, 0, 0, 0, 0, 0, 0x09];
        shown.extend([0x20, 0x18, 0xc8, 0x81, 0x00, 0x38, 0x8e, 0x04, 0xb5]);
        assert_eq!(asked, shown);
    }

    #[test]
    fn an_authenticated_packet_is_padded_to_four_bytes() {
        for length in 0..40 {
            let packet = inside(7, 9, &vec![1; length]).unwrap();
            assert_eq!(covered(&packet).len() % 4, 0);
            let whole = [&packet[..], &[0xaa; 12]].concat();
            let read = Packet::read(&whole).unwrap();
            assert_eq!((read.session, read.sequence, read.payload.len()), (7, 9, length));
            assert_eq!(read.code(12).unwrap(), (covered(&packet), &[0xaa; 12][..]));
            // One byte less or more, and where the code begins is a matter of opinion.
            assert_eq!(read.code(11), None);
            assert_eq!(Packet::read(&whole[..whole.len() - 1]).unwrap().code(12), None);
        }
    }

    #[test]
    fn a_length_that_is_not_there_is_no_packet() {
        let whole = outside(Kind::Rakp2, &[5; 60]).unwrap();
        assert!(read_outside(&whole, Kind::Rakp2).is_some());
        assert_eq!(read_outside(&whole, Kind::Rakp4), None);
        for cut in 0..whole.len() {
            assert_eq!(Packet::read(&whole[..cut]), None);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..200), length in 0usize..64) {
            let as_ipmi = [&RMCP[..], &[RMCP_PLUS], &bytes].concat();
            let as_plain = [&RMCP[..], &[0; 9], &bytes].concat();
            for datagram in [&bytes, &as_ipmi, &as_plain] {
                let _ = read_plain(datagram);
                let _ = read_outside(datagram, Kind::Rakp2);
                if let Some(packet) = Packet::read(datagram) {
                    let _ = packet.code(length);
                }
            }
        }

        #[test]
        fn what_was_written_is_read(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let (asked, step) = (plain(&payload).unwrap(), outside(Kind::Rakp1, &payload).unwrap());
            prop_assert_eq!(read_plain(&asked), Some(&payload[..]));
            prop_assert_eq!(read_outside(&step, Kind::Rakp1), Some(&payload[..]));
        }
    }
}
