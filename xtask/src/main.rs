//! `cargo xtask`: everything that a person types twice.
//!
//! `cargo xtask test` runs every test there is, and CI runs exactly that.
//! It needs Rust and a Unix; what else a tier needs it installs, or says loudly that it could not.

#![forbid(unsafe_code)]

mod clock;
mod counts;
mod deny;
mod files;
mod fuzz;
mod install;
mod interrupt;
mod lab;
mod links;
mod run;
mod soak;
mod suite;
mod table;
mod tidy;
mod tiers;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::{run::Call, suite::Choice, workspace::Workspace};

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Development tasks of Palisade")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run every test, tier by tier, and end with a table
    Test {
        /// Run only this tier; may be given more than once
        #[arg(long, value_name = "TIER", value_parser = tiers::names())]
        only: Vec<String>,
        /// Say which tiers there are and what each one runs, and run nothing
        #[arg(long)]
        list: bool,
    },
    /// Run many more seeds of the simulation than CI does, and list those that break something; or the widest worlds of the
    /// model; or the long stories in the lab
    Soak {
        /// Explore the worlds of many millions of states instead; a quarter of an hour and several GiB
        #[arg(long, conflicts_with_all = ["seeds", "from"])]
        model: bool,
        /// Tell every story that a lab can tell instead; hours, as root
        #[arg(long, conflicts_with_all = ["model", "seeds", "from"])]
        lab: bool,
        /// How many seeds
        #[arg(long, value_name = "NUMBER", default_value_t = 20_000)]
        seeds: u64,
        /// The first of them; another start looks at other worlds. Not given: right after those of CI
        #[arg(long, value_name = "SEED", default_value_t = 2001)]
        from: u64,
    },
    /// Raise a real Kubernetes on this machine and play with it: up, down, status, power-off, power-on, partition, heal, test,
    /// measure
    Lab {
        /// Handed on, such as `up --machines 3` or `power-off n2`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Throw bytes of strangers at everything that reads them
    Fuzz {
        /// How long each target runs
        #[arg(long, value_name = "NUMBER", default_value_t = 10)]
        minutes: u64,
        /// Run only this target; may be given more than once
        #[arg(long, value_name = "TARGET")]
        only: Vec<String>,
    },
    /// Measure speed, memory and requests, and end with a table
    Bench {
        /// Measure the decisions of the core instead, one by one, with criterion
        #[arg(long)]
        core: bool,
        /// Handed on, such as `--only scale`, or the name of one of criterion's benchmarks
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
}

fn main() -> Result<ExitCode> {
    let task = Cli::parse().task;
    let workspace = Workspace::of_this_run()?;
    interrupt::listen()?;
    match task {
        Task::Test { list: true, .. } => {
            print!("{}", tiers::list());
            Ok(ExitCode::SUCCESS)
        }
        Task::Test { only, list: false } => Ok(suite::run(&workspace, &Choice::of(&only))),
        Task::Soak { model: true, .. } => soak::model(&workspace),
        Task::Soak { lab: true, .. } => soak::stories(&workspace),
        Task::Soak { model: false, lab: false, seeds, from } => soak::seeds(&workspace, from, seeds),
        Task::Lab { args } => lab::run(&workspace, &args),
        Task::Fuzz { minutes, only } => fuzz::run(&workspace, minutes, &only),
        Task::Bench { core, args } => bench(&workspace, core, &args),
    }
}

fn bench(workspace: &Workspace, core: bool, args: &[String]) -> Result<ExitCode> {
    let cargo: &[&str] = if core {
        &["bench", "-p", "palisade-core", "--"]
    } else {
        &["run", "--release", "--quiet", "-p", "palisade-bench", "--"]
    };
    Ok(Call::cargo(workspace, cargo).args(args).stream()?.end.exit_code())
}
