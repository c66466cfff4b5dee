//! `cargo xtask test`: one tier after the other, each under its heading, all of them even if one fails.
//!
//! Promise: what was not checked is told. A tier that cannot run is an error in CI and a loud "skipped,
//! because" at a desk, and so is what only some of its tests want; a tier that ran no test has failed.

use std::{process::ExitCode, time::Duration};

use anyhow::Result;

use crate::{
    clock::now,
    counts::Tally,
    deny, files,
    install::{self, Need},
    interrupt, lab,
    run::{Call, INTERRUPTED, Ran},
    table::{self, Report, Verdict},
    tiers::{Action, Counts, Step, TIERS, Tier},
    workspace::Workspace,
};

/// From a clean checkout with nothing cached, on two cores: 30 minutes without the lab, 20 with it, 7 to build Kubernetes once.
const BAR: Duration = Duration::from_mins(57);

/// Kubernetes is built, and the lab tells its stories.
const LAB: Duration = Duration::from_mins(40);

/// Which tiers to run.
pub(crate) struct Choice(Vec<&'static Tier>);

impl Choice {
    /// Those named, in their own order; all of them if none is named.
    pub(crate) fn of(only: &[String]) -> Self {
        let wanted = |tier: &&Tier| only.is_empty() || only.iter().any(|name| name == tier.name);
        Self(TIERS.iter().filter(wanted).collect())
    }
}

/// Runs the tiers and prints the table.
pub(crate) fn run(workspace: &Workspace, Choice(tiers): &Choice) -> ExitCode {
    let mut reports = Vec::new();
    for (index, tier) in tiers.iter().enumerate() {
        println!("\n==== {}/{} {}: {}", index + 1, tiers.len(), tier.name, tier.shows);
        let report = run_tier(workspace, tier);
        for note in &report.notes {
            println!("!! {}: {note}", tier.name);
        }
        reports.push(report);
        if interrupt::asked() {
            println!("!! interrupted: {} tiers not run", tiers.len() - reports.len());
            break;
        }
    }
    let took: Duration = reports.iter().map(|report| report.took).sum();
    if took > BAR {
        println!("\n!! this took {} minutes; the bar is {}", took.as_secs() / 60, BAR.as_secs() / 60);
    }
    // Last of all: programs look for the closing line.
    print!("\n{}", table::render(&reports));
    if interrupt::asked() {
        ExitCode::from(INTERRUPTED)
    } else if table::all_good(&reports) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

fn run_tier(workspace: &Workspace, tier: &'static Tier) -> Report {
    let started = now();
    let mut report = Report {
        tier: tier.name,
        verdict: Verdict::Passed,
        tally: Tally::default(),
        took: Duration::ZERO,
        notes: vec![],
    };
    let ensure = |need: &Need| install::ensure(workspace, *need);
    let there = tier.needs.iter().try_for_each(ensure).and_then(|()| {
        let wanted = tier.wants.iter().try_for_each(ensure);
        wanted.or_else(|lacking| do_without(&mut report, workspace.ci, lacking))
    });
    match there {
        Ok(()) => {
            for step in tier.steps {
                take(&mut report, step, run_step(workspace, step));
                // What was not prepared would only fail once more, and drown the first message.
                let unprepared = step.counts == Counts::Nothing && report.verdict == Verdict::Failed;
                if unprepared || interrupt::asked() {
                    break;
                }
            }
        }
        Err(_) if interrupt::asked() => fail(&mut report, "interrupted".into()),
        Err(lacking) => cannot_run(&mut report, workspace.ci, &format!("{lacking:#}")),
    }
    report.took = started.elapsed();
    report
}

fn fail(report: &mut Report, why: String) {
    report.verdict = Verdict::Failed;
    report.tally += Tally::FAILED;
    report.notes.push(why);
}

fn cannot_run(report: &mut Report, ci: bool, why: &str) {
    if ci {
        fail(report, format!("cannot run here, which in CI is an error: {why}"));
    } else {
        report.verdict = Verdict::Skipped;
        report.tally += Tally::SKIPPED;
        report.notes.push(format!("skipped, because {why}"));
    }
}

/// At a desk a tier runs without what only some of its tests want, and says so. An interrupt is no lack.
fn do_without(report: &mut Report, ci: bool, lacking: anyhow::Error) -> Result<()> {
    if ci || interrupt::asked() {
        return Err(lacking);
    }
    report.notes.push(format!("run in part; what needs it left itself out, because {lacking:#}"));
    Ok(())
}

/// What one step says about itself.
pub(crate) struct Said {
    pub(crate) tally: Tally,
    pub(crate) took: Duration,
    /// Why it failed.
    pub(crate) complaint: Option<String>,
    /// What was left out without failing.
    pub(crate) note: Option<String>,
}

fn run_step(workspace: &Workspace, step: &Step) -> Result<Said> {
    println!("---- {}", step.action.shown());
    match &step.action {
        Action::Cargo(args, variables) => {
            let call = Call::cargo(workspace, args);
            let call = variables.iter().fold(call, |call, (name, value)| call.env(name, value));
            Ok(call.stream()?.into())
        }
        Action::Lab(args) => Ok(lab::call(workspace, args, LAB)?.into()),
        Action::Deny(args) => Ok(deny::call(workspace, args).stream()?.into()),
        Action::Advisories => deny::advisories(workspace),
        Action::Look(_, look) => {
            let started = now();
            let complaint = files::complain(&look(workspace)?);
            Ok(Said { tally: Tally::default(), took: started.elapsed(), complaint, note: None })
        }
    }
}

impl From<Ran> for Said {
    fn from(ran: Ran) -> Self {
        Self { tally: ran.tally, took: ran.took, complaint: ran.end.complaint(), note: None }
    }
}

/// Adds a step to its tier's report.
fn take(report: &mut Report, step: &Step, said: Result<Said>) {
    let what = step.action.shown();
    let said = said.unwrap_or_else(|error| Said {
        tally: Tally::default(),
        took: Duration::ZERO,
        complaint: Some(format!("{error:#}")),
        note: None,
    });
    let (tally, complaint) = weigh(step.counts, &said);
    report.tally += tally;
    if let Some(why) = complaint {
        report.verdict = Verdict::Failed;
        report.notes.push(format!("`{what}`: {why}"));
    }
    report.notes.extend(said.note);
    if let Some(bar) = step.bar.filter(|&bar| said.took > Duration::from_secs(bar)) {
        report.notes.push(format!("`{what}` took {} s; its bar is {bar} s", said.took.as_secs()));
    }
}

/// What a step adds to the sum, and why it failed if it did. A failure always shows in the sum.
fn weigh(counts: Counts, said: &Said) -> (Tally, Option<String>) {
    let mut tally = said.tally;
    let mut complaint = said.complaint.clone();
    match counts {
        Counts::Tests if complaint.is_none() && tally.ran() == 0 => {
            complaint = Some("ran no test, so it shows nothing".into());
        }
        Counts::Tests if complaint.is_none() && tally.failed > 0 => {
            complaint = Some(format!("{} failed, whatever the exit code says", tally.failed));
        }
        Counts::One if complaint.is_none() && said.note.is_some() => tally = Tally::SKIPPED,
        Counts::One if complaint.is_none() => tally = Tally::PASSED,
        Counts::Tests | Counts::One | Counts::Nothing => {}
    }
    if complaint.is_some() && tally.failed == 0 {
        tally += Tally::FAILED;
    }
    (tally, complaint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(passed: u64, failed: u64, complaint: Option<&str>) -> Said {
        let tally = Tally { passed, failed, skipped: 0 };
        Said { tally, took: Duration::ZERO, complaint: complaint.map(Into::into), note: None }
    }

    #[test]
    fn tests_count_as_many_as_there_are() {
        assert_eq!(weigh(Counts::Tests, &said(9, 0, None)), (Tally { passed: 9, failed: 0, skipped: 0 }, None));
    }

    #[test]
    fn no_test_is_a_failure() {
        let (tally, complaint) = weigh(Counts::Tests, &said(0, 0, None));
        assert_eq!(tally, Tally::FAILED);
        assert!(complaint.is_some());
    }

    #[test]
    fn a_failed_test_is_not_hidden_by_a_good_exit_code() {
        assert!(weigh(Counts::Tests, &said(3, 1, None)).1.is_some());
    }

    #[test]
    fn a_failure_to_build_counts_as_one() {
        let (tally, _) = weigh(Counts::Tests, &said(0, 0, Some("exit status: 101")));
        assert_eq!(tally, Tally::FAILED);
        let (tally, _) = weigh(Counts::Nothing, &said(0, 0, Some("exit status: 101")));
        assert_eq!(tally, Tally::FAILED);
        let (tally, _) = weigh(Counts::Tests, &said(5, 2, Some("exit status: 101")));
        assert_eq!(tally, Tally { passed: 5, failed: 2, skipped: 0 }, "a failure is not counted twice");
    }

    #[test]
    fn a_check_that_could_not_look_is_skipped_and_not_passed() {
        let left_out = Said { note: Some("no database".into()), ..said(0, 0, None) };
        assert_eq!(weigh(Counts::One, &left_out), (Tally::SKIPPED, None));
        assert_eq!(weigh(Counts::One, &said(0, 0, None)), (Tally::PASSED, None));
    }

    fn blank() -> Report {
        Report { tier: "lint", verdict: Verdict::Passed, tally: Tally::default(), took: Duration::ZERO, notes: vec![] }
    }

    #[test]
    fn what_cannot_run_is_an_error_in_ci_and_skipped_at_a_desk() {
        let (mut ci, mut desk) = (blank(), blank());
        cannot_run(&mut ci, true, "clippy is missing");
        cannot_run(&mut desk, false, "clippy is missing");
        assert_eq!((ci.verdict, ci.tally), (Verdict::Failed, Tally::FAILED));
        assert_eq!((desk.verdict, desk.tally), (Verdict::Skipped, Tally::SKIPPED));
        assert_eq!(desk.notes, ["skipped, because clippy is missing"]);
    }

    #[test]
    fn what_only_some_tests_want_stops_a_tier_in_ci_and_is_told_at_a_desk() {
        let lacking = || anyhow::anyhow!("kubectl is missing");
        let (mut ci, mut desk) = (blank(), blank());
        assert!(do_without(&mut ci, true, lacking()).is_err());
        assert!(do_without(&mut desk, false, lacking()).is_ok());
        assert_eq!(desk.verdict, Verdict::Passed);
        assert_eq!(desk.notes, ["run in part; what needs it left itself out, because kubectl is missing"]);
    }

    #[test]
    fn the_unit_tests_need_nothing_but_rust() {
        let tests = TIERS.iter().find(|tier| tier.name == "tests").unwrap();
        assert!(tests.needs.is_empty());
    }

    #[test]
    fn a_choice_keeps_the_order_of_the_tiers() {
        let names = |choice: Choice| choice.0.iter().map(|tier| tier.name).collect::<Vec<_>>();
        assert_eq!(names(Choice::of(&["docs".into(), "lint".into()])), ["lint", "docs"]);
        assert_eq!(names(Choice::of(&[])).len(), TIERS.len());
    }
}
