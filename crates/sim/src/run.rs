//! Run: one seed from beginning to end.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use palisade_api::names;
use palisade_cluster::Cluster;
use palisade_cluster::api::Kind;
use palisade_cluster::workloads::{self, Claim};
use palisade_scenarios::embedded::Embedded;
use serde_json::Value;

use crate::acts::Acts;
use crate::faults::{Fault, Plan, QUIET, When};
use crate::oracle::Oracle;
use crate::strike::{Scene, configure, operator, shape};
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
    /// Two writers that no act of ours explains.
    pub unexplained: Vec<String>,
    /// What went wrong and what was done about it, in order.
    pub timeline: Vec<String>,
    /// How often each fault, phase and reason was reached.
    pub reached: BTreeMap<String, u64>,
}

/// Runs one seed, on a thread and a runtime of its own.
pub fn simulate(seed: u64) -> Report {
    judged(seed, || {})
}

/// The same with a bug on purpose.
#[cfg(feature = "planted")]
pub fn simulate_planted(seed: u64, bug: palisade_core::planted::Bug) -> Report {
    judged(seed, move || palisade_core::planted::plant(Some(bug)))
}

/// `first` is called in the thread of the run, before anything else.
fn judged(seed: u64, first: impl FnOnce() + Copy + Send + 'static) -> Report {
    let mut report = on_its_own(seed, true, first);
    if !report.unexplained.is_empty() && report.broken.is_empty() {
        // Kubernetes alone lets two nodes write in some worlds. If it does not do so here, it was us after all.
        let alone = on_its_own(seed, false, first);
        if alone.unexplained.is_empty() {
            report.broken.append(&mut report.unexplained);
        }
    }
    report
}

fn on_its_own(seed: u64, with_us: bool, first: impl FnOnce() + Send + 'static) -> Report {
    let run = move || {
        first();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.map(|runtime| runtime.block_on(run(seed, with_us)))
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

async fn run(seed: u64, with_us: bool) -> Report {
    let plan = Plan::of(seed, NODES);
    let wire = Lossy::new(seed, plan.losses);
    let mut world = Embedded::over(&shape(seed, &plan), Arc::new(wire.clone())).await;
    configure(&world.cluster, &plan);
    let kind = |name: &str| world.cluster.api().kind(names::GROUP, name);
    let (fences, policies) = (kind("NodeFence"), kind("FencePolicy"));
    let oracle = Oracle::watch(&world.cluster, fences);
    wire.show(oracle.clone());
    let acts = Acts::count(&world.cluster);
    for number in 0..plan.operators {
        if with_us {
            world.start(&operator(number));
        }
    }
    let mut report = Report { seed, ..Report::default() };
    make_workloads(&mut report, &world.cluster);
    let mut at = world.cluster.api().revision();
    let mut frozen = Vec::new();
    let mut coming = Coming::new(&plan);
    loop {
        let next =
            coming.next(&world.cluster, &acts, frozen.first().map(|(until, _): &(Duration, String)| *until)).await;
        let mut scene = Scene { world: &mut world, wire: &wire, plan: &plan, oracle: &oracle, frozen: &mut frozen };
        scene.thaw_due();
        match next {
            Next::Fault(fault) => {
                at = tell(&mut report, &scene.world.cluster, at);
                let line = format!("{:>8.1} FAULT {fault}", scene.world.cluster.elapsed().as_secs_f64());
                report.timeline.push(line);
                *report.reached.entry(format!("fault/{}", fault.kind())).or_default() += 1;
                scene.strike(&fault).await;
                scene.frozen.sort();
            }
            Next::Thaw => {}
            Next::Quiet => {
                at = tell(&mut report, &scene.world.cluster, at);
                scene.mend();
                break;
            }
        }
    }
    let left = LENGTH.saturating_sub(world.cluster.elapsed());
    world.cluster.run_for(left).await;
    tell(&mut report, &world.cluster, at);
    if with_us {
        oracle.at_the_end(&world.cluster, fences, policies);
    }
    report.broken.extend(oracle.found());
    report.unexplained = oracle.unexplained();
    report.hash = world.cluster.trace_hash();
    report
}

/// What runs there: databases with a volume for each, one that shares its claim, and pods that need none.
fn make_workloads(report: &mut Report, cluster: &Cluster) {
    let mut made = |what: &str, result: Result<_, palisade_cluster::api::Status>| {
        if let Err(why) = result {
            report.broken.push(format!("{what} could not be made: {why:?}"));
        }
    };
    for (name, replicas) in [("db", 2), ("queue", 1)] {
        made(name, cluster.stateful_set(name, replicas, Claim::ReadWriteOnce));
    }
    made("shared", cluster.create(Kind::PERSISTENT_VOLUME_CLAIM, workloads::claim("shared", "ReadWriteOnce")));
    made("pair", cluster.create(Kind::REPLICA_SET, workloads::replica_set("pair", 2, Some("shared"))));
    made("web", cluster.replica_set("web", 2));
}

/// The faults that have not struck yet.
struct Coming {
    timed: std::collections::VecDeque<(Duration, Fault)>,
    after_acts: Vec<(u64, Fault)>,
    /// Acts are counted from the first fault on.
    begun: Option<u64>,
}

/// What comes next.
enum Next {
    Fault(Fault),
    Thaw,
    Quiet,
}

impl Coming {
    fn new(plan: &Plan) -> Self {
        let mut coming = Self { timed: std::collections::VecDeque::new(), after_acts: Vec::new(), begun: None };
        for (when, fault) in &plan.faults {
            match when {
                When::At(at) => coming.timed.push_back((*at, fault.clone())),
                When::AfterAct(act) => coming.after_acts.push((*act, fault.clone())),
            }
        }
        coming
    }

    /// Lets time pass until something goes wrong, somebody who stood still goes on, or nothing goes wrong any more.
    async fn next(&mut self, cluster: &Cluster, acts: &Acts, thaws: Option<Duration>) -> Next {
        let timed = self.timed.front().map(|(at, _)| *at);
        let until = [timed, thaws, Some(QUIET)].into_iter().flatten().min().unwrap_or(QUIET);
        let left = until.saturating_sub(cluster.elapsed());
        let begun = self.begun;
        let due = |acted: u64| {
            let since = acted.saturating_sub(begun?);
            self.after_acts.iter().position(|(act, _)| *act <= since)
        };
        cluster.run_until(left, |_| due(acts.so_far()).is_some()).await;
        if let Some(place) = due(acts.so_far()) {
            return Next::Fault(self.after_acts.remove(place).1);
        }
        let now = cluster.elapsed();
        if now >= QUIET {
            return Next::Quiet;
        }
        if timed.is_some_and(|at| at <= now)
            && let Some((_, fault)) = self.timed.pop_front()
        {
            self.begun.get_or_insert(acts.so_far());
            return Next::Fault(fault);
        }
        Next::Thaw
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
