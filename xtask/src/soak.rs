//! `cargo xtask soak`: many more seeds than CI has time for, on all cores. Where to start is the person's choice, so that two
//! soaks need not look at the same worlds. `cargo xtask soak --model`: the worlds of the model that are too wide for CI.
//! `cargo xtask soak --lab`: every story that a lab can tell, however long it takes.

use std::{process::ExitCode, time::Duration};

use anyhow::{Result, ensure};

use crate::{install, lab, run::Call, tiers, workspace::Workspace};

/// A night.
const LIMIT: Duration = Duration::from_hours(12);

/// Runs so many seeds from that one on. How far it has come is told on stderr; what breaks, with the command that replays it,
/// at the end.
pub(crate) fn seeds(workspace: &Workspace, from: u64, seeds: u64) -> Result<ExitCode> {
    ensure!(seeds > 0, "no seeds to run");
    let range = range(from, seeds);
    println!("---- seeds {range}");
    let call = Call::cargo(workspace, &tiers::SIMULATE).args(["--seeds", &range]).within(LIMIT);
    Ok(call.stream()?.end.exit_code())
}

/// Explores every world of the model as wide as it goes.
pub(crate) fn model(workspace: &Workspace) -> Result<ExitCode> {
    let call = Call::cargo(workspace, &tiers::MODEL).env("PALISADE_MODEL", "widest").within(LIMIT);
    Ok(call.stream()?.end.exit_code())
}

/// Tells every story that a lab can tell.
pub(crate) fn stories(workspace: &Workspace) -> Result<ExitCode> {
    for need in lab::NEEDS {
        install::ensure(workspace, *need)?;
    }
    Ok(lab::call(workspace, &["test", "--all"], LIMIT)?.end.exit_code())
}

fn range(from: u64, seeds: u64) -> String {
    format!("{from}..{}", from.saturating_add(seeds - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_seeds_from_that_one_on() {
        assert_eq!(range(2001, 20_000), "2001..22000");
        assert_eq!(range(7, 1), "7..7");
    }
}
