fn main() {
    let seed = std::env::args().nth(1).and_then(|t| t.parse().ok()).unwrap_or(1);
    let start = std::time::Instant::now();
    let report = palisade_sim::simulate(seed);
    println!("{:?} {:?}", start.elapsed(), report.broken);
}
