//! The ledger: which fences hold a slot, and which were admitted lately.
//!
//! Promise (I3, I5): one compare-and-swap write of this object admits a fence; time in it is observed time, never an instant.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    conditions::{self, Condition},
    rules::rule,
    schema,
};

/// The ledger of the fences in flight, and what is true of the policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self.inFlight == size(self.entries)", "status.inFlight: must be the number of status.entries"),
    rule("size(self.entries) == 0 || has(self.policyUID)", "status.policyUID: a ledger says which FencePolicy (metadata.uid) it was built for"),
]))]
pub struct FencePolicyStatus {
    /// The generation of the spec that this was said about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// UID of the FencePolicy that the ledger was built for. Another one, or none, means that the ledger is missing and
    /// has to be rebuilt from the NodeFences before anything is admitted.
    #[serde(rename = "policyUID", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::uid")]
    pub policy_uid: Option<String>,
    /// How many fences hold a slot.
    #[schemars(range(min = 0, max = 200))]
    pub in_flight: u32,
    /// The fences that hold a slot.
    #[schemars(length(max = 200), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["fenceUID"]))]
    pub entries: Vec<LedgerEntry>,
    /// Admissions that still count for spacing, rate, quiet time or flapping.
    #[schemars(length(max = 500), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["fenceUID"]))]
    pub grants: Vec<Grant>,
    /// What is true of the policy: Accepted, LedgerReady, Observing, NeedsAttention.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
}

/// A fence that holds a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self == oldSelf", "entries: an entry belongs to one fence and never changes; remove it and add another"),
]))]
pub struct LedgerEntry {
    /// UID of the NodeFence.
    #[serde(rename = "fenceUID")]
    #[schemars(schema_with = "schema::uid")]
    pub fence_uid: String,
    /// Name of its node.
    #[schemars(schema_with = "schema::object_name")]
    pub node: String,
    /// UID of its node.
    #[serde(rename = "nodeUID")]
    #[schemars(schema_with = "schema::uid")]
    pub node_uid: String,
    /// Whether the node belongs to the control plane.
    pub control_plane: bool,
}

/// An admission that still counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self.observedMillis >= oldSelf.observedMillis", "grants: observedMillis only grows"),
]))]
pub struct Grant {
    /// UID of the NodeFence that was admitted.
    #[serde(rename = "fenceUID")]
    #[schemars(schema_with = "schema::uid")]
    pub fence_uid: String,
    /// Name of its node.
    #[schemars(schema_with = "schema::object_name")]
    pub node: String,
    /// How long ago, counting only time in which an operator watched.
    #[schemars(range(min = 0))]
    pub observed_millis: i64,
}
