//! Seeds: how many simulated runs of half an hour one core gets through in a minute.

use crate::clock::now;
use crate::table::Figure;

/// Runs the first seeds one after the other.
pub(crate) fn measure(seeds: u64) -> Vec<Figure> {
    let begun = now();
    let broken = (1..=seeds).filter(|seed| !palisade_sim::simulate(*seed).broken.is_empty()).count();
    let minutes = begun.elapsed().as_secs_f64() / 60.0;
    if broken > 0 {
        eprintln!("{broken} of {seeds} seeds break a promise: `cargo run -p palisade-sim --example seeds` tells which");
    }
    let ran = f64::from(u32::try_from(seeds).unwrap_or(u32::MAX));
    vec![Figure::new(format!("seeds: runs of 30 virtual minutes, one core ({seeds})"), ran / minutes, "/min")]
}
