//! Probe: whether a node's kubelet answers at its port.
//!
//! An answer is a TLS handshake that the kubelet goes through with, or anything else that it says: a process that signs is alive,
//! whatever it would say to `/healthz`, and without a login that is 401 anyway. To ask for more could only turn an Alive into a
//! Silent, which is the word to be careful with.
//!
//! The certificate is not looked at. Most kubelets show one that they signed themselves, so nothing could be compared; and whoever
//! answers in the kubelet's place only makes us *more* careful: an answer holds back a claim and contradicts a device that says
//! off. What a stranger gains is that a node is fenced later. Nothing is sent that is worth stealing.
//! Never: takes what is wrong on our own side for the silence of a node.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, select};
use palisade_core::ident::NodeName;
use palisade_core::snapshot::WitnessWord;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::context::Probe;

/// How long a kubelet has to answer. While a device is read back, every read waits for this: a machine that is off does not
/// refuse, it is silent.
const DEADLINE: Duration = Duration::from_secs(1);
/// A packet that is lost on the way to a kubelet that lives is sent again by the kernel after a whole second; so a second
/// connection is tried before.
const SECOND_TRY: Duration = Duration::from_millis(400);

/// Looks at the kubelet's own port.
pub struct KubeletPort {
    config: Arc<ClientConfig>,
}

impl KubeletPort {
    /// Looks by TLS 1.2 or later.
    pub fn new() -> Result<Self, Error> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
        let mut config =
            config.dangerous().with_custom_certificate_verifier(Arc::new(Whoever(provider))).with_no_client_auth();
        // What an earlier handshake left behind would keep thousands of sessions in memory.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(Self { config: Arc::new(config) })
    }
}

impl Probe for KubeletPort {
    fn kubelet(&self, _node: &NodeName, at: Option<SocketAddr>) -> BoxFuture<'static, WitnessWord> {
        // A Node without an address tells nothing of its kubelet.
        let Some(at) = at else { return Box::pin(std::future::ready(WitnessWord::Unknown)) };
        let config = Arc::clone(&self.config);
        Box::pin(async move {
            let looked = timeout(DEADLINE, twice(at, config)).await;
            looked.map_or(WitnessWord::Silent, |answer| word(&answer))
        })
    }
}

/// One try, and another beside it if that takes long; whichever ends first.
async fn twice(at: SocketAddr, config: Arc<ClientConfig>) -> io::Result<()> {
    let first = Box::pin(look(at, Arc::clone(&config)));
    let second = Box::pin(async {
        sleep(SECOND_TRY).await;
        look(at, config).await
    });
    match select(first, second).await {
        Either::Left((answer, _)) | Either::Right((answer, _)) => answer,
    }
}

async fn look(at: SocketAddr, config: Arc<ClientConfig>) -> io::Result<()> {
    let stream = TcpStream::connect(at).await?;
    let mut stream = TlsConnector::from(config).connect(ServerName::from(at.ip()), stream).await?;
    // Said goodbye, or the kubelet would log a broken connection for every look.
    let _ = stream.shutdown().await;
    Ok(())
}

/// What an answer, or the lack of one, says about the kubelet.
fn word(answer: &io::Result<()>) -> WitnessWord {
    let Err(why) = answer else { return WitnessWord::Alive };
    match why.kind() {
        // It spoke, and TLS did not understand it: whoever speaks is alive.
        ErrorKind::InvalidData => WitnessWord::Alive,
        // The network says, or the neighbours do, that nobody is at that address: what a dead machine looks like from its own
        // segment. Where a firewall says it, the kubelet was never seen alive, and `core` lets the silence count for nothing.
        ErrorKind::HostUnreachable | ErrorKind::TimedOut => WitnessWord::Silent,
        // Refused, reset, closed: a machine answers and no kubelet does. It is stopped, being upgraded, or crashing. That is no
        // silence: pods go on writing there. Silent would have the node fenced after two missed renewals; as Unknown it is the
        // control plane that has to lose it first. It is no Alive either: that would keep back for ever the proof of a machine
        // that is off behind a firewall which refuses for it.
        // The rest is on our own side: no route, no network, no free port, no file descriptor.
        _ => WitnessWord::Unknown,
    }
}

/// Takes any certificate; see above.
#[derive(Debug)]
struct Whoever(Arc<CryptoProvider>);

impl ServerCertVerifier for Whoever {
    fn verify_server_cert(
        &self,
        _shown: &CertificateDer<'_>,
        _between: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair};
    use rustls::ServerConfig;
    use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
    use tokio::io::AsyncReadExt;
    use tokio::net::TcpListener;
    use tokio_rustls::TlsAcceptor;

    use super::*;

    async fn asked(at: Option<SocketAddr>) -> WitnessWord {
        KubeletPort::new().unwrap().kubelet(&NodeName::from("n1"), at).await
    }

    fn acceptor() -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let shown = CertificateParams::new(vec!["n1".to_owned()]).unwrap().self_signed(&key).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(vec![shown.der().clone()], key).unwrap();
        TlsAcceptor::from(Arc::new(config))
    }

    async fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    #[tokio::test]
    async fn a_kubelet_that_agrees_on_tls_is_alive_whoever_signed_its_certificate() {
        let (listener, at) = listener().await;
        let served = tokio::spawn(async move {
            let mut stream = acceptor().accept(listener.accept().await.unwrap().0).await.unwrap();
            stream.read(&mut [0; 16]).await
        });
        assert_eq!(asked(Some(at)).await, WitnessWord::Alive);
        assert_eq!(served.await.unwrap().unwrap(), 0, "we say goodbye, so the kubelet has nothing to log");
    }

    #[tokio::test]
    async fn whoever_speaks_is_alive_though_it_is_no_tls() {
        let (listener, at) = listener().await;
        tokio::spawn(async move {
            let mut stream = listener.accept().await.unwrap().0;
            stream.write_all(b"HTTP/1.0 400 Bad Request\r\n\r\n").await.unwrap();
            std::future::pending::<()>().await;
        });
        assert_eq!(asked(Some(at)).await, WitnessWord::Alive);
    }

    #[tokio::test]
    async fn a_kubelet_that_hangs_is_silent_within_the_deadline() {
        // The kernel takes the connection; nobody reads.
        let (_listener, at) = listener().await;
        let began = tokio::time::Instant::now();
        assert_eq!(asked(Some(at)).await, WitnessWord::Silent);
        assert!(began.elapsed() < DEADLINE * 2);
    }

    #[tokio::test]
    async fn a_machine_without_a_kubelet_is_neither_alive_nor_silent() {
        let at = listener().await.1;
        assert_eq!(asked(Some(at)).await, WitnessWord::Unknown);
    }

    #[tokio::test]
    async fn a_node_without_an_address_says_nothing() {
        assert_eq!(asked(None).await, WitnessWord::Unknown);
    }

    #[test]
    fn what_is_wrong_on_our_own_side_is_no_silence() {
        let said = |kind: ErrorKind| word(&Err(io::Error::from(kind)));
        for ours in [
            ErrorKind::NetworkUnreachable,
            ErrorKind::NetworkDown,
            ErrorKind::AddrNotAvailable,
            ErrorKind::PermissionDenied,
            ErrorKind::OutOfMemory,
        ] {
            assert_eq!(said(ours), WitnessWord::Unknown, "{ours}");
        }
        assert_eq!(said(ErrorKind::HostUnreachable), WitnessWord::Silent);
    }
}
