//! A sushy-emulator on loopback with three systems that are on. It ends with the test.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use palisade_devices::Device;
use palisade_devices::https::{Fingerprint, Https, Trust};
use palisade_devices::redfish::{Credentials, Redfish};
use rcgen::{CertificateParams, KeyPair, SanType};

use crate::python;

/// The user `fence` with the password `s3cret`, as bcrypt has it at its lowest cost.
const PASSWORDS: &str = "fence:$2b$04$WNsJgMKrDjp4LkcJWjUDU.d1GzrhS2FpfYioWOpfbbxiVOI3jqVg6\n";

/// The UUID of a system, which is also its Id there.
pub(crate) fn uuid(number: u32) -> String {
    format!("4c1d7e02-93aa-4fcb-b1c0-0cc47a12345{number}")
}

pub(crate) struct Emulator {
    process: Child,
    directory: PathBuf,
    base: String,
    pem: String,
    fingerprint: Fingerprint,
}

impl Emulator {
    /// Started; nothing where it cannot be.
    pub(crate) async fn start(name: &str) -> Option<Self> {
        let python = tokio::task::spawn_blocking(python::interpreter).await.unwrap()?;
        let directory = std::env::temp_dir().join(format!("palisade-sushy-{}-{name}", std::process::id()));
        fs::create_dir_all(directory.join("state")).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
        let certificate = params.self_signed(&key).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let at = directory.display();
        let write = |file: &str, text: &str| fs::write(directory.join(file), text).unwrap();
        write("cert.pem", &certificate.pem());
        write("key.pem", &key.serialize_pem());
        write("passwords", PASSWORDS);
        let system = |number| {
            format!(
                "{{'uuid': '{}', 'name': 'node{number}', 'power_state': 'On', 'external_notifier': False, 'nics': []}}",
                uuid(number)
            )
        };
        let systems: Vec<String> = (1..=3).map(system).collect();
        write(
            "conf.py",
            &format!(
                "SUSHY_EMULATOR_LISTEN_IP = '127.0.0.1'\nSUSHY_EMULATOR_LISTEN_PORT = {port}\n\
                 SUSHY_EMULATOR_SSL_CERT = '{at}/cert.pem'\nSUSHY_EMULATOR_SSL_KEY = '{at}/key.pem'\n\
                 SUSHY_EMULATOR_AUTH_FILE = '{at}/passwords'\nSUSHY_EMULATOR_FAKE_DRIVER = True\n\
                 SUSHY_EMULATOR_STATE_DIR = '{at}/state'\nSUSHY_EMULATOR_FAKE_SYSTEMS = [{}]\n",
                systems.join(", ")
            ),
        );
        let log = fs::File::create(directory.join("log")).unwrap();
        let process = Command::new(python)
            .args(["-m", "sushy_tools.emulator.main", "--config"])
            .arg(directory.join("conf.py"))
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let fingerprint = Fingerprint::of(certificate.der());
        let base = format!("https://127.0.0.1:{port}");
        Self { process, directory, base, pem: certificate.pem(), fingerprint }.ready().await
    }

    async fn ready(mut self) -> Option<Self> {
        for _ in 0..300 {
            if self.device("s3cret").state(&uuid(1)).await.is_ok() {
                return Some(self);
            }
            if let Some(ended) = self.process.try_wait().unwrap() {
                panic!("sushy-emulator ended with {ended}: {}", self.log());
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("sushy-emulator does not answer: {}", self.log());
    }

    /// What it was asked, and what it said on the way.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.directory.join("log")).unwrap_or_default()
    }

    /// The driver that trusts its certificate.
    pub(crate) fn device(&self, password: &str) -> Redfish {
        self.trusting(&Trust::of(Some(&self.pem), None, None).unwrap(), password)
    }

    /// The driver that knows its fingerprint.
    pub(crate) fn pinned(&self, password: &str) -> Redfish {
        self.trusting(&Trust::Pinned(self.fingerprint), password)
    }

    /// The driver that trusts whom the system trusts.
    pub(crate) fn distrustful(&self, password: &str) -> Redfish {
        self.trusting(&Trust::System, password)
    }

    fn trusting(&self, trust: &Trust, password: &str) -> Redfish {
        let channel = Https::default().to(trust).unwrap();
        let login = Credentials { username: "fence".to_owned(), password: password.to_owned() };
        Redfish::new(Arc::new(channel), self.base.clone(), login)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
