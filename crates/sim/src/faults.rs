//! Faults: each single thing that goes wrong, or is mended.

use std::fmt;
use std::time::Duration;

use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::Link;
use palisade_cluster::truth::Daemon;
use palisade_scenarios::world::Agent;

/// One thing that goes wrong, or is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A machine loses its power.
    PowerOff(String),
    /// The machine under this pod, whichever it is.
    PowerOffUnder(&'static str),
    /// A machine's feed fails, and its BMC with it.
    CutFeed(String),
    /// The feed is back.
    RestoreFeed(String),
    /// Somebody presses its button.
    OutsideOn(String),
    /// A link of it is cut.
    Cut(String, Link),
    /// It is mended.
    Heal(String, Link),
    /// Its kubelet hangs.
    Hang(String),
    /// It goes on.
    Resume(String),
    /// Its kubelet starts anew; one whose Node was deleted makes another.
    RestartKubelet(String),
    /// Its kubelet lists pods from an API server that is so many writes behind.
    KubeletLags(String, u64),
    /// It lists from a fresh one again.
    KubeletCatchesUp(String),
    /// It stands still with its memory.
    Suspend(String),
    /// It writes its memory to disk, and looks as if it were off.
    Hibernate(String),
    /// It wakes up with its memory.
    WakeUp(String),
    /// Its BMC behaves like this from now on.
    Bmc(String, Behaviour),
    /// A part of the control plane stands still.
    Halt(Daemon),
    /// A part of the control plane ends.
    Down(Daemon),
    /// It is back.
    Up(Daemon),
    /// An admin, or an autoscaler, deletes its Node.
    DeleteNode(String),
    /// An admin takes our taint off.
    TakeTaintOff(String),
    /// An admin deletes its NodeFence: that means stop.
    DeleteFence(String),
    /// An admin says stop, or resume, in the NodeFence.
    Say(String, &'static str),
    /// Somebody asks for something.
    Ask(String, Asked),
    /// Somebody marks its Node, for us or for another tool.
    Mark(String, Marked),
    /// And takes all such marks off.
    Unmark(String),
    /// An admin deletes every request for the node.
    DeleteRequests(String),
    /// An admin deletes the node's pods, as `kubectl drain --disable-eviction` does.
    DeletePods(String),
    /// Somebody puts a finalizer on the node's pods.
    HoldPods(String),
    /// And takes it off.
    LetPodsGo,
    /// A webhook refuses to let one of the node's pods be deleted, for so long.
    ProtectPod(String, Duration),
    /// An admin applies the policy again: its status is empty.
    PolicyAgain,
    /// An admin edits the policy.
    EditPolicy(&'static str),
    /// Fence agents behave like this from now on.
    Agents(Agent),
    /// An admin deletes the Jobs that call agents.
    DeleteJobs,
    /// An operator process ends in the middle of what it does, and another one starts.
    CrashOperator(usize),
    /// An operator process is asked to end, and another one starts.
    RestartOperator(usize),
    /// An operator process stands still where it is, for so long.
    FreezeOperator(usize, Duration),
    /// The wall clock of an operator is set ahead by so much, or back.
    SetClock(usize, Duration, bool),
    /// The API server hears nobody for a while: from the operators.
    Blackout(Duration),
    /// Watches of the operators stand still for a while.
    FreezeWatches(Duration),
    /// What watches tell of this kind comes so much later than everything else.
    Reorder(Watched, Duration),
    /// The operators reach an API server that has stood still since now, for so long.
    OldServer(Duration),
}

/// What somebody asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// An admin: off and on again.
    PowerStep,
    /// An admin: off, until somebody says resume.
    PowerOff,
    /// Whoever may not: a request in a namespace that the policy does not list.
    ByAStranger,
    /// An admin who looked at the cluster long ago: off, for a Node that has a successor since.
    ForAPredecessor,
}

impl Asked {
    /// All of them.
    pub(crate) const ALL: [Self; 4] = [Self::PowerStep, Self::PowerOff, Self::ByAStranger, Self::ForAPredecessor];
}

/// What a Node is marked as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marked {
    /// Excluded by the policy.
    Excluded,
    /// People are at work on it.
    Maintenance,
    /// An autoscaler is about to remove it.
    Leaving,
    /// Another tool wants it left alone.
    ByAPeer,
    /// A member of the control plane, of which nobody knows the others.
    ControlPlane,
}

impl Marked {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Excluded, Self::Maintenance, Self::Leaving, Self::ByAPeer, Self::ControlPlane];
}

/// A kind whose watch may lag behind the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Nodes.
    Nodes,
    /// Leases.
    Leases,
    /// NodeFences.
    Fences,
    /// NodeFencingRequests.
    Requests,
    /// The policy, with the ledger.
    Policies,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Fault {
    /// All kinds, for the account of what was reached.
    pub const KINDS: [&'static str; 43] = [
        "power-off",
        "power-off-under",
        "cut-feed",
        "restore-feed",
        "outside-on",
        "cut",
        "heal",
        "hang",
        "resume",
        "restart-kubelet",
        "kubelet-lags",
        "kubelet-catches-up",
        "suspend",
        "hibernate",
        "wake-up",
        "bmc",
        "halt",
        "down",
        "up",
        "delete-node",
        "take-taint-off",
        "delete-fence",
        "say",
        "ask",
        "mark",
        "unmark",
        "delete-requests",
        "delete-pods",
        "hold-pods",
        "let-pods-go",
        "protect-pod",
        "policy-again",
        "edit-policy",
        "agents",
        "delete-jobs",
        "crash-operator",
        "restart-operator",
        "freeze-operator",
        "set-clock",
        "blackout",
        "freeze-watches",
        "reorder",
        "old-server",
    ];

    /// The node that it strikes.
    pub fn node(&self) -> Option<&String> {
        match self {
            Self::PowerOff(node)
            | Self::CutFeed(node)
            | Self::RestoreFeed(node)
            | Self::OutsideOn(node)
            | Self::Cut(node, _)
            | Self::Heal(node, _)
            | Self::Hang(node)
            | Self::Resume(node)
            | Self::RestartKubelet(node)
            | Self::KubeletLags(node, _)
            | Self::KubeletCatchesUp(node)
            | Self::Suspend(node)
            | Self::Hibernate(node)
            | Self::WakeUp(node)
            | Self::Bmc(node, _)
            | Self::DeleteNode(node)
            | Self::TakeTaintOff(node)
            | Self::DeleteFence(node)
            | Self::Say(node, _)
            | Self::Ask(node, _)
            | Self::Mark(node, _)
            | Self::Unmark(node)
            | Self::DeleteRequests(node)
            | Self::DeletePods(node)
            | Self::HoldPods(node)
            | Self::ProtectPod(node, _) => Some(node),
            Self::PowerOffUnder(_)
            | Self::Halt(_)
            | Self::Down(_)
            | Self::Up(_)
            | Self::LetPodsGo
            | Self::PolicyAgain
            | Self::EditPolicy(_)
            | Self::Agents(_)
            | Self::DeleteJobs
            | Self::CrashOperator(_)
            | Self::RestartOperator(_)
            | Self::FreezeOperator(..)
            | Self::SetClock(..)
            | Self::Blackout(_)
            | Self::FreezeWatches(_)
            | Self::Reorder(..)
            | Self::OldServer(_) => None,
        }
    }

    /// The kind, for the account of what was reached.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::PowerOff(_) => "power-off",
            Self::PowerOffUnder(_) => "power-off-under",
            Self::CutFeed(_) => "cut-feed",
            Self::RestoreFeed(_) => "restore-feed",
            Self::OutsideOn(_) => "outside-on",
            Self::Cut(..) => "cut",
            Self::Heal(..) => "heal",
            Self::Hang(_) => "hang",
            Self::Resume(_) => "resume",
            Self::RestartKubelet(_) => "restart-kubelet",
            Self::KubeletLags(..) => "kubelet-lags",
            Self::KubeletCatchesUp(_) => "kubelet-catches-up",
            Self::Suspend(_) => "suspend",
            Self::Hibernate(_) => "hibernate",
            Self::WakeUp(_) => "wake-up",
            Self::Bmc(..) => "bmc",
            Self::Halt(_) => "halt",
            Self::Down(_) => "down",
            Self::Up(_) => "up",
            Self::DeleteNode(_) => "delete-node",
            Self::TakeTaintOff(_) => "take-taint-off",
            Self::DeleteFence(_) => "delete-fence",
            Self::Say(..) => "say",
            Self::Ask(..) => "ask",
            Self::Mark(..) => "mark",
            Self::Unmark(_) => "unmark",
            Self::DeleteRequests(_) => "delete-requests",
            Self::DeletePods(_) => "delete-pods",
            Self::HoldPods(_) => "hold-pods",
            Self::LetPodsGo => "let-pods-go",
            Self::ProtectPod(..) => "protect-pod",
            Self::PolicyAgain => "policy-again",
            Self::EditPolicy(_) => "edit-policy",
            Self::Agents(_) => "agents",
            Self::DeleteJobs => "delete-jobs",
            Self::CrashOperator(_) => "crash-operator",
            Self::RestartOperator(_) => "restart-operator",
            Self::FreezeOperator(..) => "freeze-operator",
            Self::SetClock(..) => "set-clock",
            Self::Blackout(_) => "blackout",
            Self::FreezeWatches(_) => "freeze-watches",
            Self::Reorder(..) => "reorder",
            Self::OldServer(_) => "old-server",
        }
    }
}
