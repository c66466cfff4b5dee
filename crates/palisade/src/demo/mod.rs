//! `palisade demo`: a failover before your eyes, on an embedded cluster, with nothing to install.
//!
//! Promise: the stories, the cluster, its machines and the operator are those of the tests; only the pace is for people. What the demo
//! says of power and writers comes from the cluster's truth, never from what the operator believes.
//!
//! | file | is |
//! |---|---|
//! | `scenario` | which story of the catalogue is shown |
//! | `stage` | the world in which it is told: the embedded cluster, at a pace |
//! | `pacer` | ties virtual time to real time |
//! | `story` | writes and events become lines |
//! | `split` | which part of the failover took how long, who wrote meanwhile |
//! | `verdict` | whether it went as promised |
//! | `tell` | the terminal |
//! | `keep` | the API for kubectl, the kubeconfig, Ctrl-C |

mod keep;
mod pacer;
mod scenario;
mod split;
mod stage;
mod story;
mod tell;
mod verdict;

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;

use self::scenario::{FEATURED, Scenario, sentence};
use self::stage::Stage;

/// What a person can choose.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// What happens to the cluster: power-failure, partition, lying-bmc, storm, node-returns, or another one of --list
    #[arg(long, default_value = "power-failure", value_name = "NAME")]
    scenario: Scenario,
    /// How many times faster than real time. Where a person would only wait it is faster still, and says so: 4 times while a
    /// node returns, 10 to 30 times while nothing may happen
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), value_name = "TIMES")]
    speed: u32,
    /// Leave the cluster running after the story, for kubectl, until Ctrl-C
    #[arg(long)]
    keep: bool,
    /// The same failure without the operator: what Kubernetes does by itself
    #[arg(long)]
    without_palisade: bool,
    /// Seed of everything that is left to chance, such as when a lease was renewed last
    #[arg(long, default_value_t = 1, value_name = "NUMBER")]
    seed: u64,
    /// List the scenarios
    #[arg(long, exclusive = true)]
    list: bool,
}

/// Runs the demo; the exit code says whether it went as promised.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    if options.list {
        return list(&mut io::stdout().lock()).map(|()| ExitCode::SUCCESS).context("failed to print the scenarios");
    }
    // Virtual time, so that operator, cluster and devices share one clock, and the pacer can set its speed.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .context("failed to start the runtime")?;
    match runtime.block_on(Stage::play(options)) {
        // As with `| head`: whoever listened has heard enough.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::FAILURE),
        played => played,
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

fn list(to: &mut impl Write) -> io::Result<()> {
    for scenario in FEATURED {
        describe(scenario, 14, to)?;
    }
    writeln!(to, "\nEvery other story that the tests tell can be watched as well:\n")?;
    for scenario in Scenario::rest() {
        describe(scenario, 43, to)?;
    }
    Ok(())
}

fn describe(scenario: Scenario, width: usize, to: &mut impl Write) -> io::Result<()> {
    if let Some(story) = scenario.story() {
        writeln!(to, "{:<width$} {}", scenario.name(), sentence(&story))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_listed_with_a_sentence() {
        let mut out = Vec::new();
        list(&mut out).unwrap();
        let out = String::from_utf8(out).unwrap();
        for name in ["power-failure", "partition", "lying-bmc", "storm", "node-returns", "bmc-away-for-an-hour"] {
            assert!(out.lines().any(|line| line.starts_with(name) && line.ends_with('.')), "{name} in:\n{out}");
        }
    }
}
