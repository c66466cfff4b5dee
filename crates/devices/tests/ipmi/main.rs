//! The IPMI driver: against a BMC of our own that tests can break at will, and against the tools of others.
//!
//! The BMC of ours runs without a network and on a clock that nobody waits for; those of others on loopback.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bmc;
mod chaos;
mod faults;
mod forgery;
mod inventory;
mod ipmi_sim;
mod ipmitool;
mod login;
mod network;
mod permission;
mod power;
mod serial;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use palisade_devices::ipmi::{Ipmi, Login};
use palisade_devices::{Failure, Late, Permit};

use crate::network::Lossy;

/// The user that the BMCs of these tests know.
pub(crate) fn login() -> Login {
    Login::new("fence", "s3cret").unwrap()
}

/// The driver on this network.
pub(crate) fn device(network: &Lossy) -> Ipmi {
    Ipmi::new(Arc::new(network.clone()), login())
}

/// Says yes so many times, and counts how often it was asked.
pub(crate) struct Yes {
    times: u32,
    asked: AtomicU32,
}

impl Yes {
    pub(crate) fn always() -> Self {
        Self::times(u32::MAX)
    }

    pub(crate) fn times(times: u32) -> Self {
        Self { times, asked: AtomicU32::new(0) }
    }

    pub(crate) fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

impl Permit for Yes {
    fn may_send(&self) -> Result<(), Late> {
        let before = self.asked.fetch_add(1, Ordering::SeqCst);
        if before < self.times { Ok(()) } else { Err(Late("the fence was taken back".to_owned())) }
    }
}

/// What a person reads when something is refused.
pub(crate) fn refused<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Err(Failure::Refused(why)) => why,
        other => panic!("not refused: {other:?}"),
    }
}

/// What a person reads when nobody knows.
pub(crate) fn unknown<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Err(Failure::Unknown(why)) => why,
        other => panic!("not unknown: {other:?}"),
    }
}
