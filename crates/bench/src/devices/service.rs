//! Devices / service: Redfish services over HTTPS, one for each machine, in a thread of this process.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use palisade_cluster::machines::bmc::Fate;
use palisade_cluster::machines::machine::Switch;
use palisade_cluster::machines::redfish::{self, Panel, Sessions};
use palisade_devices::https::Fingerprint;
use rcgen::{CertificateParams, KeyPair, SanType};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::fence::{PASSWORD, USER};

/// The longest request that is read.
const LONGEST: usize = 64 * 1024;

/// The services. Their thread ends with the process.
pub(super) struct Services {
    ports: Vec<u16>,
    fingerprint: String,
}

impl Services {
    pub(super) fn start(count: u16) -> Result<Self> {
        let (acceptor, fingerprint) = acceptor()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let listeners: Vec<TcpListener> = runtime.block_on(async {
            let mut all = Vec::new();
            for _ in 0..count {
                all.push(TcpListener::bind("127.0.0.1:0").await?);
            }
            Ok::<_, std::io::Error>(all)
        })?;
        let ports = listeners.iter().map(|listener| Ok(listener.local_addr()?.port())).collect::<Result<_>>()?;
        std::thread::spawn(move || {
            runtime.block_on(async {
                let services = listeners.into_iter().map(|listener| listen(listener, acceptor.clone()));
                futures_util::future::join_all(services).await;
            });
        });
        Ok(Self { ports, fingerprint })
    }

    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    pub(super) fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

/// A machine that does at once what it is told.
struct Machine {
    on: bool,
    sessions: Sessions,
}

impl Panel for Machine {
    fn name(&self) -> &'static str {
        "1"
    }

    fn login(&self) -> (String, String) {
        (USER.to_owned(), PASSWORD.to_owned())
    }

    fn sessions(&mut self) -> &mut Sessions {
        &mut self.sessions
    }

    fn power(&mut self) -> &'static str {
        if self.on { "On" } else { "Off" }
    }

    fn identity(&self) -> (String, String) {
        ("4c1d7e02-93aa-4fcb-b1c0-0cc47a123456".to_owned(), "S-0815".to_owned())
    }

    fn reset(&mut self, switch: Switch) -> (Fate, StatusCode) {
        self.on = matches!(switch, Switch::On | Switch::Restart);
        (Fate::Done, StatusCode::NO_CONTENT)
    }
}

async fn listen(listener: TcpListener, acceptor: TlsAcceptor) {
    let machine = Arc::new(Mutex::new(Machine { on: true, sessions: Sessions::default() }));
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(attend(stream, acceptor.clone(), Arc::clone(&machine)));
    }
}

async fn attend(stream: TcpStream, acceptor: TlsAcceptor, machine: Arc<Mutex<Machine>>) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let service = service_fn(move |request: Request<Incoming>| {
        let machine = Arc::clone(&machine);
        async move {
            let (parts, body) = request.into_parts();
            let body = Limited::new(body, LONGEST).collect().await.map_err(|why| anyhow!("{why}"))?.to_bytes();
            let request: Request<Bytes> = Request::from_parts(parts, body);
            let mut machine = machine.lock().unwrap_or_else(PoisonError::into_inner);
            anyhow::Ok(redfish::answer(&mut *machine, &request).map(Full::new))
        }
    });
    // A client that hangs up is no concern of the BMC.
    let _hung_up = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// What all of them show, and its fingerprint.
fn acceptor() -> Result<(TlsAcceptor, String)> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.subject_alt_names = vec![SanType::IpAddress(IpAddr::V4(Ipv4Addr::LOCALHOST))];
    let certificate = params.self_signed(&key).context("no certificate could be made")?;
    let fingerprint = Fingerprint::of(certificate.der()).to_string();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)?;
    Ok((TlsAcceptor::from(Arc::new(config)), fingerprint))
}
