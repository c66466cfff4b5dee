//! IPMI / seal: packets of a session, encrypted and with a code of everything in them.
//!
//! Promise: nothing is decrypted, looked at or counted before its code fits; a packet that is not both encrypted and
//! authenticated is none.
//!
//! ```text
//! encrypted   first block (random) 16 | AES-CBC-128( message | 01 02 .. | how many )
//! ```

use aes::Aes128;
use aes::cipher::{BlockModeDecrypt, BlockModeEncrypt, KeyIvInit};

use super::keys::Keys;
use super::packet::{self, Kind, Packet};

const BLOCK: usize = 16;

/// A message for the BMC as it goes over the wire. `first` is random and new for every packet.
pub(super) fn seal(keys: &Keys, session: u32, sequence: u32, first: [u8; BLOCK], message: &[u8]) -> Option<Vec<u8>> {
    let mut text = message.to_vec();
    let pads = u8::try_from((BLOCK - (message.len() + 1) % BLOCK) % BLOCK).ok()?;
    text.extend(1..=pads);
    text.push(pads);
    let encrypted = [&first[..], &encrypt(&keys.confidentiality, first, text)?].concat();
    let mut packet = packet::inside(session, sequence, &encrypted)?;
    let code = keys.code(packet::covered(&packet));
    packet.extend(code);
    Some(packet)
}

/// A packet of the BMC that holds what we have agreed on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Opened {
    pub(super) sequence: u32,
    pub(super) message: Vec<u8>,
}

/// What a datagram of this session says.
pub(super) fn open(keys: &Keys, session: u32, datagram: &[u8]) -> Option<Opened> {
    let packet = Packet::read(datagram)?;
    if packet.kind != Kind::Message || !packet.encrypted || packet.session != session {
        return None;
    }
    let (covered, code) = packet.code(keys.code_length())?;
    if !keys.fits(covered, code) {
        return None;
    }
    let (first, text) = packet.payload.split_first_chunk()?;
    let message = without_pads(decrypt(&keys.confidentiality, *first, text.to_vec())?)?;
    Some(Opened { sequence: packet.sequence, message })
}

fn encrypt(key: &[u8; BLOCK], first: [u8; BLOCK], mut text: Vec<u8>) -> Option<Vec<u8>> {
    let mut mode = cbc::Encryptor::<Aes128>::new(key.into(), &first.into());
    for block in text.chunks_mut(BLOCK) {
        mode.encrypt_block(block.try_into().ok()?);
    }
    Some(text)
}

/// `None` where there is no whole number of blocks.
fn decrypt(key: &[u8; BLOCK], first: [u8; BLOCK], mut text: Vec<u8>) -> Option<Vec<u8>> {
    let mut mode = cbc::Decryptor::<Aes128>::new(key.into(), &first.into());
    for block in text.chunks_mut(BLOCK) {
        mode.decrypt_block(block.try_into().ok()?);
    }
    Some(text)
}

fn without_pads(mut text: Vec<u8>) -> Option<Vec<u8>> {
    let pads = usize::from(text.pop()?);
    let (message, padding) = text.split_at_checked(text.len().checked_sub(pads)?)?;
    let counted = padding.iter().zip(1_u8..).all(|(pad, count)| *pad == count);
    (pads < BLOCK && counted).then(|| message.to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::keys::Told;
    use super::super::login::{Login, Suite};
    use super::*;

    fn keys(suite: Suite) -> Keys {
        let login = Login::new("fence", "s3cret").unwrap();
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
        told.keys()
    }

    /// NIST SP 800-38A, F.2.1 and F.2.2.
    #[test]
    fn aes_cbc_is_that_of_nist() {
        let number = |hexadecimal: &str| u128::from_str_radix(hexadecimal, 16).unwrap().to_be_bytes();
        let key = number("2b7e151628aed2a6abf7158809cf4f3c");
        let first = number("000102030405060708090a0b0c0d0e0f");
        let text = ["6bc1bee22e409f96e93d7e117393172a", "ae2d8a571e03ac9c9eb76fac45af8e51"].map(number).concat();
        let hidden = ["7649abac8119b246cee98e9b12e9197d", "5086cb9b507219ee95db113a917678b2"].map(number).concat();
        assert_eq!(encrypt(&key, first, text.clone()), Some(hidden.clone()));
        assert_eq!(decrypt(&key, first, hidden), Some(text));
        assert_eq!(decrypt(&key, first, vec![0; 17]), None);
    }

    #[test]
    fn every_bit_of_a_packet_counts() {
        for suite in [Suite::Three, Suite::Seventeen] {
            let keys = keys(suite);
            let packet = seal(&keys, 7, 9, [6; 16], b"message").unwrap();
            let opened = Opened { sequence: 9, message: b"message".to_vec() };
            assert_eq!(open(&keys, 7, &packet), Some(opened));
            assert_eq!(open(&keys, 8, &packet), None, "another session");
            // Two bytes of RMCP itself are covered by nothing and mean nothing.
            for bit in (0..packet.len() * 8).filter(|bit| !(8..24).contains(bit)) {
                let mut spoilt = packet.clone();
                spoilt[bit / 8] ^= 1 << (bit % 8);
                assert_eq!(open(&keys, 7, &spoilt), None, "bit {bit}");
            }
        }
    }

    #[test]
    fn a_packet_of_another_suite_or_password_is_none() {
        let packet = seal(&keys(Suite::Three), 7, 9, [6; 16], b"message").unwrap();
        assert_eq!(open(&keys(Suite::Seventeen), 7, &packet), None);
    }

    /// Both sides have agreed on encryption: what comes without is none, even if its code fits.
    #[test]
    fn a_packet_that_is_not_encrypted_is_none() {
        let keys = keys(Suite::Three);
        let sealed = seal(&keys, 7, 9, [6; 16], b"message").unwrap();
        let mut packet = sealed[..sealed.len() - keys.code_length()].to_vec();
        packet[5] &= 0x7f;
        let code = keys.code(packet::covered(&packet));
        packet.extend(code);
        assert_eq!(open(&keys, 7, &packet), None);
    }

    /// A code that fits says who wrote it, not that it was well written.
    #[test]
    fn pads_that_do_not_count_are_none() {
        assert_eq!(without_pads(vec![]), None);
        assert_eq!(without_pads(vec![1]), None);
        assert_eq!(without_pads(vec![9, 1, 2, 2]), Some(vec![9]));
        assert_eq!(without_pads(vec![9, 1, 3, 2]), None);
        assert_eq!(without_pads((0..=16).chain([16]).collect()), None);
    }

    proptest! {
        #[test]
        fn what_was_sealed_is_opened(message in proptest::collection::vec(any::<u8>(), 0..200), first in any::<[u8; 16]>()) {
            let keys = keys(Suite::Seventeen);
            let packet = seal(&keys, 7, 9, first, &message).unwrap();
            prop_assert_eq!(open(&keys, 7, &packet), Some(Opened { sequence: 9, message }));
        }

        /// As if somebody had the keys and sent nonsense.
        #[test]
        fn any_payload_with_a_code_that_fits_can_be_read(payload in proptest::collection::vec(any::<u8>(), 0..100)) {
            let keys = keys(Suite::Three);
            let mut packet = packet::inside(7, 9, &payload).unwrap();
            let code = keys.code(packet::covered(&packet));
            packet.extend(code);
            let _ = open(&keys, 7, &packet);
        }
    }
}
