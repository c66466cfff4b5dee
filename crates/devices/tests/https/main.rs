//! HTTPS to devices, over real sockets on loopback: whom we trust, how long we wait, and what a tired administrator reads.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod certificates;
mod patience;
mod redfish;
mod server;
mod sessions;
mod trust;

use std::time::Duration;

use bytes::Bytes;
use palisade_devices::https::{Https, Limits, Trust};
use palisade_devices::{Response, Transport, Unreachable};

/// Short, so that nobody waits for a test; long enough for a machine that is busy.
pub(crate) const LIMITS: Limits = Limits {
    connect: Duration::from_secs(5),
    handshake: Duration::from_secs(2),
    answer: Duration::from_secs(2),
    size: 1 << 20,
};

/// One GET by a channel of its own.
pub(crate) async fn get(base: &str, trust: &Trust) -> Result<Response, Unreachable> {
    let channel = Https::within(LIMITS).to(trust).expect("this trust makes sense");
    channel.send(http::Request::get(format!("{base}/redfish/v1")).body(Bytes::new()).unwrap()).await
}

/// What a person reads when it fails.
pub(crate) async fn why(base: &str, trust: &Trust) -> String {
    get(base, trust).await.expect_err("it cannot be reached").0
}
