//! The operator: fetches, records and acts; what to do is decided in `core`.
//!
//! One loop takes all `news` in order and asks `core` (`run`). Watches, the leader's lease, API requests and devices go on
//! beside it and only send news. So every run is one sequence of events, and can be told again; and all of it is one future,
//! so a crash or a pause stops everything at once (`beside`).
//!
//! | room | is |
//! |---|---|
//! | `view` | what was seen of the cluster |
//! | `detect`, `requests`, `fences` | the three things that are stepped |
//! | `asking`, `workload` | witnesses who are asked, and what runs on a node, listed when it is needed |
//! | `plans` | how each node is fenced |
//! | `accept` | what configs, templates and remedies say of themselves |
//! | `effects`, `executor` | what was decided, carried out: API requests, devices |
//! | `preflight` | devices that are asked before they are needed |
//! | `secrets` | what only devices may know |
//! | `leader` | which replica acts |
//! | `probe`, `native` | how kubelets and devices are reached outside of a simulation |
//! | `rights`, `forbidden` | what the operator has to be allowed, and what is said when it is not |
//! | `insecure` | devices whose certificate nobody looks at, said aloud |
//! | `metrics`, `http` | what is counted, and who may ask for it |
//! | `decided` | what was seen and decided, for whoever listens |
#![forbid(unsafe_code)]

mod accept;
mod agenda;
mod asking;
mod belongs;
mod beside;
mod bookkeeping;
mod clock;
mod context;
mod deadline;
mod decided;
mod detect;
mod effects;
mod events;
mod executor;
mod fences;
mod forbidden;
pub mod http;
mod insecure;
mod leader;
mod metrics;
mod native;
mod news;
mod plans;
mod preflight;
mod probe;
mod requests;
pub mod rights;
mod run;
mod said;
mod secrets;
mod snapshot;
mod view;
mod watch;
mod workload;

pub use clock::Clock;
pub use context::{Act, Context, Devices, NoProbe, Probe, Reached};
pub use metrics::Metrics;
pub use native::Native;
pub use probe::KubeletPort;
pub use run::run;
