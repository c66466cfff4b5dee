//! Server: methods, each with a function that answers, on a Unix socket.
//!
//! Promise: a method that nobody answers is `Unimplemented`. A socket that a dead process left behind is taken over, one that
//! somebody serves is not. When it is told to stop, it lets calls end for a while, and takes its socket away.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;
use tonic::body::Body;
use tonic::server::{Grpc, UnaryService};
use tonic::transport::Server;
use tonic::{Response, Status};
use tonic_prost::ProstCodec;

use crate::Request;

/// How long calls may take to end once the server is told to stop.
const FAREWELL: Duration = Duration::from_secs(3);

type Answer = BoxFuture<'static, http::Response<Body>>;
type Handler = Arc<dyn Fn(http::Request<Body>) -> Answer + Send + Sync>;

/// Methods, each with a function that answers.
#[derive(Clone, Default)]
pub struct Services {
    handlers: BTreeMap<&'static str, Handler>,
}

impl Services {
    /// No method at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, and this function answers the method that the request belongs to.
    #[must_use]
    pub fn on<R, F, A>(mut self, answer: F) -> Self
    where
        R: Request,
        F: Fn(R) -> A + Send + Sync + 'static,
        A: Future<Output = Result<R::Reply, Status>> + Send + 'static,
    {
        let answer = Arc::new(answer);
        let handler = move |request: http::Request<Body>| -> Answer {
            let one = Unary(Arc::clone(&answer));
            Box::pin(async move { Grpc::new(ProstCodec::<R::Reply, R>::default()).unary(one, request).await })
        };
        self.handlers.insert(R::PATH, Arc::new(handler));
        self
    }

    /// The methods of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.handlers.extend(other.handlers);
        self
    }
}

/// A function as tonic takes it.
struct Unary<F>(Arc<F>);

impl<R, F, A> UnaryService<R> for Unary<F>
where
    R: Request,
    F: Fn(R) -> A,
    A: Future<Output = Result<R::Reply, Status>> + Send + 'static,
{
    type Response = R::Reply;
    type Future = BoxFuture<'static, Result<Response<R::Reply>, Status>>;

    fn call(&mut self, request: tonic::Request<R>) -> Self::Future {
        let answer = (self.0)(request.into_inner());
        Box::pin(async move { answer.await.map(Response::new) })
    }
}

impl tower::Service<http::Request<Body>> for Services {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let handler = self.handlers.get(request.uri().path()).cloned();
        Box::pin(async move {
            Ok(match handler {
                Some(handler) => handler(request).await,
                None => Status::unimplemented(format!("{} is not served here", request.uri().path())).into_http(),
            })
        })
    }
}

/// A socket on which nobody is answered yet; whoever connects waits.
#[derive(Debug)]
pub struct Listener {
    socket: UnixListener,
    path: PathBuf,
}

impl Listener {
    /// Takes the socket. Has to be called inside a tokio runtime.
    pub async fn bind(path: &Path) -> io::Result<Self> {
        match UnixStream::connect(path).await {
            Ok(_) => {
                return Err(io::Error::new(io::ErrorKind::AddrInUse, format!("{} is served already", path.display())));
            }
            // Left behind by a process that was killed.
            Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path)?,
            // Nothing there; or something that binding will name.
            Err(_) => {}
        }
        let named = |why: io::Error| io::Error::new(why.kind(), format!("{}: {why}", path.display()));
        Ok(Self { socket: UnixListener::bind(path).map_err(named)?, path: path.to_path_buf() })
    }

    /// Answers until it is told to stop.
    pub async fn serve(self, services: Services, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let Self { socket, path } = self;
        let stopped = Notify::new();
        let incoming = stream::poll_fn(|context| {
            socket.poll_accept(context).map(|accepted| Some(accepted.map(|(stream, _)| stream)))
        });
        let serving = Server::builder().serve_with_incoming_shutdown(services, incoming, async {
            stop.await;
            stopped.notify_one();
        });
        // Clients keep their connections for as long as they like.
        let overdue = async {
            stopped.notified().await;
            tokio::time::sleep(FAREWELL).await;
        };
        let ended = tokio::select! {
            biased;
            ended = serving => ended.map_err(io::Error::other),
            () = overdue => Ok(()),
        };
        // Somebody may have taken it away, together with the directory that it was in.
        let _ = std::fs::remove_file(&path);
        ended
    }
}
