//! Plan: what goes wrong in a run, and when. A swarm: each seed gets a random few kinds of trouble, so that rare combinations
//! meet and no kind drowns the others.
//!
//! A fault strikes at a time, or right after something that the operators do (the n-th act, or the n-th of its kind): a window
//! that is a few milliseconds wide is hit as often as any other.

use std::collections::BTreeSet;
use std::time::Duration;

use palisade_cluster::dice::Dice;
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::Link;

use crate::acts::Act;
use crate::agents::{self, By};
use crate::faults::Fault;
use crate::trouble::{Episode, Trouble};

/// When a fault strikes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At this time.
    At(Duration),
    /// Right after the operators' act with this number.
    AfterAct(u64),
    /// Right after their act of this kind with this number.
    AfterThe(Act, u64),
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
    /// Requests that are served, and never answered.
    pub hangs: u64,
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
    /// By what machines are switched off.
    pub by: By,
}

/// From here on nothing goes wrong any more, and everything has to end well.
pub const QUIET: Duration = Duration::from_mins(15);

/// Before this nothing goes wrong: a new operator keeps quiet for a while, too.
const CALM: u64 = 90;

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
                hangs: dice.below(4),
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
        agents::deal(&mut plan, seed);
        plan.faults.sort_by_key(|(when, _)| match when {
            When::At(at) => *at,
            When::AfterAct(_) | When::AfterThe(..) => Duration::ZERO,
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

pub(crate) fn pick<T: Copy>(dice: &mut Dice, all: &[T]) -> T {
    let count = u64::try_from(all.len()).unwrap_or(1);
    all[usize::try_from(dice.below(count)).unwrap_or(0)]
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
