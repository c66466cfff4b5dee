//! Coverage: what CI's seeds have to reach, and what they cannot reach yet.
//!
//! Promise: what has to be reached is derived from `core`'s own lists, so that a new phase, gate, reason or effect is asked
//! for by itself. What cannot be reached yet is in `NOT_YET` with its reason; once it is reached, that entry is wrong and
//! fails too.

use std::collections::BTreeMap;
use std::fmt;

use palisade_core::automaton::TRANSITIONS;
use palisade_core::effect::Effect;
use palisade_core::fence::Phase;
use palisade_core::reason::vet::{HoldReason, RejectReason};
use palisade_core::request::{self, RequestEffect};
use palisade_core::vet::GateName;

use crate::faults::Fault;

/// What can become of a request on the wire.
const WIRE: &[&str] = &["unreachable", "answered", "reply-lost", "hangs"];

/// What the seeds cannot reach yet, and why. A key may end in `*`.
const NOT_YET: &[(&str, &str)] = &[
    ("phase/PoweringOff", POWER_FIRST),
    ("transition/Isolated -> PoweringOff", POWER_FIRST),
    ("transition/PoweringOff -> *", POWER_FIRST),
    ("transition/Failed -> Isolated", "nobody vouches for a node"),
    ("transition/Recovering -> Failed", "nothing but power and taints is lifted, and no recovery step is configured"),
    ("transition/New -> Failed", "every kubelet reports its boot"),
    ("request/Failed", NOT_FOUND),
    ("request-effect/ReadFence", NOT_FOUND),
    ("hold/ApiStale", NOT_FOUND),
    ("hold/LedgerForeign", "a policy that is made anew has no ledger at all"),
    ("request-effect/Delete", "requests are kept as history for longer than a run"),
    ("gate/storage closed", NO_PROVIDER),
    ("gate/storage-outage closed", NO_PROVIDER),
    ("gate/storage-in-use closed", NO_PROVIDER),
    ("gate/kdump closed", NO_KDUMP),
    ("hold/NodeBeingDeleted", "a Node has no finalizers here: it is there or gone"),
    ("hold/SelfCheckFailed", "the operator has no check of its own connectivity yet"),
    ("hold/StandbySeesAlive", "the standby does not publish what it sees yet"),
    ("hold/QuorumStale", READ_WITH_THE_REST),
    ("hold/QuorumUnknown", "the members are those with the role, and these are known"),
    ("hold/ControlPlaneBusy", "no two members are marked at once"),
    ("hold/Storage*", NO_PROVIDER),
    ("hold/Redundancy*", NO_PROVIDER),
    ("hold/DisruptionBudget*", NO_PROVIDER),
    ("hold/Kdump*", NO_KDUMP),
    ("effect/Unpublish", "there is no attacher of ours yet"),
    ("effect/DeleteNode", "no config asks for the Node to be deleted"),
];

const NOT_FOUND: &str = "no fault leads there yet";
const POWER_FIRST: &str = "the config isolates by power, so no power step follows";
const READ_WITH_THE_REST: &str = "who is a member is read with the nodes, and is never older";
const NO_PROVIDER: &str = "there is no storage provider yet";
const NO_KDUMP: &str = "no machine writes kernel dumps yet";

/// How often each thing was reached, over many runs.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    reached: BTreeMap<String, (u64, u64)>,
    seeds: u64,
}

/// Something that is not as the lists have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// It was never reached.
    Never(String),
    /// It was reached, and `NOT_YET` says that it cannot be.
    Stale(String, u64),
    /// It was reached, and no list has it.
    Unknown(String, u64),
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Never(key) => write!(f, "{key} was never reached"),
            Self::Stale(key, times) => write!(f, "{key} was reached {times} times: take it out of NOT_YET"),
            Self::Unknown(key, times) => write!(f, "{key} was reached {times} times, and no list knows it"),
        }
    }
}

/// Everything that a run could come to.
pub fn everything() -> Vec<String> {
    let mut keys: Vec<String> = Vec::new();
    let mut add = |area: &str, names: &mut dyn Iterator<Item = String>| {
        keys.extend(names.map(|name| format!("{area}/{name}")));
    };
    add("fault", &mut Fault::KINDS.iter().map(ToString::to_string));
    add("wire", &mut WIRE.iter().map(ToString::to_string));
    add("phase", &mut Phase::NAMES.iter().map(ToString::to_string));
    add("transition", &mut TRANSITIONS.iter().map(|(from, to)| format!("{from} -> {to}")));
    add("request", &mut request::Phase::ALL.iter().map(|phase| phase.name().to_owned()));
    add("gate", &mut GateName::ALL.iter().map(|gate| format!("{gate} open")));
    // Where somebody comes from does not change by waiting: that gate refuses, and so can the one that knows the node.
    let closes = |gate: &&GateName| **gate != GateName::Origin;
    add("gate", &mut GateName::ALL.iter().filter(closes).map(|gate| format!("{gate} closed")));
    add("gate", &mut [GateName::Origin, GateName::Exclusions].iter().map(|gate| format!("{gate} refused")));
    add("hold", &mut HoldReason::NAMES.iter().chain(RejectReason::NAMES).map(ToString::to_string));
    add("effect", &mut Effect::NAMES.iter().map(ToString::to_string));
    add("request-effect", &mut RequestEffect::NAMES.iter().map(ToString::to_string));
    keys
}

/// Why something cannot be reached yet.
fn not_yet(key: &str) -> Option<&'static str> {
    let covers = |entry: &str| entry.strip_suffix('*').map_or(entry == key, |start| key.starts_with(start));
    NOT_YET.iter().find(|(entry, _)| covers(entry)).map(|(_, why)| *why)
}

impl Coverage {
    /// Takes one run in.
    pub fn add(&mut self, reached: &BTreeMap<String, u64>) {
        self.seeds += 1;
        for (key, times) in reached {
            let (all, seeds) = self.reached.entry(key.clone()).or_default();
            *all += times;
            *seeds += 1;
        }
    }

    /// What is not as the lists have it.
    pub fn gaps(&self) -> Vec<Gap> {
        let everything = everything();
        let mut gaps = Vec::new();
        for key in &everything {
            match (self.times(key), not_yet(key)) {
                (0, None) => gaps.push(Gap::Never(key.clone())),
                (0, Some(_)) | (1.., None) => {}
                (times, Some(_)) => gaps.push(Gap::Stale(key.clone(), times)),
            }
        }
        let unknown = self.reached.iter().filter(|(key, _)| !everything.contains(key));
        gaps.extend(unknown.map(|(key, (times, _))| Gap::Unknown(key.clone(), *times)));
        gaps
    }

    fn times(&self, key: &str) -> u64 {
        self.reached.get(key).map_or(0, |(times, _)| *times)
    }
}

impl fmt::Display for Coverage {
    /// A table: what, how often, in how many seeds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<44} {:>10} {:>8}", format!("reached in {} seeds", self.seeds), "times", "in seeds")?;
        for key in everything() {
            let (times, seeds) = self.reached.get(&key).copied().unwrap_or_default();
            let note = if times > 0 { "" } else { not_yet(&key).unwrap_or("NEVER") };
            writeln!(f, "{}", format!("{key:<44} {times:>10} {seeds:>8}  {note}").trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_fault_that_has_a_name_is_asked_for() {
        // The names stand in one place, as arms of `Fault::kind`; a new one has to be asked for here.
        let source = include_str!("faults.rs");
        let body = source.split("pub fn kind(&self)").nth(1).and_then(|rest| rest.split("\n    }").next()).unwrap();
        let named: BTreeSet<&str> = body.split('"').skip(1).step_by(2).collect();
        assert!(named.len() > 10, "the arms were found: {named:?}");
        assert_eq!(named, Fault::KINDS.iter().copied().collect());
    }

    #[test]
    fn what_is_left_out_exists_and_says_why() {
        let everything = everything();
        for (entry, why) in NOT_YET {
            let known = |key: &String| entry.strip_suffix('*').map_or(entry == key, |start| key.starts_with(start));
            assert!(everything.iter().any(known), "{entry} is nothing that could be reached");
            assert!(why.len() > 10, "{entry} says why");
        }
    }

    #[test]
    fn a_gap_a_stale_entry_and_an_unknown_word_are_told() {
        let mut coverage = Coverage::default();
        let all: BTreeMap<String, u64> =
            everything().into_iter().filter(|key| not_yet(key).is_none()).map(|key| (key, 1)).collect();
        coverage.add(&all);
        assert_eq!(coverage.gaps(), []);

        let mut lacking = Coverage::default();
        lacking.add(
            &all.iter().filter(|(key, _)| *key != "effect/MarkPod").map(|(key, times)| (key.clone(), *times)).collect(),
        );
        assert_eq!(lacking.gaps(), [Gap::Never("effect/MarkPod".to_owned())]);

        coverage.add(&BTreeMap::from([("transition/New -> Recovering".to_owned(), 2)]));
        assert_eq!(coverage.gaps(), [Gap::Unknown("transition/New -> Recovering".to_owned(), 2)]);

        if let Some(stale) = everything().into_iter().find(|key| not_yet(key).is_some()) {
            coverage.add(&BTreeMap::from([(stale.clone(), 3)]));
            assert!(coverage.gaps().contains(&Gap::Stale(stale, 3)));
        }
    }
}
