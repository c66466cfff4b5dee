//! Trouble: faults that belong together, about one node, from one time on.

use std::time::Duration;

use palisade_cluster::dice::Dice;
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::Link;
use palisade_cluster::truth::Daemon;

use crate::acts::Act;
use crate::faults::{Asked, Fault, Marked, Watched};
use crate::plan::{Plan, QUIET, When, pick};

/// A kind of trouble: faults that belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    PowerFailure,
    TwoFail,
    FeedFailure,
    Partition,
    StorageLost,
    KubeletHangs,
    KubeletLags,
    SwitchedOn,
    Sleeps,
    BadBmc,
    LyingBmc,
    BmcTurns,
    NodeDeleted,
    NodeMadeAnew,
    Rack,
    TaintTaken,
    FenceDeleted,
    AdminSpeaks,
    AdminAsks,
    NodeMarked,
    RequestsDeleted,
    PodsDeleted,
    PodsHeld,
    PodProtected,
    PolicyAgain,
    PolicyEdited,
    OperatorCrashes,
    CrashThenHeals,
    OperatorFreezes,
    ClockJumps,
    Blackout,
    FrozenWatches,
    Reordered,
    OldServer,
    ControlPlane,
}

impl Trouble {
    pub(crate) const ALL: [Self; 35] = [
        Self::PowerFailure,
        Self::TwoFail,
        Self::FeedFailure,
        Self::Partition,
        Self::StorageLost,
        Self::KubeletHangs,
        Self::KubeletLags,
        Self::SwitchedOn,
        Self::Sleeps,
        Self::BadBmc,
        Self::LyingBmc,
        Self::BmcTurns,
        Self::NodeDeleted,
        Self::NodeMadeAnew,
        Self::Rack,
        Self::TaintTaken,
        Self::FenceDeleted,
        Self::AdminSpeaks,
        Self::AdminAsks,
        Self::NodeMarked,
        Self::RequestsDeleted,
        Self::PodsDeleted,
        Self::PodsHeld,
        Self::PodProtected,
        Self::PolicyAgain,
        Self::PolicyEdited,
        Self::OperatorCrashes,
        Self::CrashThenHeals,
        Self::OperatorFreezes,
        Self::ClockJumps,
        Self::Blackout,
        Self::FrozenWatches,
        Self::Reordered,
        Self::OldServer,
        Self::ControlPlane,
    ];
}

/// One trouble, about one node, from one time on.
pub(crate) struct Episode<'a> {
    pub(crate) plan: &'a mut Plan,
    pub(crate) dice: &'a mut Dice,
    pub(crate) node: String,
    pub(crate) at: u64,
    pub(crate) nodes: u64,
}

impl Episode<'_> {
    fn push(&mut self, after: u64, fault: Fault) {
        let at = Duration::from_secs(self.at + after).min(QUIET);
        self.plan.faults.push((When::At(at), fault));
    }

    /// Somewhere between the first act of a failover and the last, or right after one of the few that matter most.
    fn in_the_middle(&mut self, fault: Fault) {
        let when = if self.dice.below(2) == 0 {
            When::AfterAct(1 + self.dice.below(40))
        } else {
            When::AfterThe(pick(self.dice, &Act::ALL), 1 + self.dice.below(3))
        };
        self.plan.faults.push((when, fault));
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

    fn another_fails(&mut self) {
        let other = format!("n{}", 1 + self.dice.below(self.nodes));
        self.push(0, Fault::PowerOff(other));
    }

    pub(crate) fn add(&mut self, trouble: Trouble) {
        match trouble {
            Trouble::PowerFailure
            | Trouble::TwoFail
            | Trouble::FeedFailure
            | Trouble::Partition
            | Trouble::StorageLost
            | Trouble::KubeletHangs
            | Trouble::KubeletLags
            | Trouble::SwitchedOn
            | Trouble::Sleeps
            | Trouble::Rack => self.nature(trouble),
            Trouble::BadBmc | Trouble::LyingBmc => self.bmc(trouble),
            Trouble::BmcTurns => self.bmc_turns(),
            Trouble::NodeDeleted
            | Trouble::NodeMadeAnew
            | Trouble::TaintTaken
            | Trouble::FenceDeleted
            | Trouble::AdminSpeaks
            | Trouble::AdminAsks
            | Trouble::NodeMarked
            | Trouble::RequestsDeleted
            | Trouble::PodsDeleted
            | Trouble::PodsHeld
            | Trouble::PodProtected
            | Trouble::PolicyAgain
            | Trouble::PolicyEdited => self.people(trouble),
            Trouble::OperatorCrashes
            | Trouble::CrashThenHeals
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
            Trouble::TwoFail if self.dice.below(3) == 0 => {
                // Two that both need a slot, of which there is one; and who took it is seen late.
                self.plan.budget = 1;
                let time = self.secs(10, 30);
                self.push(0, Fault::Reorder(Watched::Policies, time));
                self.push(0, Fault::PowerOffUnder("db-0"));
                self.push(0, Fault::PowerOffUnder("queue-0"));
            }
            Trouble::TwoFail => {
                self.push(0, Fault::PowerOff(node));
                self.another_fails();
                if self.dice.below(2) == 0 {
                    // Both wait for a person, and come at the same instant when he is back.
                    self.push(0, Fault::EditPolicy("Paused"));
                    let back = 40 + self.dice.below(60);
                    self.push(back, Fault::EditPolicy("Enforce"));
                }
            }
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
                let with_bmcs = self.dice.below(2) == 0;
                for number in 0..count {
                    let node = format!("n{}", 1 + (first + number) % self.nodes);
                    let back = 60 + self.dice.below(120);
                    if with_bmcs {
                        self.push(0, Fault::CutFeed(node.clone()));
                        self.push(back, Fault::RestoreFeed(node));
                    } else {
                        self.push(0, Fault::PowerOff(node.clone()));
                        self.push(back, Fault::OutsideOn(node));
                    }
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

    /// A BMC that takes the off, does nothing, and is not heard of again for a while; the machine runs on behind a partition.
    fn bmc_turns(&mut self) {
        let node = self.node.clone();
        let healed = 100 + self.dice.below(150);
        for link in [Link::Api, Link::Peers] {
            self.push(0, Fault::Cut(node.clone(), link));
            self.push(healed, Fault::Heal(node.clone(), link));
        }
        self.push(0, Fault::Bmc(node.clone(), Behaviour::AcceptsOnly));
        let turned = if self.dice.below(2) == 0 { Behaviour::Silent } else { Behaviour::Unreachable };
        self.plan.faults.push((When::AfterThe(Act::Off, 1 + self.dice.below(2)), Fault::Bmc(node.clone(), turned)));
        let honest = 60 + self.dice.below(150);
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
                if self.dice.below(2) == 0 {
                    // Whatever was asked for the old Node is still held when the new one comes.
                    self.push(0, Fault::EditPolicy("Paused"));
                    self.push(150, Fault::EditPolicy("Enforce"));
                }
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
            Trouble::PodProtected => {
                let time = self.secs(20, 120);
                self.push(0, Fault::ProtectPod(node, time));
            }
            Trouble::PolicyAgain => {
                if self.dice.below(2) == 0 {
                    self.another_fails();
                }
                self.some_time(5, 30, Fault::PolicyAgain);
            }
            Trouble::PolicyEdited => {
                let edits = ["Paused", "DryRun", "Budget", "Grace", "Approval", "Spacing", "Rate"];
                let edit = pick(self.dice, &edits);
                if matches!(edit, "Spacing" | "Rate") {
                    // A pace is felt by the second.
                    self.another_fails();
                }
                self.some_time(0, 40, Fault::EditPolicy(edit));
                let after = 60 + self.dice.below(100);
                self.push(after, Fault::EditPolicy("Enforce"));
            }
            Trouble::NodeMarked => {
                let mark = pick(self.dice, &Marked::ALL);
                self.push(0, Fault::Mark(node.clone(), mark));
                let after = 60 + self.dice.below(100);
                self.push(after, Fault::Unmark(node));
            }
            _ => {
                let what = pick(self.dice, &Asked::ALL);
                self.push(0, Fault::Ask(node.clone(), what));
                // One that was switched off for people fails as well, now and then, while it is away.
                if what == Asked::PowerOff && self.dice.below(2) == 0 {
                    self.push(120, Fault::Ask(node, Asked::PowerStep));
                }
            }
        }
    }

    fn ourselves(&mut self, trouble: Trouble) {
        if !matches!(trouble, Trouble::ClockJumps | Trouble::CrashThenHeals) {
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
            Trouble::CrashThenHeals => {
                // Between the intent and the off; the node is well again before anybody knows whether the off was sent.
                let (node, which) = (self.node.clone(), self.which());
                let healed = 22 + self.dice.below(20);
                for link in [Link::Api, Link::Peers] {
                    self.push(0, Fault::Cut(node.clone(), link));
                    self.push(healed, Fault::Heal(node.clone(), link));
                }
                self.plan.faults.push((When::AfterThe(Act::Record, 3), Fault::CrashOperator(which)));
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
                use Watched::{Fences, Leases, Nodes, Policies, Requests};
                let kind = pick(self.dice, &[Nodes, Leases, Fences, Policies, Requests]);
                let time = self.secs(1, 15);
                if kind == Policies {
                    // Who else has a slot is what an old policy does not show.
                    self.another_fails();
                    self.another_fails();
                }
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
