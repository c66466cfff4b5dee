//! HTTPS: requests to devices over TLS.
//!
//! Promise: the device shows a certificate that [`Trust`] accepts before it is told anything, a password least of all. Connection,
//! handshake and answer each have a deadline, and an answer has a largest size: a device that is silent, slow or endless costs
//! seconds. A request that may have an effect is sent once or not at all, and at once when [`open`](Transport::open) came
//! before it.
//! Never: follows a redirect (the login would follow it), asks the environment for a proxy, sends a command twice.
//!
//! | file | is |
//! |---|---|
//! | `trust` | whose certificate counts, as the template says it |
//! | `verify` | how it is looked at |
//! | `dial` | the way to a connection, and what each step of it says when it fails |
//! | `connection` | one connection: a request, a whole answer |

mod connection;
mod dial;
mod trust;
mod verify;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, USER_AGENT};
use http::uri::PathAndQuery;
use http::{HeaderValue, Uri};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};
use tokio::sync::Mutex;

use self::connection::Connection;
use self::dial::Address;
pub use self::trust::{BadTrust, Fingerprint, Trust};
use self::verify::Verifier;
use crate::transport::{Request, Response, Sent, Transport, Unreachable};

/// How long each part may take, and how much may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Until the device has taken the connection.
    pub connect: Duration,
    /// Until both sides have agreed on keys: some BMCs take seconds for one signature.
    pub handshake: Duration,
    /// From the request to the last byte of its answer.
    pub answer: Duration,
    /// Bytes of an answer.
    pub size: usize,
}

impl Default for Limits {
    /// Each call has its template's `timeout` besides, 25 s unless told otherwise.
    fn default() -> Self {
        let seconds = Duration::from_secs;
        // The longest ComputerSystem seen has 20 KiB.
        Self { connect: seconds(5), handshake: seconds(10), answer: seconds(20), size: 1 << 20 }
    }
}

/// Opens channels to devices.
#[derive(Debug)]
pub struct Https {
    provider: Arc<CryptoProvider>,
    limits: Limits,
    /// Read once, when a device is first met that names no authority of its own.
    system: OnceLock<Arc<RootCertStore>>,
}

impl Default for Https {
    fn default() -> Self {
        Self::within(Limits::default())
    }
}

impl Https {
    /// With other limits.
    pub fn within(limits: Limits) -> Self {
        // Named here, so that nothing has to be installed for the whole process.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        Self { provider, limits, system: OnceLock::new() }
    }

    /// A channel to one device whose certificate is trusted like this.
    pub fn to(&self, trust: &Trust) -> Result<Channel, BadTrust> {
        let verifier = Verifier::new(trust, &self.provider, || self.system_roots())?;
        let config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .map_err(|why| BadTrust(format!("TLS cannot be set up: {why}")))?;
        let mut config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        // Every connection looks at the certificate anew.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Channel { config: Arc::new(config), limits: self.limits, open: Mutex::new(None) })
    }

    fn system_roots(&self) -> Arc<RootCertStore> {
        let load = || {
            let mut roots = RootCertStore::empty();
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
            Arc::new(roots)
        };
        Arc::clone(self.system.get_or_init(load))
    }
}

/// The way to one device. It keeps its connection for the next request; with the channel the connection goes.
#[derive(Debug)]
pub struct Channel {
    config: Arc<ClientConfig>,
    limits: Limits,
    open: Mutex<Option<(Address, Connection)>>,
}

impl Channel {
    async fn exchange(&self, request: Request) -> Result<Response, Unreachable> {
        let to = Address::of(request.uri())?;
        let request = as_sent(request)?;
        let mut open = self.open.lock().await;
        let repeatable = request.method().is_safe();
        if let Some(mut kept) = still_open(&mut open, &to).await {
            match kept.exchange(request.clone(), &self.limits).await {
                Ok(answer) => {
                    *open = Some((to, kept));
                    return Ok(answer);
                }
                // The device has closed what we had kept. A question may be asked again; a command may have arrived.
                Err(why) if why.broke && repeatable => {}
                Err(why) => return Err(why.into()),
            }
        }
        let mut fresh = dial::dial(&to, &self.config, &self.limits).await?;
        let answer = fresh.exchange(request, &self.limits).await?;
        *open = Some((to, fresh));
        Ok(answer)
    }

    async fn make_ready(&self, to: &Uri) -> Result<(), Unreachable> {
        let to = Address::of(to)?;
        let mut open = self.open.lock().await;
        let ready = match still_open(&mut open, &to).await {
            Some(kept) => kept,
            None => dial::dial(&to, &self.config, &self.limits).await?,
        };
        *open = Some((to, ready));
        Ok(())
    }
}

impl Transport for Channel {
    fn send(&self, request: Request) -> Sent<'_, Response> {
        Box::pin(self.exchange(request))
    }

    fn open<'a>(&'a self, to: &'a Uri) -> Sent<'a, ()> {
        Box::pin(self.make_ready(to))
    }
}

/// The connection that was kept, if it leads there and has not been closed meanwhile. While it is in use nothing is kept: if
/// whoever uses it is dropped, it goes with them.
async fn still_open(open: &mut Option<(Address, Connection)>, to: &Address) -> Option<Connection> {
    let (address, mut kept) = open.take()?;
    (address == *to && kept.stands().await).then_some(kept)
}

/// The request as HTTP/1.1 wants it: the path alone, and the host in a header.
fn as_sent(request: Request) -> Result<http::Request<Bytes>, Unreachable> {
    let (mut parts, body) = request.into_parts();
    let host = parts.uri.authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
    let host = HeaderValue::from_str(&host).map_err(|_| Unreachable(format!("{host} is no address")))?;
    parts.headers.insert(HOST, host);
    parts.headers.insert(USER_AGENT, HeaderValue::from_static(concat!("palisade/", env!("CARGO_PKG_VERSION"))));
    let path = parts.uri.path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    parts.uri = Uri::from(path);
    Ok(http::Request::from_parts(parts, body))
}
