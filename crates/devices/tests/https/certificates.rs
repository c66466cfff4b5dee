//! Certificates as devices have them: by an authority, self-signed, expired.

use std::net::{IpAddr, Ipv4Addr};

use palisade_devices::https::{Fingerprint, Trust};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

/// An authority.
pub(crate) struct Authority {
    pub(crate) pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// What a server shows.
pub(crate) struct Shown {
    pub(crate) certificate: CertificateDer<'static>,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) pem: String,
}

impl Shown {
    fn new(certificate: &rcgen::Certificate, key: &KeyPair) -> Self {
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Self { certificate: certificate.der().clone(), key, pem: certificate.pem() }
    }

    pub(crate) fn pinned(&self) -> Trust {
        Trust::Pinned(Fingerprint::of(&self.certificate))
    }
}

impl Authority {
    pub(crate) fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Self { pem, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn trust(&self) -> Trust {
        Trust::of(Some(&self.pem), None, None).unwrap()
    }

    /// A certificate for the loopback address.
    pub(crate) fn for_loopback(&self) -> Shown {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        self.sign(&params)
    }

    /// One for a name, as most have.
    pub(crate) fn for_name(&self, name: &str) -> Shown {
        self.sign(&CertificateParams::new(vec![name.to_owned()]).unwrap())
    }

    /// One for the loopback address, of long ago.
    pub(crate) fn expired(&self) -> Shown {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Shown {
        let key = KeyPair::generate().unwrap();
        Shown::new(&params.signed_by(&key, &self.issuer).unwrap(), &key)
    }
}

/// As `openssl req -x509` makes it, and so many BMCs: its own authority, for a name that nobody calls it by.
pub(crate) fn self_signed() -> Shown {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost.localdomain".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    Shown::new(&params.self_signed(&key).unwrap(), &key)
}
