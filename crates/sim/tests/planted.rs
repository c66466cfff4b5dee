//! The oracle can see: each bug that somebody planted is found, by the seed on record.
//!
//! `cargo run --release -p palisade-sim --features planted --example hunt` finds the seeds anew.
#![allow(missing_docs, clippy::panic, reason = "a test may fail loudly")]

use palisade_sim::{Bug, simulate, simulate_planted};

/// A seed that finds each bug, and the promise that it breaks.
const RECORDED: &[(Bug, u64, &str)] = &[];

#[test]
fn every_planted_bug_is_found_by_its_seed() {
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
