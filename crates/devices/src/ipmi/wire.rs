//! IPMI / wire: datagrams to one BMC and back.
//!
//! The driver knows no sockets: tests lose, double and spoil datagrams here, elsewhere a UDP socket carries them.
//! Promise: [`Line::send`] sends now or not at all, so that nothing lies between the last look at the clock and the datagram.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::Pin;

use tokio::net::{UdpSocket, lookup_host};

/// The port of RMCP.
pub const PORT: u16 = 623;

/// More than any message of ours is answered with; what is longer is cut, and then fails its integrity check.
const LONGEST: usize = 1024;

/// What a network comes to.
pub type Carried<'a, T> = Pin<Box<dyn Future<Output = io::Result<T>> + Send + 'a>>;

/// The way to one BMC.
pub trait Network: Send + Sync {
    /// Opens a line of its own: nobody else hears what is answered on it.
    fn open(&self) -> Carried<'_, Box<dyn Line>>;

    /// Where it leads to, as an administrator knows it.
    fn name(&self) -> String;
}

/// One line to a BMC. Datagrams may be lost, doubled, late, out of order and forged.
pub trait Line: Send + Sync {
    /// Waits until something can be sent.
    fn ready(&self) -> Carried<'_, ()>;

    /// Sends one datagram at once, or fails with [`io::ErrorKind::WouldBlock`]: never waits.
    fn send(&self, datagram: &[u8]) -> io::Result<()>;

    /// Waits for the next datagram. Whoever stops waiting loses none.
    fn receive(&self) -> Carried<'_, Vec<u8>>;
}

/// A BMC that is reached over UDP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Udp {
    host: String,
    port: u16,
}

impl Udp {
    /// The BMC at this address or name.
    pub fn to(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    async fn connect(&self) -> io::Result<Box<dyn Line>> {
        let found = lookup_host((self.host.as_str(), self.port)).await.map_err(|why| {
            let host = &self.host;
            let told = format!("the name {host} cannot be resolved ({why}); put it right, or give the address itself");
            io::Error::new(why.kind(), told)
        })?;
        // UDP does not tell which of several addresses works. A BMC has one.
        let to = { found }.next().ok_or_else(|| io::Error::other(format!("the name {} has no address", self.host)))?;
        let from: SocketAddr = match to {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(from).await?;
        // Connected, so that the kernel drops what comes from elsewhere, and tells that nobody listens there.
        socket.connect(to).await?;
        Ok(Box::new(Socket(socket)))
    }
}

impl Network for Udp {
    fn open(&self) -> Carried<'_, Box<dyn Line>> {
        Box::pin(self.connect())
    }

    fn name(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

struct Socket(UdpSocket);

impl Line for Socket {
    fn ready(&self) -> Carried<'_, ()> {
        Box::pin(self.0.writable())
    }

    fn send(&self, datagram: &[u8]) -> io::Result<()> {
        let sent = self.0.try_send(datagram)?;
        if sent == datagram.len() { Ok(()) } else { Err(io::Error::other("only a part of the datagram was sent")) }
    }

    fn receive(&self) -> Carried<'_, Vec<u8>> {
        Box::pin(async {
            let mut buffer = vec![0; LONGEST];
            let length = self.0.recv(&mut buffer).await?;
            buffer.truncate(length);
            Ok(buffer)
        })
    }
}
