//! The answer to a request.
//!
//! Promise: a hold names its gate, its numbers and the next look; an answer that was given stays given.
//! What is written here is enough for another process to go on with the request where the last one stood.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    Span,
    conditions::{self, Condition},
    rules::rule_at,
    schema,
};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".phase", "!(oldSelf.phase in ['Rejected', 'Completed']) || self.phase == oldSelf.phase",
        "status.phase: Rejected and Completed are answers and stay; create another request"),
    rule_at(".fenceUID", "!has(oldSelf.fenceUID) || has(self.fenceUID) && self.fenceUID == oldSelf.fenceUID",
        "status.fenceUID: a request belongs to one fence; once written it stays"),
    rule_at(".fenceUID", "self.phase != 'Admitted' || has(self.fenceUID)",
        "status.fenceUID: an admitted request names its NodeFence"),
    rule_at(".result", "(self.phase == 'Completed') == has(self.result)",
        "status.result: given when, and only when, the phase is Completed"),
    rule_at(".result", "!has(oldSelf.result) || has(self.result) && self.result == oldSelf.result",
        "status.result: once written it stays"),
    rule_at(".reason", "!(self.phase in ['Held', 'Rejected']) || has(self.reason)",
        "status.reason: a hold or a rejection says why"),
    rule_at(".waitedMillis", "self.waitedMillis >= oldSelf.waitedMillis",
        "status.waitedMillis: observed time only grows"),
    rule_at(".endedForMillis", "self.endedForMillis >= oldSelf.endedForMillis",
        "status.endedForMillis: the age of an answer only grows"),
    rule_at(".endedForMillis", "self.endedForMillis == 0 || self.phase in ['Rejected', 'Completed']",
        "status.endedForMillis: only a request that is over grows old"),
]))]
pub struct NodeFencingRequestStatus {
    /// The generation of the spec that this was said about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Pending: not looked at yet. Held: waits at a gate. Admitted: its NodeFence is at work. Rejected: will not be done.
    /// Completed: over, see result.
    pub phase: Phase,
    /// Why it is in that phase, in one CamelCase word; for a hold or a rejection, what the gate saw, such as StormBrake.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::reason")]
    pub reason: Option<String>,
    /// Why it is in that phase, with the numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::message")]
    pub message: String,
    /// The facts behind the reason, by name, such as the gate and its numbers.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "facts")]
    pub facts: BTreeMap<String, String>,
    /// For a hold: how long until the next look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck: Option<Span>,
    /// In DryRun: what would have been done. WouldAdmit, WouldHold or WouldReject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// How long it has waited so far, counting only time in which an operator watched.
    #[schemars(range(min = 0))]
    pub waited_millis: i64,
    /// How long ago it ended, counting only time in which an operator watched: its age as history.
    #[schemars(range(min = 0))]
    pub ended_for_millis: i64,
    /// UID of the Node when the request was vetted.
    #[serde(rename = "nodeUID", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::uid")]
    pub node_uid: Option<String>,
    /// UID of the NodeFence that it was admitted to.
    #[serde(rename = "fenceUID", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::uid")]
    pub fence_uid: Option<String>,
    /// How it ended. Recovered: the node is back. HealthyBefore: it was healthy before anything was done. HeldOff: it
    /// stays off on purpose. NodeGone: the Node was deleted. NodeReplaced: another Node has its name now. Stopped: an
    /// admin said stop. Withdrawn: who asked took it back. DryRun: see verdict, nothing was done. Failed: its fence
    /// ended without success. FenceLost: its fence is gone without a result; look at the node before you use it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<RequestResult>,
    /// When it was completed; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// What each method did, the latest last.
    #[schemars(length(max = 64))]
    pub actions: Vec<ActionOutcome>,
    /// The pods that were on the node when it failed, as namespace/name: a pod that is there each time may be the cause.
    #[schemars(schema_with = "pod_list")]
    pub pods_at_failure: Vec<String>,
    /// How many pods were released.
    #[schemars(range(min = 0))]
    pub released_pods: u32,
    /// What is true of it: Admitted, Processing, Succeeded.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
}

impl Default for NodeFencingRequestStatus {
    fn default() -> Self {
        Self {
            observed_generation: None,
            phase: Phase::Pending,
            reason: None,
            message: String::new(),
            facts: BTreeMap::new(),
            recheck: None,
            verdict: None,
            waited_millis: 0,
            ended_for_millis: 0,
            node_uid: None,
            fence_uid: None,
            result: None,
            completed_at: None,
            actions: Vec::new(),
            pods_at_failure: Vec::new(),
            released_pods: 0,
            conditions: Vec::new(),
        }
    }
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Phase {
    /// Not looked at yet.
    Pending,
    /// Waits at a gate.
    Held,
    /// Its fence is at work.
    Admitted,
    /// Will not be done.
    Rejected,
    /// Over.
    Completed,
}

/// What would have been done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Verdict {
    /// It would have been fenced.
    WouldAdmit,
    /// It would have waited.
    WouldHold,
    /// It would have been refused.
    WouldReject,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RequestResult {
    /// The node is back, clean.
    Recovered,
    /// The node was healthy before anything was done.
    HealthyBefore,
    /// The machine stays off on purpose.
    HeldOff,
    /// The Node was deleted.
    NodeGone,
    /// Another Node has its name now, which nobody asked to fence.
    NodeReplaced,
    /// An admin said stop.
    Stopped,
    /// Who asked took it back before anything was done.
    Withdrawn,
    /// The policy only wanted to know; nothing was done.
    DryRun,
    /// Its fence ended without success.
    Failed,
    /// Its fence is gone without a result: what it had done is not known.
    FenceLost,
}

/// What one method did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionOutcome {
    /// Name of the method.
    #[schemars(schema_with = "schema::label_name")]
    pub method: String,
    /// Name of its level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_name")]
    pub level: Option<String>,
    /// The attempt that it belongs to.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub attempt: u32,
    /// Succeeded (by its own word; what was seen of it is in the fence's proofs), Failed (it was refused, and nothing was done),
    /// Unknown (no or no clear answer), or Skipped.
    pub outcome: Outcome,
    /// The end of its output, without secrets.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::message")]
    pub output: String,
    /// When it ended; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

/// How a method ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Outcome {
    /// As wanted, by its own word.
    Succeeded,
    /// Refused or wrong.
    Failed,
    /// Nobody knows.
    Unknown,
    /// Not called.
    Skipped,
}

/// Few and short: the numbers of a gate, the names of a fence and a node.
fn facts(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": "string", "maxLength": 1024 }, "maxProperties": 8 })
}

fn pod_list(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "maxLength": 317 }, "maxItems": 250 })
}
