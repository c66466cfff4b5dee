//! Sim: the whole operator against the embedded cluster in virtual time, from one seed, with everything going wrong.
//!
//! Promise: the same seed gives the same run, event by event, in every process. What is checked is checked against the truth
//! of machines and storage ([`oracle`]), never against what the operator believes.
//!
//! | file | is |
//! |---|---|
//! | `run` | one seed from beginning to end |
//! | `stage` | what there is before anything goes wrong |
//! | [`plan`], `trouble`, [`agents`], [`faults`] | what goes wrong, and when |
//! | `coming`, [`acts`] | which of it is next |
//! | `strike`, `wire` | how it goes wrong |
//! | [`oracle`] | what must not be broken |
//! | [`trace`], `words`, `listen`, `heard` | what each actor saw, decided and did |
//! | [`moment`] | how everything stood at one instant |
//! | [`coverage`] | what the seeds have to reach |
//! | [`crash`] | two stories with a crash after every single act |
#![forbid(unsafe_code)]

pub mod acts;
pub mod agents;
mod coming;
pub mod coverage;
pub mod crash;
pub mod faults;
mod heard;
mod listen;
pub mod moment;
pub mod oracle;
mod people;
pub mod plan;
mod run;
mod stage;
mod strike;
pub mod trace;
mod trouble;
mod wire;
mod words;

pub use coverage::Coverage;
pub use run::{LENGTH, Report, simulate, simulate_until};

#[cfg(feature = "planted")]
pub use palisade_core::planted::Bug;
#[cfg(feature = "planted")]
pub use run::simulate_planted;
