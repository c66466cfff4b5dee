//! What this process has seen of the cluster, as plain data: the ground that vetting stands on.
//!
//! A snapshot is a cached view and may be stale. It can close a gate; it can never authorise destruction:
//! each act carries its own precondition.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::ident::{BootId, NodeName, ProviderName, Uid};
use crate::ledger::Ledger;
use crate::time::{Span, Tick};

/// The cluster as this process sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// All nodes.
    pub nodes: BTreeMap<NodeName, NodeView>,
    /// The live fences, by node.
    pub fences: BTreeMap<NodeName, FenceView>,
    /// How well we can see at all.
    pub observer: ObserverView,
    /// The fences in flight, as the policy's status has them; `None` while it could not be read.
    pub ledger: Option<Ledger>,
    /// What each storage provider says; a provider that never answered is absent.
    pub storage: BTreeMap<ProviderName, StorageView>,
    /// The disruption budgets of source document 002, with the nodes that they cover.
    pub disruption_budgets: Vec<DisruptionBudgetView>,
    /// The members of the control plane's quorum, empty where it is hosted elsewhere; `None`: not known, which closes
    /// the gate for every node that carries a control-plane role.
    pub quorum: Option<QuorumView>,
}

/// One node, as far as vetting looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeView {
    /// The UID of the Node object.
    pub uid: Uid,
    /// The boot that its kubelet reports, if it ever did.
    pub boot: Option<BootId>,
    /// Its labels; failure domains are among them.
    pub labels: BTreeMap<String, String>,
    /// Its annotations and those of its Machine, as far as some gate knows them: peers mark the one or the other.
    pub annotations: BTreeMap<String, String>,
    /// The keys of its taints.
    pub taints: Vec<String>,
    /// The Node object has a `deletionTimestamp`.
    pub deleting: bool,
    /// The Ready condition.
    pub ready: Ready,
    /// The lease has been silent for longer than the detector allows.
    pub lease_silent: bool,
    /// Since when a renewal is overdue: not silent yet, and perhaps about to be.
    pub late_since: Option<Tick>,
    /// When this process last saw the lease move; `None`: not since it started, so the silence is older than we are.
    pub last_renewal: Option<Tick>,
    /// When the lease moved again after it had been silent; `None`: it has not been silent under our eyes.
    pub back_since: Option<Tick>,
    /// What runs there, if it was listed.
    pub workload: Option<WorkloadView>,
    /// Storage as the node itself is seen to use it.
    pub storage: Vec<NodeStorageView>,
    /// Kernel dump notifications, if any were received.
    pub kdump: Option<KdumpView>,
    /// What witnesses say of this node.
    pub witnesses: Vec<WitnessView>,
    /// When this process saw the node fail, newest last.
    pub failures: Vec<Tick>,
}

impl NodeView {
    /// Whether the node counts as down: a silent lease outranks a Ready condition, which may be 50 s old.
    pub fn down(&self) -> bool {
        self.lease_silent || self.ready != Ready::True
    }

    /// Whether it is down or may turn out to be: nodes that die together fall silent one after the other, up to a whole
    /// renewal apart, and the first of them must not be taken for the only one.
    pub fn suspect(&self) -> bool {
        self.down() || self.late_since.is_some()
    }

    /// When the node was last heard of by anybody: its lease moved, or its kubelet answered.
    pub fn last_heard(&self) -> Option<Tick> {
        let answers = self.witnesses.iter().filter(|witness| witness.kind != WitnessKind::BmcPower);
        answers.map(|witness| witness.last_alive).max().flatten().max(self.last_renewal)
    }

    /// Whether its power device says, lately, that the machine is off.
    pub fn says_off(&self, fresh: Span, now: Tick) -> bool {
        self.witnesses.iter().any(|witness| {
            witness.kind == WitnessKind::BmcPower
                && witness.says == WitnessWord::Silent
                && now.since(witness.asked) <= fresh
        })
    }
}

/// The Ready condition of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Ready {
    /// The kubelet says so, or said so last.
    True,
    /// The kubelet says that it is not.
    False,
    /// The control plane has not heard of it, or there is no such condition.
    #[default]
    Unknown,
}

/// A fence that lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FenceView {
    /// The `NodeFence`'s UID.
    pub uid: Uid,
    /// It holds a slot of the ledger.
    pub slot: bool,
    /// It is a hold-off that waits for a person.
    pub held_off: bool,
}

/// Whether the observer itself can be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObserverView {
    /// When the last watch event or write of ours went through.
    pub api_last_answered: Option<Tick>,
    /// When the observer last came back from an outage; timers start again from there.
    pub outage_ended: Option<Tick>,
    /// Whether our own connectivity check (gateway, peers) found the world; `None`: not configured.
    pub self_check: Option<bool>,
    /// What the standby replica sees, if it published it: the second place to look from.
    pub standby: Option<StandbyView>,
}

/// What the standby replica published last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandbyView {
    /// When we saw it publish.
    pub published: Tick,
    /// Nodes whose lease moves in its eyes, though it knows that we call them silent.
    pub sees_alive: BTreeSet<NodeName>,
}

/// One storage system, as its provider last reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageView {
    /// When that report began.
    pub reported: Tick,
    /// Placement groups that are clean, and all of them (002).
    pub groups: Option<PlacementGroups>,
    /// Whether losing a node would leave volumes without a healthy copy; a node that is absent: the provider cannot tell.
    pub redundancy_lost_without: BTreeMap<NodeName, bool>,
    /// Nodes on which the system has running daemons (OSDs): only those are guarded (002).
    pub daemons_run_on: Vec<NodeName>,
    /// The provider's word on each node.
    pub nodes: BTreeMap<NodeName, StorageNodeState>,
}

/// Placement groups of a Ceph cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacementGroups {
    /// How many are active and clean.
    pub clean: u32,
    /// How many there are.
    pub all: u32,
}

/// What a storage system says of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StorageNodeState {
    /// It serves or is served.
    Online,
    /// The storage's own judgement: gone.
    Offline,
    /// The storage does not know either.
    Unknown,
}

/// What a node's access to one storage system looks like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeStorageView {
    /// The storage system.
    pub provider: ProviderName,
    /// The node can reach it; `None`: unknown.
    pub reachable: Option<bool>,
    /// The node has done I/O or holds a live storage lease; `None`: unknown.
    pub in_use: Option<bool>,
    /// When this was seen.
    pub seen: Tick,
}

/// What runs on a node, as far as it decides whether fencing helps (001).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkloadView {
    /// Pods of `StatefulSets`.
    pub statefulset_pods: u32,
    /// Pods of other owners with a volume that only one node may write.
    pub single_writer_pods: u32,
}

/// Kernel dump notifications of a node (003).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KdumpView {
    /// The first one seen.
    pub began: Tick,
    /// The last one seen.
    pub last: Tick,
}

/// One witness of a node's life other than its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WitnessView {
    /// Which: kubelet port, BMC power state, storage heartbeat.
    pub kind: WitnessKind,
    /// What it says now.
    pub says: WitnessWord,
    /// When it was asked for that word: an old word is no word.
    pub asked: Tick,
    /// When it last saw the node alive.
    pub last_alive: Option<Tick>,
}

/// Kinds of witnesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WitnessKind {
    /// The kubelet's port answers, or does not.
    KubeletPort,
    /// The BMC reports the power state.
    BmcPower,
    /// The storage sees the node's heartbeat.
    StorageHeartbeat,
}

impl fmt::Display for WitnessKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KubeletPort => "kubelet-port",
            Self::BmcPower => "bmc-power",
            Self::StorageHeartbeat => "storage-heartbeat",
        })
    }
}

/// What a witness says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WitnessWord {
    /// It answers; of a BMC: the power is on.
    Alive,
    /// It does not answer; of a BMC: the power is off.
    Silent,
    /// The witness itself could not look.
    Unknown,
}

/// A `MachineDisruptionBudget`, reduced to what the gate needs (002).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DisruptionBudgetView {
    /// Namespace and name.
    pub name: String,
    /// The nodes of the machines that it selects.
    pub covers: Vec<NodeName>,
    /// How many of them may be unavailable.
    pub max_unavailable: u32,
    /// When its numbers were last brought up to date.
    pub refreshed: Option<Tick>,
}

/// The members of the control plane's quorum, read live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QuorumView {
    /// Each member's node, and whether its lease is silent.
    pub members: BTreeMap<NodeName, Member>,
    /// How long ago the leases were read live.
    pub age: Span,
}

/// One member of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// Its lease moves.
    Alive,
    /// Its lease is silent, or it is down.
    Silent,
}
