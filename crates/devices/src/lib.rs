//! Devices: whatever can cut a machine off and say whether it is.
//!
//! One trait ([`Device`]), one room per driver. A driver does one thing to one plug per call, says apart what was refused
//! and what nobody knows, and asks for permission immediately before it sends ([`Permit`]).
#![forbid(unsafe_code)]

pub mod act;
pub mod agent;
mod device;
#[doc(hidden)]
pub mod fuzz;
pub mod https;
pub mod ipmi;
pub mod redfish;
mod transport;

pub use device::{Answer, Command, Device, Failure, Identity, Late, Permit, PowerState};
pub use transport::{Request, Response, Sent, Transport, Unreachable};
