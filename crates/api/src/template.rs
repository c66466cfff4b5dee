//! `FenceTemplate`: a device or mechanism that methods share, and what it proves.
//!
//! Promise (I6): a template says what it proves, and the schema refuses claims that its kind cannot back: a built-in
//! proves nothing, a user's pod proves nothing unless somebody reads back. That nobody does is said in so many words
//! (`withoutReadBack`), and means nothing before a person writes the template's name into the policy.

mod pod;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use pod::{
    ConfigMapVolume, Container, EmptyDirVolume, EnvVar, PodMetadata, PodSpec, PodTemplate, Resources, RestartPolicy,
    SecretVolume, Toleration, Volume, VolumeMount,
};

use crate::{
    Span,
    conditions::{self, Condition},
    parameters::{Parameters, SecretRef},
    rules::{exactly_one, forbid, rule, rule_at},
    schema,
};

/// A device or mechanism that methods share.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "palisade.dev",
    version = "v1alpha1",
    kind = "FenceTemplate",
    plural = "fencetemplates",
    status = "FenceTemplateStatus",
    shortname = "ftpl",
    category = "palisade",
    derive = "PartialEq",
    doc = "A device or mechanism that methods share: native driver, fence agent, built-in, storage provider or the user's own pod; its common parameters, its Secret, and what it proves.",
    printcolumn(name = "Native", type_ = "string", json_path = ".spec.native.driver"),
    printcolumn(name = "Agent", type_ = "string", json_path = ".spec.agent.name"),
    printcolumn(name = "Proves", type_ = "string", json_path = ".spec.proves.class"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn(
        name = "Checked",
        type_ = "integer",
        json_path = ".status.checked",
        description = "Nodes whose device was checked"
    ),
    printcolumn(
        name = "Failing",
        type_ = "integer",
        json_path = ".status.failing",
        description = "Nodes whose device failed its last check"
    ),
    printcolumn(name = "Built-in", type_ = "string", json_path = ".spec.builtin.name", priority = 1),
    printcolumn(name = "Storage", type_ = "string", json_path = ".spec.storage.provider", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(&exactly_one(&["native", "agent", "builtin", "podTemplate", "storage"]),
        "give exactly one of native, agent, builtin, podTemplate and storage"),
    rule_at(".proves", "!has(self.builtin) || self.proves.class == 'None'",
        "proves.class: a builtin isolates nothing from its data and proves None"),
    rule_at(".proves", "!has(self.storage) || self.proves.class in ['None', 'Storage', 'Driver']",
        "proves.class: a storage provider proves Storage or Driver (or None), nothing about power or network"),
    rule_at(".proves", "self.proves.class != 'Driver' || has(self.storage)",
        "proves.class: Driver is proven by a storage provider's own attacher; use storage"),
    rule_at(".proves", "!has(self.podTemplate) || self.proves.class == 'None' || has(self.readBack) || has(self.proves.withoutReadBack) && self.proves.withoutReadBack",
        "proves.class: an exit code of 0 proves nothing; name a readBack template, or set class to None"),
    rule_at(".proves", "!has(self.proves.withoutReadBack) || !self.proves.withoutReadBack || has(self.podTemplate)",
        "proves.withoutReadBack: only for a podTemplate; what Palisade calls itself it also reads back, so remove it"),
    rule_at(".proves", "!has(self.proves.withoutReadBack) || !self.proves.withoutReadBack || self.proves.class == 'Power'",
        "proves.withoutReadBack: a person can vouch that a machine is off, and for nothing less; set class to Power or remove it"),
    rule_at(".proves", "!has(self.proves.withoutReadBack) || !self.proves.withoutReadBack || !has(self.readBack)",
        "proves.withoutReadBack: readBack looks for itself, and nobody has to vouch; remove one of the two"),
    rule_at(".proves", "!has(self.proves.withoutReadBack) || !self.proves.withoutReadBack || !has(self.proves.hibernation)",
        "proves.hibernation: without a readBack nobody looks whether the machine was running; remove it, and let the pod see to it that the memory is lost"),
    rule_at(".proves", "self.proves.class != 'Storage' || has(self.storage) || size(self.proves.drivers) > 0",
        "proves.drivers: a Storage proof needs the CSI drivers whose volumes it covers"),
    rule_at(".proves", "self.proves.class == 'Storage' || size(self.proves.drivers) == 0",
        "proves.drivers: only a Storage proof has drivers; remove them or set class to Storage"),
    rule_at(".proves", "!has(self.proves.hibernation) || self.proves.class == 'Power'",
        "proves.hibernation: only a Power proof can be mistaken about it; set class to Power or remove it"),
    rule_at(".readBack", "!has(self.readBack) || self.proves.class != 'None'",
        "readBack: a template that proves None has nothing to read back; set proves.class or remove readBack"),
    rule_at(".parameters", "!has(self.podTemplate) && !has(self.builtin) || !has(self.parameters) || size(self.parameters) == 0",
        "parameters: a podTemplate has its own env and volumes, and a builtin has its own fields; parameters are for devices"),
]))]
pub struct FenceTemplateSpec {
    /// A driver inside the operator: fast, no Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Native>,
    /// A ClusterLabs fence agent, or one with the same interface; runs in a Job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<Agent>,
    /// Something that the operator does to the Node object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub builtin: Option<Builtin>,
    /// The user's own pod; runs in a Job, away from the node that is being remedied. It finds the node's name in
    /// PALISADE_NODE and in the annotation palisade.dev/target-node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<PodTemplate>,
    /// A storage system that can refuse a node's writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage: Option<Storage>,
    /// Parameters that all methods share; those of a method win. `{node}` in a value stands for the node's name.
    #[serde(default, skip_serializing_if = "Parameters::is_empty")]
    pub parameters: Parameters,
    /// Where the device's credentials are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<SecretRef>,
    /// How long one call may take. No answer in time is unknown, and unknown is never success.
    #[serde(default = "call_timeout")]
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1s') && duration(self) <= duration('30m')", "timeout: between 1s and 30m")]))]
    pub timeout: Span,
    /// How often a failed call is repeated before the method has failed.
    #[serde(default = "call_retries")]
    #[schemars(range(min = 0, max = 10))]
    pub retries: u32,
    /// What its success, once read back, proves.
    #[serde(default)]
    pub proves: Proves,
    /// The independent path by which the result is read back. Left out: the same device is asked again, which is a
    /// weaker proof and is called so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_back: Option<ReadBack>,
    /// Whether the device must show that it belongs to the node (system UUID or serial number). WhenKnown: if it can
    /// tell, it must match. Required: a device that cannot tell is not used.
    #[serde(default)]
    pub identity: Identity,
    /// How often the device is asked for its status before it is needed; 0s never.
    #[serde(default = "check_interval")]
    pub check_interval: Span,
}

// StorageOS gave a whole fencing operation 25 s; a device that needs longer for one call needs a person.
fn call_timeout() -> Span {
    Span::from_secs(25)
}

fn call_retries() -> u32 {
    2
}

fn check_interval() -> Span {
    Span::from_mins(10)
}

/// A driver inside the operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Native {
    /// redfish, ipmi (2.0, RMCP+) or snmp-pdu (APC, Eaton, Raritan and others).
    pub driver: Driver,
}

/// The native drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    /// Redfish over HTTPS.
    Redfish,
    /// IPMI 2.0 over RMCP+.
    Ipmi,
    /// A power distribution unit over SNMP.
    SnmpPdu,
}

/// A fence agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Name of the agent, such as fence_ipmilan.
    #[schemars(length(min = 7, max = 63), regex(pattern = "^fence_[a-z0-9_]+$"))]
    pub name: String,
}

/// Something that the operator does to the Node object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".taint", "(self.name == 'taint') == has(self.taint)",
        "taint: needed by the builtin named taint, and refused by the others"),
]))]
pub struct Builtin {
    /// cordon, uncordon, taint, drain, release-pods, or delete-node. The last two are releases: without a proof that
    /// covers the pods they do nothing.
    pub name: BuiltinName,
    /// For `taint`: which one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taint: Option<Taint>,
}

/// The built-ins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BuiltinName {
    /// Mark the node unschedulable.
    Cordon,
    /// Lift our own cordon.
    Uncordon,
    /// Add a taint.
    Taint,
    /// Evict pods in the ordinary way.
    Drain,
    /// Release what the proofs cover.
    ReleasePods,
    /// Delete the Node object, after a power proof and the removal of every pod that has volumes.
    DeleteNode,
}

/// A taint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Its key. Not node.kubernetes.io/..., which Kubernetes acts upon, and not palisade.dev/..., which is ours.
    #[schemars(schema_with = "schema::qualified_name")]
    #[schemars(extend("x-kubernetes-validations" = [
        forbid("!self.startsWith('node.kubernetes.io/') && !self.startsWith('palisade.dev/')",
            "taint.key: node.kubernetes.io/ belongs to Kubernetes and palisade.dev/ to the operator; choose another prefix"),
    ]))]
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::label_value")]
    pub value: String,
    /// NoSchedule or PreferNoSchedule. NoExecute is not offered: it evicts pods without any proof.
    #[serde(default)]
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TaintEffect {
    /// No new pods.
    #[default]
    NoSchedule,
    /// Rather no new pods.
    PreferNoSchedule,
}

/// A storage system that can refuse a node's writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Storage {
    /// Name of the storage provider.
    #[schemars(schema_with = "schema::label_name")]
    pub provider: String,
}

/// What a success proves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Proves {
    /// Power: the machine is off and its memory is lost. Storage: it cannot write to the volumes of these drivers.
    /// Driver: the CSI driver has fenced each volume itself. Network: it is off the network. None: nothing.
    pub class: ProvesClass,
    /// For Storage: CSI drivers whose volumes are covered. A storage provider knows its own.
    #[schemars(schema_with = "schema::csi_drivers")]
    pub drivers: Vec<String>,
    /// For Power: whether the machine can be off and still keep what it had in memory (hibernated, saved to disk).
    /// Impossible: off is off. Possible: a machine that was found off proves nothing; it does if it was seen running right
    /// before it was switched off. Left out: Impossible for native drivers, Possible for everything else, as clouds and
    /// hypervisors save machines to disk and call them stopped. If it is wrongly said to be impossible, a machine that wakes
    /// up goes on writing to a volume that another node has by then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hibernation: Option<Hibernation>,
    /// For a podTemplate that proves Power: nobody can read its result back. Such a pod proves nothing, and no FenceConfig may
    /// use it unless spec.declaredPower of the FencePolicy names this template: then its success counts as a person's word that
    /// the machine is off and its memory is lost, until the node shows a sign of life.
    #[serde(skip_serializing_if = "is_false")]
    pub without_read_back: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(said: &bool) -> bool {
    !said
}

impl Default for Proves {
    fn default() -> Self {
        Self { class: ProvesClass::None, drivers: Vec::new(), hibernation: None, without_read_back: false }
    }
}

/// Whether a machine can be off and keep its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Hibernation {
    /// Off is off.
    Impossible,
    /// It can.
    Possible,
}

/// The classes of proof that a template can make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProvesClass {
    /// Off, read back.
    Power,
    /// Writes refused by the storage system, read back.
    Storage,
    /// Volumes fenced by their CSI driver.
    Driver,
    /// Off the network, read back; covers nothing by itself.
    Network,
    /// Nothing.
    None,
}

/// The independent path by which a result is read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadBack {
    /// Name of another FenceTemplate, native or agent, that can see the same plug, port or machine.
    #[schemars(schema_with = "schema::object_name")]
    pub template: String,
}

/// Whether a device must show that it belongs to the node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Identity {
    /// If it can tell, it must match.
    #[default]
    WhenKnown,
    /// It must tell, and match.
    Required,
}

/// What is true of a template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct FenceTemplateStatus {
    /// The generation of the spec that this was said about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// For how many nodes the device was checked.
    #[schemars(range(min = 0))]
    pub checked: u32,
    /// For how many of them the last check failed.
    #[schemars(range(min = 0))]
    pub failing: u32,
    /// What is true of it: Accepted, DevicesHealthy.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
}
