//! Request: the life of a `NodeFencingRequest`, from claim to history (001).
//!
//! Promise: one request leads to at most one fence, and two requests for one node to the same one. A request is bound
//! to one Node object by UID; it is answered with a result in every case, and the answer is written when it changes.
//! Never: fences, deletes by name alone, begins anything on evidence in doubt, or takes a fence that vanished for a
//! fence that succeeded (I6).

use std::collections::BTreeSet;
use std::fmt;

use crate::detect::Evidence;
use crate::detect::sight::Stint;
use crate::ident::{NodeName, ResourceVersion, Uid};
use crate::reason::request::RequestReason;
use crate::time::{Span, Tick};

pub mod filing;
pub mod history;
pub mod record;
mod step;

/// Who made a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// One of our detectors: the request lives as long as its evidence.
    Detector {
        /// The rule that found it.
        rule: Box<str>,
    },
    /// A person or another controller: it wants an answer.
    Asker,
}

/// How far a request goes; the larger one does all that the smaller one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Isolate, and then as the config says.
    Fence,
    /// Isolate, and run the power step.
    PowerStep,
    /// Isolate, switch off, and stay off.
    PowerOff,
}

/// A `NodeFencingRequest`, as far as its life depends on it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// Its UID.
    pub uid: Uid,
    /// The version that was read: every write and delete is bound to it.
    pub resource_version: ResourceVersion,
    /// The node.
    pub node: NodeName,
    /// The Node object that is meant; without one it is bound to the first that it meets.
    pub node_uid: Option<Uid>,
    /// Who made it.
    pub origin: Origin,
    /// How far it goes.
    pub wants: Operation,
    /// Where it stands.
    pub life: Life,
    /// The reason that its status carries.
    pub why: Option<RequestReason>,
    /// Time watched while it waited: grace periods count it. It only grows.
    pub waited: Watched,
    /// Time watched since it ended: its age.
    pub ended_for: Watched,
}

/// Watched time, and how much of it is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watched {
    /// All of it.
    pub stint: Stint,
    /// What the status says.
    pub written: Span,
}

impl Watched {
    /// Goes on from what the status says.
    pub fn resumed(written: Span) -> Self {
        Self { stint: Stint::resumed(written), written }
    }

    /// All of it.
    pub fn total(&self) -> Span {
        self.stint.total()
    }

    /// Goes on with what this process knows, unless the status says more: another replica may have watched for longer.
    #[must_use]
    pub fn met_by(self, status: Self) -> Self {
        if status.total() > self.total() { status } else { Self { written: status.written, ..self } }
    }

    /// How much a restart would lose.
    pub fn unwritten(&self) -> Span {
        self.total() - self.written
    }
}

/// Where a request stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Life {
    /// Waits for its verdict, or for its fence.
    Pending,
    /// A fence that names it lives.
    Attached {
        /// That fence.
        fence: Uid,
    },
    /// Over; kept as history.
    Ended(End),
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// Before anything was done: recovered, node gone or replaced, or answered in `DryRun`.
    Closed {
        /// The fence, if it got that far: the request is kept while it is still there.
        fence: Option<Uid>,
    },
    /// By the vetting.
    Rejected,
    /// By the end of its fence, which had a result.
    Completed {
        /// The fence: the request is kept while it is still there.
        fence: Uid,
    },
    /// By the end of its fence, without success or without a result.
    Failed {
        /// The fence: the request is kept while it is still there.
        fence: Uid,
    },
}

/// The word that `kubectl get` shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Not decided, or held.
    Pending,
    /// A fence works on it.
    Fencing,
    /// Over before anything was done to the node.
    Closed,
    /// Not allowed.
    Rejected,
    /// Its fence has ended.
    Completed,
    /// Its fence has ended badly.
    Failed,
}

impl Phase {
    /// All phases, for the tests that demand a case of each.
    pub const ALL: [Self; 6] =
        [Self::Pending, Self::Fencing, Self::Closed, Self::Rejected, Self::Completed, Self::Failed];

    /// The phase's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Fencing => "Fencing",
            Self::Closed => "Closed",
            Self::Rejected => "Rejected",
            Self::Completed => "Completed",
            Self::Failed => "Failed",
        }
    }
}

impl Life {
    /// The word that `kubectl get` shows.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Pending => Phase::Pending,
            Self::Attached { .. } => Phase::Fencing,
            Self::Ended(End::Closed { .. }) => Phase::Closed,
            Self::Ended(End::Rejected) => Phase::Rejected,
            Self::Ended(End::Completed { .. }) => Phase::Completed,
            Self::Ended(End::Failed { .. }) => Phase::Failed,
        }
    }

    /// The fence that it belongs to.
    pub fn fence(&self) -> Option<&Uid> {
        match self {
            Self::Attached { fence } | Self::Ended(End::Completed { fence } | End::Failed { fence }) => Some(fence),
            Self::Ended(End::Closed { fence }) => fence.as_ref(),
            Self::Pending | Self::Ended(End::Rejected) => None,
        }
    }
}

/// How a fence ended.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FenceResult {
    /// The node was healthy before any effect.
    Untouched,
    /// The node is back, and clean.
    Returned,
    /// The machine stays off, as was asked.
    HeldOff,
    /// The Node object is gone.
    NodeDeleted,
    /// A person stopped it.
    Stopped,
    /// It ended without success.
    Failed {
        /// The fence's own reason.
        cause: Box<str>,
    },
}

impl fmt::Display for FenceResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Untouched => f.write_str("Untouched"),
            Self::Returned => f.write_str("Returned"),
            Self::HeldOff => f.write_str("HeldOff"),
            Self::NodeDeleted => f.write_str("NodeDeleted"),
            Self::Stopped => f.write_str("Stopped"),
            Self::Failed { cause } => write!(f, "Failed({cause})"),
        }
    }
}

/// The vetting's word on a request, in the words of its status.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum VetWord {
    /// Every gate is open.
    Admit,
    /// Not now.
    Hold {
        /// The gate that is closed.
        gate: Box<str>,
        /// The name of its reason.
        why: Box<str>,
        /// The reason's numbers.
        numbers: Box<str>,
        /// When to look again.
        recheck: Tick,
    },
    /// The Node that is meant is not there, and was looked for as long as the vetting has patience.
    NoTarget,
    /// Not at all.
    Reject {
        /// The gate that refused.
        gate: Box<str>,
        /// The name of its reason.
        why: Box<str>,
        /// The reason's numbers.
        numbers: Box<str>,
    },
    /// The policy only wants to know.
    DryRun {
        /// What the verdict would be.
        verdict: Box<str>,
        /// When to look again.
        recheck: Tick,
    },
}

/// The Node of a request's name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NodeSeen {
    /// Not read yet.
    NotRead,
    /// There is none.
    Gone,
    /// It has this UID.
    Present(Uid),
}

/// The `NodeFence` of a request's node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FenceSeen {
    /// Not read yet.
    NotRead,
    /// What was found, and how it was read.
    Read {
        /// From the cache, or live.
        how: How,
        /// The fence, if there is one.
        found: Option<FenceFacts>,
    },
}

/// How something was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum How {
    /// From the cache, which may lag.
    Cached,
    /// From the API server itself.
    Live,
}

/// A `NodeFence`, as far as its requests look at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FenceFacts {
    /// Its UID.
    pub uid: Uid,
    /// The Node object that it is for.
    pub node_uid: Uid,
    /// The requests that it names.
    pub requests: BTreeSet<Uid>,
    /// How far it goes.
    pub does: Operation,
    /// Its result, once it has ended.
    pub result: Option<FenceResult>,
}

/// What is seen around a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seen {
    /// The node.
    pub node: NodeSeen,
    /// What the request rests on.
    pub evidence: Evidence,
    /// The node's fence.
    pub fence: FenceSeen,
    /// The vetting's word.
    pub vet: VetWord,
}

/// What is to be done for a request.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestEffect {
    /// Create the `NodeFence`, named after the node and naming this request. Its creation is the lock: `AlreadyExists`
    /// means look and decide again.
    CreateFence {
        /// The node.
        node: NodeName,
        /// The Node object that is meant.
        node_uid: Uid,
        /// This request.
        request: Uid,
    },
    /// Add this request to the ones that a living fence names.
    AttachTo(Uid),
    /// Read the node's fence live: the cache does not show it.
    ReadFence(Uid),
    /// Write the request's status, at the version that was read.
    WriteStatus(RequestStatus),
    /// Delete the request: exactly this one, as it was read.
    Delete {
        /// Its UID.
        uid: Uid,
        /// Its version.
        resource_version: ResourceVersion,
    },
}

impl RequestEffect {
    /// The effect's name.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::CreateFence { .. } => "CreateFence",
            Self::AttachTo(_) => "AttachTo",
            Self::ReadFence(_) => "ReadFence",
            Self::WriteStatus(_) => "WriteStatus",
            Self::Delete { .. } => "Delete",
        }
    }

    /// The names of all effects.
    pub const NAMES: [&'static str; 5] = ["CreateFence", "AttachTo", "ReadFence", "WriteStatus", "Delete"];
}

/// A status to be written.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestStatus {
    /// The request.
    pub uid: Uid,
    /// The version that it is written at.
    pub resource_version: ResourceVersion,
    /// The phase.
    pub phase: Phase,
    /// Why.
    pub why: RequestReason,
    /// The Node object that it is bound to.
    pub node_uid: Option<Uid>,
    /// The fence that it belongs to.
    pub fence: Option<Uid>,
    /// In how long it will be looked at again.
    pub look_again: Option<Span>,
    /// Time watched while it waited.
    pub waited: Span,
    /// Time watched since it ended.
    pub ended_for: Span,
}

/// What a step comes to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Step {
    /// The request as it stands when the effects have gone through.
    pub request: Request,
    /// What is to be done, in this order.
    pub effects: Vec<RequestEffect>,
    /// When to look again if nothing changes before.
    pub look_again: Option<Tick>,
}
