//! Run: one seed from beginning to end, or up to one line of its trace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use palisade_api::names;
use palisade_cluster::api::Kind;
use palisade_cluster::workloads::Claim;
use palisade_cluster::{Cluster, Shape};
use palisade_scenarios::embedded::Embedded;

use crate::faults::{Plan, QUIET};
use crate::heard::Heard;
use crate::listen::Listener;
use crate::moment::{self, Moment};
use crate::oracle::Oracle;
use crate::strike::{mend, operator, strike};
use crate::trace::{Did, Line, Trace};
use crate::wire::Lossy;

/// How long a run is.
pub const LENGTH: Duration = Duration::from_mins(30);
/// How many nodes it has.
pub(crate) const NODES: usize = 8;

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Every write, every event and every line of the trace, hashed.
    pub hash: u64,
    /// What was broken; empty: nothing.
    pub broken: Vec<String>,
    /// The line by which the first of it came out.
    pub broken_at: Option<u64>,
    /// What each actor saw, decided and did, in order.
    pub lines: Vec<Line>,
    /// How often each fault, phase, transition, gate, hold and effect was reached.
    pub reached: BTreeMap<String, u64>,
    /// How everything stood at the end.
    pub moment: Moment,
}

/// Runs one seed to its end.
pub fn simulate(seed: u64) -> Report {
    simulate_until(seed, None)
}

/// Runs one seed up to a line of its trace, on a thread and a runtime of its own.
pub fn simulate_until(seed: u64, last: Option<u64>) -> Report {
    let run = move || {
        let trace = Trace::until(last);
        let _heard = tracing::subscriber::set_default(Listener::new(trace.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.map(|runtime| runtime.block_on(run(seed, trace)))
    };
    let ended = std::thread::Builder::new().name(format!("seed-{seed}")).spawn(run).map(std::thread::JoinHandle::join);
    match ended {
        Ok(Ok(Ok(report))) => report,
        Ok(Ok(Err(why))) | Err(why) => failed(seed, format!("could not run: {why}")),
        Ok(Err(_)) => failed(seed, "somebody panicked; the message is above".to_owned()),
    }
}

fn failed(seed: u64, why: String) -> Report {
    Report { seed, broken: vec![why], ..Report::default() }
}

async fn run(seed: u64, trace: Trace) -> Report {
    let plan = Plan::of(seed, NODES);
    let shape = Shape { nodes: NODES, zones: 3, seed, ..Shape::default() };
    let wire = Lossy::new(seed, plan.losses);
    let heard = Heard::new(wire.clone(), trace.clone());
    let world = Embedded::over(&shape, Arc::new(heard)).await;
    let cluster = world.cluster.clone();
    let fences = cluster.api().kind(names::GROUP, "NodeFence");
    let oracle = Oracle::watch(&cluster, fences);
    trace.follow(&cluster, &oracle);
    let told = tokio::select! {
        biased;
        () = trace.ended() => Ok(()),
        told = tell(world, &wire, &plan, fences, &oracle, &trace) => told,
    };
    let closed = trace.close();
    let hash = palisade_cluster::truth::Trace::default();
    hash.add(&(closed.hash, cluster.trace_hash()));
    let moment = Moment { truth: closed.truth, objects: moment::objects(&cluster, closed.revision) };
    let mut broken: Vec<String> = closed.broken.iter().map(|(_, what)| what.clone()).collect();
    broken.extend(told.err());
    Report {
        seed,
        hash: hash.hash(),
        broken,
        broken_at: closed.broken.first().map(|(number, _)| *number),
        lines: closed.lines,
        reached: closed.reached,
        moment,
    }
}

/// The whole story: workloads, faults in their order, quiet, and the questions at the end.
async fn tell(
    mut world: Embedded,
    wire: &Lossy,
    plan: &Plan,
    fences: Option<Kind>,
    oracle: &Oracle,
    trace: &Trace,
) -> Result<(), String> {
    let cluster = world.cluster.clone();
    for number in 0..plan.operators {
        world.start(&operator(number));
    }
    for (name, replicas) in [("db", 2), ("queue", 1)] {
        let made = cluster.stateful_set(name, replicas, Claim::ReadWriteOnce);
        made.map_err(|why| format!("{name} could not be made: {why:?}"))?;
    }
    for (when, fault) in &plan.faults {
        until(&cluster, *when).await;
        trace.reached(format!("fault/{}", fault.kind()));
        trace.add(None, "fault", Did::Fault, "", fault.to_string());
        strike(&mut world, wire, fault, plan, fences);
    }
    until(&cluster, QUIET).await;
    trace.add(None, "fault", Did::Fault, "", "from here on nothing goes wrong; everything is mended".to_owned());
    wire.mend();
    mend(&cluster);
    until(&cluster, LENGTH).await;
    oracle.at_the_end(&cluster, fences, cluster.api().kind(names::GROUP, "FencePolicy"));
    trace.ask_the_oracle(None);
    Ok(())
}

async fn until(cluster: &Cluster, when: Duration) {
    let left = when.saturating_sub(cluster.elapsed());
    cluster.run_for(left).await;
}
