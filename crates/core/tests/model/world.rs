//! Model / world: the API server's objects, the machines' truth, and what each operator has seen of them.
//!
//! Everything is small and without unbounded counters. A resourceVersion is only ever compared with the newest one, and
//! what is outdated stays so: hence views and requests carry `current`, which every write of the object clears.

use crate::setup::Bounds;

/// A fence or a memory, by its number in the tables.
pub(crate) type Ref = u32;

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct World {
    pub(crate) api: Api,
    /// The machine that is fenced.
    pub(crate) machine: Machine,
    /// Another machine that took over the node's name.
    pub(crate) other: Option<Machine>,
    /// Pods (by name) that run on the healthy node, and write.
    pub(crate) elsewhere: u8,
    /// The operators; they have no names and are kept in order.
    pub(crate) operators: [Operator; 2],
    /// A request of a process that crashed, which may still be carried out.
    pub(crate) late: Option<Request>,
    /// What may still happen.
    pub(crate) left: Bounds,
    /// The promise that was broken.
    pub(crate) broken: Option<Broken>,
}

/// The promises that are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Broken {
    I1,
    I2,
    I4,
    I5,
    I6,
}

/// The API server.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Api {
    /// The NodeFence on record.
    pub(crate) fence: Option<Ref>,
    /// Which NodeFence it is, or was.
    pub(crate) fence_no: u8,
    /// The number of the slot that the ledger shows.
    pub(crate) ledger: Option<u8>,
    pub(crate) node: Option<Node>,
    /// The UID that the last Node object got.
    pub(crate) node_uid: u8,
    pub(crate) pods: [Option<Pod>; 2],
    /// The generation of the last pod of each name.
    pub(crate) made: [u8; 2],
    /// The attachment to the node, by its UID.
    pub(crate) attachment: Option<u8>,
    pub(crate) attachments_made: u8,
    /// Jobs, where calls are made by Jobs.
    pub(crate) jobs: Vec<Job>,
}

/// A Node object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(clippy::struct_excessive_bools, reason = "facts of the API, each by itself; no pair of them excludes another")]
pub(crate) struct Node {
    pub(crate) uid: u8,
    pub(crate) boot: u8,
    /// Lease and heartbeat.
    pub(crate) stamp: u8,
    /// Ready, with a lease that moves.
    pub(crate) ready: bool,
    /// The fence whose quarantine taint it has.
    pub(crate) taint: Option<u8>,
    /// It has the out-of-service taint.
    pub(crate) out_of_service: bool,
    pub(crate) in_use: bool,
    pub(crate) attached: bool,
}

/// A pod object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pod {
    /// Name and generation together are the UID.
    pub(crate) generation: u8,
    pub(crate) home: Home,
    pub(crate) marked: bool,
    /// At some instant since the mark its node was truly cut off. (Truth; nobody can read it.)
    pub(crate) cut_since_mark: bool,
}

/// Where a pod is bound to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Home {
    /// The node that is fenced.
    Target,
    /// The healthy one.
    Healthy,
}

/// A machine's truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Machine {
    pub(crate) power: Power,
    pub(crate) boot: u8,
    /// Pods whose processes run, as bits of name and generation.
    pub(crate) running: u8,
    /// The storage refuses it.
    pub(crate) refused: bool,
    /// Its switch port is down.
    pub(crate) port_down: bool,
    /// The last attempt in which each device really carried out a cut-off: (fence, attempt).
    pub(crate) cut_in: [(u8, u8); 3],
}

/// How far a machine is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Power {
    Off,
    /// Asleep: nothing runs, the memory is kept, and a simple BMC calls it off.
    Suspended,
    /// On; the kubelet has not listed its pods yet.
    Booting,
    /// On; the kubelet lives and hears the API server.
    Up,
    /// On; the kubelet lives and hears nothing.
    Cut,
}

impl Machine {
    pub(crate) const fn on(self) -> bool {
        matches!(self.power, Power::Booting | Power::Up | Power::Cut)
    }

    /// Whether something on it can write to the volume now.
    pub(crate) const fn writes(self) -> bool {
        self.on() && self.running != 0 && !self.refused
    }

    /// Whether nothing that ran on it before could write now.
    pub(crate) const fn cut_off(self) -> bool {
        matches!(self.power, Power::Off) || self.refused
    }

    /// A new boot: whatever ran is gone.
    pub(crate) fn boots(&mut self) {
        self.power = Power::Booting;
        self.boot += 1;
        self.running = 0;
    }
}

/// The bit of a pod's processes.
pub(crate) const fn process(name: u8, generation: u8) -> u8 {
    1 << (name * 4 + generation)
}

/// One operator process: what it remembers, what it has seen, and what it has under way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Operator {
    /// It was the last one to decide.
    pub(crate) leads: bool,
    /// The record as it read or wrote it last.
    pub(crate) fence: Option<Ref>,
    pub(crate) fence_current: bool,
    pub(crate) memory: Ref,
    pub(crate) node: NodeView,
    pub(crate) pods: Option<PodsView>,
    pub(crate) answer: Option<Answer>,
    /// The series of reads on its way.
    pub(crate) reading: Option<Reading>,
    /// What the last series showed.
    pub(crate) last: Option<Sample>,
    /// The device call on its way.
    pub(crate) call: Option<Call>,
    /// Requests to the API server that are still to be sent, in order.
    pub(crate) queue: Vec<Request>,
    /// The last effect that it carried out since it last decided.
    pub(crate) did: Option<Kind>,
    /// Its own time; moves only in worlds where a boot takes longer than a call may wait.
    pub(crate) clock: u8,
}

/// The Node as an operator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct NodeView {
    pub(crate) node: Option<Node>,
    /// The newest GET that it rests on, by its number and the reader's own clock.
    pub(crate) read: Option<(u8, u8)>,
    pub(crate) current: bool,
}

/// Pods and attachments of the node, as an operator listed them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PodsView {
    pub(crate) pods: [Option<PodView>; 2],
    pub(crate) attachment: Option<u8>,
}

/// A pod as an operator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct PodView {
    pub(crate) generation: u8,
    pub(crate) marked: bool,
    pub(crate) current: bool,
}

/// What a call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Answer {
    pub(crate) fence_no: u8,
    pub(crate) attempt: u8,
    pub(crate) count: u8,
    pub(crate) outcome: Outcome,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Outcome {
    Pending,
    Accepted,
    Refused,
    Unknown,
}

/// A series of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Reading {
    pub(crate) id: u32,
    /// Methods whose devices are read, as bits.
    pub(crate) wants: u8,
    /// What was read, once it was.
    pub(crate) got: Option<Sample>,
}

/// What one instant showed of each device, and when that was by the reader's own clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sample {
    pub(crate) devices: [State; 3],
    pub(crate) at: u8,
    /// Somebody really answered. (Truth; the operator is only told the states.)
    pub(crate) answered: bool,
}

/// What a device said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum State {
    Unknown,
    Off,
    On,
}

/// A device call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Call {
    /// The method, by its place in the list.
    pub(crate) method: u8,
    pub(crate) fence_no: u8,
    pub(crate) attempt: u8,
    pub(crate) count: u8,
}

/// A Job that makes a device call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Job {
    pub(crate) call: Call,
    pub(crate) outcome: Outcome,
}

/// A request to the API server, or a device call that its sender did not live to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Request {
    Quarantine { uid: u8, current: bool, fence_no: u8 },
    LiftQuarantine { uid: u8, current: bool },
    OutOfService { uid: u8, current: bool },
    LiftOutOfService { uid: u8, current: bool },
    DeleteNode { uid: u8, current: bool },
    Mark { name: u8, generation: u8, current: bool, send_before: u8 },
    Remove { name: u8, generation: u8 },
    Detach { uid: u8, current: bool },
    Touch { uid: u8, current: bool },
    DeleteAttachment { uid: u8, send_before: u8 },
    Close { fence_no: u8 },
    Device(Call),
}

/// Kinds of effects, for the account of what was crashed after.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Record,
    Patch,
    Mark,
    Remove,
    Detach,
    Touch,
    DeleteAttachment,
    Close,
    CutOff,
    Restore,
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::Record,
        Self::Patch,
        Self::Mark,
        Self::Remove,
        Self::Detach,
        Self::Touch,
        Self::DeleteAttachment,
        Self::Close,
        Self::CutOff,
        Self::Restore,
    ];
}

impl Request {
    pub(crate) fn kind(self) -> Kind {
        match self {
            Self::Quarantine { .. }
            | Self::LiftQuarantine { .. }
            | Self::OutOfService { .. }
            | Self::LiftOutOfService { .. }
            | Self::DeleteNode { .. } => Kind::Patch,
            Self::Mark { .. } => Kind::Mark,
            Self::Remove { .. } => Kind::Remove,
            Self::Detach { .. } => Kind::Detach,
            Self::Touch { .. } => Kind::Touch,
            Self::DeleteAttachment { .. } => Kind::DeleteAttachment,
            Self::Close { .. } => Kind::Close,
            Self::Device(call) => call.kind(),
        }
    }
}

impl Call {
    pub(crate) fn kind(self) -> Kind {
        if self.method.is_multiple_of(2) { Kind::CutOff } else { Kind::Restore }
    }
}

/// Something happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The other operator takes over; this one does not know, and what it has under way goes on.
    TakesOver,
    /// An operator decides, and records or begins what it decided. Its timers have run out, or not.
    Decide {
        at: usize,
        overdue: bool,
    },
    /// The next request of an operator is carried out, and it hears so.
    Send(usize),
    /// ... is carried out, and the reply is lost.
    SendReplyLost(usize),
    /// ... is lost.
    SendLost(usize),
    /// The device call of an operator is carried out, and it hears so.
    Call(usize),
    CallReplyLost(usize),
    CallLost(usize),
    CallRefused(usize),
    /// The devices are read.
    Read(usize),
    ReadLost(usize),
    /// An operator's caches catch up.
    SeeNode(usize),
    SeePods(usize),
    SeeFence(usize),
    /// An operator crashes and starts again; what it was sending is lost or stays under way; its cache is new or old.
    Crash {
        operator: usize,
        leaves_request: bool,
        old_cache: bool,
    },
    /// What a crashed process had sent is carried out.
    Late,
    /// A Job makes its call.
    JobRuns(usize),
    JobUnknown {
        job: usize,
        acted: bool,
    },
    /// Somebody else switches the machine on.
    OutsideOn,
    Reset,
    Suspend,
    Resume,
    NetworkBreaks,
    NetworkHeals,
    KubeletUp,
    Post,
    GoesSilent,
    /// The kubelet stops processes whose pod is marked or gone, and finishes the deletion of a marked pod.
    Stops {
        name: u8,
        generation: u8,
    },
    OutsideLift,
    Evicts(u8),
    NodeDeleted,
    OtherMachineJoins,
    SecondJoins,
    /// The owner makes another pod, which the scheduler binds.
    Replaced {
        name: u8,
        home: Home,
    },
    /// The attach/detach controller detaches.
    Detached,
    /// Pod GC deletes a pod: one that terminates on a node that is out of service, or one whose Node we have deleted.
    Collected(u8),
    /// The node failed again: another NodeFence.
    FencedAgain,
}
