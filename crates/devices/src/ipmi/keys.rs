//! IPMI / keys: how both sides prove that they know the password, and the keys of a session that follow from it.
//!
//! Promise: codes are compared in a time that does not depend on them; keys and passwords have no Debug.
//!
//! ```text
//! RAKP 2   HMAC[user key](console session, BMC session, console random, BMC random, GUID, role, length, name)
//! RAKP 3   HMAC[user key](BMC random, console session, role, length, name)
//! SIK      HMAC[K_g, or user key](console random, BMC random, role, length, name)
//! RAKP 4   HMAC[SIK](console random, BMC session, GUID), cut short
//! K1, K2   HMAC[SIK](01 x 20), HMAC[SIK](02 x 20)
//! ```

use ring::hmac;

use super::login::{Login, Suite};

impl Suite {
    fn hash(self) -> hmac::Algorithm {
        match self {
            // HMAC does not need what SHA-1 has lost.
            Self::Three => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Seventeen => hmac::HMAC_SHA256,
        }
    }

    /// The numbers of its algorithms: authentication, integrity, confidentiality.
    pub(super) fn algorithms(self) -> [u8; 3] {
        const AES_CBC_128: u8 = 0x01;
        match self {
            Self::Three => [0x01, 0x01, AES_CBC_128],
            Self::Seventeen => [0x03, 0x04, AES_CBC_128],
        }
    }

    /// How long the code of RAKP 2 and 3 is.
    pub(super) fn whole_code(self) -> usize {
        match self {
            Self::Three => 20,
            Self::Seventeen => 32,
        }
    }

    /// How long the code of RAKP 4 and of every packet is.
    pub(super) fn short_code(self) -> usize {
        match self {
            Self::Three => 12,
            Self::Seventeen => 16,
        }
    }
}

/// What both sides have told each other until RAKP 2.
pub(super) struct Told<'a> {
    pub(super) suite: Suite,
    pub(super) login: &'a Login,
    /// Role and the way a user is looked up, as we sent it.
    pub(super) role: u8,
    pub(super) console_session: u32,
    pub(super) bmc_session: u32,
    pub(super) console_random: [u8; 16],
    pub(super) bmc_random: [u8; 16],
    pub(super) guid: [u8; 16],
}

impl Told<'_> {
    /// Whether the BMC knows the password.
    pub(super) fn proven_by(&self, rakp2: &[u8]) -> bool {
        let mut said = self.console_session.to_le_bytes().to_vec();
        said.extend(self.bmc_session.to_le_bytes());
        said.extend(self.console_random);
        said.extend(self.bmc_random);
        said.extend(self.guid);
        self.add_user(&mut said);
        is_code(&self.user_key(), &said, rakp2, self.suite.whole_code())
    }

    /// That we know the password.
    pub(super) fn our_proof(&self) -> Vec<u8> {
        let mut said = self.bmc_random.to_vec();
        said.extend(self.console_session.to_le_bytes());
        self.add_user(&mut said);
        code(&self.user_key(), &said, self.suite.whole_code())
    }

    /// The keys of the session.
    pub(super) fn keys(&self) -> Keys {
        let mut said = self.console_random.to_vec();
        said.extend(self.bmc_random);
        self.add_user(&mut said);
        let key = hmac::Key::new(self.suite.hash(), self.login.session_key());
        Keys::of(self.suite, hmac::sign(&key, &said).as_ref())
    }

    /// Whether the BMC has come to the same keys.
    pub(super) fn agreed_by(&self, keys: &Keys, rakp4: &[u8]) -> bool {
        let mut said = self.console_random.to_vec();
        said.extend(self.bmc_session.to_le_bytes());
        said.extend(self.guid);
        is_code(&keys.session, &said, rakp4, self.suite.short_code())
    }

    fn user_key(&self) -> hmac::Key {
        hmac::Key::new(self.suite.hash(), self.login.user_key())
    }

    fn add_user(&self, said: &mut Vec<u8>) {
        let name = self.login.username.as_bytes();
        // A login has names of up to 16 bytes.
        said.extend([self.role, u8::try_from(name.len()).unwrap_or(u8::MAX)]);
        said.extend(name);
    }
}

/// The keys of a session.
pub(super) struct Keys {
    suite: Suite,
    /// SIK.
    session: hmac::Key,
    /// K1.
    integrity: hmac::Key,
    /// The part of K2 that AES uses.
    pub(super) confidentiality: [u8; 16],
}

impl Keys {
    fn of(suite: Suite, sik: &[u8]) -> Self {
        let session = hmac::Key::new(suite.hash(), sik);
        let integrity = hmac::sign(&session, &[0x01; 20]);
        let mut confidentiality = [0; 16];
        // Both hashes are longer than this.
        confidentiality.iter_mut().zip(hmac::sign(&session, &[0x02; 20]).as_ref()).for_each(|(to, from)| *to = *from);
        Self { suite, integrity: hmac::Key::new(suite.hash(), integrity.as_ref()), session, confidentiality }
    }

    /// The code of a packet.
    pub(super) fn code(&self, covered: &[u8]) -> Vec<u8> {
        code(&self.integrity, covered, self.code_length())
    }

    /// Whether a packet is of somebody who has the keys.
    pub(super) fn fits(&self, covered: &[u8], code: &[u8]) -> bool {
        is_code(&self.integrity, covered, code, self.code_length())
    }

    pub(super) fn code_length(&self) -> usize {
        self.suite.short_code()
    }
}

fn code(key: &hmac::Key, said: &[u8], length: usize) -> Vec<u8> {
    hmac::sign(key, said).as_ref().iter().take(length).copied().collect()
}

/// Ring compares only whole codes in constant time, and these are cut short. So the code of both is compared: how far they
/// are alike says nothing about how far the two are.
fn is_code(key: &hmac::Key, said: &[u8], claimed: &[u8], length: usize) -> bool {
    let expected = code(key, said, length);
    claimed.len() == length && hmac::verify(key, claimed, hmac::sign(key, &expected).as_ref()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(hexadecimal: &str) -> Vec<u8> {
        let digits: Vec<char> = hexadecimal.chars().filter(|digit| !digit.is_whitespace()).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap()).collect()
    }

    /// RFC 2202, cases 1 and 2; the last is case 5 cut to 96 bits.
    #[test]
    fn hmac_sha1_is_that_of_rfc_2202() {
        let sign = |key: &[u8], said: &[u8], length| code(&hmac::Key::new(Suite::Three.hash(), key), said, length);
        assert_eq!(sign(&[0x0b; 20], b"Hi There", 20), bytes("b617318655057264e28bc0b6fb378c8ef146be00"));
        let jefe = sign(b"Jefe", b"what do ya want for nothing?", 20);
        assert_eq!(jefe, bytes("effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"));
        assert_eq!(sign(&[0x0c; 20], b"Test With Truncation", 12), bytes("4c1a03424b55e07fe7f27be1"));
    }

    /// RFC 4231, cases 1, 2 and 5, the last of which is cut to 128 bits.
    #[test]
    fn hmac_sha256_is_that_of_rfc_4231() {
        let sign = |key: &[u8], said: &[u8], length| code(&hmac::Key::new(Suite::Seventeen.hash(), key), said, length);
        assert_eq!(
            sign(&[0x0b; 20], b"Hi There", 32),
            bytes("b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7")
        );
        assert_eq!(
            sign(b"Jefe", b"what do ya want for nothing?", 32),
            bytes("5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843")
        );
        assert_eq!(sign(&[0x0c; 20], b"Test With Truncation", 16), bytes("a3b6167473100ee06e0c796c2955552b"));
    }

    #[test]
    fn a_code_fits_only_as_a_whole() {
        let key = hmac::Key::new(Suite::Three.hash(), b"key");
        let right = code(&key, b"said", 12);
        assert!(is_code(&key, b"said", &right, 12));
        assert!(!is_code(&key, b"sa1d", &right, 12));
        for length in 0..12 {
            assert!(!is_code(&key, b"said", &right[..length], 12), "{length} bytes are enough");
        }
        for byte in 0..12 {
            let mut wrong = right.clone();
            wrong[byte] ^= 0x80;
            assert!(!is_code(&key, b"said", &wrong, 12));
        }
    }
}
