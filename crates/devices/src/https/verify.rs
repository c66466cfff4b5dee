//! HTTPS / verify: looks at the certificate that a device shows.
//!
//! Promise: whatever is trusted, the device has to sign with the certificate's key: a copy of a certificate opens nothing. What
//! is refused is refused with the fingerprint that was seen, so that a person can compare it with what the device itself shows.

use std::fmt;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};

use super::trust::{BadTrust, Fingerprint, Trust};

/// Looks at certificates.
#[derive(Debug)]
pub(super) struct Verifier {
    rule: Rule,
    algorithms: WebPkiSupportedAlgorithms,
}

#[derive(Debug)]
enum Rule {
    Signed { by: Arc<WebPkiServerVerifier>, or_one_of: Vec<CertificateDer<'static>> },
    Pinned(Fingerprint),
    Anybody,
}

impl Verifier {
    pub(super) fn new(
        trust: &Trust,
        provider: &Arc<CryptoProvider>,
        system: impl FnOnce() -> Arc<RootCertStore>,
    ) -> Result<Self, BadTrust> {
        let rule = match trust {
            Trust::System => Rule::Signed { by: signed(system(), provider)?, or_one_of: Vec::new() },
            Trust::Authorities(all) => {
                let mut roots = RootCertStore::empty();
                for one in all {
                    roots
                        .add(one.clone())
                        .map_err(|why| BadTrust(format!("a certificate in `ca` cannot be used: {why}")))?;
                }
                Rule::Signed { by: signed(Arc::new(roots), provider)?, or_one_of: all.clone() }
            }
            Trust::Pinned(fingerprint) => Rule::Pinned(*fingerprint),
            Trust::Anybody => Rule::Anybody,
        };
        Ok(Self { rule, algorithms: provider.signature_verification_algorithms })
    }
}

fn signed(roots: Arc<RootCertStore>, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, BadTrust> {
    if roots.is_empty() {
        return Err(BadTrust(
            "nobody says whose certificate to trust, and this system has no authorities of its own; give `ca` in the Secret, \
             or `fingerprint`"
                .to_owned(),
        ));
    }
    WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(provider))
        .build()
        .map_err(|why| BadTrust(format!("the authorities cannot be used: {why}")))
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let seen = Fingerprint::of(shown);
        let refused = |why: Refused| {
            let refused = NotTrusted { why, seen };
            Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(refused))))
        };
        match &self.rule {
            Rule::Anybody => Ok(ServerCertVerified::assertion()),
            Rule::Pinned(wanted) if *wanted == seen => Ok(ServerCertVerified::assertion()),
            Rule::Pinned(wanted) => Err(refused(Refused::Another { wanted: *wanted })),
            // A BMC's own certificate is an authority and a server in one, which no verifier takes as a chain. Whoever gave us
            // this very certificate has said whom they mean.
            Rule::Signed { or_one_of, .. } if or_one_of.iter().any(|known| known.as_ref() == shown.as_ref()) => {
                Ok(ServerCertVerified::assertion())
            }
            Rule::Signed { by, .. } => by
                .verify_server_cert(shown, between, name, ocsp, now)
                .map_err(|why| refused(Refused::Unsigned(Box::new(why)))),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// The certificate of a device is not trusted.
#[derive(Debug)]
pub(super) struct NotTrusted {
    why: Refused,
    seen: Fingerprint,
}

#[derive(Debug)]
enum Refused {
    Another { wanted: Fingerprint },
    Unsigned(Box<Error>),
}

impl NotTrusted {
    /// In this error, if it is there.
    pub(super) fn within(why: &Error) -> Option<&Self> {
        match why {
            Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => inner.downcast_ref(),
            _ => None,
        }
    }
}

impl std::error::Error for NotTrusted {}

impl fmt::Display for NotTrusted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use CertificateError as Bad;
        let why = match &self.why {
            Refused::Another { wanted } => {
                return write!(
                    f,
                    "its certificate has the fingerprint {}, and not {wanted}; if the device was replaced or renewed its \
                     certificate, compare it there and put the new `fingerprint` into the template; if not, somebody stands \
                     between us and the device",
                    self.seen
                );
            }
            Refused::Unsigned(why) => why,
        };
        match &**why {
            Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => write!(
                f,
                "its certificate is not trusted: nobody whom we trust has signed it; put the certificate of its authority \
                 into the Secret as `ca`"
            )?,
            Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
                write!(f, "its certificate is not trusted: it has expired; renew it at the device")?;
            }
            Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => write!(
                f,
                "its certificate is not trusted: it is not valid yet; look at the clocks of the device and of this machine"
            )?,
            Error::InvalidCertificate(why @ (Bad::NotValidForName | Bad::NotValidForNameContext { .. })) => {
                let names = match why {
                    Bad::NotValidForNameContext { presented, .. } => presented.as_slice(),
                    _ => &[],
                };
                write!(f, "its certificate is for another name than the one that we call it by")?;
                if !names.is_empty() {
                    write!(f, " ({})", names.iter().take(5).cloned().collect::<Vec<_>>().join(", "))?;
                }
                write!(f, "; call it by that name in `ip`")?;
            }
            other => write!(f, "its certificate is not trusted: {other}")?,
        }
        write!(f, ", or, once you have compared it at the device, set `fingerprint` to {}", self.seen)
    }
}
