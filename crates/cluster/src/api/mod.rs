//! Kubernetes' API in memory: the store, what a write has to satisfy, and the ways to reach it.
//!
//! Promise: whatever a client can see or cause here, it could see or cause on a real API server, in the same words.
//! It is kept by `conformance` in `palisade-scenarios`, whose checks run against this and against a real one.
//!
//! | asks | goes through |
//! |---|---|
//! | a controller or kubelet in this process | [`Api`] ([`handle`]) |
//! | a `kube::Client`, such as the operator's | [`Server`] ([`service`]), over a [`Wire`] ([`wire`]) |
//! | kubectl | [`http`] |
//!
//! All of them end in the [`store`], through `create`, `update`, `patch` and [`deletion`].
//!
//! Left out, on purpose: who may do what (RBAC, admission webhooks), strategic merge and server-side apply (415),
//! managedFields, conversion between versions but for `apiVersion`, validation of built-in kinds beyond what could go
//! wrong here (`rules.rs`), the finalizers that protect volumes and claims, a word about fields that stand twice in a
//! body, and the controllers: garbage collection and the end of a namespace are theirs.

mod create;
mod custom;
mod defaults;
mod discovery;
mod events;
mod eviction;
mod jsonpath;
mod metadata_rules;
mod openapi;
mod path;
mod read;
mod render;
mod rules;
mod schema;
pub(crate) mod secret;
mod subresources;
mod table;
mod update;
mod watch;
mod write;

pub mod deletion;
pub mod handle;
pub mod http;
pub mod kinds;
pub mod metadata;
pub mod patch;
pub mod selector;
pub mod service;
pub mod status;
pub mod store;
pub mod wire;

pub use custom::Custom;
pub use deletion::{DeleteOptions, Deleted, Propagation};
pub use handle::{Api, Settings, Subscription};
pub use kinds::{Definition, Kind};
pub use patch::Patch;
pub use path::Verb;
pub use service::Server;
pub use status::Status;
pub use store::{Actor, Change, Key, Object, Store};
pub use update::Part;
pub use wire::Wire;
