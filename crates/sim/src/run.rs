//! Run: one seed from beginning to end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use palisade_api::names::{self, taints};
use palisade_cluster::api::{DeleteOptions, Key, Kind};
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::{Link, Power};
use palisade_cluster::workloads::Claim;
use palisade_cluster::{Cluster, Shape};
use palisade_scenarios::embedded::Embedded;
use serde_json::{Value, json};

use crate::faults::{Fault, Plan, QUIET};
use crate::oracle::Oracle;
use crate::wire::Lossy;

/// How long a run is.
const LENGTH: Duration = Duration::from_mins(30);
/// How many nodes it has.
const NODES: usize = 8;

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

fn operator(number: usize) -> String {
    format!("palisade-{number}")
}

async fn until(cluster: &Cluster, when: Duration) {
    let left = when.saturating_sub(cluster.elapsed());
    cluster.run_for(left).await;
}

fn strike(world: &mut Embedded, wire: &Lossy, fault: &Fault, plan: &Plan, fences: Option<Kind>) {
    let cluster = world.cluster.clone();
    match fault {
        Fault::PowerOff(node) => cluster.power_off(node),
        Fault::OutsideOn(node) => cluster.outside_on(node),
        Fault::Cut(node, link) => cluster.cut(node, *link),
        Fault::Heal(node, link) => cluster.heal(node, *link),
        Fault::Hang(node) => cluster.kubelet_hang(node),
        Fault::Resume(node) => cluster.kubelet_resume(node),
        Fault::Suspend(node) => cluster.suspend(node),
        Fault::Bmc(node, behaviour) => cluster.bmc(node).set(behaviour.clone()),
        Fault::DeleteNode(node) => {
            let _ = cluster.delete_node(node);
        }
        Fault::TakeTaintOff(node) => {
            let _ = cluster.api().update(&Key::cluster(Kind::NODE, node), |node| {
                if let Some(all) = node.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
                    all.retain(|taint| taint.get("key").and_then(Value::as_str) != Some(taints::QUARANTINE));
                }
            });
        }
        Fault::DeleteFence(node) => {
            if let Some(kind) = fences {
                let _ = cluster.api().delete(&Key::cluster(kind, node), &DeleteOptions::default());
            }
        }
        Fault::PolicyAgain => {
            if let Some(kind) = cluster.api().kind(names::GROUP, "FencePolicy") {
                let _ = cluster.api().delete(&Key::cluster(kind, names::POLICY_NAME), &DeleteOptions::default());
                let policy = json!({
                    "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "FencePolicy",
                    "metadata": { "name": names::POLICY_NAME }, "spec": {},
                });
                let _ = cluster.create(kind, policy);
            }
        }
        Fault::CrashOperator(number) => {
            let name = operator(number % plan.operators.max(1));
            world.crash(&name);
            world.start(&name);
        }
        Fault::Blackout(time) => wire.go_dark(*time),
        Fault::FreezeWatches(time) => wire.freeze(*time),
    }
}

/// Everything works again, and somebody walks through the rack and switches on whatever is off.
fn mend(cluster: &Cluster) {
    for number in 1..=NODES {
        let node = format!("n{number}");
        for link in [Link::Api, Link::Peers, Link::Storage] {
            cluster.heal(&node, link);
        }
        cluster.kubelet_resume(&node);
        cluster.bmc(&node).set(Behaviour::Honest);
        if cluster.power(&node) != Some(Power::On) {
            cluster.outside_on(&node);
        }
    }
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
