//! The oracle can see: each bug that somebody planted is found by its seed on record, or else by another of the first 2,000.
//!
//! Every change to the operator or to the cluster makes other worlds of the same seeds, so a record goes stale without anybody's
//! fault. Then the bug is hunted anew, which takes longer, and what is found is told, to be written down here.
//! `cargo run --release -p palisade-sim --features planted --example hunt` hunts all of them.
#![allow(missing_docs, clippy::panic, reason = "a test may fail loudly")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use palisade_sim::{Bug, simulate, simulate_planted};

/// A seed that finds the bug, and the promise that it breaks.
const RECORDED: &[(Bug, u64, &str)] = &[
    (Bug::ExitCodeIsProof, 10, "I6"),
    (Bug::UnknownIsOff, 78, "I6"),
    (Bug::HibernatedIsOff, 104, "I6"),
    (Bug::BelievesTheDevice, 10, "I6"),
    (Bug::BelievesTheDevice, 10, "I1"),
    (Bug::GivesUpAndReleases, 246, "I1"),
    (Bug::ReadBackBeforeMark, 1, "I2"),
    (Bug::NoMark, 1, "I2"),
    (Bug::MarkWithoutGrace, 1, "I2"),
    (Bug::HalfAGroup, 41, "I2"),
    (Bug::KeepsProofs, 69, "I8"),
    (Bug::LetsInUnchecked, 325, "I9"),
    (Bug::EditsWhileAlive, 1, "I5"),
    (Bug::OutOfServiceUnproven, 22, "I2"),
    (Bug::OnWhileOutOfService, 28, "I2"),
    (Bug::GivesUpAndReleases, 34, "I2"),
    (Bug::GivesUp, 421, "I8"),
    (Bug::FencesTheRecovered, 104, "I3"),
    (Bug::ForgetsTheMachine, 146, "I8"),
    (Bug::NoStormBrake, 60, "I3"),
    (Bug::CountsBlindTime, 154, "I3"),
    (Bug::LedgerWithoutSwap, 151, "I3"),
    (Bug::LiveEntryIsGarbage, 147, "I3"),
    (Bug::LeaksAnEntry, 1, "I8"),
    (Bug::LedgerBuiltEmpty, 532, "I3"),
    (Bug::NoUidPrecondition, 1, "I4"),
    (Bug::DeletesTheSuccessor, 275, "I2"),
    (Bug::ActsBeforeTheRecord, 1, "I5"),
    (Bug::TellsASecret, 1, "I7"),
    (Bug::KeepsTheTaint, 1, "I8"),
    (Bug::TakesEveryTaint, 12, "I9"),
    (Bug::NeverCloses, 1, "I8"),
    (Bug::HoldsForEver, 1, "I8"),
    (Bug::AdoptsAnOldJob, 18, "I8"),
];

/// What 2,000 seeds do not find. The schema of the FencePolicy refuses a ledger with more entries than the budget has slots. And a Job that
/// is forgotten has to act late to be noticed: a slow agent on a node that is cut off in the very middle of it. Golden cases
/// (`automaton/jobs.golden`) and the story `executor_dies_in_the_middle` see that one.
const NOT_FOUND: &[Bug] = &[Bug::BudgetFromCache, Bug::ForgetsItsJobs];

/// Found by almost any seed in which a node is fenced.
const EASY: &[Bug] = &[
    Bug::ReadBackBeforeMark,
    Bug::NoMark,
    Bug::MarkWithoutGrace,
    Bug::LeaksAnEntry,
    Bug::NoUidPrecondition,
    Bug::ActsBeforeTheRecord,
    Bug::TellsASecret,
    Bug::KeepsTheTaint,
    Bug::NeverCloses,
    Bug::HoldsForEver,
];
/// Every planted bug is found within so many seeds.
const WITHIN: u64 = 2_000;
/// Seeds that nobody chose.
const FRESH: std::ops::Range<u64> = 50_000..50_200;

#[test]
fn there_are_enough_of_them() {
    let all: BTreeSet<Bug> = RECORDED.iter().map(|(bug, ..)| *bug).collect();
    assert!(all.len() >= 24, "{} bugs have a seed on record", all.len());
    let left: Vec<Bug> = Bug::ALL.into_iter().filter(|bug| !all.contains(bug)).collect();
    assert_eq!(left, NOT_FOUND.to_vec(), "what no seed finds is said");
}

#[test]
fn every_promise_is_seen_to_break() {
    let broken: BTreeSet<&str> = RECORDED.iter().map(|(.., promise)| *promise).collect();
    assert_eq!(broken, BTreeSet::from(["I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9"]));
}

#[test]
fn every_bug_on_record_is_found() {
    let runs: Vec<(Bug, u64)> = RECORDED.iter().map(|(bug, seed, _)| (*bug, *seed)).collect();
    let broken = on_all_cores(&runs);
    let mut missed = Vec::new();
    for ((bug, seed, promise), broken) in RECORDED.iter().zip(broken) {
        println!("{bug:?} by seed {seed}: {broken:?}");
        if broken.iter().any(|what| what.starts_with(promise)) {
            continue;
        }
        match hunted(*bug, promise) {
            Some(now) => println!("    the record is stale, write down: (Bug::{bug:?}, {now}, \"{promise}\"),"),
            None => missed.push(format!("{bug:?} ({promise}), by none of the first {WITHIN} seeds")),
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

/// A seed that finds the bug by breaking this promise, if one of the first does.
fn hunted(bug: Bug, promise: &str) -> Option<u64> {
    // A few at a time: most are found soon.
    (1..=WITHIN).collect::<Vec<u64>>().chunks(8).find_map(|seeds| {
        let runs: Vec<(Bug, u64)> = seeds.iter().map(|seed| (bug, *seed)).collect();
        let broken = on_all_cores(&runs);
        let found = seeds.iter().zip(broken).find(|(_, broken)| broken.iter().any(|what| what.starts_with(promise)));
        found.map(|(seed, _)| *seed)
    })
}

#[test]
fn seeds_that_nobody_chose_find_the_easy_ones() {
    let runs: Vec<(Bug, u64)> = EASY.iter().copied().cycle().zip(FRESH).collect();
    let broken = on_all_cores(&runs);
    let found: BTreeSet<Bug> =
        runs.iter().zip(broken).filter(|(_, broken)| !broken.is_empty()).map(|((bug, _), _)| *bug).collect();
    let missed: Vec<&Bug> = EASY.iter().filter(|bug| !found.contains(bug)).collect();
    assert!(missed.is_empty(), "no fresh seed found {missed:?}");
}

#[test]
fn the_same_seeds_break_nothing_without_the_bug() {
    let seeds: BTreeSet<u64> = RECORDED.iter().map(|(_, seed, _)| *seed).collect();
    for seed in seeds {
        assert_eq!(simulate(seed).broken, Vec::<String>::new(), "seed {seed}");
    }
}

/// What each run breaks, in the order of `runs`.
fn on_all_cores(runs: &[(Bug, u64)]) -> Vec<Vec<String>> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, Vec<String>)> = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            while let Some((index, (bug, seed))) = claim(&next, runs) {
                done.push((index, simulate_planted(seed, bug).broken));
            }
            done
        };
        let workers: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap_or_default()).collect()
    });
    done.sort_by_key(|(index, _)| *index);
    assert_eq!(done.len(), runs.len(), "a worker has ended early");
    done.into_iter().map(|(_, broken)| broken).collect()
}

fn claim(next: &AtomicUsize, runs: &[(Bug, u64)]) -> Option<(usize, (Bug, u64))> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    runs.get(index).map(|run| (index, *run))
}
