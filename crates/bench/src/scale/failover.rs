//! Scale / failover: one node dies among thousands; how long each step takes, seen from the API server and from the BMC.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use palisade_api::names;
use palisade_cluster::api::{Api, Change, Kind};
use serde_json::Value;

use super::machines::{Asked, Machines};
use crate::clock::now;
use crate::table::Figure;

/// Who dies.
const VICTIM: u32 = 7;
/// No failover takes longer.
const LIMIT: Duration = Duration::from_mins(3);

/// When what was written.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    request: Option<Instant>,
    fence: Option<Instant>,
    isolated: Option<Instant>,
    last_pod: Option<Instant>,
    over: Option<Instant>,
}

/// Takes one node's power away, and follows what comes of it. No figures if it does not come to an end.
pub(crate) async fn measure(api: &Api, machines: &Machines, what: &str) -> Result<Vec<Figure>> {
    let seen = watch(api)?;
    let look = || *seen.lock().unwrap_or_else(PoisonError::into_inner);
    let died = now();
    machines.kill(VICTIM);
    while look().over.is_none() && died.elapsed() < LIMIT {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let seen = look();
    let steps = || Some((seen.request?, seen.fence?, seen.isolated?, seen.last_pod?));
    let Some((request, fence, isolated, last_pod)) = steps() else {
        // How far it came is a finding, not a failure of the measure.
        eprintln!("{what}, failover: not over within {LIMIT:?}: {seen:?}");
        return Ok(Vec::new());
    };
    let asked = machines.asked(VICTIM);
    let told_off = asked.iter().find(|(what, _)| *what == Asked::Off).map(|(_, at)| *at);
    let seen_off = asked.iter().rev().find(|(what, at)| *what == Asked::Read && *at <= isolated).map(|(_, at)| *at);
    // Who finds the machine off need not tell it.
    let seen_off = seen_off.unwrap_or(isolated);
    let told_off = told_off.unwrap_or(seen_off);

    let part = |name: &str, from: Instant, to: Instant| {
        Figure::new(format!("{what}, failover: {name}"), to.duration_since(from).as_secs_f64() * 1e3, "ms")
    };
    let decided = told_off.duration_since(request) + last_pod.duration_since(seen_off);
    let mut figures = vec![
        Figure::new(
            format!("{what}, failover: death to last pod removed"),
            last_pod.duration_since(died).as_secs_f64(),
            "s",
        )
        .at_most(75.0),
        part("death to request", died, request),
        part("request to fence", request, fence),
        part("fence to the BMC told", fence, told_off),
        part("told to seen off, steadily (device)", told_off, seen_off),
        part("seen off to isolated", seen_off, isolated),
        part("isolated to last pod removed", isolated, last_pod),
        Figure::new(format!("{what}, failover: operator's part"), decided.as_secs_f64() * 1e3, "ms").at_most(500.0),
    ];
    if let Some(over) = seen.over {
        figures.push(part("last pod removed to fence gone", last_pod, over));
    }
    Ok(figures)
}

/// Notes the writes that matter as they happen.
fn watch(api: &Api) -> Result<Arc<Mutex<Seen>>> {
    let kind = |name: &str| api.kind(names::GROUP, name).ok_or_else(|| anyhow!("there is no kind {name}"));
    let (fences, requests) = (kind("NodeFence")?, kind("NodeFencingRequest")?);
    let seen = Arc::new(Mutex::new(Seen::default()));
    let notes = Arc::clone(&seen);
    api.on_write(Box::new(move |_, change| {
        let mut seen = notes.lock().unwrap_or_else(PoisonError::into_inner);
        note(&mut seen, change, fences, requests);
    }));
    Ok(seen)
}

fn note(seen: &mut Seen, change: &Change, fences: Kind, requests: Kind) {
    let phase = change.new.as_ref().and_then(|new| new.pointer("/status/phase")).and_then(Value::as_str);
    if change.key.kind == requests {
        seen.request.get_or_insert_with(now);
    } else if change.key.kind == fences {
        seen.fence.get_or_insert_with(now);
        if phase == Some("Isolated") {
            seen.isolated.get_or_insert_with(now);
        }
        if change.new.is_none() {
            seen.over = Some(now());
        }
    } else if change.key.kind == Kind::POD && change.new.is_none() {
        seen.last_pod = Some(now());
    }
}
