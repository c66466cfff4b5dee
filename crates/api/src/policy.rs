//! `FencePolicy`: whether anything may be fenced now. Its status is the ledger of the fences in flight.
//!
//! Promise (I3): the ledger never grows beyond the budget, whoever writes it: the schema itself refuses.
//! An empty spec is a safe policy: every default stands in `Default` and nowhere else; the schema is made from it.

mod brakes;
mod ledger;
mod release;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use brakes::{
    Budget, ControlPlane, Domain, Exclusions, Flap, Kdump, Observer, Quiet, Rate, StorageGates, Storm, WholeDomain,
    Witness,
};
pub use ledger::{FencePolicyStatus, LedgerEntry};
pub use release::{OutOfService, Pace, PodLane, Release};

use crate::{Span, names, rules::rule, schema};

/// Whether nodes may be fenced: mode, gates, brakes and budget.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "palisade.dev",
    version = "v1alpha1",
    kind = "FencePolicy",
    plural = "fencepolicies",
    status = "FencePolicyStatus",
    shortname = "fpol",
    category = "palisade",
    derive = "PartialEq",
    doc = "Whether nodes may be fenced: mode, gates, storm brakes and budget. There is one, named `cluster`; its status is the ledger of the fences in flight.",
    validation = Rule::new("self.metadata.name == 'cluster'")
        .message("metadata.name: there is one FencePolicy, and its name is cluster"),
    // Without the old ledger no rule about its growth could hold.
    validation = Rule::new("!has(oldSelf.status) || has(self.status)")
        .message("status: the ledger is never removed; it is rebuilt when its policyUID is not that of this object"),
    // The ledger may be rebuilt in one go; apart from that it grows only within the budget.
    validation = Rule::new("!has(self.status) || !has(oldSelf.status) || !has(oldSelf.status.policyUID) || !has(self.status.policyUID) || oldSelf.status.policyUID != self.status.policyUID || size(self.status.entries) <= size(oldSelf.status.entries) || size(self.status.entries) <= self.spec.budget.maxConcurrent")
        .message("status.entries: more fences than spec.budget.maxConcurrent allows; wait until one ends"),
    validation = Rule::new("!has(self.status) || !has(oldSelf.status) || !has(oldSelf.status.policyUID) || !has(self.status.policyUID) || oldSelf.status.policyUID != self.status.policyUID || !self.spec.controlPlane.protectQuorum || self.status.entries.filter(e, e.controlPlane).size() <= 1 || self.status.entries.filter(e, e.controlPlane).size() <= oldSelf.status.entries.filter(e, e.controlPlane).size()")
        .message("status.entries: one control-plane node at a time (spec.controlPlane.protectQuorum)"),
    printcolumn(name = "Mode", type_ = "string", json_path = ".spec.mode"),
    printcolumn(name = "In flight", type_ = "integer", json_path = ".status.inFlight", description = "Fences that hold a slot"),
    printcolumn(name = "Max", type_ = "integer", json_path = ".spec.budget.maxConcurrent", description = "Fences that may hold a slot at once"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn(name = "Observing", type_ = "string", json_path = ".status.conditions[?(@.type=='Observing')].status", description = "Whether the operator sees enough of the cluster to judge others"),
    printcolumn(name = "Attention", type_ = "string", json_path = ".status.conditions[?(@.type=='NeedsAttention')].reason", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default)]
pub struct FencePolicySpec {
    /// Enforce: act. DryRun: write the verdict to the request and do nothing else. Paused: admit nothing new; what runs is finished.
    pub mode: Mode,
    /// Namespaces whose NodeFencingRequests are honoured. Whoever may create requests there may have nodes fenced.
    #[schemars(schema_with = "schema::namespaces")]
    pub request_namespaces: Vec<String>,
    /// Nodes that are never fenced.
    pub exclusions: Exclusions,
    /// How long a request waits in case the node recovers by itself; a request may ask for its own.
    /// None by default: the thresholds have waited already.
    pub grace: Span,
    /// Times in which nothing is admitted.
    pub quiet: Quiet,
    /// How many nodes may be down before the observer doubts itself.
    pub storm: Storm,
    /// When the operator is blind.
    pub observer: Observer,
    /// How much may happen at once.
    pub budget: Budget,
    /// Care for the control plane.
    pub control_plane: ControlPlane,
    /// Storage systems that must be well before a node is cut off.
    pub storage_gates: StorageGates,
    /// What to do about a node that cannot reach its storage. Ignore: fence it. Skip: do not, as fencing helps nobody then.
    pub storage_outage: IgnoreOrSkip,
    /// What to do about a silent node that still uses its storage. Ignore: fence it. Skip: do not.
    pub storage_in_use: IgnoreOrSkip,
    /// What to do about a node that writes a kernel dump.
    pub kdump: Kdump,
    /// Which nodes need fencing at all. StatefulOnly: nodes with StatefulSet members or volumes that only one node may
    /// write to. AnyNode: all.
    pub workload: Workload,
    /// When a node fails so often that fencing it again is no help.
    pub flap: Flap,
    /// Who else must have seen that the node is gone.
    pub witness: Witness,
    /// Always: a person approves each fence (`kubectl palisade approve`). Never: none has to.
    pub approval: Approval,
    /// How pods are released.
    pub release: Release,
    /// CSI drivers whose declared safe detach counts as permission to release, without a proof.
    /// Only for drivers that refuse to attach a volume elsewhere until they have cut off the old node: a driver that
    /// does not keep this word lets two nodes write to one volume. None by default.
    #[schemars(schema_with = "schema::csi_drivers")]
    pub driver_guard: Vec<String>,
    /// FenceTemplates with proves.withoutReadBack whose success counts as a person's word that the machine is off and its memory
    /// is lost: you vouch for these pods by writing their names here. Nobody reads back what they did. A pod that succeeds
    /// while the machine still runs lets two nodes write to one volume. None by default.
    #[schemars(schema_with = "schema::templates")]
    pub declared_power: Vec<String>,
    /// When repeated failures of a node raise an alarm.
    pub repeated_failures: Alarm,
    /// How long finished requests are kept.
    pub history: History,
}

impl Default for FencePolicySpec {
    fn default() -> Self {
        Self {
            mode: Mode::Enforce,
            request_namespaces: vec![names::SYSTEM_NAMESPACE.to_owned()],
            exclusions: Exclusions::default(),
            grace: Span::ZERO,
            quiet: Quiet::default(),
            storm: Storm::default(),
            observer: Observer::default(),
            budget: Budget::default(),
            control_plane: ControlPlane::default(),
            storage_gates: StorageGates::default(),
            storage_outage: IgnoreOrSkip::Ignore,
            storage_in_use: IgnoreOrSkip::Ignore,
            kdump: Kdump::default(),
            workload: Workload::StatefulOnly,
            flap: Flap::default(),
            witness: Witness::default(),
            approval: Approval::Never,
            release: Release::default(),
            driver_guard: Vec::new(),
            declared_power: Vec::new(),
            repeated_failures: Alarm::default(),
            history: History::default(),
        }
    }
}

/// Whether verdicts are acted upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Mode {
    /// Act.
    Enforce,
    /// Say what would be done.
    DryRun,
    /// Admit nothing new.
    Paused,
}

/// Whether a finding keeps a node from being fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IgnoreOrSkip {
    /// The finding changes nothing.
    Ignore,
    /// The node is not fenced while it lasts.
    Skip,
}

/// Which nodes need fencing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Workload {
    /// All nodes.
    AnyNode,
    /// Nodes whose workload cannot move by itself.
    StatefulOnly,
}

/// Whether a person approves each fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Approval {
    /// Nobody has to.
    Never,
    /// Somebody has to.
    Always,
}

/// So many failures of one node in a window raise an alarm.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Alarm {
    /// How many failures.
    #[schemars(range(min = 1, max = 100))]
    pub count: u32,
    /// In which time.
    pub window: Span,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { count: 3, window: Span::from_hours(24) }
    }
}

/// How long finished requests are kept. The one that is reached first ends it. Those that failed are kept three times as long, and
/// three times as many.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct History {
    /// How old a finished request may become.
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1h')", "history.age: keep finished requests for at least 1h, or nobody can look into a failure")]))]
    pub age: Span,
    /// How many finished requests of one node are kept.
    #[schemars(range(min = 1, max = 1000))]
    pub count: u32,
}

impl Default for History {
    fn default() -> Self {
        Self { age: Span::from_hours(720), count: 20 }
    }
}
