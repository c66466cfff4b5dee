//! HTTP: what Prometheus and the kubelet ask of a running operator: `/metrics`, `/healthz` and `/readyz`. It tells, and takes no
//! orders.
//!
//! Healthy is who answers: the operator is one thread, and the same one answers here. Ready is who has listed every kind that is
//! watched; whether it leads does not matter, as a standby replica has to be there too.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;

use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::metrics::Metrics;

/// What the text of the metrics is.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const NOT_READY: &str = "not every kind that is watched has been listed yet; the log says what is missing\n";

/// A server that listens.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    /// Takes an address; port 0 takes any that is free.
    pub async fn on(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves whoever comes, for ever. What it began ends with it.
    pub async fn serve(self, metrics: Metrics) -> io::Result<Infallible> {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = self.listener.accept().await?;
            let metrics = metrics.clone();
            let answer = service_fn(move |request: Request<Incoming>| {
                let answer = answer(&metrics, request.method(), request.uri().path());
                std::future::ready(Ok::<_, Infallible>(answer))
            });
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            // A connection that breaks is the client's affair.
            connections.spawn(async move { drop(connection.await) });
            while connections.try_join_next().is_some() {}
        }
    }
}

fn answer(metrics: &Metrics, method: &Method, path: &str) -> Response<Full<Bytes>> {
    let (status, kind, text) = match (method, path) {
        (&Method::GET, "/metrics") => (StatusCode::OK, OPEN_METRICS, metrics.text()),
        (&Method::GET, "/healthz") => (StatusCode::OK, "text/plain", "ok\n".to_owned()),
        (&Method::GET, "/readyz") if metrics.has_listed() => (StatusCode::OK, "text/plain", "ok\n".to_owned()),
        (&Method::GET, "/readyz") => (StatusCode::SERVICE_UNAVAILABLE, "text/plain", NOT_READY.to_owned()),
        (&Method::GET, _) => {
            (StatusCode::NOT_FOUND, "text/plain", "there are /metrics, /healthz and /readyz\n".to_owned())
        }
        (_, _) => (StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_tells_and_takes_no_orders() {
        let metrics = Metrics::default();
        let status = |method: &Method, path: &str| answer(&metrics, method, path).status().as_u16();
        assert_eq!(status(&Method::GET, "/metrics"), 200);
        assert_eq!(status(&Method::GET, "/healthz"), 200);
        assert_eq!(status(&Method::GET, "/readyz"), 503, "nothing was listed");
        metrics.listed(true);
        assert_eq!(status(&Method::GET, "/readyz"), 200);
        assert_eq!(status(&Method::GET, "/"), 404);
        assert_eq!(status(&Method::POST, "/metrics"), 405);
    }
}
