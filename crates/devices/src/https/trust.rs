//! HTTPS / trust: whose certificate counts, as a template and its Secret say it.
//!
//! Promise: without a word about it, certificates are verified; what contradicts itself is refused, not guessed at.

use std::fmt;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Whose certificate counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// That of the authorities which the system trusts.
    System,
    /// That of these authorities and of nobody else; or one of these very certificates, as a BMC signs its own.
    Authorities(Vec<CertificateDer<'static>>),
    /// The one with this fingerprint. Names and dates do not matter: it is known.
    Pinned(Fingerprint),
    /// Anybody's. Whoever stands between us and the device can read its password, and tell us that the machine is off.
    Anybody,
}

impl Trust {
    /// From the parameters `ca` (PEM), `fingerprint` (SHA-256) and `ssl_insecure`, of which at most one may be given.
    pub fn of(ca: Option<&str>, fingerprint: Option<&str>, insecure: Option<&str>) -> Result<Self, BadTrust> {
        let insecure = insecure.map(yes_or_no).transpose()?.unwrap_or(false);
        match (ca, fingerprint, insecure) {
            (None, None, false) => Ok(Self::System),
            (Some(pem), None, false) => authorities(pem).map(Self::Authorities),
            (None, Some(text), false) => Fingerprint::read(text).map(Self::Pinned),
            (None, None, true) => Ok(Self::Anybody),
            _ => Err(BadTrust(
                "`ca`, `fingerprint` and `ssl_insecure` say different things about the device's certificate; keep one of them"
                    .to_owned(),
            )),
        }
    }
}

/// What is said about trust makes no sense.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadTrust(pub String);

impl fmt::Display for BadTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for BadTrust {}

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// That of this certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
        let mut bytes = [0; 32];
        // Both have 32 bytes; a zip cannot fail where a copy could panic.
        bytes.iter_mut().zip(digest.as_ref()).for_each(|(to, from)| *to = *from);
        Self(bytes)
    }

    /// 64 hexadecimal digits, with or without colons, as `openssl x509 -fingerprint -sha256` prints them.
    pub fn read(text: &str) -> Result<Self, BadTrust> {
        let bad = || {
            BadTrust(format!(
                "`fingerprint` is not the SHA-256 of a certificate, which has 64 hexadecimal digits: {}",
                text.chars().take(100).collect::<String>()
            ))
        };
        let digits = text.rsplit('=').next().unwrap_or(text).chars().filter(|digit| !matches!(digit, ':' | ' '));
        let values: Option<Vec<u32>> = digits.map(|digit| digit.to_digit(16)).collect();
        let values = values.filter(|values| values.len() == 64).ok_or_else(bad)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(values.chunks(2)) {
            *byte = u8::try_from(pair.iter().fold(0, |known, digit| known * 16 + digit)).map_err(|_| bad())?;
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, byte) in self.0.iter().enumerate() {
            let colon = if number == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

fn authorities(pem: &str) -> Result<Vec<CertificateDer<'static>>, BadTrust> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    match all {
        Ok(all) if !all.is_empty() => Ok(all),
        Ok(_) => Err(BadTrust(
            "`ca` holds no certificate; it has to be PEM, beginning with -----BEGIN CERTIFICATE-----".to_owned(),
        )),
        Err(why) => Err(BadTrust(format!("`ca` is no PEM: {why}"))),
    }
}

/// To a fence agent the mere presence of a boolean means yes, even of `0`. Here it means what it says.
fn yes_or_no(text: &str) -> Result<bool, BadTrust> {
    match text.trim().to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        other => Err(BadTrust(format!("`ssl_insecure` is 1 or 0, not {other}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "0123456789abcdef0123456789ABCDEF0123456789abcdef0123456789abcdef";

    #[test]
    fn certificates_are_verified_unless_somebody_says_plainly_that_they_are_not() {
        assert_eq!(Trust::of(None, None, None), Ok(Trust::System));
        assert_eq!(Trust::of(None, None, Some("0")), Ok(Trust::System), "to an agent this would mean yes");
        assert_eq!(Trust::of(None, None, Some("true")), Ok(Trust::Anybody));
        assert!(Trust::of(None, None, Some("perhaps")).is_err());
    }

    #[test]
    fn a_fingerprint_is_read_as_tools_print_it() {
        let plain = Fingerprint::read(DIGITS).unwrap();
        let printed = plain.to_string();
        assert_eq!(printed.len(), 95);
        assert_eq!(Fingerprint::read(&printed), Ok(plain));
        assert_eq!(Fingerprint::read(&format!("sha256 Fingerprint={printed}")), Ok(plain));
        for bad in ["", "ab", &DIGITS[1..], &DIGITS.replace('a', "x")] {
            assert!(Fingerprint::read(bad).unwrap_err().0.contains("64 hexadecimal digits"), "{bad}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let why = Trust::of(Some("pem"), Some(DIGITS), None).unwrap_err().0;
        assert!(why.contains("keep one of them"), "{why}");
        assert!(Trust::of(None, Some(DIGITS), Some("1")).is_err());
        assert!(Trust::of(Some("no certificate"), None, None).unwrap_err().0.contains("holds no certificate"));
    }
}
