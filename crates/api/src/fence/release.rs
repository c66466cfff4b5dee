//! Releases: the pods that were, or are to be, given up by a fenced node.
//!
//! Promise (I5, I9): written before the first mark, kept across attempts, forward only; the node comes back only when
//! every pod and attachment recorded here is gone.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    rules::{rule, rule_at},
    schema,
};

/// One pod that is given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self.podNamespace == oldSelf.podNamespace && self.podName == oldSelf.podName && self.group == oldSelf.group && self.volumes == oldSelf.volumes",
        "releases: which pod, group and volumes a release is about never changes"),
    // Not `indexOf`: the API server has no bound for its cost.
    rule_at(".state", "self.state == oldSelf.state || oldSelf.state == 'Intended' || self.state == 'Detached' || oldSelf.state == 'Marked' && self.state == 'Removed'",
        "releases.state: only forward, Intended, Marked, Removed, Detached; a mark cannot be undone"),
    rule_at(".attachments", "oldSelf.attachments.all(old, self.attachments.exists(new, new.uid == old.uid))",
        "releases.attachments: one that was recorded stays recorded, as the node may not return before it is gone"),
    rule_at(".proofs", "size(self.proofs) > 0 || size(self.unpublish) > 0 || self.driverGuard",
        "releases.proofs: no release without the ids of the proofs that cover it, or the driver's own fence (unpublish) or guard (driverGuard)"),
]))]
pub struct ReleaseRecord {
    /// Namespace of the pod.
    #[schemars(schema_with = "schema::label_name")]
    pub pod_namespace: String,
    /// Name of the pod.
    #[schemars(schema_with = "schema::object_name")]
    pub pod_name: String,
    /// UID of the pod.
    #[serde(rename = "podUID")]
    #[schemars(schema_with = "schema::uid")]
    pub pod_uid: String,
    /// Pods that share a claim have the same group, a number, and are released together.
    #[schemars(schema_with = "schema::group")]
    pub group: String,
    /// The pod's volumes, as `volumesInUse` spells them.
    #[serde(default)]
    #[schemars(schema_with = "volumes")]
    pub volumes: Vec<String>,
    /// Their VolumeAttachments.
    #[serde(default)]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub attachments: Vec<Attachment>,
    /// Ids of the proofs that cover it.
    #[schemars(schema_with = "proof_ids")]
    pub proofs: Vec<String>,
    /// Volumes that the driver unpublishes with fence once the pod is marked; its OK is their proof.
    #[serde(default)]
    #[schemars(schema_with = "volumes")]
    pub unpublish: Vec<String>,
    /// Some volume is left to a driver that refuses to attach elsewhere until it has cut the node off (spec.driverGuard of the policy).
    #[serde(default)]
    pub driver_guard: bool,
    /// The pod's owner replaces it as soon as it is marked, so that the mark itself is the release.
    #[serde(default)]
    pub mark_releases: bool,
    /// Intended: recorded. Marked: the API server has a deletion timestamp. Removed: the pod object is gone.
    /// Detached: its attachments are gone too.
    pub state: ReleaseState,
}

/// What became of the edit of the Node's `volumesInUse`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DetachRecord {
    /// Volumes that were taken out and seen to be out.
    #[schemars(schema_with = "detached_volumes")]
    pub done: Vec<String>,
    /// Volumes that are being taken out.
    #[schemars(schema_with = "detached_volumes")]
    pub adding: Vec<String>,
    /// An entry came back, so a kubelet lives there: never edited again in this fence.
    pub forbidden: bool,
}

/// What is known of the machine's boots since the last pod was marked: a boot that may still hold what ran before the mark
/// is no new one, and a volume that was released under it stays out of its reach.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".bootID", "self.state != 'FirstBoot' || has(self.bootID)", "sinceMark.bootID: FirstBoot names the boot"),
]))]
pub struct SinceMark {
    /// Unknown: nothing was read since the last mark. Baseline: the Node was read, and only what is posted later counts.
    /// FirstBoot: the first status that was posted later came from bootID. Off: the machine was read off.
    pub state: SinceMarkState,
    /// For Baseline: the heartbeat of the Ready condition as it stood.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub heartbeat: Option<String>,
    /// For Baseline: the boot as it stood. For FirstBoot: the first one that was posted.
    #[serde(rename = "bootID", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::uid")]
    pub boot_id: Option<String>,
}

/// How much is known of the boots since the last mark.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SinceMarkState {
    /// Nothing was read since.
    #[default]
    Unknown,
    /// The Node was read.
    Baseline,
    /// A status was posted since.
    FirstBoot,
    /// The machine was read off.
    Off,
}

/// How far a release has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub enum ReleaseState {
    /// Recorded.
    Intended,
    /// Deletion asked for, with grace.
    Marked,
    /// The pod object is gone.
    Removed,
    /// Its attachments are gone too.
    Detached,
}

/// A VolumeAttachment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// Its name.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
    /// Its UID: another attachment may have the same name later.
    #[schemars(schema_with = "schema::uid")]
    pub uid: String,
}

fn volumes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "minLength": 1, "maxLength": 512 }, "maxItems": 16 })
}

fn proof_ids(make: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": schema::proof_id(make), "maxItems": 16 })
}

fn detached_volumes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "minLength": 1, "maxLength": 512 }, "maxItems": 1000 })
}
