//! A TLS server on loopback that does to each request what a test says, and counts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustls::ServerConfig;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::certificates::Shown;

/// What the server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Answers 200 with this body, and keeps the connection.
    Says(&'static str),
    /// Answers, and closes the connection without a word about it.
    Hangs(&'static str),
    /// Takes the TCP connection and says nothing.
    Silent,
    /// Agrees on TLS, takes the request, and says nothing.
    Mute,
    /// Answers a byte at a time.
    Drips,
    /// Answers without end.
    Floods,
    /// Speaks plain HTTP.
    Plain,
    /// Sends the client elsewhere.
    Redirects,
}

pub(crate) struct Server {
    port: u16,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn up(shown: &Shown, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        // Whether key and certificate belong together is not asked: a thief's do not.
        let key = provider.key_provider.load_private_key(shown.key.clone_key()).unwrap();
        let certified = CertifiedKey::new(vec![shown.certificate.clone()], key);
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(certified)));
        let (acceptor, port) = (TlsAcceptor::from(Arc::new(config)), listener.local_addr().unwrap().port());
        let server = Self { port, connections: Arc::default(), requests: Arc::default() };
        let (connections, requests) = (Arc::clone(&server.connections), Arc::clone(&server.requests));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(attend(stream, acceptor.clone(), manner, Arc::clone(&requests)));
            }
        });
        server
    }

    pub(crate) fn base(&self) -> String {
        format!("https://127.0.0.1:{}", self.port)
    }

    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Every request, as it came.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

async fn attend(mut stream: TcpStream, acceptor: TlsAcceptor, manner: Manner, requests: Arc<Mutex<Vec<String>>>) {
    match manner {
        Manner::Silent => return std::future::pending().await,
        Manner::Plain => {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
            return;
        }
        _ => {}
    }
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    loop {
        let Some(request) = read(&mut stream).await else { return };
        requests.lock().unwrap().push(request);
        match manner {
            Manner::Says(body) | Manner::Hangs(body) => {
                let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.flush().await;
                if matches!(manner, Manner::Hangs(_)) {
                    let _ = stream.shutdown().await;
                    return;
                }
            }
            Manner::Drips => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n").await;
                while stream.write_all(b".").await.is_ok() && stream.flush().await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                return;
            }
            Manner::Floods => {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                let chunk = format!("2000\r\n{}\r\n", "x".repeat(0x2000));
                while stream.write_all(chunk.as_bytes()).await.is_ok() {}
                return;
            }
            Manner::Redirects => {
                let answer = "HTTP/1.1 308 Permanent Redirect\r\nLocation: https://elsewhere.example/\r\nContent-Length: 0\r\n\r\n";
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.flush().await;
            }
            Manner::Mute | Manner::Silent | Manner::Plain => std::future::pending().await,
        }
    }
}

/// One request, with a body as long as it says.
async fn read(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<String> {
    let (mut text, mut byte) = (Vec::new(), [0]);
    while !text.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).await.ok()? == 0 {
            return None;
        }
        text.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&text).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    text.extend(body);
    Some(String::from_utf8_lossy(&text).into_owned())
}
