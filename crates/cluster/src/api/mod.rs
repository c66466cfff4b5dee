//! Kubernetes' API in memory: the store, what a write has to satisfy, and the ways to reach it.
//!
//! Promise: whatever a client can see or cause here, it could see or cause on a real API server, in the same words.
//! Where that is not so, ARCHITECTURE says it.
//!
//! | file | is |
//! |---|---|
//! | [`store`] | what etcd would hold |
//! | [`kinds`] | which kinds there are |
//! | [`handle`] | the store in somebody's hands: [`Api`] |

mod create;
mod custom;
mod defaults;
mod rules;
mod update;

pub mod deletion;
pub mod handle;
pub mod kinds;
pub mod metadata;
pub mod patch;
pub mod status;
pub mod store;

pub use deletion::{DeleteOptions, Deleted, Propagation};
pub use handle::{Api, Settings, Subscription};
pub use kinds::{Definition, Kind};
pub use patch::Patch;
pub use status::Status;
pub use store::{Actor, Change, Key, Object, Store};
pub use update::Part;
