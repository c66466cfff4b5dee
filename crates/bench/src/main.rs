//! Bench: what Palisade costs and how fast it is, as one table. `cargo xtask bench` runs it.
//!
//! | room | measures |
//! |---|---|
//! | `scale` | an operator among thousands of nodes: memory, CPU, requests, one failover |
//! | `latency` | from the news of a request to the operator's answer |
//! | `api` | requests per second of the embedded API |
//! | `seeds` | simulated runs per minute |
//! | `devices` | BMCs that are switched off, one and many at once |
//!
//! Promise: everything stays on loopback and ends by itself. Never: fails because a machine is slow.
#![forbid(unsafe_code)]

mod api;
mod clock;
mod devices;
mod latency;
mod operate;
mod process;
mod quantile;
mod scale;
mod seeds;
mod table;

use clap::{Parser, Subcommand, ValueEnum};

use crate::table::Table;

#[derive(Parser)]
#[command(name = "cargo xtask bench", about = "Measures Palisade and prints a table")]
struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    #[command(subcommand)]
    inner: Option<Inner>,
}

#[derive(clap::Args)]
struct Wanted {
    /// Measure only this; may be given more than once
    #[arg(long, value_enum, value_name = "MEASURE")]
    only: Vec<Measure>,
    /// How many nodes `scale` has; may be given more than once
    #[arg(long, default_values_t = [1_000, 5_000], value_parser = clap::value_parser!(u32).range(2..=20_000))]
    nodes: Vec<u32>,
    /// How many pods `scale` has
    #[arg(long, default_value_t = 150_000)]
    pods: u32,
    /// How many seconds `scale` looks at an idle operator
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    idle: u64,
    /// How many decisions `latency` waits for
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    decisions: u32,
    /// How many seeds `seeds` runs
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Measure {
    Api,
    Seeds,
    Latency,
    Devices,
    Scale,
}

#[derive(Subcommand)]
enum Inner {
    /// The operator that `scale` measures, in a process of its own
    #[command(hide = true)]
    Operate(operate::Where),
    /// Who switches off the BMCs of `devices`, in a process of its own
    #[command(hide = true)]
    Fence(devices::Targets),
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    match arguments.inner {
        Some(Inner::Operate(there)) => operate::run(&there),
        Some(Inner::Fence(targets)) => devices::fence(&targets),
        None => measure(&arguments.wanted),
    }
}

/// The quick ones first: each adds its rows, and is told as soon as it is known.
fn measure(wanted: &Wanted) -> anyhow::Result<()> {
    let asked = |measure| wanted.only.is_empty() || wanted.only.contains(&measure);
    let mut table = Table::default();
    if asked(Measure::Api) {
        table.tell(api::measure()?);
    }
    if asked(Measure::Seeds) {
        table.tell(seeds::measure(wanted.seeds));
    }
    if asked(Measure::Latency) {
        table.tell(latency::measure(wanted.decisions)?);
    }
    if asked(Measure::Devices) {
        table.tell(devices::measure()?);
    }
    if asked(Measure::Scale) {
        for nodes in &wanted.nodes {
            table.tell(scale::measure(&scale::Size { nodes: *nodes, pods: wanted.pods, idle: wanted.idle })?);
        }
    }
    print!("\n{table}");
    Ok(())
}
