//! The fence: the durable state of one live operation, as `NodeFence.status` keeps it.
//!
//! One enum says where the fence stands; the two words of source document 003 (`step` and `status`) are derived from
//! it, so that no senseless pair can be written down. There are no instants in here: what has to survive a restart is
//! time that somebody watched.

use std::collections::BTreeSet;

use crate::ident::{AttachmentRef, BootId, Incarnation, MethodName, NodeName, PodRef, Uid, VolumeName};
use crate::observe::CallId;
use crate::planted::{self, Bug};
use crate::prove::{Basis, Proof, ProofId};
use crate::reason::automaton::FailReason;
use crate::time::Span;

/// One live fence.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// The NodeFence's UID: the epoch of everything below.
    pub uid: Uid,
    /// The node that it is named after.
    pub node: NodeName,
    /// Where it stands.
    pub phase: Phase,
    /// Rises with every restart of the flow; proofs and calls of an older attempt count for nothing.
    pub attempt: u32,
    /// The newest call of this fence, over all attempts: no two calls ever share a number.
    pub calls: u32,
    /// Calls that were to be made by a Job, and whose Job has not been seen to be over: it may still act. Kept across attempts.
    pub jobs: BTreeSet<CallId>,
    /// How often the flow has been restarted.
    pub restarts: u32,
    /// Watched time in this phase, up to the last record.
    pub waited: Span,
    /// Whether it holds a slot of the ledger. Nothing is done without one.
    pub slot: Slot,
    /// The number of the slot that it holds or held last: the ledger's entry carries it, so that an old one is known as such.
    pub grant: u32,
    /// The life of the node that this attempt is about; read live when New was left.
    pub target: Option<Incarnation>,
    /// What has to be undone; removed only by a verified undo.
    pub isolations: Vec<Isolation>,
    /// The proofs of this attempt.
    pub proofs: Vec<Proof>,
    /// Which pods are being released, and how far each has come. Kept across attempts.
    pub releases: Vec<Release>,
    /// What is known of the machine's boots since the last mark.
    pub since_mark: SinceMark,
    /// A boot for which a person or a dump vouched, and that then showed life: nobody can vouch for it again.
    pub refuted: Option<BootId>,
    /// What became of our edit of `volumesInUse`.
    pub detach: Detach,
    /// A power action was sent in this fence, so `Ready` alone no longer ends it.
    pub power_sent: bool,
    /// An admin stopped it: no new effect, only what is half done is finished.
    pub stopped: bool,
}

impl Fence {
    /// A fence as it is created: New, without a slot, with nothing to undo.
    pub fn new(uid: Uid, node: NodeName) -> Self {
        Self {
            uid,
            node,
            phase: Phase::New,
            attempt: 0,
            calls: 0,
            jobs: BTreeSet::new(),
            restarts: 0,
            waited: Span::ZERO,
            slot: Slot::None,
            grant: 0,
            target: None,
            isolations: Vec::new(),
            proofs: Vec::new(),
            releases: Vec::new(),
            since_mark: SinceMark::Unknown,
            refuted: None,
            detach: Detach::untouched(),
            power_sent: false,
            stopped: false,
        }
    }

    /// The `step` of source document 003.
    pub fn step_word(&self) -> StepWord {
        match &self.phase {
            Phase::New | Phase::Isolating(_) => StepWord::Isolation,
            Phase::Isolated { by } => *by,
            Phase::PoweringOff(_) | Phase::PoweringOn(_) => StepWord::PowerManagement,
            Phase::Returning | Phase::Recovering(_) | Phase::Final(_) => StepWord::Recovery,
            Phase::Failed { at, .. } => *at,
        }
    }

    /// The `status` of source document 003.
    pub fn status_word(&self) -> StatusWord {
        match &self.phase {
            Phase::New => StatusWord::New,
            Phase::Isolating(_) | Phase::Isolated { .. } | Phase::PoweringOff(_) | Phase::PoweringOn(_) => {
                StatusWord::Running
            }
            Phase::Returning | Phase::Recovering(_) => StatusWord::Done,
            Phase::Final(_) => StatusWord::Final,
            Phase::Failed { .. } => StatusWord::Error,
        }
    }

    /// The proofs that still stand, for this very life of the node.
    pub fn proofs_in_force(&self) -> impl Iterator<Item = &Proof> {
        self.proofs.iter().filter(|proof| proof.in_force_for(self))
    }

    /// Whether something of this kind has to be undone.
    pub fn isolated_by(&self, kind: IsolationKind) -> bool {
        self.isolations.iter().any(|isolation| isolation.kind == kind)
    }

    /// Whether something of this kind is in force: read back (or vouched for), and not lifted since.
    pub fn in_force(&self, kind: IsolationKind) -> bool {
        self.isolations.iter().any(|isolation| isolation.kind == kind && isolation.state == IsolationState::InForce)
    }

    /// Whether a pod was marked, removed or detached in this fence.
    pub fn released_any(&self) -> bool {
        self.releases.iter().any(|release| release.state > ReleaseState::Intended)
    }

    /// Whether something other than power keeps the node from its data: to lift it lets through whatever still waits there.
    pub fn guards_data(&self) -> bool {
        let guards = [IsolationKind::Network, IsolationKind::Storage, IsolationKind::Driver];
        guards.into_iter().any(|kind| self.isolated_by(kind))
    }

    /// A name that no proof of this fence has.
    pub fn next_proof(&self) -> ProofId {
        let number = self.proofs.iter().map(|proof| proof.id().number.saturating_add(1)).max().unwrap_or(0);
        ProofId { attempt: self.attempt, number }
    }

    /// This fence in its next attempt: proofs and calls of this one count for nothing in it.
    #[must_use]
    pub fn next_attempt(&self) -> Self {
        let proofs = if planted::is(Bug::KeepsProofs) { self.proofs.clone() } else { Vec::new() };
        Self { attempt: self.attempt.saturating_add(1), proofs, ..self.clone() }
    }

    /// The beginning of a step, with a call number of its own.
    pub fn first_run(&self) -> Run {
        Run { call: self.calls.saturating_add(1), ..Run::default() }
    }

    /// Whether any effect was ever intended: then the fence cannot just go away.
    pub fn left_traces(&self) -> bool {
        !self.isolations.is_empty() || !self.releases.is_empty()
    }
}

/// Where a fence stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Admitted on paper: no slot yet, no effect.
    New,
    /// The isolation step runs, level by level.
    Isolating(Run),
    /// A level had all its methods succeed. Pods are released as far as the proofs reach.
    Isolated {
        /// The step that brought it here.
        by: StepWord,
    },
    /// The power step switches the machine off.
    PoweringOff(Run),
    /// The power step lifts the network isolation and switches the machine on. All power proofs have ended.
    PoweringOn(Run),
    /// Waiting for the node to be healthy and clean.
    Returning,
    /// The node is clean: the recovery step runs, isolations are lifted, taints go.
    Recovering(Run),
    /// Over; only the result has to be written.
    Final(End),
    /// A step failed. It is tried again, now or slowly; nothing that protects data is undone.
    Failed {
        /// The step that failed.
        at: StepWord,
        /// Why.
        why: FailReason,
    },
}

impl Phase {
    /// The run of a phase that has one.
    pub const fn run(&self) -> Option<&Run> {
        match self {
            Self::Isolating(run) | Self::PoweringOff(run) | Self::PoweringOn(run) | Self::Recovering(run) => Some(run),
            Self::New | Self::Isolated { .. } | Self::Returning | Self::Final(_) | Self::Failed { .. } => None,
        }
    }

    /// The phase's name, as status and metrics show it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::New => "New",
            Self::Isolating(_) => "Isolating",
            Self::Isolated { .. } => "Isolated",
            Self::PoweringOff(_) => "PoweringOff",
            Self::PoweringOn(_) => "PoweringOn",
            Self::Returning => "Returning",
            Self::Recovering(_) => "Recovering",
            Self::Final(_) => "Final",
            Self::Failed { .. } => "Failed",
        }
    }

    /// The names of all phases, in the order of the flow.
    pub const NAMES: [&'static str; 9] =
        ["New", "Isolating", "Isolated", "PoweringOff", "PoweringOn", "Returning", "Recovering", "Final", "Failed"];
}

/// The steps of source document 003.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum StepWord {
    Isolation,
    PowerManagement,
    Recovery,
}

/// The states of source document 003.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum StatusWord {
    New,
    Running,
    Done,
    Final,
    Error,
}

/// How a fence ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum End {
    /// The node is back, clean.
    Recovered,
    /// The node recovered before anything was done to it.
    NeverNeeded,
    /// Vetting refused it before anything was done.
    Refused,
    /// The machine stays off, on purpose.
    HeldOff,
    /// The Node object is gone for good and nothing is left to undo.
    NodeGone,
    /// An admin stopped it, and nothing is left to undo.
    Stopped,
}

/// Whether the fence holds a slot of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Slot {
    /// No.
    None,
    /// Yes.
    Held,
}

/// How far a step has come: which level, which method of it, which plug, which try.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Run {
    /// The level, from zero.
    pub level: u32,
    /// The method within the level.
    pub method: u32,
    /// How often this method has been tried before.
    pub tries: u32,
    /// How often the whole step has been tried before.
    pub rounds: u32,
    /// Counts the calls of this attempt: with it a call can be told from an older one.
    pub call: u32,
    /// This fence saw the machine running before it sent its own off.
    pub seen_running: bool,
}

/// Something that was done to the node and has to be undone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Isolation {
    /// The method that did it; the built-in ones have names of their own.
    pub method: MethodName,
    /// What kind of thing it is.
    pub kind: IsolationKind,
    /// How sure we are that it is in force.
    pub state: IsolationState,
}

/// Kinds of isolation, in the order in which they are lifted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsolationKind {
    /// A switch port or a blocklist. Lifted first, while the machine is off.
    Network,
    /// The machine is off. Lifted by `on`.
    Power,
    /// The storage refuses the node. Lifted after the return checks.
    Storage,
    /// Our attacher fences by the driver, and refuses to publish again. Lifted after the return checks.
    Driver,
    /// Our own cordon.
    Cordon,
    /// The out-of-service taint. Gone before `on`.
    OutOfService,
    /// Our taint. Lifted last.
    Quarantine,
    /// The Node object is to be deleted. There is no way back; it ends with the Node.
    NodeDeletion,
}

/// How far an isolation has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum IsolationState {
    /// The intent is recorded; it may or may not be in force.
    Intended,
    /// It was read back, or the policy vouches for the pod that made it.
    InForce,
    /// The intent to lift it is recorded: it protects nothing any more.
    Lifting,
}

/// A pod on its way out, with everything that goes with it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Release {
    /// The pod.
    pub pod: PodRef,
    /// Pods with the same number share a claim and go together.
    pub group: u32,
    /// How it is covered.
    pub basis: Basis,
    /// Removing the mark of a StatefulSet pod frees nothing; for all other owners the mark itself is a release.
    pub mark_releases: bool,
    /// The volumes that come free with it.
    pub volumes: BTreeSet<VolumeName>,
    /// Their attachments.
    pub attachments: BTreeSet<AttachmentRef>,
    /// How far it has come.
    pub state: ReleaseState,
}

/// How far a release has come. It never goes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReleaseState {
    /// Recorded; nothing sent yet, as far as the record knows.
    Intended,
    /// The pod has a deletionTimestamp and a grace above zero: no kubelet will start it again.
    Marked,
    /// The pod object is gone.
    Removed,
    /// Its attachments are gone too.
    Detached,
}

/// What is known of the machine's boots since the last mark. A mark makes it Unknown again.
///
/// Whatever ran before the mark may hang in I/O for as long as its boot lasts. The boot that was read before the node was
/// cut off is not it: the machine may have started anew, and its pods with it, before the mark and unseen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SinceMark {
    /// Nothing was read since.
    Unknown,
    /// The Node was read live, and showed a status that may be older than the mark. Only one posted later counts.
    Baseline {
        /// The heartbeat in it.
        heartbeat: Option<Box<str>>,
        /// The boot in it.
        boot: Option<BootId>,
    },
    /// The first status posted since came from this boot: it may be the one that ran at the mark. Every other one is new.
    FirstBoot(BootId),
    /// The machine was read off since: whatever it runs now is new.
    Off,
}

/// What became of our edit of `volumesInUse`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Detach {
    /// Edited, or about to be.
    Edits {
        /// These were seen to be out.
        done: BTreeSet<VolumeName>,
        /// These are being taken out: the intent.
        adding: BTreeSet<VolumeName>,
    },
    /// An entry came back: a kubelet lives. Never edited again in this fence.
    Forbidden,
}

impl Detach {
    /// Nothing was edited.
    pub const fn untouched() -> Self {
        Self::Edits { done: BTreeSet::new(), adding: BTreeSet::new() }
    }
}
