//! Papers: the certificates, tokens and kubeconfigs of a lab, made anew for each.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

use crate::control_plane::API_PORT;
use crate::run::Run;

/// Who may ask the API server, by token: name, user, groups.
const USERS: [(&str, &str, &str); 3] = [
    ("admin", "admin", "system:masters"),
    ("kube-controller-manager", "system:kube-controller-manager", ""),
    ("kube-scheduler", "system:kube-scheduler", ""),
];

/// Where the papers of a lab are.
#[derive(Clone, Debug)]
pub struct Papers {
    run: Run,
    dir: PathBuf,
}

/// An authority that signs.
struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

impl Papers {
    /// The papers of a lab, wherever they have got to.
    pub fn of(run: Run) -> Self {
        Self { run, dir: run.dir().join("papers") }
    }

    /// Makes them all.
    pub fn write(&self, machines: &[String]) -> Result<()> {
        fs::create_dir_all(&self.dir)?;
        let authority = Authority::named("palisade lab")?;
        fs::write(self.ca(), &authority.pem)?;
        let run = self.run;
        let api = [run.api_address(), run.api_service()].map(IpAddr::V4);
        let names =
            ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
        self.keep("apiserver", authority.server("kube-apiserver", &api, &names)?)?;
        self.keep("apiserver-kubelet-client", authority.client("kube-apiserver-kubelet-client", "system:masters")?)?;
        let key = KeyPair::generate()?;
        fs::write(self.path("service-accounts.key"), key.serialize_pem())?;
        fs::write(self.path("service-accounts.pub"), key.public_key_pem())?;
        self.write_tokens(machines)?;
        self.write_bmcs(machines)
    }

    /// The authority of the cluster.
    pub fn ca(&self) -> PathBuf {
        self.path("ca.crt")
    }

    /// The authority of the BMCs: not the cluster's, as in a real machine room.
    pub fn bmc_ca(&self) -> PathBuf {
        self.path("bmc-ca.crt")
    }

    /// Certificate and key of this name.
    pub fn pair(&self, name: &str) -> (PathBuf, PathBuf) {
        (self.path(&format!("{name}.crt")), self.path(&format!("{name}.key")))
    }

    /// A file among them.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// The kubeconfig of a user: `admin`, a component, or a machine.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        self.path(&format!("{user}.kubeconfig"))
    }

    /// Writes the kubeconfig of whoever has this token.
    pub fn write_kubeconfig(&self, user: &str, token: &str) -> Result<PathBuf> {
        let server = format!("https://{}:{API_PORT}", self.run.api_address());
        let config = serde_json::json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "lab",
            "clusters": [{ "name": "lab", "cluster": { "server": server, "certificate-authority": self.ca() } }],
            "users": [{ "name": user, "user": { "token": token } }],
            "contexts": [{ "name": "lab", "context": { "cluster": "lab", "user": user } }],
        });
        let path = self.kubeconfig(user);
        fs::write(&path, serde_json::to_vec_pretty(&config)?)?;
        Ok(path)
    }

    fn write_tokens(&self, machines: &[String]) -> Result<()> {
        let mut tokens = BTreeMap::new();
        for (name, user, groups) in USERS {
            tokens.insert(name.to_owned(), (user.to_owned(), groups));
        }
        for machine in machines {
            tokens.insert(machine.clone(), (format!("system:node:{machine}"), "system:nodes"));
            tokens.insert(format!("{machine}-proxy"), ("system:kube-proxy".to_owned(), ""));
        }
        let mut table = Vec::new();
        for (name, (user, groups)) in tokens {
            let token = random_uuid()?;
            table.push(format!("{token},{user},{name},\"{groups}\"\n"));
            self.write_kubeconfig(&name, &token)?;
        }
        fs::write(self.path("tokens.csv"), table.concat()).context("cannot write the tokens")
    }

    fn write_bmcs(&self, machines: &[String]) -> Result<()> {
        let authority = Authority::named("palisade lab machine room")?;
        fs::write(self.bmc_ca(), &authority.pem)?;
        for (index, machine) in (1_u8..).zip(machines) {
            let address = [IpAddr::V4(self.run.bmc_address(index))];
            self.keep(&format!("bmc-{machine}"), authority.server(&format!("bmc-{machine}"), &address, &[])?)?;
        }
        Ok(())
    }

    fn keep(&self, name: &str, (certificate, key): (String, String)) -> Result<()> {
        let (at, key_at) = self.pair(name);
        fs::write(at, certificate)?;
        fs::write(key_at, key).with_context(|| format!("cannot write the key of {name}"))
    }
}

impl Authority {
    fn named(name: &str) -> Result<Self> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    fn server(&self, name: &str, addresses: &[IpAddr], names: &[&str]) -> Result<(String, String)> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names.extend(addresses.iter().copied().map(SanType::IpAddress));
        for name in names {
            params.subject_alt_names.push(SanType::DnsName((*name).try_into()?));
        }
        self.sign(&params)
    }

    fn client(&self, name: &str, group: &str) -> Result<(String, String)> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(&params)
    }

    fn sign(&self, params: &CertificateParams) -> Result<(String, String)> {
        let key = KeyPair::generate()?;
        Ok((params.signed_by(&key, &self.issuer)?.pem(), key.serialize_pem()))
    }
}

/// A UUID that nobody has yet, from the kernel.
pub fn random_uuid() -> Result<String> {
    let text = fs::read_to_string(Path::new("/proc/sys/kernel/random/uuid")).context("the kernel gives no UUID")?;
    Ok(text.trim().to_owned())
}
