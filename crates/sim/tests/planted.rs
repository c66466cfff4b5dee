//! The oracle can see: each bug that somebody planted, and that has a seed on record, is found by that seed.
//!
//! `cargo run --release -p palisade-sim --features planted --example hunt` finds the seeds.
#![allow(missing_docs, clippy::panic, reason = "a test may fail loudly")]

use palisade_sim::{Bug, simulate, simulate_planted};

/// A seed that finds the bug, and the promise that it breaks.
const RECORDED: &[(Bug, u64, &str)] = &[
    (Bug::ExitCodeIsProof, 4, "I6"),
    (Bug::UnknownIsOff, 27, "I6"),
    (Bug::HibernatedIsOff, 55, "I6"),
    (Bug::BelievesTheDevice, 17, "I6"),
    (Bug::ReadBackBeforeMark, 1, "I2"),
    (Bug::NoMark, 1, "I2"),
    (Bug::MarkWithoutGrace, 1, "I2"),
    (Bug::HalfAGroup, 57, "I2"),
    (Bug::LetsInUnchecked, 53, "I9"),
    (Bug::OutOfServiceUnproven, 22, "I2"),
    (Bug::OnWhileOutOfService, 35, "I2"),
    (Bug::GivesUpAndReleases, 18, "I2"),
    (Bug::GivesUp, 18, "I8"),
    (Bug::FencesTheRecovered, 27, "I8"),
    (Bug::ForgetsTheMachine, 1, "I8"),
    (Bug::LiveEntryIsGarbage, 17, "I3"),
    (Bug::NoUidPrecondition, 1, "I4"),
    (Bug::ActsBeforeTheRecord, 1, "I5"),
    (Bug::TakesEveryTaint, 4, "I9"),
];

#[test]
fn every_bug_on_record_is_found_by_its_seed() {
    let mut missed = Vec::new();
    for (bug, seed, promise) in RECORDED {
        let broken = simulate_planted(*seed, *bug).broken;
        println!("{bug:?} by seed {seed}: {broken:?}");
        if !broken.iter().any(|what| what.starts_with(promise)) {
            missed.push(format!("{bug:?} by seed {seed} ({promise})"));
        }
    }
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

#[test]
fn the_same_seeds_break_nothing_without_the_bug() {
    let seeds: std::collections::BTreeSet<u64> = RECORDED.iter().map(|(_, seed, _)| *seed).collect();
    for seed in seeds {
        assert_eq!(simulate(seed).broken, Vec::<String>::new(), "seed {seed}");
    }
}
