//! The pure heart of Palisade: what to do about a failed node, decided from plain data.
//!
//! Nothing in here waits, logs, tells the time or asks anybody. The operator, the simulator, the model checker and
//! `explain` all call the same functions; see ARCHITECTURE.md for the rooms.
#![forbid(unsafe_code)]

pub mod automaton;
pub mod detect;
pub mod durable;
pub mod effect;
pub mod fence;
pub mod ident;
pub mod isolate;
pub mod ledger;
pub mod observe;
pub mod pace;
pub mod planted;
pub mod policy;
pub mod preflight;
pub mod prove;
pub mod reason;
pub mod recover;
pub mod release;
pub mod request;
pub mod resolve;
pub mod settings;
pub mod snapshot;
pub mod time;
pub mod vet;

pub use automaton::{Decision, State, step};
