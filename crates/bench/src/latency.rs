//! Latency: how long the operator takes from the news of a request until its answer is sent, in real time.
//!
//! In a cluster of eight nodes somebody asks for a fence under a policy that only says what it would do (DryRun), again and
//! again: each question is a watch event, a look at the node's pods, a vetting against the whole picture, and a write.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use palisade_api::names;
use palisade_cluster::Shape;
use palisade_cluster::api::wire::{Call, Fate};
use palisade_cluster::api::{DeleteOptions, Key, Kind, Part, Patch, Verb, Wire};
use palisade_scenarios::embedded::Embedded;
use serde_json::json;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::clock::now;
use crate::quantile::millis;
use crate::table::Figure;

const NODES: usize = 8;
/// Until the operator leads and has looked at everything.
const SETTLE: Duration = Duration::from_secs(5);
/// No answer takes longer.
const LIMIT: Duration = Duration::from_secs(10);
/// Until what a deleted request left behind is over.
const PAUSE: Duration = Duration::from_millis(20);

/// A wire that delays nothing and tells of each request when it is sent.
struct Ear(UnboundedSender<(Instant, Call)>);

impl Wire for Ear {
    fn carry(&self, call: &Call) -> Fate {
        // Nobody listens any more once the measure is over.
        let _ = self.0.send((now(), call.clone()));
        Fate::default()
    }
}

pub(crate) fn measure(decisions: u32) -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(decisions))
}

async fn run(decisions: u32) -> Result<Vec<Figure>> {
    let (ear, mut calls) = unbounded_channel();
    let mut world = Embedded::over(&Shape { nodes: NODES, ..Shape::default() }, Arc::new(Ear(ear))).await;
    let api = world.cluster.api().clone();
    let kind = |name: &str| api.kind(names::GROUP, name).ok_or_else(|| anyhow!("there is no kind {name}"));
    let (policies, requests) = (kind("FencePolicy")?, kind("NodeFencingRequest")?);
    let dry = Patch::Merge(json!({"spec": {"mode": "DryRun", "quiet": {"startup": "1s"}, "workload": "AnyNode"}}));
    let policy = Key::cluster(policies, names::POLICY_NAME);
    api.patch(&policy, Part::Main, &dry).map_err(|why| anyhow!("the policy: {}", why.message))?;
    world.start("palisade-0");
    world.cluster.run_for(SETTLE).await;

    let (mut first, mut answered) = (Vec::new(), Vec::new());
    for number in 0..decisions {
        let name = format!("ask-{number}");
        let request = json!({
            "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "NodeFencingRequest",
            "metadata": {"name": name, "namespace": names::SYSTEM_NAMESPACE},
            "spec": {"nodeName": format!("n{}", number as usize % NODES + 1), "reason": "Bench", "message": "how fast?"},
        });
        while calls.try_recv().is_ok() {}
        let asked = now();
        api.create(requests, request).map_err(|why| anyhow!("the request: {}", why.message))?;
        let key = Key::new(requests, names::SYSTEM_NAMESPACE, &name);
        let (one, other) = answer(&mut calls, &key, asked).await.with_context(|| format!("decision {number}"))?;
        first.push(one);
        answered.push(other);
        api.delete(&key, &DeleteOptions::default()).map_err(|why| anyhow!("the request: {}", why.message))?;
        tokio::time::sleep(PAUSE).await;
    }
    let figure = |what: &str, share, series: &mut Vec<Duration>| {
        millis(series, share).map(|value| Figure::new(format!("latency: a request, to {what}"), value, "ms"))
    };
    let figures = [
        figure("the first effect sent, p50", 0.5, &mut first),
        figure("the first effect sent, p99", 0.99, &mut first),
        figure("the verdict sent, p50", 0.5, &mut answered),
        figure("the verdict sent, p99", 0.99, &mut answered),
    ];
    Ok(figures.into_iter().flatten().collect())
}

/// How long until the first request that this question causes, and until its answer, was sent.
async fn answer(
    calls: &mut UnboundedReceiver<(Instant, Call)>,
    key: &Key,
    asked: Instant,
) -> Result<(Duration, Duration)> {
    let mut first = None;
    loop {
        let heard = tokio::time::timeout(LIMIT, calls.recv()).await;
        let Ok(Some((at, call))) = heard else { bail!("no answer within {LIMIT:?}") };
        let took = at.duration_since(asked);
        // Leases, watches and the ledger go on whether somebody asks or not.
        if call.verb == Verb::List && call.kind == Some(Kind::POD) {
            first.get_or_insert(took);
        }
        if call.key.as_ref() == Some(key) && call.is_write() {
            return Ok((first.unwrap_or(took), took));
        }
    }
}
