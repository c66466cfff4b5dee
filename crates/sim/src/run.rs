//! Run: one seed from beginning to end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use palisade_api::names;
use palisade_cluster::workloads::Claim;
use palisade_cluster::{Cluster, Shape};
use palisade_scenarios::embedded::Embedded;
use serde_json::Value;

use crate::faults::{Plan, QUIET};
use crate::oracle::Oracle;
use crate::strike::{mend, operator, strike};
use crate::wire::Lossy;

/// How long a run is.
const LENGTH: Duration = Duration::from_mins(30);
/// How many nodes it has.
pub(crate) const NODES: usize = 8;

/// What a run came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// Every write and every event, hashed.
    pub hash: u64,
    /// What was broken; empty: nothing.
    pub broken: Vec<String>,
    /// What went wrong and what was done about it, in order.
    pub timeline: Vec<String>,
    /// How often each fault, phase and reason was reached.
    pub reached: BTreeMap<String, u64>,
}

/// Runs one seed, on a thread and a runtime of its own.
pub fn simulate(seed: u64) -> Report {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.map(|runtime| runtime.block_on(run(seed)))
    };
    let ended = std::thread::Builder::new().name(format!("seed-{seed}")).spawn(run).map(std::thread::JoinHandle::join);
    match ended {
        Ok(Ok(Ok(report))) => report,
        Ok(Ok(Err(why))) | Err(why) => {
            Report { seed, broken: vec![format!("could not run: {why}")], ..Report::default() }
        }
        Ok(Err(_)) => {
            Report { seed, broken: vec!["somebody panicked; the message is above".to_owned()], ..Report::default() }
        }
    }
}

async fn run(seed: u64) -> Report {
    let plan = Plan::of(seed, NODES);
    let shape = Shape { nodes: NODES, zones: 3, seed, ..Shape::default() };
    let wire = Lossy::new(seed, plan.losses);
    let mut world = Embedded::over(&shape, Arc::new(wire.clone())).await;
    let kind = |name: &str| world.cluster.api().kind(names::GROUP, name);
    let (fences, policies) = (kind("NodeFence"), kind("FencePolicy"));
    let oracle = Oracle::watch(&world.cluster, fences);
    for number in 0..plan.operators {
        world.start(&operator(number));
    }
    let mut report = Report { seed, ..Report::default() };
    for (name, replicas) in [("db", 2), ("queue", 1)] {
        if let Err(why) = world.cluster.stateful_set(name, replicas, Claim::ReadWriteOnce) {
            report.broken.push(format!("{name} could not be made: {why:?}"));
        }
    }
    let mut at = world.cluster.api().revision();
    for (when, fault) in &plan.faults {
        until(&world.cluster, *when).await;
        at = tell(&mut report, &world.cluster, at);
        let line = format!("{:>8.1} FAULT {fault}", world.cluster.elapsed().as_secs_f64());
        report.timeline.push(line);
        *report.reached.entry(format!("fault/{}", fault.kind())).or_default() += 1;
        strike(&mut world, &wire, fault, &plan, fences);
    }
    until(&world.cluster, QUIET).await;
    at = tell(&mut report, &world.cluster, at);
    wire.mend();
    mend(&world.cluster);
    until(&world.cluster, LENGTH).await;
    tell(&mut report, &world.cluster, at);
    oracle.at_the_end(&world.cluster, fences, policies);
    report.broken.extend(oracle.found());
    report.hash = world.cluster.trace_hash();
    report
}

async fn until(cluster: &Cluster, when: Duration) {
    let left = when.saturating_sub(cluster.elapsed());
    cluster.run_for(left).await;
}

/// Adds what the operators recorded since `from` to the timeline.
fn tell(report: &mut Report, cluster: &Cluster, from: u64) -> u64 {
    let fences = cluster.api().kind(names::GROUP, "NodeFence");
    let requests = cluster.api().kind(names::GROUP, "NodeFencingRequest");
    for change in cluster.api().changes_since(from).unwrap_or_default() {
        let ours = Some(change.key.kind) == fences || Some(change.key.kind) == requests;
        let Some(new) = change.new.as_ref().filter(|_| ours) else { continue };
        let text = |pointer: &str| new.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let what = if Some(change.key.kind) == fences { "fence" } else { "request" };
        let (phase, reason) = (text("/status/phase"), text("/status/reason"));
        *report.reached.entry(format!("{what}/{phase}")).or_default() += 1;
        *report.reached.entry(format!("reason/{reason}")).or_default() += 1;
        let line = format!(
            "{} {:<11} {what} {} {phase} {reason}",
            change.at.strftime("%H:%M:%S%.3f"),
            change.by.name(),
            change.key.name,
        );
        if report.timeline.last() != Some(&line) {
            report.timeline.push(line);
        }
    }
    cluster.api().revision()
}
