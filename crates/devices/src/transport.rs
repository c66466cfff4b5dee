//! Transport: how a request reaches a device that speaks HTTP.
//!
//! The drivers know no sockets: in the embedded cluster a function answers, elsewhere a TLS connection does.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use http::Uri;

/// A request to a device.
pub type Request = http::Request<Bytes>;

/// What it answered.
pub type Response = http::Response<Bytes>;

/// What a transport comes to.
pub type Sent<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unreachable>> + Send + 'a>>;

/// Carries requests to devices. It keeps a deadline of its own: no answer is [`Unreachable`], never a wait without end.
pub trait Transport: Send + Sync {
    /// Sends one request and waits for the whole answer.
    fn send(&self, request: Request) -> Sent<'_, Response>;

    /// Does whatever takes time before something can be sent there, so that what is sent next is sent at once: a command may
    /// only be sent until a certain moment, and to connect takes longer than to look at a clock. Nothing, where nothing does.
    fn open<'a>(&'a self, _to: &'a Uri) -> Sent<'a, ()> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// No answer: whether the request arrived, nobody knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreachable(pub String);

impl fmt::Display for Unreachable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Unreachable {}
