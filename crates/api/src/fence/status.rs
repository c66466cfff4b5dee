//! The durable automaton: where a fence stands, what has to be undone, what was proven, what was released.
//!
//! Promise (I5): each rule here is a move that must never be made, refused by the API server itself.
//! `phase` is the automaton's one word; `step` and `status` are the two words that older tools know.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{DetachRecord, Incarnation, Proof, ReleaseRecord, SinceMark};
use crate::{
    conditions::{self, Condition},
    request::ActionOutcome,
    rules::rule_at,
    schema,
};

/// Where a fence stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".attempt", "self.attempt >= oldSelf.attempt", "status.attempt: never falls"),
    rule_at(".restarts", "self.restarts >= oldSelf.restarts", "status.restarts: never falls"),
    rule_at(".observedResume", "self.observedResume >= oldSelf.observedResume", "status.observedResume: never falls"),
    rule_at(".step", "self.attempt > oldSelf.attempt || self.step == oldSelf.step || oldSelf.step == 'Isolation' || self.step == 'Recovery' || has(oldSelf.end) && oldSelf.end == 'HeldOff'",
        "status.step: goes back only with a higher attempt, or when a machine that was held off is resumed"),
    rule_at(".incarnation", "!has(oldSelf.incarnation) || self.attempt > oldSelf.attempt || has(self.incarnation) && self.incarnation == oldSelf.incarnation",
        "status.incarnation: changes only with a higher attempt"),
    rule_at(".proofs", "self.attempt > oldSelf.attempt || oldSelf.proofs.all(old, self.proofs.exists(new, new.id == old.id))",
        "status.proofs: within an attempt a proof is never removed; set its ended instead"),
    rule_at(".proofs", "self.proofs.all(proof, proof.attempt == self.attempt)",
        "status.proofs: only proofs of the current attempt; drop the old ones when the attempt rises"),
    rule_at(".proofs", "size(self.proofs) == 0 || has(self.incarnation) && self.proofs.all(proof, proof.incarnation.nodeUID == self.incarnation.nodeUID && proof.incarnation.bootID == self.incarnation.bootID)",
        "status.proofs: a proof is about status.incarnation and nobody else"),
    rule_at(".releases", "oldSelf.releases.all(old, self.releases.exists(new, new.podUID == old.podUID))",
        "status.releases: a release stays as long as the fence lives"),
    rule_at(".isolations", "oldSelf.isolations.all(old, old.state == 'Undoing' || self.isolations.exists(new, new.kind == old.kind && new.method == old.method))",
        "status.isolations: record Undoing first; an isolation is removed only by a verified undo"),
    rule_at(".status", "self.status in ['Done', 'Final'] ? self.step == 'Recovery' : self.status == 'Error' || self.step != 'Recovery'",
        "status.status: Done and Final belong to step Recovery, New and Running to the steps before it"),
    rule_at(".phase", "self.phase == 'Final' ? self.status == 'Final' : self.phase == 'Failed' ? self.status == 'Error' : self.phase in ['Returning', 'Recovering'] ? self.status == 'Done' : self.status in ['New', 'Running']",
        "status.phase: does not go with status.status"),
    rule_at(".phase", "!(self.phase in ['New', 'Isolating']) || self.step == 'Isolation'",
        "status.phase: New and Isolating belong to step Isolation"),
    rule_at(".run", "!(self.phase in ['Isolating', 'PoweringOff', 'PoweringOn', 'Recovering']) || has(self.run)",
        "status.run: says how far the running step has come; without it nobody could go on with it"),
    rule_at(".grant", "self.grant >= oldSelf.grant", "status.grant: never falls, as no two slots may share a number"),
    rule_at(".calls", "self.calls >= oldSelf.calls", "status.calls: never falls, as no two calls may share a number"),
    rule_at(".phase", "!(self.phase in ['PoweringOff', 'PoweringOn']) || self.step == 'PowerManagement'",
        "status.phase: PoweringOff and PoweringOn belong to step PowerManagement"),
    rule_at(".phase", "oldSelf.phase != 'Final' || self.phase == 'Final' || has(oldSelf.end) && oldSelf.end == 'HeldOff'",
        "status.phase: Final is the end, unless the machine was held off"),
    rule_at(".end", "(self.status == 'Final') == has(self.end)", "status.end: given when, and only when, the status is Final"),
    // Isolated may be resumed without one, and takes it before it does anything; what only gives back needs none.
    rule_at(".slot", "!(self.phase in ['Isolating', 'PoweringOff']) || self.slot == 'Held'",
        "status.slot: nothing is done to a node without a slot in the ledger; take it first"),
    rule_at(".reason", "self.status != 'Error' || has(self.reason)", "status.reason: an Error says why"),
]))]
pub struct NodeFenceStatus {
    /// The generation of the spec that this was said about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Isolation, PowerManagement or Recovery.
    pub step: Step,
    /// New: nothing done yet. Running: cut off, or being cut off. Done: ready for recovery. Final: over. Error: a step failed.
    pub status: Status,
    /// The same in one word: New, Isolating, Isolated, PoweringOff, PoweringOn, Returning, Recovering, Final or Failed.
    pub phase: FencePhase,
    /// Counts the starts of the flow. Proofs and Jobs belong to one attempt.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub attempt: u32,
    /// The level that is at work, counted from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 15))]
    pub level: Option<u32>,
    /// The method that is at work.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_name")]
    pub method: Option<String>,
    /// How far the running step has come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunRecord>,
    /// The newest call of this fence, over all attempts: recorded before each call, so that a lost reply is known to be one.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub calls: u32,
    /// A boot for which a person or a dump vouched, and that then showed life: nobody can vouch for it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::uid")]
    pub refuted_boot: Option<String>,
    /// A power action was sent, or was about to be: Ready alone no longer ends the fence.
    pub power_sent: bool,
    /// An admin stopped it: only what is half done is finished.
    pub stopped: bool,
    /// How often the current step was tried again.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub retries: u32,
    /// How often the whole flow was started again.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub restarts: u32,
    /// How long the fence has been in its phase, counting only time in which an operator watched.
    #[schemars(range(min = 0))]
    pub waited_millis: i64,
    /// Held: it has a slot in the ledger of the FencePolicy. None: it has not, and nothing may be done.
    pub slot: Slot,
    /// The number of the slot that it has or had last; the ledger's entry carries it, so that an old entry is known as one.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub grant: u32,
    /// Whom this attempt is about, read live at its start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub incarnation: Option<Incarnation>,
    /// The value of spec.admin.resume that was acted upon.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub observed_resume: u32,
    /// What each method did, the latest last.
    #[schemars(length(max = 64))]
    pub actions: Vec<ActionOutcome>,
    /// Jobs of this fence that may still run.
    #[schemars(schema_with = "jobs")]
    pub jobs: Vec<String>,
    /// What has to be undone before the fence can end.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["kind", "method"]))]
    pub isolations: Vec<Isolation>,
    /// What was proven in this attempt.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["id"]))]
    pub proofs: Vec<Proof>,
    /// The pods that were, or are to be, given up; over all attempts.
    #[schemars(length(max = 250), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["podUID"]))]
    pub releases: Vec<ReleaseRecord>,
    /// What is known of the machine's boots since the last pod was marked.
    pub since_mark: SinceMark,
    /// What became of the edit of the Node's `volumesInUse`.
    pub detach: DetachRecord,
    /// How it ended. NeverNeeded: the node recovered before anything was done. Refused: by vetting. Recovered: the node is back. HeldOff: it stays off. NodeGone: the Node was deleted. Stopped: by an admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Why it is where it is, in one CamelCase word.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::reason")]
    pub reason: Option<String>,
    /// Why it is where it is, with the numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::message")]
    pub message: String,
    /// What is true of it: Isolated, Released, Recovered, NeedsAttention.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
    /// What happened, for people; the oldest entries go first when it is full.
    #[schemars(length(max = 64))]
    pub timeline: Vec<TimelineEntry>,
}

impl Default for NodeFenceStatus {
    fn default() -> Self {
        Self {
            observed_generation: None,
            step: Step::Isolation,
            status: Status::New,
            phase: FencePhase::New,
            attempt: 0,
            level: None,
            method: None,
            run: None,
            calls: 0,
            refuted_boot: None,
            power_sent: false,
            stopped: false,
            retries: 0,
            restarts: 0,
            waited_millis: 0,
            slot: Slot::None,
            grant: 0,
            incarnation: None,
            observed_resume: 0,
            actions: Vec::new(),
            jobs: Vec::new(),
            isolations: Vec::new(),
            proofs: Vec::new(),
            releases: Vec::new(),
            since_mark: SinceMark::default(),
            detach: DetachRecord::default(),
            end: None,
            reason: None,
            message: String::new(),
            conditions: Vec::new(),
            timeline: Vec::new(),
        }
    }
}

/// How far a step has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The level that is at work, counted from 0.
    #[schemars(range(min = 0, max = 16))]
    pub level: u32,
    /// The method of that level, counted from 0.
    #[schemars(range(min = 0, max = 16))]
    pub method: u32,
    /// How often this method was tried before.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub tries: u32,
    /// How often the whole step was tried before.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub rounds: u32,
    /// The number of its call.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub call: u32,
    /// The machine was seen running before it was switched off.
    #[serde(default)]
    pub seen_running: bool,
}

/// The steps of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum Step {
    /// Cut off.
    Isolation,
    /// Off, and on again.
    PowerManagement,
    /// Let back in.
    Recovery,
}

/// The states of the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Status {
    /// Nothing done yet.
    New,
    /// Cut off, or being cut off.
    Running,
    /// Ready for recovery.
    Done,
    /// Over.
    Final,
    /// A step failed.
    Error,
}

/// Step and status in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FencePhase {
    /// Nothing done yet.
    New,
    /// Levels of the isolation step are at work.
    Isolating,
    /// A level succeeded.
    Isolated,
    /// Off is being sent and read back; pods are released.
    PoweringOff,
    /// On is being sent.
    PoweringOn,
    /// Waiting for the node, and for the return checks.
    Returning,
    /// Recovery methods are at work.
    Recovering,
    /// Over.
    Final,
    /// A step failed.
    Failed,
}

/// Whether the fence has a slot in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Slot {
    /// It has not.
    None,
    /// It has.
    Held,
}

/// How a fence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum End {
    /// The node recovered before anything was done to it.
    NeverNeeded,
    /// Vetting refused it before anything was done.
    Refused,
    /// The node is back, clean.
    Recovered,
    /// The machine stays off.
    HeldOff,
    /// The Node was deleted.
    NodeGone,
    /// An admin said stop.
    Stopped,
}

/// Something that was done to a node and has to be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Isolation {
    /// Power, Storage, Driver, Network, Quarantine, Cordon or OutOfService.
    pub kind: IsolationKind,
    /// The method that did it; empty for what the operator does by itself.
    #[serde(default)]
    #[schemars(length(max = 63))]
    pub method: String,
    /// Name of the method's level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_name")]
    pub level: Option<String>,
    /// Intended: recorded, perhaps done. InForce: seen to be done. Undoing: being undone.
    pub state: IsolationState,
}

/// What was done to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IsolationKind {
    /// Switched off.
    Power,
    /// Writes refused by a storage system.
    Storage,
    /// Volumes fenced by their CSI driver.
    Driver,
    /// Cut off from the network.
    Network,
    /// Our taint.
    Quarantine,
    /// Marked unschedulable.
    Cordon,
    /// Kubernetes' out-of-service taint.
    OutOfService,
    /// The Node object is to be deleted.
    NodeDeletion,
}

/// How far an isolation, or its undoing, has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum IsolationState {
    /// Recorded, perhaps done.
    Intended,
    /// Seen to be done.
    InForce,
    /// Being undone.
    Undoing,
}

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TimelineEntry {
    /// When; for people.
    pub time: Timestamp,
    /// What, in one CamelCase word.
    #[schemars(schema_with = "schema::reason")]
    pub reason: String,
    /// What, in a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::message")]
    pub message: String,
}

fn jobs(make: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": schema::label_name(make), "maxItems": 32, "x-kubernetes-list-type": "set" })
}
