//! Seeds in virtual time: nothing that goes wrong may break a promise.
#![allow(missing_docs, clippy::panic, reason = "a test may fail loudly")]

use palisade_sim::simulate;

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [1, 7] {
        assert_eq!(simulate(seed).hash, simulate(seed).hash, "seed {seed}");
    }
}

#[test]
fn a_handful_of_seeds_breaks_nothing() {
    let seeds = std::env::var("PALISADE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let mut broken = 0;
    for seed in 1..=seeds {
        let report = simulate(seed);
        if !report.broken.is_empty() {
            broken += 1;
            println!("seed {seed}:\n{}\n  {}", report.timeline.join("\n"), report.broken.join("\n  "));
        }
    }
    assert_eq!(broken, 0, "of {seeds} seeds");
}
