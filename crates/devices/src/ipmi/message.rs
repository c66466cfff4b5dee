//! IPMI / message: one request, and the answer to it, as they are inside of a packet.
//!
//! ```text
//! request  20 | function, 00 | sum | 81 | sequence, 00 | command | data.. | sum
//! reply    81 | function + 1 | sum | 20 | sequence, .. | command | completion code | data.. | sum
//! ```
//! The sequence number tells which request an answer is to: a BMC may answer late, or twice.

use super::packet::Reader;

/// The address of the BMC, and ours: the first one that is kept for remote consoles.
const BMC: u8 = 0x20;
const CONSOLE: u8 = 0x81;

/// What a command is about: chassis, the BMC itself, or what it stores.
pub(super) const CHASSIS: u8 = 0x00;
pub(super) const APP: u8 = 0x06;
pub(super) const STORAGE: u8 = 0x0a;

/// The six bits of a sequence number.
pub(super) const SEQUENCES: u8 = 0x3f;

/// What the BMC is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) function: u8,
    pub(super) command: u8,
    pub(super) data: &'a [u8],
}

impl Request<'_> {
    pub(super) fn bytes(&self, sequence: u8) -> Vec<u8> {
        let first = [BMC, self.function << 2];
        let mut second = vec![CONSOLE, (sequence & SEQUENCES) << 2, self.command];
        second.extend(self.data);
        let sums = (sum(&first), sum(&second));
        let mut message = first.to_vec();
        message.push(sums.0);
        message.extend(second);
        message.push(sums.1);
        message
    }

    /// The reply to this request, if these bytes are one.
    pub(super) fn answered_by(&self, message: &[u8], sequence: u8) -> Option<Reply> {
        let mut bytes = Reader::new(message);
        // A sum is chosen so that everything with it adds up to zero.
        let head: [u8; 3] = bytes.array()?;
        if sum(&head) != 0 || sum(bytes.rest()) != 0 {
            return None;
        }
        let [to, function, _] = head;
        let [_from, number, command, code] = bytes.array()?;
        let (_sum, data) = bytes.rest().split_last()?;
        let ours = to == CONSOLE
            && function >> 2 == self.function | 1
            && number >> 2 == sequence & SEQUENCES
            && command == self.command;
        ours.then(|| Reply { code, data: data.to_vec() })
    }
}

/// What it answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reply {
    /// The completion code: 0 is done.
    pub(super) code: u8,
    pub(super) data: Vec<u8>,
}

/// What has to be added so that the sum of all is zero.
fn sum(bytes: &[u8]) -> u8 {
    bytes.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte)).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STATUS: Request<'static> = Request { function: CHASSIS, command: 0x01, data: &[] };

    fn reply() -> Vec<u8> {
        vec![0x81, 0x04, 0x7b, 0x20, 0x04, 0x01, 0x00, 0x21, 0x10, 0x40, 0x6a]
    }

    #[test]
    fn a_request_has_both_sums() {
        let asked = Request { function: APP, command: 0x38, data: &[0x8e, 0x04] };
        assert_eq!(asked.bytes(0), [0x20, 0x18, 0xc8, 0x81, 0x00, 0x38, 0x8e, 0x04, 0xb5]);
    }

    #[test]
    fn a_reply_is_to_one_request() {
        let answer = Reply { code: 0, data: vec![0x21, 0x10, 0x40] };
        assert_eq!(STATUS.answered_by(&reply(), 1), Some(answer));
        assert_eq!(STATUS.answered_by(&reply(), 2), None, "another number");
        assert_eq!(Request { command: 0x02, ..STATUS }.answered_by(&reply(), 1), None, "another command");
        assert_eq!(Request { function: APP, ..STATUS }.answered_by(&reply(), 1), None, "another function");
    }

    #[test]
    fn a_reply_with_one_wrong_bit_is_none() {
        for bit in 0..reply().len() * 8 {
            let mut spoilt = reply();
            spoilt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(STATUS.answered_by(&spoilt, 1), None, "bit {bit}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..40), sequence in any::<u8>()) {
            let _ = STATUS.answered_by(&bytes, sequence);
        }
    }
}
