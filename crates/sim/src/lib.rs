//! Sim: the whole operator against the embedded cluster in virtual time, from one seed, with everything going wrong.
//!
//! Promise: the same seed gives the same run, event by event, in every process. What is checked is checked against the truth
//! of machines and storage ([`oracle`]), never against what the operator believes.
#![forbid(unsafe_code)]

mod acts;
pub mod crash;
pub mod faults;
pub mod oracle;
mod run;
mod strike;
mod wire;

pub use run::{Report, simulate};

#[cfg(feature = "planted")]
pub use palisade_core::planted::Bug;
#[cfg(feature = "planted")]
pub use run::simulate_planted;
