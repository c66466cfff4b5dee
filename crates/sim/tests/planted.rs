//! The oracle can see: each bug that somebody planted, and that has a seed on record, is found by that seed.
//!
//! `cargo run --release -p palisade-sim --features planted --example hunt` finds the seeds.
#![allow(missing_docs, clippy::panic, reason = "a test may fail loudly")]

use palisade_sim::{Bug, simulate, simulate_planted};

/// A seed that finds the bug, and the promise that it breaks.
const RECORDED: &[(Bug, u64, &str)] = &[(Bug::ExitCodeIsProof, 1, "I6"), (Bug::KeepsProofs, 32, "I8")];

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
    for (_, seed, _) in RECORDED {
        assert_eq!(simulate(*seed).broken, Vec::<String>::new(), "seed {seed}");
    }
}
