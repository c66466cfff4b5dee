//! `FenceConfig`: how the nodes of a set are fenced.
//!
//! A step is a list of levels, tried in order until one succeeds (OR); a level is a list of methods, run in series,
//! which all have to succeed (AND). "(network AND disk) OR power" is two levels.
//! Promise: one call does one thing to one plug. Off and on are never one call, and between them stands the read-back.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Span,
    conditions::{self, Condition},
    parameters::{self, Parameters},
    rules::{rule, rule_at},
    schema,
    selector::LabelSelector,
};

/// How the nodes of a set are fenced.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "palisade.dev",
    version = "v1alpha1",
    kind = "FenceConfig",
    plural = "fenceconfigs",
    status = "FenceConfigStatus",
    shortname = "fcfg",
    category = "palisade",
    derive = "PartialEq",
    doc = "How the nodes of a set are fenced: the steps isolation, powerManagement and recovery, each a list of levels (tried until one succeeds), each level a list of methods (which all have to succeed).",
    printcolumn(name = "Priority", type_ = "integer", json_path = ".spec.priority"),
    printcolumn(
        name = "First isolation",
        type_ = "string",
        json_path = ".spec.isolation.levels[0].name",
        description = "The level of the isolation step that is tried first"
    ),
    printcolumn(
        name = "First power",
        type_ = "string",
        json_path = ".spec.powerManagement.levels[0].name",
        description = "The level of the power step that is tried first"
    ),
    printcolumn(
        name = "Nodes",
        type_ = "integer",
        json_path = ".status.nodes",
        description = "Nodes that it is used for"
    ),
    printcolumn(
        name = "Devices",
        type_ = "string",
        json_path = ".status.conditions[?(@.type=='DevicesHealthy')].status",
        description = "Whether the devices answered their last check"
    ),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    rule("has(self.nodeSelector) || (has(self.nodeNames) && size(self.nodeNames) > 0)",
        "nodeSelector, nodeNames: say which nodes this is for by at least one of them; an empty nodeSelector means all"),
    rule("size(self.isolation.levels) + size(self.powerManagement.levels) > 0",
        "isolation, powerManagement: at least one of them needs a level, or nothing would ever be isolated"),
    rule_at(".isolation", "self.isolation.levels.all(level, level.methods.all(method, !has(method.action) || method.action == 'SwitchOff'))",
        "isolation: methods of this step switch off; put SwitchOn into recovery"),
    rule_at(".recovery", "self.recovery.levels.all(level, level.methods.all(method, !has(method.action) || method.action == 'SwitchOn'))",
        "recovery: methods of this step switch on; put SwitchOff into isolation or powerManagement"),
    rule_at(".powerManagement", "self.powerManagement.levels.all(level, level.methods.exists(method, !has(method.action) || method.action == 'SwitchOff'))",
        "powerManagement: each level needs a method that switches off; a level that only switches on proves nothing"),
    rule_at(".powerManagement", "self.powerManagement.levels.all(level, level.methods.map(method, has(method.action) && method.action == 'SwitchOn' ? 1 : 0).isSorted())",
        "powerManagement: in a level every SwitchOff comes before every SwitchOn; the release stands between them"),
    rule_at(".stayOff", "!self.stayOff || self.powerManagement.levels.all(level, level.methods.all(method, !has(method.action) || method.action == 'SwitchOff'))",
        "stayOff: a machine that stays off must not have SwitchOn in powerManagement; remove one of the two"),
]))]
pub struct FenceConfigSpec {
    /// The nodes that this is for, by label. Together with nodeNames: both lists count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// The nodes that this is for, by name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::node_names")]
    pub node_names: Vec<String>,
    /// If several are for one node, the highest priority counts; two equal ones hold the fence until one is changed.
    #[schemars(range(min = -1000, max = 1000))]
    pub priority: i32,
    /// Cuts the node off. Runs first.
    pub isolation: StepConfig,
    /// Switches the machine off, and on again after the release. Runs when isolation gave no proof, or when the node is
    /// not healthy after powerAfter.
    pub power_management: StepConfig,
    /// Gives back what isolation took. Runs when the node is healthy and clean.
    pub recovery: StepConfig,
    /// How often the whole flow is started again after an error.
    #[schemars(range(min = 0, max = 100))]
    pub restarts: u32,
    /// How long an isolated node has to become healthy before the power step.
    pub power_after: Span,
    /// Whether the machine stays off until a person resumes the fence.
    pub stay_off: bool,
    /// How long the machine stays off at most while pods that could be released are not yet.
    pub release_timeout: Span,
    /// How long the node has to become healthy after it was switched on.
    pub recovery_timeout: Span,
    /// How long a device must say off without a break. Left out: 2s for native drivers, 5s for fence agents.
    /// Longer than the device's own power cycle, or a cycle in flight looks like off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1s') && duration(self) <= duration('5m')", "stableOff: between 1s and 5m")]))]
    pub stable_off: Option<Span>,
}

impl Default for FenceConfigSpec {
    fn default() -> Self {
        Self {
            node_selector: None,
            node_names: Vec::new(),
            priority: 0,
            isolation: StepConfig::default(),
            power_management: StepConfig::default(),
            recovery: StepConfig::default(),
            restarts: 3,
            power_after: Span::from_mins(5),
            stay_off: false,
            release_timeout: Span::from_mins(2),
            recovery_timeout: Span::from_mins(10),
            stable_off: None,
        }
    }
}

/// One step of the flow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StepConfig {
    /// How often the step is tried again before the fence goes to Error.
    #[schemars(range(min = 0, max = 100))]
    pub retries: u32,
    /// Tried in order until one succeeds.
    #[schemars(length(max = 4), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub levels: Vec<Level>,
}

impl Default for StepConfig {
    fn default() -> Self {
        Self { retries: 2, levels: Vec::new() }
    }
}

/// Methods that have to succeed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Level {
    /// A short name, shown in status and events.
    #[schemars(schema_with = "schema::label_name")]
    pub name: String,
    /// Run in series; all have to succeed.
    #[schemars(length(min = 1, max = 6), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub methods: Vec<Method>,
}

/// One call of one device or mechanism.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Method {
    /// A short name, shown in status and events.
    #[schemars(schema_with = "schema::label_name")]
    pub name: String,
    /// Name of the FenceTemplate.
    #[schemars(schema_with = "schema::object_name")]
    pub template: String,
    /// SwitchOff or SwitchOn (a plug, a port, a machine). Left out: SwitchOff in isolation and powerManagement, SwitchOn
    /// in recovery. Built-ins, storage and pod templates take no notice of it. (Not `off` and `on`: YAML reads those as
    /// false and true.)
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Parameters for every node; they win over those of the template. `{node}` stands for the node's name.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// Parameters per node, by the node's name; they win over all others. For example `{"host1": {"plug": "2"}}`.
    /// A node that is missing here gets the others; a parameter that is missing altogether fails the method.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "parameters::per_node")]
    pub per_node: BTreeMap<String, Parameters>,
}

/// What a device is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// The agents' `off`.
    SwitchOff,
    /// The agents' `on`.
    SwitchOn,
}

/// What is true of a config.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FenceConfigStatus {
    /// The generation of the spec that this was said about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// How many nodes it is used for.
    #[schemars(range(min = 0))]
    pub nodes: u32,
    /// What is true of it: Accepted, DevicesHealthy.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
}
