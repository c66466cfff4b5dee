//! `NodeFence`: one live operation on one node.
//!
//! Its creation is the lock (one name, one node), its UID the epoch, its status the durable automaton.
//! Promise (I5): whoever writes it, the schema keeps the order: an attempt never falls, a step never goes back, a proof
//! is written once, a release only moves forward and never vanishes. A second leader with old news is refused by the
//! API server, not by good manners.

mod proof;
mod release;
mod status;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use proof::{Baseline, Ended, Incarnation, Proof, ProofClass, ReadPath, Scope, ScopeKind};
pub use release::{Attachment, DetachRecord, ReleaseRecord, ReleaseState, SinceMark, SinceMarkState};
pub use status::{
    End, FencePhase, Isolation, IsolationKind, IsolationState, NodeFenceStatus, RunRecord, Slot, Status, Step,
    TimelineEntry,
};

use crate::{
    rules::{rule, rule_at},
    schema,
};

/// One live operation on one node.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "palisade.dev",
    version = "v1alpha1",
    kind = "NodeFence",
    plural = "nodefences",
    status = "NodeFenceStatus",
    shortname = "nf",
    category = "palisade",
    derive = "PartialEq",
    doc = "One live fencing operation, named after its node. Deleting it means stop: it then ends in recovery or in a visible hold. Use `kubectl palisade` to stop, resume, approve or confirm.",
    validation = Rule::new("self.metadata.name == self.spec.nodeName")
        .message("metadata.name: a NodeFence has the name of its node (spec.nodeName); the name is the lock"),
    // Without the old status no rule about change could hold.
    validation = Rule::new("!has(oldSelf.status) || has(self.status)")
        .message("status: the state of a fence is never removed; delete the NodeFence to stop it"),
    printcolumn(name = "Step", type_ = "string", json_path = ".status.step"),
    printcolumn(name = "Status", type_ = "string", json_path = ".status.status"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Why", type_ = "string", json_path = ".status.reason"),
    printcolumn(name = "Attempt", type_ = "integer", json_path = ".status.attempt"),
    printcolumn(name = "Slot", type_ = "string", json_path = ".status.slot", priority = 1),
    printcolumn(name = "Config", type_ = "string", json_path = ".spec.config", priority = 1),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NodeFenceSpec {
    /// The node. Never changes.
    #[schemars(schema_with = "schema::object_name")]
    #[schemars(extend("x-kubernetes-validations" = [
        rule("self == oldSelf", "spec.nodeName: the target of a fence never changes; delete this one, another is made for the other node"),
    ]))]
    pub node_name: String,
    /// The requests that it answers.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub requests: Vec<RequestRef>,
    /// Name of the FenceConfig that counted for the node when the fence was made. It counts on if the Node is deleted, which alone
    /// could choose one; until then the Node's labels do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub config: Option<String>,
    /// Whether the power step runs in any case, because a request or a remedy says so.
    #[serde(default)]
    pub power_step: bool,
    /// Whether the machine stays off.
    #[serde(default)]
    pub stay_off: bool,
    /// What people have said.
    #[serde(default)]
    pub admin: Admin,
}

/// A request that the fence answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestRef {
    /// Namespace of the request.
    #[schemars(schema_with = "schema::label_name")]
    pub namespace: String,
    /// Name of the request.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// UID of the request.
    #[schemars(schema_with = "schema::uid")]
    pub uid: String,
}

/// What people have said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".resume", "self.resume >= oldSelf.resume", "admin.resume: a counter; raise it by one to resume, never lower it"),
]))]
pub struct Admin {
    /// No new effect. Pods that are already marked are finished if their proof holds; then the node is recovered.
    pub stop: bool,
    /// Raise it by one to go on with a fence that is held, for example to switch a machine on that was held off.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub resume: u32,
    /// A person agrees, where the policy asks for it.
    pub approve: bool,
    /// A person vouches that the node is off or cut off from everything that it can write to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirmation>,
}

/// A person vouches that a node can do no more harm. It counts as a power proof until the first sign of life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Confirmation {
    /// UID of the Node that the person means.
    #[serde(rename = "nodeUID")]
    #[schemars(schema_with = "schema::uid")]
    pub node_uid: String,
    /// The boot that the person means.
    #[serde(rename = "bootID")]
    #[schemars(schema_with = "schema::boot_id")]
    pub boot_id: String,
    /// Who vouches. Counts only where an admission policy makes it the user who sent the change.
    #[schemars(schema_with = "schema::origin")]
    pub confirmed_by: String,
    /// How the person knows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::message")]
    pub note: String,
}
