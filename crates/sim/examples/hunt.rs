//! Looks for the first seed that finds each planted bug:
//! `cargo run --release -p palisade-sim --features planted --example hunt -- [SEEDS] [BUG]`.

use std::sync::atomic::{AtomicU64, Ordering};

use palisade_sim::{Bug, simulate_planted};

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let only = std::env::args().nth(2);
    let bugs: Vec<Bug> =
        Bug::ALL.into_iter().filter(|bug| only.as_ref().is_none_or(|name| format!("{bug:?}") == *name)).collect();
    for bug in bugs {
        match hunt(bug, seeds) {
            Some((seed, broken)) => println!("    (Bug::{bug:?}, {seed}), // {broken}"),
            None => println!("    // {bug:?} is not found in {seeds} seeds"),
        }
    }
}

/// The lowest seed that finds it, and what it breaks first.
fn hunt(bug: Bug, seeds: u64) -> Option<(u64, String)> {
    let (next, found) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed > seeds || seed > found.load(Ordering::Relaxed) {
                        break;
                    }
                    if !simulate_planted(seed, bug).broken.is_empty() {
                        found.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seed = found.into_inner();
    (seed != u64::MAX).then(|| (seed, simulate_planted(seed, bug).broken.first().cloned().unwrap_or_default()))
}
