//! The kinds that Palisade reads and writes, and the words that it leaves on other people's objects; nothing else.
//!
//! Promise: what the API server accepts, these types can read; what these types write, the API server accepts.
//! Never here: a decision, a clock, a client. The schemas carry their own rules (CEL), so no webhook stands on the path that fences.
//!
//! | kind | says | module |
//! |---|---|---|
//! | [`FencePolicy`] | whether: mode, gates, brakes, budget; its status is the ledger of fences in flight | [`policy`] |
//! | [`NodeRemedy`] | when: thresholds and the remedies that they trigger | [`remedy`] |
//! | [`FenceConfig`] | how, for a set of nodes: steps, levels, methods, per-node values | [`config`] |
//! | [`FenceTemplate`] | with what: a device or mechanism, and what it proves | [`template`] |
//! | [`NodeFencingRequest`], [`NodeFencingRequestTemplate`] | a claim that a node should be fenced, and its answer | [`request`] |
//! | [`NodeFence`] | the live operation: lock, automaton, proofs, releases | [`fence`] |
//! | [`MachineDisruptionBudget`] | how many machines may be missing | [`budget`] |

#![forbid(unsafe_code)]
#![allow(clippy::duplicated_attributes, reason = "each printer column of a kind has its own name and type")]

mod crd;
mod rules;
mod schema;

pub mod budget;
pub mod conditions;
pub mod config;
pub mod fence;
pub mod names;
pub mod parameters;
pub mod policy;
pub mod portion;
pub mod remedy;
pub mod request;
pub mod selector;
pub mod span;
pub mod template;

pub use budget::MachineDisruptionBudget;
pub use config::FenceConfig;
pub use crd::crds;
pub use fence::NodeFence;
pub use policy::FencePolicy;
pub use portion::Portion;
pub use remedy::NodeRemedy;
pub use request::{NodeFencingRequest, NodeFencingRequestTemplate};
pub use span::Span;
pub use template::FenceTemplate;
