//! Looks for the first seed that finds each planted bug, by breaking any promise or this one:
//! `cargo run --release -p palisade-sim --features planted --example hunt -- [SEEDS] [BUG] [PROMISE]`.

use std::sync::atomic::{AtomicU64, Ordering};

use palisade_sim::{Bug, simulate_planted};

fn main() {
    let seeds: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2_000);
    let only = std::env::args().nth(2);
    let promise = std::env::args().nth(3).unwrap_or_default();
    let bugs: Vec<Bug> =
        Bug::ALL.into_iter().filter(|bug| only.as_ref().is_none_or(|name| format!("{bug:?}") == *name)).collect();
    for bug in bugs {
        match hunt(bug, seeds, &promise) {
            Some((seed, broken)) => println!("    (Bug::{bug:?}, {seed}), // {broken}"),
            None => println!("    // {bug:?} is not found in {seeds} seeds"),
        }
    }
}

/// The lowest seed that finds it, and what it breaks.
fn hunt(bug: Bug, seeds: u64, promise: &str) -> Option<(u64, String)> {
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
                    if breaks(seed, bug, promise).is_some() {
                        found.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let seed = found.into_inner();
    if seed == u64::MAX {
        return None;
    }
    breaks(seed, bug, promise).map(|what| (seed, what))
}

fn breaks(seed: u64, bug: Bug, promise: &str) -> Option<String> {
    simulate_planted(seed, bug).broken.into_iter().find(|what| what.starts_with(promise))
}
