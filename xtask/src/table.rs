//! The closing table: tier, tests, seconds; then what a reader must not miss; then one line to count by.

use std::{fmt::Write, time::Duration};

use crate::counts::Tally;

/// What became of one tier.
pub(crate) struct Report {
    pub(crate) tier: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) tally: Tally,
    pub(crate) took: Duration,
    /// Told below the table.
    pub(crate) notes: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Passed,
    Failed,
    Skipped,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Passed => "ok",
            Self::Failed => "FAILED",
            Self::Skipped => "skipped",
        }
    }
}

/// Whether nothing failed.
pub(crate) fn all_good(reports: &[Report]) -> bool {
    reports.iter().all(|report| report.verdict != Verdict::Failed)
}

/// The sum over all tiers.
pub(crate) fn total(reports: &[Report]) -> Tally {
    let mut sum = Tally::default();
    for report in reports {
        sum += report.tally;
    }
    sum
}

/// Renders the end of a run.
pub(crate) fn render(reports: &[Report]) -> String {
    let mut text = String::new();
    let sum = total(reports);
    let took = reports.iter().map(|report| report.took).sum();
    let verdict = if all_good(reports) { Verdict::Passed } else { Verdict::Failed };

    let widest = reports.iter().map(|report| report.tier.len()).max().unwrap_or(0).max("total".len());
    let _infallible = writeln!(text, "{:widest$}  {:7}  {:>7}  {:>8}", "tier", "result", "tests", "seconds");
    for report in reports {
        row(&mut text, widest, report.tier, report.verdict, report.tally, report.took);
    }
    row(&mut text, widest, "total", verdict, sum, took);

    let notes: Vec<_> =
        reports.iter().flat_map(|report| report.notes.iter().map(move |note| (report.tier, note))).collect();
    if !notes.is_empty() {
        text.push('\n');
    }
    for (tier, note) in notes {
        let _infallible = writeln!(text, "!! {tier}: {note}");
    }
    text.push('\n');
    text.push_str(&closing_line(sum));
    text
}

fn row(text: &mut String, widest: usize, tier: &str, verdict: Verdict, tally: Tally, took: Duration) {
    let (word, ran, seconds) = (verdict.word(), tally.ran(), took.as_secs_f64());
    let _infallible = writeln!(text, "{tier:widest$}  {word:7}  {ran:>7}  {seconds:>8.1}");
}

/// Stands alone on the last line, so that a program can find it.
fn closing_line(sum: Tally) -> String {
    let Tally { passed, failed, skipped } = sum;
    match skipped {
        0 => format!("{passed} passed, {failed} failed\n"),
        _ => format!("{passed} passed, {failed} failed, {skipped} skipped\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(tier: &'static str, verdict: Verdict, tally: Tally, notes: &[&str]) -> Report {
        let notes = notes.iter().map(ToString::to_string).collect();
        Report { tier, verdict, tally, took: Duration::from_millis(1250), notes }
    }

    #[test]
    fn a_good_run_is_short() {
        let tally = Tally { passed: 214, failed: 0, skipped: 0 };
        let reports =
            [report("format", Verdict::Passed, Tally::PASSED, &[]), report("tests", Verdict::Passed, tally, &[])];
        assert_eq!(
            render(&reports),
            "\
tier    result     tests   seconds
format  ok             1       1.2
tests   ok           214       1.2
total   ok           215       2.5

215 passed, 0 failed
"
        );
    }

    #[test]
    fn what_failed_or_was_skipped_is_told_last() {
        let reports = [
            report("lint", Verdict::Failed, Tally::FAILED, &["exit status: 101"]),
            report("supply-chain", Verdict::Skipped, Tally::SKIPPED, &["skipped, because there is no network"]),
        ];
        assert!(!all_good(&reports));
        assert_eq!(
            render(&reports),
            "\
tier          result     tests   seconds
lint          FAILED         1       1.2
supply-chain  skipped        0       1.2
total         FAILED         1       2.5

!! lint: exit status: 101
!! supply-chain: skipped, because there is no network

0 passed, 1 failed, 1 skipped
"
        );
    }
}
