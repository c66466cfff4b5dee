//! `NodeRemedy`: when a node needs help, and which remedies are tried in which order.
//!
//! Promise: a threshold creates requests and nothing else. Every period is counted by the operator's own clock from the
//! moment it saw the change; a flapping `lastTransitionTime` neither shortens nor lengthens it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Span,
    conditions::{self, Condition, Truth},
    request::Operation,
    rules::{exactly_one, rule, rule_at},
    schema,
    selector::LabelSelector,
};

/// When a node needs help, and what is done about it.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "palisade.dev",
    version = "v1alpha1",
    kind = "NodeRemedy",
    plural = "noderemedies",
    status = "NodeRemedyStatus",
    shortname = "nr",
    category = "palisade",
    derive = "PartialEq",
    doc = "When a node needs help: thresholds on conditions, leases, storage state and events, each with the remedies that it triggers.",
    printcolumn(name = "Priority", type_ = "integer", json_path = ".spec.priority"),
    printcolumn(name = "Nodes", type_ = "integer", json_path = ".status.nodes", description = "Nodes that it watches"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn(
        name = "Why",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='Accepted')].reason",
        description = "Why it is accepted or not"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NodeRemedySpec {
    /// The nodes that it watches; left out, all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// If several watch one node, those with the highest priority count.
    #[serde(default)]
    #[schemars(range(min = -1000, max = 1000))]
    pub priority: i32,
    /// What is watched. Each threshold stands for itself: one that is crossed is enough.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub thresholds: Vec<Threshold>,
}

/// One thing that is watched, and what is done about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(&exactly_one(&["condition", "lease", "storage", "event"]),
        "thresholds: give exactly one of condition, lease, storage and event; write a second threshold for a second one"),
    rule_at(".first.period", "has(self.second) == has(self.first.period)",
        "first.period: needed together with second (how long to wait before it), and of no use without"),
]))]
pub struct Threshold {
    /// A short name, shown in requests and events.
    #[schemars(schema_with = "schema::label_name")]
    pub name: String,
    /// A node condition that holds for a period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<ConditionThreshold>,
    /// The silence of the node's Lease: tells a death half a minute before the control plane does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseThreshold>,
    /// What a storage system says about the node. Not looked at by this version; Accepted says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageThreshold>,
    /// Events about the node, such as those of the node problem detector. Not looked at by this version; Accepted says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<EventThreshold>,
    /// The first remedy.
    pub first: FirstRemedy,
    /// The remedy for a node that the first one did not help within first.period. Not tried by this version; Accepted says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondRemedy>,
    /// What runs when the node is healthy again. Not run by this version; Accepted says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovery: Option<RecoveryRemedy>,
}

/// A node condition that holds for a period.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConditionThreshold {
    /// The type of the node condition: Ready, DiskPressure, KernelDeadlock, ReadonlyFilesystem or any other.
    #[serde(rename = "type")]
    #[schemars(schema_with = "schema::qualified_name")]
    pub type_: String,
    /// The status that is bad: "True", "False" or "Unknown" (in quotes, as YAML takes True for something else).
    /// Ready needs two thresholds, one for "False" and one for "Unknown".
    pub status: Truth,
    /// How long it must hold.
    pub period: Span,
}

/// The silence of a node's Lease.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct LeaseThreshold {
    /// How many renewals must be missed; the kubelet renews every quarter of the Lease's duration (10 s).
    #[schemars(range(min = 1, max = 20))]
    pub missed: u32,
    /// How many are enough where the node's own power device says that the machine is off. All other nodes have to be heard
    /// after that, so that nodes which die together are not taken for single ones.
    #[schemars(range(min = 1, max = 20))]
    pub missed_when_off: u32,
    /// Whether a witness must confirm. If not, and no witness speaks, Ready=Unknown is waited for instead.
    pub require_witness: bool,
}

impl Default for LeaseThreshold {
    fn default() -> Self {
        Self { missed: 2, missed_when_off: 1, require_witness: false }
    }
}

/// What a storage system says about a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageThreshold {
    /// Name of the storage provider.
    #[schemars(schema_with = "schema::label_name")]
    pub provider: String,
    /// The state that is bad. Offline: the system has given the node up. Unhealthy: it has trouble with the node.
    #[serde(default)]
    pub state: StorageState,
    /// How long it must hold.
    #[serde(default)]
    pub period: Span,
}

/// The state of a node in the eyes of a storage system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum StorageState {
    /// Given up.
    #[default]
    Offline,
    /// In trouble.
    Unhealthy,
}

/// So many events with one reason in a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventThreshold {
    /// The event's reason, such as TaskHung or IOError.
    #[schemars(length(min = 1, max = 128))]
    pub reason: String,
    /// The event's source, such as kernel-monitor; left out, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::origin")]
    pub source: Option<String>,
    /// How many.
    #[serde(default = "once")]
    #[schemars(range(min = 1, max = 1000))]
    pub count: u32,
    /// In which time.
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1s')", "event.window: at least 1s")]))]
    pub window: Span,
}

fn once() -> u32 {
    1
}

/// The remedy that is tried first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".operation", "self.name == 'fence' || !has(self.operation)",
        "operation: only the remedy named fence has one; a template says itself what it does"),
]))]
pub struct FirstRemedy {
    /// `fence`: fence the node as its FenceConfig says. Anything else is the name of a FenceTemplate that is run; this version
    /// runs none, and Accepted says so.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// For `fence`: how far to go, see NodeFencingRequest. Fence, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// How long the node has to recover before the second remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<Span>,
    /// Whether the node's pods and volumes are released afterwards, as far as the proofs cover them. `fence` always does.
    #[serde(default)]
    pub clean_resources: bool,
}

/// The remedy for a node that the first one did not help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".operation", "self.name == 'fence' || !has(self.operation)",
        "operation: only the remedy named fence has one; a template says itself what it does"),
]))]
pub struct SecondRemedy {
    /// `fence`: fence the node as its FenceConfig says. Anything else is the name of a FenceTemplate that is run.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// For `fence`: how far to go, see NodeFencingRequest. Fence, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operation: Option<Operation>,
    /// Whether the node's pods and volumes are released afterwards, as far as the proofs cover them. `fence` always does.
    #[serde(default)]
    pub clean_resources: bool,
}

/// What runs when the node is healthy again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecoveryRemedy {
    /// Name of the FenceTemplate that is run, before the recovery step of the node's FenceConfig.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
}

/// What is true of a remedy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeRemedyStatus {
    /// The generation of the spec that this was said about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// How many nodes it watches.
    #[schemars(range(min = 0))]
    pub nodes: u32,
    /// What is true of it: Accepted.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
}
