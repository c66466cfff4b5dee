//! Conditions: what is true of an object now, in the form that every Kubernetes tool reads.
//!
//! Promise: `status` is Unknown until somebody looked, `observedGeneration` says which spec was looked at, and
//! `lastTransitionTime` is for people: nothing is ever decided by it.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::schema;

/// The spec makes sense, what a node's fence needs of it is there, and nothing of it is known to be left undone.
/// (`FenceConfig`, `FenceTemplate`, `NodeRemedy`, `FencePolicy`)
pub const ACCEPTED: &str = "Accepted";
/// Why it is not: it cannot be read as an object of its kind.
pub const NOT_UNDERSTOOD: &str = "NotUnderstood";
/// Why it is not: it can be read, and cannot be used as it stands.
pub const NOT_USABLE: &str = "NotUsable";
/// Why it is not: parts of it, which the message names, are not carried out by this version. The others are.
pub const NOT_CARRIED_OUT: &str = "NotCarriedOut";
/// The ledger is complete and admissions are possible. (`FencePolicy`)
pub const LEDGER_READY: &str = "LedgerReady";
/// The operator sees enough of the cluster to judge others. (`FencePolicy`)
pub const OBSERVING: &str = "Observing";
/// The devices answered their last periodic check and belong to their nodes. (`FenceTemplate`, `FenceConfig`)
pub const DEVICES_HEALTHY: &str = "DevicesHealthy";
/// The request passed every gate. (`NodeFencingRequest`)
pub const ADMITTED: &str = "Admitted";
/// The work is under way. (`NodeFencingRequest`; a word that medik8s reads)
pub const PROCESSING: &str = "Processing";
/// The work is done and the node is back, or it is done for good. (`NodeFencingRequest`; a word that medik8s reads)
pub const SUCCEEDED: &str = "Succeeded";
/// The node can do no more harm: a proof is in force. (`NodeFence`)
pub const ISOLATED: &str = "Isolated";
/// Everything that may be released has been released. (`NodeFence`)
pub const RELEASED: &str = "Released";
/// The node passed the return checks. (`NodeFence`)
pub const RECOVERED: &str = "Recovered";
/// A person has to look. (`NodeFence`, `FencePolicy`)
pub const ATTENTION: &str = "NeedsAttention";

/// One thing that is true, false or not known of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about, in CamelCase.
    #[serde(rename = "type")]
    #[schemars(length(min = 1, max = 63), regex(pattern = schema::WORD))]
    pub type_: String,
    /// Whether it holds: True, False or Unknown.
    pub status: Truth,
    /// The generation of the spec that this was said about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// When the status changed last; for people, nothing is decided by it.
    pub last_transition_time: Timestamp,
    /// Why, in one CamelCase word.
    #[schemars(schema_with = "schema::reason")]
    pub reason: String,
    /// Why, in a sentence with its numbers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::message")]
    pub message: String,
}

/// Whether something holds. Also the status of a node condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Truth {
    /// It holds.
    True,
    /// It does not hold.
    False,
    /// Nobody knows.
    Unknown,
}

/// The list of conditions of an object, one of each type.
pub(crate) fn list(make: &mut SchemaGenerator) -> Schema {
    schemars::json_schema!({
        "type": "array",
        "items": make.subschema_for::<Condition>(),
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
    })
}
