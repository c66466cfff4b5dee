//! The ledger: which fences hold a slot, and which were admitted lately.
//!
//! Promise (I3, I5): one compare-and-swap write of this object admits a fence; time in it is observed time, never an instant.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    conditions::{self, Condition},
    rules::{rule, rule_at},
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
    /// How long ago the slots that still count for spacing and rate were granted, youngest first, in milliseconds; only time
    /// in which an operator watched.
    #[schemars(schema_with = "grant_ages")]
    pub grant_ages_millis: Vec<i64>,
    /// What is true of the policy: Accepted, LedgerReady, Observing, NeedsAttention.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
}

/// A fence that holds a slot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self.node == oldSelf.node && self.controlPlane == oldSelf.controlPlane",
        "entries: an entry belongs to one fence of one node; remove it and add another"),
    rule_at(".grant", "self.grant >= oldSelf.grant", "entries.grant: never falls"),
]))]
pub struct LedgerEntry {
    /// UID of the NodeFence.
    #[serde(rename = "fenceUID")]
    #[schemars(schema_with = "schema::uid")]
    pub fence_uid: String,
    /// Name of its node.
    #[schemars(schema_with = "schema::object_name")]
    pub node: String,
    /// Whether the node belongs to the control plane.
    pub control_plane: bool,
    /// Which of the fence's slots this is: a fence that failed gives its slot back and takes another to try again.
    #[schemars(range(min = 1, max = schema::MOST))]
    pub grant: u32,
}

fn grant_ages(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "integer", "format": "int64", "minimum": 0 }, "maxItems": 500 })
}
