//! Runs seeds and says how fast: `cargo run --release -p palisade-sim --example seeds -- FROM TO`.
#![allow(clippy::disallowed_methods, reason = "how fast a simulation is can only be told by a real clock")]

fn main() {
    let number =
        |at: usize, otherwise: u64| std::env::args().nth(at).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (from, to) = (number(1, 1), number(2, 20));
    let start = std::time::Instant::now();
    let mut broken = 0_u64;
    for seed in from..=to {
        let report = palisade_sim::simulate(seed);
        if !report.broken.is_empty() {
            broken += 1;
            println!("seed {seed} breaks:\n  {}\n{}\n", report.broken.join("\n  "), report.timeline.join("\n"));
        }
    }
    let (seeds, took) = (to.saturating_sub(from) + 1, start.elapsed());
    println!(
        "{seeds} seeds, {broken} broken, {took:.1?}: {:.0} seeds a minute",
        f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)) / took.as_secs_f64() * 60.0
    );
}
