//! HTTPS / dial: the way to a connection. Each step has its own words for what went wrong, and for what a person can do.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Uri;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Limits;
use super::connection::Connection;
use super::verify::NotTrusted;
use crate::transport::Unreachable;

/// Where a device listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Address {
    host: String,
    port: u16,
}

impl Address {
    pub(super) fn of(uri: &Uri) -> Result<Self, Unreachable> {
        if uri.scheme_str() != Some("https") {
            return Err(Unreachable(format!("{uri} is not https, and a password is sent over nothing else")));
        }
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return Err(Unreachable(format!("{uri} has no host")));
        }
        Ok(Self { host: host.to_owned(), port: uri.port_u16().unwrap_or(443) })
    }
}

/// A connection on which both sides have agreed.
pub(super) async fn dial(to: &Address, config: &Arc<ClientConfig>, limits: &Limits) -> Result<Connection, Unreachable> {
    let stream = connect(to, limits.connect).await?;
    // A small request must not wait for a fuller packet.
    let _ = stream.set_nodelay(true);
    let stream = agree(to, stream, config, limits.handshake).await?;
    Connection::over(stream).await.map_err(|why| Unreachable(format!("no HTTP could be spoken: {why}")))
}

async fn connect(to: &Address, within: Duration) -> Result<TcpStream, Unreachable> {
    let work = async {
        let found = lookup_host((to.host.as_str(), to.port)).await;
        let all: Vec<SocketAddr> = found.map_err(|why| unknown_name(to, &why))?.collect();
        let mut last = unknown_name(to, &io::Error::other("it has no address"));
        for address in all {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(why) => last = not_connected(address, &why),
            }
        }
        Err(last)
    };
    let late = || {
        Unreachable(format!(
            "port {} did not take a connection within {within:?}: the device is without power or network, a firewall drops \
             what we send, or `ip` is wrong",
            to.port
        ))
    };
    timeout(within, work).await.unwrap_or_else(|_| Err(late()))
}

fn unknown_name(to: &Address, why: &io::Error) -> Unreachable {
    Unreachable(format!("the name {} cannot be resolved ({why}); put it right, or give the address itself", to.host))
}

fn not_connected(address: SocketAddr, why: &io::Error) -> Unreachable {
    Unreachable(match why.kind() {
        io::ErrorKind::ConnectionRefused => format!(
            "{address} refuses the connection: something is there, and nothing listens on that port; is HTTPS switched on at \
             the device, and `ipport` right?"
        ),
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            format!("there is no way to {address} from here ({why}); look at routes, VLANs and firewalls")
        }
        io::ErrorKind::TimedOut => format!("{address} did not take a connection in time"),
        _ => format!("{address} cannot be connected to: {why}"),
    })
}

async fn agree(
    to: &Address,
    stream: TcpStream,
    config: &Arc<ClientConfig>,
    within: Duration,
) -> Result<TlsStream<TcpStream>, Unreachable> {
    let name = ServerName::try_from(to.host.clone())
        .map_err(|_| Unreachable(format!("{} is neither an address nor a name of the DNS", to.host)))?;
    match timeout(within, TlsConnector::from(Arc::clone(config)).connect(name, stream)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(why)) => Err(Unreachable(not_agreed(&why))),
        Err(_) => Err(Unreachable(format!(
            "the device took the connection and then said nothing for {within:?}: its web server hangs, or does not speak TLS; \
             restart it"
        ))),
    }
}

fn not_agreed(why: &io::Error) -> String {
    let Some(cause) = why.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return format!("the connection broke before TLS was agreed on: {why}");
    };
    if let Some(not_trusted) = NotTrusted::within(cause) {
        return not_trusted.to_string();
    }
    match cause {
        rustls::Error::InvalidMessage(_) => {
            "what listens there does not speak TLS; is `ipport` the port for HTTPS?".to_owned()
        }
        rustls::Error::AlertReceived(alert) => {
            format!(
                "the device broke off TLS ({alert:?}); it has to speak TLS 1.2 or later with modern ciphers: renew its firmware"
            )
        }
        rustls::Error::PeerIncompatible(what) => {
            format!("the device speaks no TLS that is safe ({what:?}): TLS 1.2 or later is needed; renew its firmware")
        }
        other => format!("no TLS could be agreed on: {other}"),
    }
}
