//! The API server on a socket of this machine, for kubectl and for people.
//!
//! Never: on another address than loopback, or with more protection than that. It is a demo's cluster.

use std::{
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    path::Path,
};

use http::{Request, Response, header};
use http_body_util::BodyExt;
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpListener, task::JoinSet};

use super::{
    service::{Body, Server},
    store::Actor,
};

/// A server that listens; it ends when this is dropped or its future is.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listening {
    /// Takes a port of the loopback address; 0 takes any that is free.
    pub async fn on(port: u16) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves whoever comes, for ever. What it began ends with it.
    pub async fn serve(self, server: Server) -> io::Result<Infallible> {
        let mut connections = JoinSet::new();
        loop {
            let (stream, _) = self.listener.accept().await?;
            let server = server.clone();
            let answer = service_fn(move |request| answer(server.clone(), request));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
            // A connection that breaks is the client's affair.
            connections.spawn(async move { drop(connection.await) });
            while connections.try_join_next().is_some() {}
        }
    }
}

async fn answer(server: Server, request: Request<Incoming>) -> Result<Response<Body>, tower::BoxError> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await?.to_bytes();
    // `kubectl/v1.33.0 (linux/amd64) …`
    let agent = parts.headers.get(header::USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("somebody");
    let actor = Actor::new(agent.split(['/', ' ']).next().unwrap_or(agent));
    Ok(server.handle(actor, parts, body).await?)
}

/// What kubectl needs to find the server.
pub fn kubeconfig(address: SocketAddr) -> String {
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: palisade
  cluster:
    server: http://{address}
users:
- name: palisade
  user: {{}}
contexts:
- name: palisade
  context:
    cluster: palisade
    user: palisade
    namespace: default
current-context: palisade
"
    )
}

/// Writes it to a file.
pub fn write_kubeconfig(file: &Path, address: SocketAddr) -> io::Result<()> {
    std::fs::write(file, kubeconfig(address))
}
