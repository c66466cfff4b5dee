//! HTTPS / connection: one connection, one request at a time, and the whole of its answer.
//!
//! Nothing is spawned: the connection moves only while somebody waits for it. Whoever is dropped takes it along, so nothing of
//! a call outlives the call.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::Limits;
use crate::transport::{Response, Unreachable};

/// A connection over which HTTP is spoken.
pub(super) struct Connection {
    sender: SendRequest<Full<Bytes>>,
    wire: Wire,
}

/// What carries the bytes.
struct Wire(Option<Pin<Box<dyn Future<Output = hyper::Result<()>> + Send>>>);

impl Wire {
    /// Moves it on; whether it still stands.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        if let Some(wire) = &mut self.0
            && wire.as_mut().poll(context).is_ready()
        {
            self.0 = None;
        }
        self.0.is_some()
    }
}

/// Why there is no answer.
pub(super) struct NoAnswer {
    why: String,
    /// The connection broke, as opposed to a device that is slow or says too much.
    pub(super) broke: bool,
}

impl From<NoAnswer> for Unreachable {
    fn from(no: NoAnswer) -> Self {
        Self(no.why)
    }
}

impl Connection {
    pub(super) async fn over(stream: TlsStream<TcpStream>) -> hyper::Result<Self> {
        let (sender, wire) = http1::handshake(TokioIo::new(stream)).await?;
        Ok(Self { sender, wire: Wire(Some(Box::pin(wire))) })
    }

    /// Whether it can still be used, as far as one can know without sending.
    pub(super) async fn stands(&mut self) -> bool {
        let stands = poll_fn(|context| Poll::Ready(self.wire.poll(context))).await;
        stands && self.sender.is_ready()
    }

    /// Sends one request and waits for its whole answer.
    pub(super) async fn exchange(
        &mut self,
        request: http::Request<Bytes>,
        limits: &Limits,
    ) -> Result<Response, NoAnswer> {
        let broke = |why: &hyper::Error| NoAnswer { why: format!("the connection broke: {}", chain(why)), broke: true };
        let sent = self.sender.send_request(request.map(Full::new));
        let answer = pin!(async {
            let (parts, body) = sent.await.map_err(|why| broke(&why))?.into_parts();
            let body = Limited::new(body, limits.size).collect().await.map_err(|why| {
                if why.downcast_ref::<LengthLimitError>().is_some() {
                    let why = format!("the answer is longer than {} bytes; it was not read to its end", limits.size);
                    return NoAnswer { why, broke: false };
                }
                NoAnswer { why: format!("the answer broke off: {}", chain(&*why)), broke: false }
            })?;
            Ok(http::Response::from_parts(parts, body.to_bytes()))
        });
        let late = || NoAnswer { why: format!("no whole answer within {:?}", limits.answer), broke: false };
        timeout(limits.answer, beside(&mut self.wire, answer)).await.unwrap_or_else(|_| Err(late()))
    }
}

/// Moves the wire while the answer is waited for.
async fn beside<T>(wire: &mut Wire, mut answer: Pin<&mut impl Future<Output = T>>) -> T {
    poll_fn(|context| {
        wire.poll(context);
        answer.as_mut().poll(context)
    })
    .await
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connection")
    }
}

/// An error with its causes, as hyper keeps the telling part further down.
fn chain(why: &(dyn std::error::Error + 'static)) -> String {
    let mut text = why.to_string();
    let mut cause = why.source();
    while let Some(inner) = cause {
        text = format!("{text}: {inner}");
        cause = inner.source();
    }
    text
}
