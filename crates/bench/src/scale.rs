//! Scale: an operator among thousands of nodes and 150,000 pods.
//!
//! The API server and the machines are in this process, the operator in a child: its memory is its own. Time is real.

mod counter;
mod failover;
mod machines;
pub(crate) mod population;
mod pulse;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use palisade_api::names;
use palisade_cluster::api::http::Listening;
use palisade_cluster::api::{Api, Key, Server, Settings};
use palisade_cluster::clock::Clock;
use tokio::task::JoinSet;

use self::counter::{Counter, Counts};
use self::machines::Machines;
use crate::clock::{date, now};
use crate::process::{Process, Used};
use crate::table::Figure;

/// A real API server keeps some minutes of history; the default of the embedded one would be over in seconds.
const HISTORY: usize = 200_000;
/// From the start until the operator has listed everything, leads, and all kubelets were looked at once.
const SETTLE: Duration = Duration::from_secs(30);
/// The operator's own quiet period after its start, and a little more.
const QUIET: Duration = Duration::from_secs(75);
const START: Duration = Duration::from_mins(1);

/// How large the cluster is, and how long it is looked at.
pub(crate) struct Size {
    pub(crate) nodes: u32,
    pub(crate) pods: u32,
    pub(crate) idle: u64,
}

/// Measures one size.
pub(crate) fn measure(size: &Size) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(size))
}

async fn run(size: &Size) -> Result<Vec<Figure>> {
    let api = Api::new(Clock::starting_at(date()), &Settings { history: HISTORY, ..Settings::default() });
    population::settle(&api, size.nodes, size.pods)?;
    let (counter, machines) = (Counter::default(), Machines::default());
    // Everything in here ends with this function.
    let mut tasks = JoinSet::new();
    let listening = Listening::on(0).await?;
    let address = listening.address().to_string();
    let server = Server::over(api.clone(), Arc::new(counter.clone()));
    tasks.spawn(async move { drop(listening.serve(server).await) });
    let (port, serving) = machines.listen().await?;
    tasks.spawn(async move { drop(serving.await) });
    tasks.spawn(pulse::beat(api.clone(), size.nodes, machines.clone()));

    let begun = now();
    let operator = Process::start(&["operate", "--api", &address, "--machines", &port.to_string()])?;
    leads(&api).await?;
    tokio::time::sleep(SETTLE.saturating_sub(begun.elapsed())).await;
    let what = format!("{} nodes", size.nodes);
    let mut figures = idle(&api, &operator, &counter, size.idle, &what).await?;
    tokio::time::sleep(QUIET.saturating_sub(begun.elapsed())).await;
    let before = operator.used()?;
    let failing = now();
    figures.extend(failover::measure(&api, &machines, &what).await?);
    let after = operator.used()?;
    figures.push(Figure::new(format!("{what}, failover: peak memory"), after.peak, "MiB"));
    figures.push(share(format!("{what}, failover: CPU, of one core"), before, after, failing.elapsed()));
    Ok(figures)
}

/// Waits until the operator leads.
async fn leads(api: &Api) -> Result<()> {
    let kind = api.kind("coordination.k8s.io", "Lease").ok_or_else(|| anyhow!("there are no leases"))?;
    let lease = Key::new(kind, names::SYSTEM_NAMESPACE, "palisade-leader");
    let begun = now();
    while api.get(&lease).is_none() {
        if begun.elapsed() > START {
            bail!("the operator did not begin to lead within {START:?}");
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

async fn idle(api: &Api, operator: &Process, counter: &Counter, seconds: u64, what: &str) -> Result<Vec<Figure>> {
    counter.take();
    let (before, begun) = (operator.used()?, now());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let (after, took, counts) = (operator.used()?, begun.elapsed(), counter.take());
    tell_kinds(api, &counts, took);
    let mut figures = vec![
        Figure::new(format!("{what}, idle: memory"), after.resident, "MiB").at_most(96.0),
        Figure::new(format!("{what}, idle: peak memory since start"), after.peak, "MiB"),
        share(format!("{what}, idle: CPU, of one core"), before, after, took).at_most(20.0),
        Figure::new(format!("{what}, idle: API requests"), per_second(counts.values().sum(), took), "/s").at_most(1.0),
    ];
    for verb in ["get", "list", "watch", "create", "update", "patch", "delete"] {
        let all: u32 = counts.iter().filter(|((of, _), _)| *of == verb).map(|(_, count)| count).sum();
        if all > 0 {
            figures.push(Figure::new(format!("{what}, idle: of these {verb}"), per_second(all, took), "/s"));
        }
    }
    Ok(figures)
}

/// Which kinds were asked for: too long for a table, and needed by whoever wants to make it less.
fn tell_kinds(api: &Api, counts: &Counts, took: Duration) {
    for ((verb, kind), count) in counts {
        let kind = kind.and_then(|kind| api.definition(kind)).map(|known| known.qualified()).unwrap_or_default();
        eprintln!("  {verb} {kind}: {count} in {:.0} s", took.as_secs_f64());
    }
}

fn per_second(count: u32, took: Duration) -> f64 {
    f64::from(count) / took.as_secs_f64()
}

fn share(what: String, before: Used, after: Used, took: Duration) -> Figure {
    Figure::new(what, after.cpu.saturating_sub(before.cpu).as_secs_f64() / took.as_secs_f64() * 100.0, "%")
}
