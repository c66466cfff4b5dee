//! Proofs: recorded, verified statements that one incarnation of a node cannot write to something.
//!
//! Promise (I2, I6): a proof is written once. All that ever changes in it is its end, which is written once too.

use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    rules::{rule, rule_at},
    schema,
};

/// "From here on, this incarnation cannot write to this scope."
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self.class == oldSelf.class && self.scope == oldSelf.scope && self.source == oldSelf.source && self.evidence == oldSelf.evidence && self.attempt == oldSelf.attempt && self.fenceUID == oldSelf.fenceUID && self.incarnation == oldSelf.incarnation && self.baseline == oldSelf.baseline && self.readPath == oldSelf.readPath",
        "proofs: a proof is written once; only ended may be added. Record another proof under another id"),
    rule_at(".ended", "!has(oldSelf.ended) || has(self.ended) && self.ended == oldSelf.ended",
        "proofs.ended: a proof that has ended stays ended, with the reason that was given first"),
    rule_at(".scope", "self.class in ['Power', 'Confirmed', 'Kdump', 'Network'] ? self.scope.kind == 'Node' : self.scope.kind != 'Node'",
        "proofs.scope: Power, Confirmed, Kdump and Network are about the Node; Storage and Driver about Volumes, Drivers or Providers"),
]))]
pub struct Proof {
    /// Unique in the fence, over all attempts: `a`, the attempt, `-`, and a number in it.
    #[schemars(schema_with = "schema::proof_id")]
    pub id: String,
    /// Power, Storage, Driver, Network, Confirmed (by a person, or by a pod that the policy names) or Kdump.
    pub class: ProofClass,
    /// What the incarnation cannot write to.
    pub scope: Scope,
    /// What made it: the method, the provider or the person.
    #[schemars(schema_with = "schema::origin")]
    pub source: String,
    /// What was seen, without secrets.
    #[schemars(schema_with = "schema::message")]
    pub evidence: String,
    /// The attempt that it belongs to.
    #[schemars(range(min = 0, max = schema::MOST))]
    pub attempt: u32,
    /// UID of the NodeFence that it belongs to.
    #[serde(rename = "fenceUID")]
    #[schemars(schema_with = "schema::uid")]
    pub fence_uid: String,
    /// Whom it is about.
    pub incarnation: Incarnation,
    /// What was seen of the node when the read-back began: a change against it is a sign of life.
    pub baseline: Baseline,
    /// How the result was read back. Independent: another path. SameDevice: the same device, another call path.
    /// SameAgent: a second call of the same agent.
    pub read_path: ReadPath,
    /// Why it is no longer in force; missing while it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
}

/// The classes of proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ProofClass {
    /// Off, read back.
    Power,
    /// Writes refused by the storage system, read back.
    Storage,
    /// The volume fenced by its CSI driver.
    Driver,
    /// Off the network, read back.
    Network,
    /// A person vouches.
    Confirmed,
    /// Seen dumping its memory.
    Kdump,
}

/// What an incarnation cannot write to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule_at(".names", "(self.kind == 'Node') == (size(self.names) == 0)",
        "scope.names: the volumes or drivers, at least one; none for the Node as a whole"),
]))]
pub struct Scope {
    /// Node: everything. Drivers: every volume of these CSI drivers. Providers: every volume of these storage systems.
    /// Volumes: these, as `volumesInUse` spells them.
    pub kind: ScopeKind,
    /// Names of the drivers, providers or volumes.
    #[serde(default)]
    #[schemars(schema_with = "scope_names")]
    pub names: Vec<String>,
}

/// What the names of a scope are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ScopeKind {
    /// Everything that the node can reach.
    Node,
    /// Volumes of these CSI drivers.
    Drivers,
    /// Volumes of these storage systems, by the names of their providers.
    Providers,
    /// These volumes, as `volumesInUse` spells them.
    Volumes,
}

/// One life of one node: a name can come back as another machine, and a machine can boot again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Incarnation {
    /// UID of the Node.
    #[serde(rename = "nodeUID")]
    #[schemars(schema_with = "schema::uid")]
    pub node_uid: String,
    /// The boot, as the kubelet reported it.
    #[serde(rename = "bootID")]
    #[schemars(schema_with = "schema::boot_id")]
    pub boot_id: String,
}

/// What was seen of the node when the read-back began. Compared for equality only, never with a clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Baseline {
    /// `renewTime` of the node's Lease, as it was written.
    #[schemars(length(max = 40))]
    pub lease_renew_time: String,
    /// Heartbeat of the Ready condition, as it was written.
    #[schemars(length(max = 40))]
    pub heartbeat: String,
    /// The boot, as the kubelet reported it.
    #[serde(rename = "bootID")]
    #[schemars(length(max = 64))]
    pub boot_id: String,
}

/// How a result was read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReadPath {
    /// Another path.
    Independent,
    /// The same device by another call path.
    SameDevice,
    /// The same agent again.
    SameAgent,
    /// Nothing can be read back: a person vouches, a pod for which the policy does, or the node itself says so.
    Declared,
}

/// Why a proof is no longer in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Ended {
    /// In one CamelCase word: SignOfLife, IsolationLifted, IncarnationChanged.
    #[schemars(schema_with = "schema::reason")]
    pub reason: String,
    /// When; for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
}

fn scope_names(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": { "type": "string", "minLength": 1, "maxLength": 512 }, "maxItems": 64 })
}
