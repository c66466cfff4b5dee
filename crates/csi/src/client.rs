//! Client: calls to whoever serves on a Unix socket.
//!
//! Promise: a call ends, with an answer or without one, when its deadline has passed. What has become of it then is not known
//! (I6): the status says `DeadlineExceeded`, never that it failed. A server that was away and came back is found again.

use std::path::Path;
use std::time::Duration;

use http::Uri;
use http::uri::PathAndQuery;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tonic::Status;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::Request;

/// The other side is told of a deadline that is a little later than ours, so that it is our own clock that speaks.
const LATER: Duration = Duration::from_millis(250);

/// The way to a socket. Clones share one connection, and no call waits for another.
#[derive(Clone, Debug)]
pub struct Client {
    channel: Channel,
}

impl Client {
    /// A client of whoever serves there. Connects when it is first needed. Has to be called inside a tokio runtime.
    pub fn new(socket: &Path) -> Self {
        let socket = socket.to_path_buf();
        let connect = tower::service_fn(move |_: Uri| {
            let socket = socket.clone();
            async move { UnixStream::connect(socket).await.map(TokioIo::new) }
        });
        // A socket has no address to speak of; servers in Go insist on one that can be read.
        let channel = Endpoint::from_static("http://localhost").connect_with_connector_lazy(connect);
        Self { channel }
    }

    /// Asks, and waits for the answer no longer than this.
    pub async fn call<R: Request>(&self, request: R, within: Duration) -> Result<R::Reply, Status> {
        let answer = tokio::time::timeout(within, self.send(request, within + LATER));
        answer.await.unwrap_or_else(|_| Err(Status::deadline_exceeded(format!("no answer within {within:?}"))))
    }

    async fn send<R: Request>(&self, request: R, within: Duration) -> Result<R::Reply, Status> {
        let mut grpc = Grpc::new(self.channel.clone());
        grpc.ready().await.map_err(|why| Status::unavailable(why.to_string()))?;
        let mut request = tonic::Request::new(request);
        request.set_timeout(within);
        let codec = ProstCodec::<R, R::Reply>::default();
        let answer = grpc.unary(request, PathAndQuery::from_static(R::PATH), codec).await?;
        Ok(answer.into_inner())
    }
}
