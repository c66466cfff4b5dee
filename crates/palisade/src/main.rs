//! The one binary: a command per file, and nothing but the choice between them here.

#![forbid(unsafe_code)]

mod act;
mod crds;
mod demo;
mod operator;
mod sim;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use mimalloc::MiMalloc;

#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Palisade fences failed nodes and moves their stateful workloads, safely: rather down than twice.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Follow one order with a fence agent, and report: what a pod of the operator's runs
    Act(act::Options),
    /// Print the custom resource definitions as YAML, for `kubectl apply -f -`
    Crds,
    /// Watch a failover on an embedded cluster, with nothing to install
    Demo(demo::Options),
    /// Run the operator on a real cluster, until it is asked to stop
    Operator(operator::Options),
    /// Run the operator in virtual time with everything going wrong, from a seed that can be replayed
    Sim(sim::Options),
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().command {
        Command::Act(options) => act::run(&options),
        Command::Crds => crds::print(&mut std::io::stdout().lock()).map(|()| ExitCode::SUCCESS),
        Command::Demo(options) => demo::run(&options),
        Command::Operator(options) => operator::run(&options),
        Command::Sim(options) => sim::run(&options),
    }
}
