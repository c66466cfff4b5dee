//! Sim / one: one seed, told from its beginning; or its last lines before an event, and how everything stood then.

use std::io::{self, Write};

use palisade_sim::trace::{Did, Line};
use palisade_sim::{Coverage, LENGTH, Report, simulate_until};

use super::page::fold;
use super::{Options, replay};

/// How many lines before the wanted one are told.
const LAST: usize = 60;
/// Where the text of a line begins.
const INDENT: usize = 45;

/// Runs a seed and tells it; says whether nothing was broken.
pub(super) fn run(seed: u64, options: &Options, to: &mut impl Write) -> io::Result<bool> {
    let report = simulate_until(seed, options.until);
    writeln!(to, "seed {seed}, {} minutes of virtual time\n", LENGTH.as_secs() / 60)?;
    let wanted: Vec<&Line> = report.lines.iter().filter(|line| wanted(line, options)).collect();
    lines(&wanted, if options.until.is_some() { LAST } else { usize::MAX }, to)?;
    if options.until.is_some() {
        writeln!(to, "\nright after event {}", report.lines.len())?;
        for line in report.moment.to_string().lines() {
            writeln!(to, "{}", fold(line, 6))?;
        }
    }
    if options.coverage {
        let mut coverage = Coverage::default();
        coverage.add(&report.reached);
        writeln!(to, "\n{coverage}")?;
    }
    close(&report, options, to)
}

/// The last lines of a timeline, at most so many.
pub(super) fn lines(wanted: &[&Line], last: usize, to: &mut impl Write) -> io::Result<()> {
    let skipped = wanted.len().saturating_sub(last);
    if skipped > 0 {
        writeln!(to, "({skipped} lines before these)")?;
    }
    writeln!(to, " event   seconds  actor            did      what")?;
    for line in &wanted[skipped..] {
        writeln!(to, "{}", fold(&line.to_string(), INDENT))?;
    }
    Ok(())
}

/// What was broken, and the command that replays it.
pub(super) fn broken(report: &Report, to: &mut impl Write) -> io::Result<()> {
    writeln!(to, "BROKEN{}", report.broken_at.map(|line| format!(" at event {line}")).unwrap_or_default())?;
    for what in &report.broken {
        writeln!(to, "{}", fold(&format!("  {what}"), 4))?;
    }
    writeln!(to, "replay it: {}", replay(report.seed, report.broken_at))
}

/// Whether a person asked for this line. Faults and broken promises are always wanted.
fn wanted(line: &Line, options: &Options) -> bool {
    let actor = options.actor.is_empty() || options.actor.contains(&line.actor);
    let node = options.node.is_empty() || options.node.contains(&line.node);
    (actor && node) || matches!(line.did, Did::Fault | Did::Broken)
}

fn close(report: &Report, options: &Options, to: &mut impl Write) -> io::Result<bool> {
    writeln!(to, "\ntrace {:016x}, {} events", report.hash, report.lines.len())?;
    if options.until.is_some_and(|last| last > u64::try_from(report.lines.len()).unwrap_or(u64::MAX)) {
        writeln!(to, "the run was over before the event that was asked for")?;
    }
    if report.broken.is_empty() {
        writeln!(to, "no promise was broken")?;
        return Ok(true);
    }
    broken(report, to)?;
    Ok(false)
}
