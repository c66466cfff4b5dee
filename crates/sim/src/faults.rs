//! Faults: what goes wrong in a run, and when. A swarm: each seed gets a random few kinds of trouble, so that rare combinations
//! meet and no kind drowns the others.
//!
//! A fault strikes at a time, or right after the n-th act of the operators (a write, or a command to a BMC): a window that is a
//! few milliseconds wide is hit as often as any other.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use palisade_cluster::dice::Dice;
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::Link;
use palisade_cluster::truth::Daemon;

/// One thing that goes wrong, or is mended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A machine loses its power.
    PowerOff(String),
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
    /// An admin asks for a fence.
    Ask(String),
    /// An admin deletes every request for the node.
    DeleteRequests(String),
    /// An admin deletes the node's pods, as `kubectl drain --disable-eviction` does.
    DeletePods(String),
    /// Somebody puts a finalizer on the node's pods.
    HoldPods(String),
    /// And takes it off.
    LetPodsGo,
    /// An admin applies the policy again: its status is empty.
    PolicyAgain,
    /// An admin edits the policy.
    EditPolicy(&'static str),
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
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Fault {
    /// All kinds, for the account of what was reached.
    pub const KINDS: [&'static str; 37] = [
        "power-off",
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
        "delete-requests",
        "delete-pods",
        "hold-pods",
        "let-pods-go",
        "policy-again",
        "edit-policy",
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
            | Self::Ask(node)
            | Self::DeleteRequests(node)
            | Self::DeletePods(node)
            | Self::HoldPods(node) => Some(node),
            Self::Halt(_)
            | Self::Down(_)
            | Self::Up(_)
            | Self::LetPodsGo
            | Self::PolicyAgain
            | Self::EditPolicy(_)
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
            Self::Ask(_) => "ask",
            Self::DeleteRequests(_) => "delete-requests",
            Self::DeletePods(_) => "delete-pods",
            Self::HoldPods(_) => "hold-pods",
            Self::LetPodsGo => "let-pods-go",
            Self::PolicyAgain => "policy-again",
            Self::EditPolicy(_) => "edit-policy",
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

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time.
    At(Duration),
    /// Right after the operators' act with this number.
    AfterAct(u64),
}

/// How lossy the wire between operators and API server is, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Requests that never arrive.
    pub lost: u64,
    /// Replies that never arrive.
    pub replies: u64,
    /// Requests that are answered with 500, 503 or 429.
    pub errors: u64,
    /// Watches that break with an event.
    pub broken: u64,
    /// The longest latency in milliseconds.
    pub latency: u64,
}

/// What goes wrong in a run.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// When, and what; those with a time in its order.
    pub faults: Vec<(When, Fault)>,
    /// The wire.
    pub losses: Losses,
    /// How many operators there are.
    pub operators: usize,
    /// Machines boot in seconds, as small virtual ones do.
    pub quick_boots: bool,
    /// Machines may hibernate, and the template says so.
    pub hibernates: bool,
    /// The policy asks for Kubernetes' out-of-service taint.
    pub out_of_service: bool,
    /// How many fences may be in flight.
    pub budget: u64,
}

/// From here on nothing goes wrong any more, and everything has to end well.
pub const QUIET: Duration = Duration::from_mins(15);

/// Before this nothing goes wrong: a new operator keeps quiet for a while, too.
const CALM: u64 = 90;

/// A kind of trouble: faults that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    PowerFailure,
    FeedFailure,
    Partition,
    StorageLost,
    KubeletHangs,
    KubeletLags,
    SwitchedOn,
    Sleeps,
    BadBmc,
    LyingBmc,
    NodeDeleted,
    NodeMadeAnew,
    Rack,
    TaintTaken,
    FenceDeleted,
    AdminSpeaks,
    AdminAsks,
    RequestsDeleted,
    PodsDeleted,
    PodsHeld,
    PolicyAgain,
    PolicyEdited,
    OperatorCrashes,
    OperatorFreezes,
    ClockJumps,
    Blackout,
    FrozenWatches,
    Reordered,
    OldServer,
    ControlPlane,
}

impl Trouble {
    const ALL: [Self; 30] = [
        Self::PowerFailure,
        Self::FeedFailure,
        Self::Partition,
        Self::StorageLost,
        Self::KubeletHangs,
        Self::KubeletLags,
        Self::SwitchedOn,
        Self::Sleeps,
        Self::BadBmc,
        Self::LyingBmc,
        Self::NodeDeleted,
        Self::NodeMadeAnew,
        Self::Rack,
        Self::TaintTaken,
        Self::FenceDeleted,
        Self::AdminSpeaks,
        Self::AdminAsks,
        Self::RequestsDeleted,
        Self::PodsDeleted,
        Self::PodsHeld,
        Self::PolicyAgain,
        Self::PolicyEdited,
        Self::OperatorCrashes,
        Self::OperatorFreezes,
        Self::ClockJumps,
        Self::Blackout,
        Self::FrozenWatches,
        Self::Reordered,
        Self::OldServer,
        Self::ControlPlane,
    ];
}

impl Plan {
    /// The plan of a seed.
    pub fn of(seed: u64, nodes: usize) -> Self {
        let mut dice = Dice::new(seed, "faults");
        let mut plan = Self {
            operators: 1 + usize::try_from(dice.below(2)).unwrap_or(0),
            quick_boots: dice.below(3) == 0,
            out_of_service: dice.below(5) == 0,
            budget: 1 + dice.below(2),
            ..Self::default()
        };
        let kinds = 1 + dice.below(5);
        let kinds: Vec<Trouble> = (0..kinds).map(|_| pick(&mut dice, &Trouble::ALL)).collect();
        plan.hibernates = kinds.contains(&Trouble::Sleeps);
        if dice.below(2) == 0 {
            plan.losses = Losses {
                lost: dice.below(20),
                replies: dice.below(30),
                errors: dice.below(20),
                broken: dice.below(5),
                latency: 5 + dice.below(300),
            };
        }
        // What goes wrong together matters most: so troubles come in bursts.
        for _ in 0..=dice.below(2) {
            let start = CALM + dice.below(QUIET.as_secs() - CALM - 240);
            let nodes = u64::try_from(nodes).unwrap_or(1);
            let node = format!("n{}", 1 + dice.below(nodes));
            for _ in 0..=dice.below(3) {
                let trouble = pick(&mut dice, &kinds);
                let at = start + dice.below(40);
                let node = if dice.below(3) == 0 { format!("n{}", 1 + dice.below(nodes)) } else { node.clone() };
                Episode { plan: &mut plan, dice: &mut dice, node, at, nodes }.add(trouble);
            }
        }
        plan.keep_liars_honest_company();
        plan.faults.sort_by_key(|(when, _)| match when {
            When::At(at) => *at,
            When::AfterAct(_) => Duration::ZERO,
        });
        plan
    }
}

impl Plan {
    /// A device that lies alone, where no kubelet can be asked, cannot be unmasked: so nothing else happens to such a node.
    fn keep_liars_honest_company(&mut self) {
        let lies = |fault: &Fault| matches!(fault, Fault::Bmc(_, Behaviour::SaysOff));
        let liars: BTreeSet<String> = self
            .faults
            .iter()
            .filter(|(_, fault)| lies(fault))
            .filter_map(|(_, fault)| fault.node().cloned())
            .collect();
        self.faults.retain(|(_, fault)| {
            let cut = matches!(fault, Fault::Cut(_, Link::Api) | Fault::Heal(_, Link::Api) | Fault::Bmc(..));
            cut || fault.node().is_none_or(|node| !liars.contains(node))
        });
    }
}

fn pick<T: Copy>(dice: &mut Dice, all: &[T]) -> T {
    let count = u64::try_from(all.len()).unwrap_or(1);
    all[usize::try_from(dice.below(count)).unwrap_or(0)]
}

/// One trouble, about one node, from one time on.
struct Episode<'a> {
    plan: &'a mut Plan,
    dice: &'a mut Dice,
    node: String,
    at: u64,
    nodes: u64,
}

impl Episode<'_> {
    fn push(&mut self, after: u64, fault: Fault) {
        let at = Duration::from_secs(self.at + after).min(QUIET);
        self.plan.faults.push((When::At(at), fault));
    }

    /// Somewhere between the first act of a failover and the last.
    fn in_the_middle(&mut self, fault: Fault) {
        let act = 1 + self.dice.below(40);
        self.plan.faults.push((When::AfterAct(act), fault));
    }

    /// At a time, or in the middle of what the operators do.
    fn some_time(&mut self, from: u64, over: u64, fault: Fault) {
        if self.dice.below(2) == 0 {
            self.in_the_middle(fault);
        } else {
            let after = from + self.dice.below(over);
            self.push(after, fault);
        }
    }

    fn which(&mut self) -> usize {
        usize::try_from(self.dice.below(2)).unwrap_or(0)
    }

    fn secs(&mut self, from: u64, over: u64) -> Duration {
        Duration::from_secs(from + self.dice.below(over))
    }

    /// The node fails, in one of the usual ways.
    fn fail(&mut self) {
        let node = self.node.clone();
        if self.dice.below(3) == 0 {
            self.push(0, Fault::Cut(node.clone(), Link::Api));
            self.push(0, Fault::Cut(node.clone(), Link::Peers));
            let healed = 30 + self.dice.below(200);
            self.push(healed, Fault::Heal(node.clone(), Link::Api));
            self.push(healed, Fault::Heal(node, Link::Peers));
        } else {
            self.push(0, Fault::PowerOff(node));
        }
    }

    fn add(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::PowerFailure
            | Trouble::FeedFailure
            | Trouble::Partition
            | Trouble::StorageLost
            | Trouble::KubeletHangs
            | Trouble::KubeletLags
            | Trouble::SwitchedOn
            | Trouble::Sleeps
            | Trouble::Rack => self.nature(trouble),
            Trouble::BadBmc | Trouble::LyingBmc => self.bmc(trouble),
            Trouble::NodeDeleted
            | Trouble::NodeMadeAnew
            | Trouble::TaintTaken
            | Trouble::FenceDeleted
            | Trouble::AdminSpeaks
            | Trouble::AdminAsks
            | Trouble::RequestsDeleted
            | Trouble::PodsDeleted
            | Trouble::PodsHeld
            | Trouble::PolicyAgain
            | Trouble::PolicyEdited => self.people(trouble),
            Trouble::OperatorCrashes
            | Trouble::OperatorFreezes
            | Trouble::ClockJumps
            | Trouble::Blackout
            | Trouble::FrozenWatches
            | Trouble::Reordered
            | Trouble::OldServer
            | Trouble::ControlPlane => self.ourselves(trouble),
        }
    }

    /// Machines, their links and their kubelets.
    fn nature(&mut self, trouble: Trouble) {
        let node = self.node.clone();
        match trouble {
            Trouble::FeedFailure => {
                self.push(0, Fault::CutFeed(node.clone()));
                let back = 60 + self.dice.below(200);
                self.push(back, Fault::RestoreFeed(node));
            }
            Trouble::Partition => {
                self.push(0, Fault::Cut(node.clone(), Link::Api));
                let healed = 20 + self.dice.below(300);
                for link in [Link::Peers, Link::Storage] {
                    if self.dice.below(2) == 0 {
                        let after = self.dice.below(5);
                        self.push(after, Fault::Cut(node.clone(), link));
                        self.push(healed, Fault::Heal(node.clone(), link));
                    }
                }
                self.push(healed, Fault::Heal(node, Link::Api));
            }
            Trouble::StorageLost => {
                self.push(0, Fault::Cut(node.clone(), Link::Storage));
                let healed = 20 + self.dice.below(200);
                self.push(healed, Fault::Heal(node, Link::Storage));
            }
            Trouble::KubeletHangs => {
                self.push(0, Fault::Hang(node.clone()));
                let back = 15 + self.dice.below(200);
                self.push(back, Fault::Resume(node));
            }
            Trouble::KubeletLags => {
                let behind = 1 + self.dice.below(60);
                self.fail();
                self.some_time(10, 40, Fault::KubeletLags(node.clone(), behind));
                let after = 10 + self.dice.below(60);
                self.push(after, Fault::OutsideOn(node.clone()));
                self.push(200, Fault::KubeletCatchesUp(node));
            }
            Trouble::SwitchedOn => {
                self.fail();
                for _ in 0..=self.dice.below(2) {
                    self.some_time(0, 50, Fault::OutsideOn(node.clone()));
                }
            }
            Trouble::Sleeps => {
                let sleeps = if self.dice.below(2) == 0 { Fault::Suspend } else { Fault::Hibernate };
                self.push(0, sleeps(node.clone()));
                self.some_time(20, 100, Fault::WakeUp(node.clone()));
                let after = 30 + self.dice.below(100);
                self.push(after, Fault::WakeUp(node));
            }
            Trouble::Rack => {
                let count = 2 + self.dice.below(self.nodes - 2);
                let first = self.dice.below(self.nodes);
                for number in 0..count {
                    let node = format!("n{}", 1 + (first + number) % self.nodes);
                    self.push(0, Fault::CutFeed(node.clone()));
                    let back = 60 + self.dice.below(120);
                    self.push(back, Fault::RestoreFeed(node));
                }
            }
            _ => self.push(0, Fault::PowerOff(node)),
        }
    }

    fn bmc(&mut self, trouble: Trouble) {
        let node = self.node.clone();
        let behaviour = if trouble == Trouble::LyingBmc {
            // Where its kubelet can still be asked; one that lies for ever and alone cannot be unmasked.
            self.push(0, Fault::Cut(node.clone(), Link::Api));
            let healed = 60 + self.dice.below(200);
            self.push(healed, Fault::Heal(node.clone(), Link::Api));
            Behaviour::SaysOff
        } else {
            self.fail();
            match self.dice.below(6) {
                0 => Behaviour::Silent,
                1 => Behaviour::Unreachable,
                2 => Behaviour::Refuses(500),
                3 => Behaviour::AcceptsOnly,
                4 => Behaviour::Slow(self.secs(1, 6)),
                _ => Behaviour::Late(self.secs(2, 30)),
            }
        };
        self.push(0, Fault::Bmc(node.clone(), behaviour));
        let honest = 30 + self.dice.below(150);
        self.push(honest, Fault::Bmc(node, Behaviour::Honest));
    }

    fn people(&mut self, trouble: Trouble) {
        let node = self.node.clone();
        if trouble != Trouble::AdminAsks {
            self.fail();
        }
        match trouble {
            Trouble::NodeDeleted => self.some_time(5, 40, Fault::DeleteNode(node)),
            Trouble::NodeMadeAnew => {
                self.some_time(5, 40, Fault::DeleteNode(node.clone()));
                self.some_time(10, 40, Fault::OutsideOn(node.clone()));
                self.some_time(60, 60, Fault::RestartKubelet(node));
            }
            Trouble::TaintTaken => self.some_time(5, 40, Fault::TakeTaintOff(node)),
            Trouble::FenceDeleted => self.some_time(5, 60, Fault::DeleteFence(node)),
            Trouble::AdminSpeaks => {
                self.some_time(5, 60, Fault::Say(node.clone(), "stop"));
                self.push(120, Fault::Say(node, "resume"));
            }
            Trouble::RequestsDeleted => self.some_time(5, 40, Fault::DeleteRequests(node)),
            Trouble::PodsDeleted => self.some_time(0, 40, Fault::DeletePods(node)),
            Trouble::PodsHeld => {
                self.some_time(0, 20, Fault::HoldPods(node));
                let after = 60 + self.dice.below(120);
                self.push(after, Fault::LetPodsGo);
            }
            Trouble::PolicyAgain => self.some_time(5, 30, Fault::PolicyAgain),
            Trouble::PolicyEdited => {
                let edit = pick(self.dice, &["Paused", "DryRun", "Budget"]);
                self.some_time(0, 40, Fault::EditPolicy(edit));
                let after = 60 + self.dice.below(100);
                self.push(after, Fault::EditPolicy("Enforce"));
            }
            _ => self.push(0, Fault::Ask(node)),
        }
    }

    fn ourselves(&mut self, trouble: Trouble) {
        if trouble != Trouble::ClockJumps {
            self.fail();
        }
        match trouble {
            Trouble::OperatorCrashes => {
                for _ in 0..=self.dice.below(3) {
                    let which = self.which();
                    let fault = if self.dice.below(4) == 0 {
                        Fault::RestartOperator(which)
                    } else {
                        Fault::CrashOperator(which)
                    };
                    self.some_time(5, 60, fault);
                }
            }
            Trouble::OperatorFreezes => {
                for _ in 0..=self.dice.below(2) {
                    let (which, time) = (self.which(), self.secs(2, 60));
                    self.some_time(5, 60, Fault::FreezeOperator(which, time));
                }
            }
            Trouble::ClockJumps => {
                self.push(0, Fault::PowerOff(self.node.clone()));
                let (which, time, back) = (self.which(), self.secs(60, 7200), self.dice.below(2) == 0);
                self.some_time(0, 60, Fault::SetClock(which, time, back));
            }
            Trouble::FrozenWatches => {
                let time = self.secs(5, 90);
                self.some_time(0, 40, Fault::FreezeWatches(time));
            }
            Trouble::Reordered => {
                let kinds = [Watched::Nodes, Watched::Leases, Watched::Fences, Watched::Requests];
                let (kind, time) = (pick(self.dice, &kinds), self.secs(1, 15));
                self.push(0, Fault::Reorder(kind, time));
            }
            Trouble::OldServer => {
                let time = self.secs(5, 60);
                self.some_time(0, 40, Fault::OldServer(time));
            }
            Trouble::ControlPlane => {
                let daemon =
                    pick(self.dice, &[Daemon::ApiServer, Daemon::ControllerManager, Daemon::Scheduler, Daemon::Csi]);
                let fault = if self.dice.below(2) == 0 { Fault::Halt(daemon) } else { Fault::Down(daemon) };
                self.some_time(0, 40, fault);
                let after = 50 + self.dice.below(60);
                self.push(after, Fault::Up(daemon));
            }
            _ => {
                let time = self.secs(5, 60);
                self.some_time(0, 40, Fault::Blackout(time));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_trouble_comes_up_in_a_few_hundred_seeds_and_ends_in_time() {
        let mut kinds = BTreeSet::new();
        for seed in 1..=600 {
            for (when, fault) in Plan::of(seed, 8).faults {
                kinds.insert(fault.kind());
                assert!(!matches!(when, When::At(at) if at > QUIET), "{fault} of seed {seed} comes too late");
            }
        }
        assert_eq!(kinds, BTreeSet::from(Fault::KINDS));
    }

    #[test]
    fn the_same_seed_is_the_same_plan() {
        let plan = |seed| format!("{:?}", Plan::of(seed, 8));
        assert_eq!(plan(7), plan(7));
        assert_ne!(plan(7), plan(8));
    }
}
