//! Run: one seed from beginning to end, or up to one line of its trace.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use palisade_api::names;
use palisade_cluster::api::Kind;
use palisade_scenarios::embedded::Embedded;

use crate::acts::Acts;
use crate::coming::{Coming, Next};
use crate::heard::Heard;
use crate::listen::Listener;
use crate::moment::{self, Moment};
use crate::oracle::{Oracle, secrets};
use crate::plan::Plan;
use crate::stage;
use crate::strike::{Scene, operator};
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
    /// Two writers that no act of ours explains.
    pub unexplained: Vec<String>,
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

/// Runs one seed up to a line of its trace.
pub fn simulate_until(seed: u64, last: Option<u64>) -> Report {
    judged(seed, last, || {})
}

/// Runs one seed to its end, with a bug on purpose.
#[cfg(feature = "planted")]
pub fn simulate_planted(seed: u64, bug: palisade_core::planted::Bug) -> Report {
    judged(seed, None, move || palisade_core::planted::plant(Some(bug)))
}

/// `first` is called in the thread of the run, before anything else.
fn judged(seed: u64, last: Option<u64>, first: impl FnOnce() + Copy + Send + 'static) -> Report {
    let mut report = on_its_own(seed, last, true, first);
    report.broken.extend(secrets::told(&report.lines));
    if !report.unexplained.is_empty() && report.broken.is_empty() {
        // Kubernetes alone lets two nodes write in some worlds. If it does not do so here, it was us after all.
        let alone = on_its_own(seed, None, false, first);
        if alone.unexplained.is_empty() {
            report.broken.append(&mut report.unexplained);
        }
    }
    report
}

/// One run, on a thread and a runtime of its own.
fn on_its_own(seed: u64, last: Option<u64>, with_us: bool, first: impl FnOnce() + Send + 'static) -> Report {
    let run = move || {
        first();
        let trace = Trace::until(last);
        let _heard = tracing::subscriber::set_default(Listener::new(trace.clone()));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.map(|runtime| runtime.block_on(run(seed, trace, with_us)))
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

async fn run(seed: u64, trace: Trace, with_us: bool) -> Report {
    let plan = Plan::of(seed, NODES);
    let wire = Lossy::new(seed, plan.losses);
    let heard = Heard::new(wire.clone(), trace.clone());
    let world = Embedded::over(&stage::shape(seed, &plan), Arc::new(heard)).await;
    let cluster = world.cluster.clone();
    stage::configure(&cluster, &plan);
    let fences = cluster.api().kind(names::GROUP, "NodeFence");
    let oracle = Oracle::watch(&cluster, fences);
    wire.show(oracle.clone());
    trace.follow(&cluster, &oracle);
    let told = tokio::select! {
        biased;
        () = trace.ended() => Ok(()),
        told = tell(world, &wire, &plan, fences, &oracle, &trace, with_us) => told,
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
        unexplained: oracle.unexplained(),
        broken_at: closed.broken.first().map(|(number, _)| *number),
        lines: closed.lines,
        reached: closed.reached,
        moment,
    }
}

/// The whole story: workloads, faults as they come, quiet, and the questions at the end.
async fn tell(
    mut world: Embedded,
    wire: &Lossy,
    plan: &Plan,
    fences: Option<Kind>,
    oracle: &Oracle,
    trace: &Trace,
    with_us: bool,
) -> Result<(), String> {
    let cluster = world.cluster.clone();
    let acts = Acts::count(&cluster);
    for number in (0..plan.operators).filter(|_| with_us) {
        world.start(&operator(number));
    }
    stage::make_workloads(&cluster)?;
    let mut coming = Coming::new(plan);
    let mut scene = Scene { world: &mut world, wire, plan, oracle, frozen: Vec::new(), dark_since: None };
    loop {
        let next = coming.next(&cluster, &acts, scene.next_thaw()).await;
        scene.thaw_due();
        match next {
            Next::Fault(fault) => {
                trace.reached(format!("fault/{}", fault.kind()));
                trace.add(None, "fault", Did::Fault, "", fault.to_string());
                scene.strike(&fault).await;
            }
            Next::Thaw => {}
            Next::Quiet => break,
        }
    }
    let over = "from here on nothing goes wrong; everything is mended";
    trace.add(None, "fault", Did::Fault, "", over.to_owned());
    scene.mend();
    cluster.run_for(LENGTH.saturating_sub(cluster.elapsed())).await;
    if with_us {
        oracle.at_the_end(&cluster, fences, cluster.api().kind(names::GROUP, "FencePolicy"));
    }
    trace.ask_the_oracle(None);
    Ok(())
}
