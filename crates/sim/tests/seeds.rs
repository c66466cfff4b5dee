//! Seeds in virtual time: nothing that goes wrong may break a promise. CI runs many more (`cargo xtask test --only seeds`).
#![allow(missing_docs, clippy::panic, reason = "a test may fail loudly")]

use palisade_sim::trace::Did;
use palisade_sim::{simulate, simulate_until};

#[test]
fn the_same_seed_is_the_same_run() {
    for seed in [1, 7] {
        let (one, other) = (simulate(seed), simulate(seed));
        assert_eq!(one.lines, other.lines, "seed {seed}");
        assert_eq!(one.hash, other.hash, "seed {seed}");
    }
    assert_ne!(simulate(1).hash, simulate(2).hash);
}

#[test]
fn a_handful_of_seeds_breaks_nothing() {
    let mut broken = 0;
    for seed in 1..=6 {
        let report = simulate(seed);
        if !report.broken.is_empty() {
            broken += 1;
            println!("seed {seed}, from line {:?}:\n  {}", report.broken_at, report.broken.join("\n  "));
        }
    }
    assert_eq!(broken, 0, "seeds broke; `palisade sim --seed N` tells more");
}

#[test]
fn a_run_up_to_a_line_is_the_beginning_of_the_whole() {
    let whole = simulate(3);
    let last = whole.lines.len() / 2;
    let part = simulate_until(3, u64::try_from(last).ok());
    assert_eq!(part.lines, whole.lines[..last]);
    assert_ne!(part.moment, whole.moment);
    assert!(part.moment.truth.iter().any(|line| line.starts_with("n1: ")), "{}", part.moment);
    assert!(part.moment.objects.iter().any(|line| line.starts_with("Node n1: ")), "{}", part.moment);
}

#[test]
fn the_trace_has_what_each_actor_saw_decided_and_did() {
    let report = simulate(3);
    for did in [Did::Fault, Did::Happened, Did::Wrote, Did::Saw, Did::Decided] {
        assert!(report.lines.iter().any(|line| line.did == did), "no line of the kind {}", did.word());
    }
    let numbers: Vec<u64> = report.lines.iter().map(|line| line.number).collect();
    assert_eq!(numbers, (1..=u64::try_from(numbers.len()).unwrap_or_default()).collect::<Vec<_>>());
    assert!(report.lines.iter().any(|line| line.actor.starts_with("palisade-") && line.did == Did::Decided));
}
