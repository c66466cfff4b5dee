//! Sim / many: seeds on all cores. Only what breaks is told: the end of its timeline, and the command that replays it.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use palisade_sim::{Coverage, Report, simulate};

use super::{Options, Seeds, one, replay};

/// How often a person is told how far it has come: so many times over all seeds.
const STEPS: u64 = 40;
/// Of so many broken seeds the timeline is told; the others have probably broken of the same.
const TOLD: usize = 3;
/// How many lines of it.
const LAST: usize = 40;

/// What is left of a run.
struct Ran {
    seed: u64,
    broken: Vec<String>,
    broken_at: Option<u64>,
    reached: BTreeMap<String, u64>,
}

/// Runs all seeds; says whether nothing was broken and, where that was asked for, everything was reached.
pub(super) fn run(seeds: Seeds, options: &Options, to: &mut impl Write) -> io::Result<bool> {
    let cores = thread::available_parallelism().map_or(1, NonZero::get);
    let jobs = options.jobs.map_or(cores, usize::from);
    let watch = Stopwatch::start();
    let (coverage, failed) = run_all(seeds, jobs);
    let took = watch.read();

    for (seed, (what, at)) in &failed {
        writeln!(to, "seed {seed} breaks {what} | {}", replay(*seed, *at))?;
    }
    for seed in failed.keys().take(TOLD) {
        timeline(&simulate(*seed), to)?;
    }
    let gaps = if options.coverage { coverage.gaps() } else { Vec::new() };
    if options.coverage {
        writeln!(to, "\n{coverage}")?;
        for gap in &gaps {
            writeln!(to, "COVERAGE {gap}")?;
        }
        writeln!(to)?;
    }
    let broken = u64::try_from(failed.len()).unwrap_or(u64::MAX);
    writeln!(to, "{}", summary(seeds.count(), broken, took, jobs))?;
    Ok(broken == 0 && gaps.is_empty())
}

/// What came before the first broken promise of a seed.
fn timeline(report: &Report, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "\nseed {}", report.seed)?;
    // The lines after it tell what came of it, which is another story.
    let broken = report.broken_at.and_then(|line| usize::try_from(line).ok()).unwrap_or(usize::MAX);
    let before: Vec<_> = report.lines.iter().take(broken).collect();
    one::lines(&before, LAST, to)?;
    one::broken(report, to)?;
    writeln!(to)
}

type Failed = BTreeMap<u64, (String, Option<u64>)>;

fn run_all(seeds: Seeds, jobs: usize) -> (Coverage, Failed) {
    let next = AtomicU64::new(seeds.from);
    let (tell, told) = mpsc::channel();
    let (mut coverage, mut failed, mut done) = (Coverage::default(), Failed::new(), 0);
    thread::scope(|scope| {
        for _ in 0..jobs {
            let (tell, next) = (tell.clone(), &next);
            scope.spawn(move || work(next, seeds.to, &tell));
        }
        drop(tell);
        for ran in told {
            done += 1;
            coverage.add(&ran.reached);
            if let Some(first) = ran.broken.first() {
                eprintln!("seed {} breaks {first}", ran.seed);
                failed.insert(ran.seed, (first.clone(), ran.broken_at));
            }
            if done % (seeds.count() / STEPS).max(25) == 0 {
                eprintln!("{done} of {} seeds, {} broken", seeds.count(), failed.len());
            }
        }
    });
    (coverage, failed)
}

fn work(next: &AtomicU64, last: u64, tell: &mpsc::Sender<Ran>) {
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        if seed > last {
            return;
        }
        let report = simulate(seed);
        let ran = Ran { seed, broken: report.broken, broken_at: report.broken_at, reached: report.reached };
        if tell.send(ran).is_err() {
            return;
        }
    }
}

/// The closing line; `cargo xtask test` counts by it.
fn summary(seeds: u64, broken: u64, took: Duration, jobs: usize) -> String {
    let minutes = (took.as_secs_f64() / 60.0).max(f64::MIN_POSITIVE);
    let whole = f64::from(u32::try_from(seeds).unwrap_or(u32::MAX)) / minutes;
    let each = whole / f64::from(u32::try_from(jobs).unwrap_or(u32::MAX));
    let passed = seeds - broken.min(seeds);
    format!(
        "{seeds} seeds: {passed} passed, {broken} failed; {:.0} s, {whole:.0} a minute, {each:.0} a minute and job",
        took.as_secs_f64()
    )
}

/// How long it really takes.
struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(
        clippy::disallowed_methods,
        reason = "how fast seeds run can only be told by a real clock; nothing is decided by it"
    )]
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn read(&self) -> Duration {
        self.0.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use palisade_sim::moment::Moment;
    use palisade_sim::trace::{Did, Line};

    use super::*;

    #[test]
    fn the_summary_can_be_counted_by() {
        let line = summary(2000, 3, Duration::from_mins(2), 2);
        assert_eq!(line, "2000 seeds: 1997 passed, 3 failed; 120 s, 1000 a minute, 500 a minute and job");
    }

    #[test]
    fn a_broken_seed_is_told_up_to_where_it_broke() {
        let line = |number: u64| Line {
            number,
            at: Duration::from_secs(number),
            actor: "palisade-0".to_owned(),
            did: Did::Decided,
            node: "n1".to_owned(),
            text: format!("step {number} of it"),
        };
        let report = Report {
            seed: 7,
            hash: 0,
            broken: vec!["I1: two writers".to_owned()],
            unexplained: Vec::new(),
            broken_at: Some(50),
            lines: (1..=60).map(line).collect(),
            reached: BTreeMap::new(),
            moment: Moment::default(),
        };
        let mut out = Vec::new();
        timeline(&report, &mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        for (word, there) in [("step 10 ", false), ("step 11 ", true), ("step 50 ", true), ("step 51 ", false)] {
            assert_eq!(out.contains(word), there, "{word}in:\n{out}");
        }
        assert!(out.contains("(10 lines before these)") && out.contains("I1: two writers"), "{out}");
        assert!(out.contains("replay it: palisade sim --seed 7 --until 50"), "{out}");
    }
}
