//! What the shell saw for one fence: the second argument of `step`.
//!
//! Everything in here was read by this process. `None` means "not looked yet", which is never the same as "there is none".

use std::collections::{BTreeMap, BTreeSet};

use crate::effect::Effect;
use crate::fence::Run;
use crate::ident::{AttachmentRef, BootId, DriverName, PodRef, ProviderName, ResourceVersion, Uid, VolumeName};
use crate::policy::ReleasePolicy;
use crate::prove::{LifeSigns, PlugRead};
use crate::settings::Settings;
use crate::snapshot::Ready;
use crate::time::{Span, Tick};

/// All that was seen for one fence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observations {
    /// How this node is fenced.
    pub settings: Settings,
    /// Why the node's config cannot be used, if so: then the settings have no methods.
    pub unusable: Option<Box<str>>,
    /// How pods are released.
    pub release: ReleasePolicy,
    /// What vetting says now.
    pub vetted: Vetted,
    /// Whether the ledger shows our UID.
    pub ledger: LedgerSeen,
    /// The Node.
    pub node: NodeSeen,
    /// The evidence of every attached request has cleared.
    pub evidence_cleared: bool,
    /// The power step is wanted by the remedy, the request or the config.
    pub power_wanted: bool,
    /// What an admin says.
    pub admin: Admin,
    /// The pods bound to the node, from a live list.
    pub pods: Option<Vec<PodSeen>>,
    /// The volumes that they use, by the name of the claim's PersistentVolume.
    pub volumes: BTreeMap<Box<str>, VolumeSeen>,
    /// The attachments to this node.
    pub attachments: Option<Vec<AttachmentSeen>>,
    /// What calls came to, as far as this process knows.
    pub calls: Vec<CallAnswer>,
    /// Calls whose Job is over: gone, with every pod of it, or ended, with every pod reported so by its kubelet.
    pub jobs_over: BTreeSet<CallId>,
    /// What reads showed.
    pub reads: Vec<ReadAnswer>,
    /// Volumes that our attacher unpublished with fence, each with the mark that it came after.
    pub unpublished: BTreeSet<(Uid, VolumeName)>,
    /// How many pods were released lately, for the pace.
    pub released_lately: u32,
    /// A kernel dump that counts as proof right now: fresh, from the node's own address, allowed by policy.
    pub kdump_proves: bool,
}

/// What vetting says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vetted {
    /// Every gate is open.
    Open,
    /// A gate is closed for now.
    Closed,
    /// It will never be admitted.
    Refused,
}

/// Whether the ledger shows this fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerSeen {
    /// Not read since this process saw the fence's slot as it is on record now: what was read before counts for nothing.
    Unknown,
    /// It has no entry with our UID, or there is no ledger.
    Absent,
    /// It has.
    Present {
        /// The slot's number.
        grant: u32,
    },
}

/// The Node, as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeSeen {
    /// There is no such Node (a live read said 404).
    Gone,
    /// There is.
    There(NodeLive),
}

/// A Node that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeLive {
    /// Its UID.
    pub uid: Uid,
    /// Its version, for patches.
    pub resource_version: ResourceVersion,
    /// The newest GET of this process that it rests on; what a watch showed since then is in it too. None: only a cache.
    pub read: Option<NodeRead>,
    /// The Ready condition.
    pub ready: Ready,
    /// How long it has been Ready with a moving heartbeat, by our own clock.
    pub ready_for: Option<Span>,
    /// What moves while the node lives.
    pub life: LifeSigns,
    /// The lease is silent.
    pub lease_silent: bool,
    /// A renewal of it is overdue.
    pub lease_late: bool,
    /// Keys and values of the taints that concern us.
    pub taints: BTreeSet<TaintSeen>,
    /// Marked unschedulable.
    pub cordoned: bool,
    /// `status.volumesInUse`.
    pub volumes_in_use: BTreeSet<VolumeName>,
    /// `status.volumesAttached`.
    pub volumes_attached: BTreeSet<VolumeName>,
}

impl NodeLive {
    /// The boot that the kubelet reports.
    pub fn boot(&self) -> Option<&BootId> {
        self.life.boot.as_ref()
    }

    /// Whether nothing is heard of the node. A machine that is proven to be off need not be silent for as long as one that
    /// may only be out of sight: one missing renewal says that its Ready is stale.
    pub fn is_quiet(&self, proven_off: bool) -> bool {
        self.lease_silent || (proven_off && self.lease_late)
    }
}

/// A GET of the Node that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeRead {
    /// Its number among the reads of this process.
    pub id: ReadId,
    /// When it was sent.
    pub began: Tick,
}

/// A taint of ours.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaintSeen {
    /// `palisade.dev/quarantine=<fence UID>`.
    Quarantine(Uid),
    /// `node.kubernetes.io/out-of-service`.
    OutOfService,
}

/// What an admin says in `spec.admin`, and by deleting the NodeFence.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Admin {
    /// No new effect.
    pub stop: bool,
    /// End a hold: switch on, lift, try again.
    pub resume: bool,
    /// A person vouches that this life of the node is isolated.
    pub confirm: Option<Confirmation>,
}

/// A person's word.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Confirmation {
    /// Who, tied to the requesting user by an admission policy.
    pub by: Box<str>,
    /// The UID of the Node that they looked at.
    pub uid: Uid,
    /// The boot that they looked at.
    pub boot: BootId,
}

/// A pod on the node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // facts of the API, each by itself; no pair of them excludes another
pub struct PodSeen {
    /// Which.
    pub pod: PodRef,
    /// Its version.
    pub resource_version: ResourceVersion,
    /// Who owns it.
    pub owner: Owner,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its own grace period, in seconds.
    pub grace: u32,
    /// Whether it has been told to go.
    pub deletion: Deletion,
    /// It has finalizers.
    pub finalizers: bool,
    /// Its phase is Succeeded or Failed.
    pub completed: bool,
    /// It was created after our taint was set: somebody tolerates it on purpose.
    pub after_taint: bool,
    /// What it mounts.
    pub mounts: Vec<Mount>,
    /// A PodDisruptionBudget allows no disruption of it now.
    pub pdb_blocks: bool,
}

/// Who owns a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// At most one: a marked pod is not replaced before it is gone.
    StatefulSet,
    /// A terminating pod is replaced at once (ReplicaSet, Job and others).
    Replaces,
    /// It stays on its node.
    DaemonSet,
    /// A mirror of a file on the node.
    Static,
    /// Nobody would make another.
    Nobody,
}

/// Whether a pod has been told to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Deletion {
    /// No.
    No,
    /// It has a deletionTimestamp and a grace above zero: marked.
    Marked,
    /// It has a deletionTimestamp with grace zero, and something keeps the object.
    Forced,
}

/// Something that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mount {
    /// A claim, by its PersistentVolume.
    Claim {
        /// The name of the PersistentVolume; none while the claim is not bound.
        volume: Option<Box<str>>,
        /// `claim.readOnly`.
        read_only: bool,
    },
    /// A path of the node.
    HostPath,
    /// NFS and the like, without a claim.
    InlineNetwork,
    /// emptyDir, configMap, secret, projected: nobody else can see them.
    Private,
}

/// A PersistentVolume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeSeen {
    /// Its name as `volumesInUse` spells it.
    pub name: VolumeName,
    /// Who may write.
    pub access: Access,
    /// Tied to its node.
    pub local: bool,
    /// Its CSI driver.
    pub driver: Option<DriverName>,
    /// The driver can unpublish with fence through our attacher.
    pub driver_fences: bool,
    /// The storage system that it belongs to.
    pub provider: Option<ProviderName>,
    /// Whether its storage calls it healthy; `None`: nobody was asked, or nobody knows.
    pub healthy: Option<bool>,
}

/// Who may write to a volume, by the PersistentVolume's access modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// One node or one pod.
    Single,
    /// Nobody.
    ReadOnlyMany,
    /// Everybody.
    ReadWriteMany,
}

/// A VolumeAttachment to this node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachmentSeen {
    /// Which.
    pub attachment: AttachmentRef,
    /// The volume.
    pub volume: VolumeName,
    /// It has a deletionTimestamp.
    pub deleting: bool,
    /// The driver's error, if it reported one.
    pub detach_error: Option<Box<str>>,
}

/// Which call: the fence's attempt, the place in the plan, the count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId {
    /// The fence's attempt.
    pub attempt: u32,
    /// The count within the attempt.
    pub call: u32,
}

impl CallId {
    /// The call that a run stands at.
    pub const fn of(attempt: u32, run: &Run) -> Self {
        Self { attempt, call: run.call }
    }
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallAnswer {
    /// The fence that it was made for.
    pub fence: Uid,
    /// Which call.
    pub call: CallId,
    /// What it came to.
    pub outcome: CallOutcome,
}

/// What a call came to. None of these is a proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CallOutcome {
    /// It is on its way.
    Pending,
    /// The device took it.
    Accepted,
    /// The device or a check refused it: nothing was done.
    Refused,
    /// Nobody knows: time-out, lost reply, contradiction.
    Unknown,
}

/// Counts the reads of one process; a larger one began later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadId(pub u32);

/// What a series of reads showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadAnswer {
    /// Which series.
    pub id: ReadId,
    /// The reads, by plug.
    pub plugs: Vec<PlugRead>,
}

/// What this process remembers of a fence between two steps. Lost in a crash, on purpose.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Memory {
    /// When this process found the fence as another one had left it, for as long as a call of that one may still be sent.
    pub(crate) found: Option<Tick>,
    /// When this process first saw the phase as it is.
    pub(crate) since: Tick,
    /// The attempt and the phase that `since` is about.
    pub(crate) phase: Option<(u32, &'static str)>,
    /// The first read that begins in this phase: what is to be live was read by it or a later one.
    pub(crate) phase_read: ReadId,
    /// The call that the fence stands at, and the first read that begins after that was seen.
    pub(crate) stands_at: Option<CallId>,
    pub(crate) try_read: ReadId,
    /// The read of the Node that is on its way, and when it was asked for.
    pub(crate) looking: Option<(ReadId, Tick)>,
    /// The call that this process has decided to send, and when.
    pub(crate) sent: Option<(CallId, Tick)>,
    /// Whether the newest series began after that call was decided.
    pub(crate) reads_since_sent: bool,
    /// The series that is on its way, and when it was asked for.
    pub(crate) reading: Option<(ReadId, Tick)>,
    /// The next series.
    pub(crate) next_read: ReadId,
    /// The newest series that was answered, and when.
    pub(crate) last_read: Option<(ReadId, Vec<PlugRead>, Tick)>,
    /// For each marked pod: the first series that begins after its mark was seen, and when that was.
    pub(crate) marks: BTreeMap<Uid, (ReadId, Tick)>,
    /// How many pods were marked when this process last looked, and the first read that begins after it saw so many.
    pub(crate) marked: usize,
    pub(crate) marked_read: ReadId,
    /// For each release whose mark is the release: the first series that begins after it was seen on record.
    pub(crate) intended: BTreeMap<Uid, ReadId>,
    /// For each attachment: when it was first waited for, and the first read that begins after the node was touched.
    pub(crate) awaited: BTreeMap<Uid, (Tick, Option<ReadId>)>,
    /// Signs of life as they stood when the present series of reads began.
    pub(crate) baseline: Option<LifeSigns>,
    /// When Jobs that nobody wants were last told to go.
    pub(crate) told_jobs: Option<Tick>,
    /// The call of this process to a pod that nobody can read back, and for which the policy vouches.
    pub(crate) vouching: Option<Vouching>,
}

/// A call to a pod for which the policy vouches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Vouching {
    /// Which.
    pub(crate) call: CallId,
    /// Its success, once it was seen.
    pub(crate) answered: Option<Answered>,
}

/// The success of such a pod, as it was first seen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answered {
    /// When.
    pub(crate) at: Tick,
    /// The first read that begins after it.
    pub(crate) first_read: ReadId,
    /// Signs of life as they stood then. Later than the call, for the machine may live until the pod has done its work; no later
    /// than this, or a machine that lives on could be overheard.
    pub(crate) life: LifeSigns,
}

impl Memory {
    /// A process that has just begun to look at this fence.
    pub fn fresh(now: Tick) -> Self {
        Self {
            found: Some(now),
            since: now,
            phase: None,
            phase_read: ReadId(0),
            stands_at: None,
            try_read: ReadId(0),
            looking: None,
            sent: None,
            reads_since_sent: false,
            reading: None,
            next_read: ReadId(0),
            last_read: None,
            marks: BTreeMap::new(),
            marked: 0,
            marked_read: ReadId(0),
            intended: BTreeMap::new(),
            awaited: BTreeMap::new(),
            baseline: None,
            told_jobs: None,
            vouching: None,
        }
    }

    /// Another process has written this fence meanwhile: calls of that one may be under way.
    pub fn found_again(&mut self, now: Tick) {
        self.found = Some(now);
        // What it asked for, and when, is not known here.
        self.vouching = None;
    }

    /// Whether a series is on its way. One that was never answered is given up after the time that a device has to settle.
    pub(crate) fn awaits_read(&self, seen: &Observations, now: Tick) -> bool {
        self.reading.is_some_and(|(_, asked)| now <= asked + seen.settings.settle)
    }

    /// All that the last decision asked for was done, or was not: a live read of the Node that did not come back by now will not come.
    pub fn effects_ended(&mut self) {
        self.looking = None;
    }

    /// Takes the next number of a read.
    pub(crate) fn next_read(&mut self) -> ReadId {
        let id = self.next_read;
        self.next_read.0 += 1;
        id
    }

    /// Asks for a live read of the Node, unless one is on its way. One that was never answered is given up like a series.
    pub(crate) fn look(&mut self, seen: &Observations, now: Tick) -> Option<Effect> {
        if self.looking.is_some_and(|(_, asked)| now <= asked + seen.settings.settle) {
            return None;
        }
        let id = self.next_read();
        self.looking = Some((id, now));
        Some(Effect::ReadNode(id))
    }

    /// This process decided to send a call: reads from before it say nothing about it.
    pub(crate) fn note_sent(&mut self, call: CallId, now: Tick) {
        self.sent = Some((call, now));
        self.reads_since_sent = false;
        // A series that is on its way began before the call, so its answer must not count for it.
        self.reading = None;
    }
}
