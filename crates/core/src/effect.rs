//! Effects: what the shell is asked to do, as data.
//!
//! Promise (I4): an effect that destroys carries its precondition in its type, and only the room that decided it can make
//! one. Promise (I5): `step` emits such an effect only when the recorded fence already holds the intent; while the
//! intent is new, the only effect is [`Effect::Record`].

use std::collections::BTreeSet;

use crate::fence::{End, Fence};
use crate::ident::{AttachmentRef, BootId, MethodName, PodRef, ResourceVersion, Uid, VolumeName};
use crate::observe::{CallId, ReadId};
use crate::planted::{self, Bug};
use crate::reason::automaton::MoveReason;
use crate::settings::Action;
use crate::time::{Span, Tick};

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Write the fence's new state, by compare-and-swap on the NodeFence. If it is lost, nothing else is done.
    Record {
        /// The state.
        fence: Box<Fence>,
        /// Why, for timeline and Event.
        why: MoveReason,
    },
    /// Read the ledger, from the API server itself.
    ReadLedger,
    /// Add our UID to the ledger, by compare-and-swap, as the slot of this number.
    TakeSlot {
        /// The number.
        grant: u32,
    },
    /// Take our UID out of the ledger, after `slot: none` was recorded; a slot of a later number stays.
    GiveSlotBack {
        /// The number.
        grant: u32,
    },
    /// GET the Node from the API server itself, as the read of this number.
    ReadNode(ReadId),
    /// LIST pods and attachments of the node from the API server itself.
    ListPods,
    /// Call a device or mechanism.
    CallDevice(DeviceCall),
    /// End these Jobs of the fence, as far as they have not ended, and see whether they are over.
    EndJobs(BTreeSet<CallId>),
    /// The same for Jobs that nobody wants any more, and nobody waits for.
    TellJobsToGo(BTreeSet<CallId>),
    /// Read devices or providers back, once per plug and again until steady.
    ReadBack(ReadRequest),
    /// Change our own taints or cordon in one guarded patch.
    PatchNode(NodePatch),
    /// Mark a pod: DELETE with a grace above zero.
    MarkPod(MarkPod),
    /// Unpublish a volume with fence, through our attacher.
    Unpublish(Unpublish),
    /// Remove a marked pod: DELETE with grace zero.
    RemovePod(RemovePod),
    /// Take volumes out of `volumesInUse`.
    DetachVolumes(DetachVolumes),
    /// Touch our annotation on the Node: any Node event makes the attach/detach controller look again.
    TouchNode(NodeGuard),
    /// Delete a VolumeAttachment by hand.
    DeleteAttachment(DeleteAttachment),
    /// Delete the Node object.
    DeleteNode(DeleteNode),
    /// Write the result to the requests, then delete the NodeFence by its UID.
    Close {
        /// The NodeFence.
        fence: Uid,
        /// How it ended.
        end: End,
    },
}

impl Effect {
    /// The effect's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Record { .. } => "Record",
            Self::ReadLedger => "ReadLedger",
            Self::TakeSlot { .. } => "TakeSlot",
            Self::GiveSlotBack { .. } => "GiveSlotBack",
            Self::ReadNode(_) => "ReadNode",
            Self::ListPods => "ListPods",
            Self::CallDevice(_) => "CallDevice",
            Self::EndJobs(_) => "EndJobs",
            Self::TellJobsToGo(_) => "TellJobsToGo",
            Self::ReadBack(_) => "ReadBack",
            Self::PatchNode(_) => "PatchNode",
            Self::MarkPod(_) => "MarkPod",
            Self::Unpublish(_) => "Unpublish",
            Self::RemovePod(_) => "RemovePod",
            Self::DetachVolumes(_) => "DetachVolumes",
            Self::TouchNode(_) => "TouchNode",
            Self::DeleteAttachment(_) => "DeleteAttachment",
            Self::DeleteNode(_) => "DeleteNode",
            Self::Close { .. } => "Close",
        }
    }

    /// Whether it concerns one pod or one attachment alone, by preconditions of its own: what comes of it says nothing about the
    /// next one, and holds it up as little.
    pub const fn stands_alone(&self) -> bool {
        match self {
            Self::MarkPod(_) | Self::Unpublish(_) | Self::RemovePod(_) | Self::DeleteAttachment(_) => true,
            Self::Record { .. }
            | Self::ReadLedger
            | Self::TakeSlot { .. }
            | Self::GiveSlotBack { .. }
            | Self::ReadNode(_)
            | Self::ListPods
            | Self::CallDevice(_)
            | Self::EndJobs(_)
            | Self::TellJobsToGo(_)
            | Self::ReadBack(_)
            | Self::PatchNode(_)
            | Self::DetachVolumes(_)
            | Self::TouchNode(_)
            | Self::DeleteNode(_)
            | Self::Close { .. } => false,
        }
    }

    /// Whether it only reads from the API server.
    pub const fn reads(&self) -> bool {
        matches!(self, Self::ReadNode(_) | Self::ListPods | Self::ReadLedger)
    }

    /// The names of all effects: a test demands a golden case for each.
    pub const NAMES: [&'static str; 19] = [
        "Record",
        "ReadLedger",
        "TakeSlot",
        "GiveSlotBack",
        "ReadNode",
        "ListPods",
        "CallDevice",
        "EndJobs",
        "TellJobsToGo",
        "ReadBack",
        "PatchNode",
        "MarkPod",
        "Unpublish",
        "RemovePod",
        "DetachVolumes",
        "TouchNode",
        "DeleteAttachment",
        "DeleteNode",
        "Close",
    ];
}

/// A call to one device, bound to its fence, attempt and count, with the last instant at which it may be sent.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceCall {
    /// Which call: a Job's name is built from it, and an answer counts only for it.
    pub call: CallId,
    /// The method.
    pub method: MethodName,
    /// The plugs, each a call of its own, in this order.
    pub plugs: Vec<Box<str>>,
    /// What to do. Never a cycle.
    pub action: Action,
    /// Checked immediately before sending.
    pub send_before: Tick,
    /// Off, for a device that cannot tell off from hibernated: asked once more immediately before sending, and sent only if it
    /// says on. Otherwise nobody could tell afterwards whether we switched the machine off or it went to sleep by itself.
    pub only_if_on: bool,
}

/// A series of reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadRequest {
    /// Which series.
    pub id: ReadId,
    /// What to read.
    pub plugs: Vec<(MethodName, Box<str>)>,
    /// Over how long.
    pub over: Span,
}

/// This Node, in this version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeGuard {
    /// Its UID.
    pub uid: Uid,
    /// Its version.
    pub resource_version: ResourceVersion,
}

/// A patch of our own marks on a Node; it keeps everybody else's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodePatch {
    /// The Node.
    pub guard: NodeGuard,
    /// What changes.
    pub change: NodeChange,
}

/// What changes on a Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeChange {
    /// Set our quarantine taint with the fence's UID as its value.
    Quarantine,
    /// Take off our quarantine taint.
    LiftQuarantine,
    /// Set the out-of-service taint, effect NoSchedule.
    OutOfService,
    /// Take off the out-of-service taint that we set.
    LiftOutOfService,
    /// Mark it unschedulable.
    Cordon,
    /// Undo our own cordon.
    Uncordon,
}

/// Marks one pod of one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MarkPod {
    pub(crate) pod: PodRef,
    pub(crate) resource_version: ResourceVersion,
    pub(crate) grace: u32,
    pub(crate) send_before: Tick,
}

impl MarkPod {
    /// The pod, with its UID: the first precondition.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// The version that was decided on: the second precondition.
    pub fn resource_version(&self) -> &ResourceVersion {
        &self.resource_version
    }

    /// The grace period, never zero: grace zero would be a removal.
    pub fn grace_seconds(&self) -> u32 {
        if planted::is(Bug::MarkWithoutGrace) { 0 } else { self.grace.max(1) }
    }

    /// Checked immediately before sending.
    pub fn send_before(&self) -> Tick {
        self.send_before
    }
}

/// Unpublishes one volume of a marked pod with fence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Unpublish {
    pub(crate) pod: PodRef,
    pub(crate) volume: VolumeName,
}

impl Unpublish {
    /// The marked pod that it is done for.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }

    /// The volume.
    pub fn volume(&self) -> &VolumeName {
        &self.volume
    }
}

/// Removes one marked pod. The UID is the whole precondition: a mark cannot be undone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemovePod {
    pub(crate) pod: PodRef,
}

impl RemovePod {
    /// The pod, with its UID.
    pub fn pod(&self) -> &PodRef {
        &self.pod
    }
}

/// Takes released volumes out of `volumesInUse` of this Node, in this version, still in this boot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DetachVolumes {
    pub(crate) node: NodeGuard,
    pub(crate) boot: BootId,
    pub(crate) volumes: BTreeSet<VolumeName>,
}

impl DetachVolumes {
    /// The Node and its version.
    pub fn node(&self) -> &NodeGuard {
        &self.node
    }

    /// The boot that the proof is about.
    pub fn boot(&self) -> &BootId {
        &self.boot
    }

    /// What to take out.
    pub fn volumes(&self) -> &BTreeSet<VolumeName> {
        &self.volumes
    }
}

/// Deletes one VolumeAttachment that the controller left behind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeleteAttachment {
    pub(crate) attachment: AttachmentRef,
    pub(crate) send_before: Tick,
}

impl DeleteAttachment {
    /// The attachment, with its UID.
    pub fn attachment(&self) -> &AttachmentRef {
        &self.attachment
    }

    /// Checked immediately before sending.
    pub fn send_before(&self) -> Tick {
        self.send_before
    }
}

/// Deletes the Node object of a life that is proven off.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeleteNode {
    pub(crate) guard: NodeGuard,
}

impl DeleteNode {
    /// The Node and its version.
    pub fn guard(&self) -> &NodeGuard {
        &self.guard
    }
}
