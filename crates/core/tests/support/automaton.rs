//! Golden cases of the automaton: a fence as it is recorded, what is seen of its node, and what it does next.
//!
//! The language of the facts is that of `world`. Every reason to move, fail or wait has a case here or, where only a
//! release can give it, in `release`.

use std::collections::BTreeSet;

use palisade_core::automaton::TRANSITIONS;
use palisade_core::effect::Effect;
use palisade_core::reason::automaton::{FailReason, MoveReason, WaitReason};

use crate::golden::Room;
use crate::{isolate, prove, release, world};

const PHASES: [&str; 9] = [
    "New",
    "Isolating",
    "Isolated",
    "PoweringOff",
    "PoweringOn",
    "Returning",
    "Recovering",
    "Final/Recovered",
    "Failed",
];

const ENDS: [&str; 6] =
    ["Final/Recovered", "Final/NeverNeeded", "Final/Refused", "Final/HeldOff", "Final/NodeGone", "Final/Stopped"];

const WORDS_OF_003: [&str; 8] =
    ["Isolation", "PowerManagement", "Recovery", "New", "Running", "Done", "Final", "Error"];

/// A record is printed as the move that it makes.
const RECORD: &str = "->";

/// Printed in the words of the step that failed, or only ever read back from the record of another version.
const NOT_A_MOVE: [&str; 2] = ["Failed", "Recorded"];

pub fn rooms() -> Vec<Room> {
    let mut must_show: BTreeSet<String> =
        PHASES.iter().chain(&ENDS).chain(&WORDS_OF_003).map(|&w| w.to_owned()).collect();
    let names = [&Effect::NAMES[..], MoveReason::NAMES, FailReason::NAMES, WaitReason::NAMES].concat();
    must_show.extend(names.iter().filter(|name| !NOT_A_MOVE.contains(name)).map(|name| (*name).to_owned()));
    must_show.remove("Record");
    must_show.insert(RECORD.to_owned());
    must_show.extend(TRANSITIONS.iter().map(|(from, to)| format!("{from} -> {to}")));
    // What a room of its own has to show need not be shown here as well.
    for room in [isolate::rooms(), release::rooms(), prove::rooms()].iter().flatten() {
        must_show.retain(|word| !room.must_show.contains(word));
    }
    vec![Room { files: "automaton/*", run: world::run, must_show: must_show.into_iter().collect() }]
}
