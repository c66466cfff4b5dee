//! Crash points: two stories, and the operator dies right after each single thing that it does, one run per thing.
//!
//! Promise: whatever was sent last, and whether the answer was heard or not, the next process ends the story as the first one
//! would have: nothing is broken, the database was moved and runs, the node is back, nothing is left over.

use std::time::Duration;

use palisade_api::names;
use palisade_cluster::Shape;
use palisade_cluster::api::Kind;
use palisade_cluster::machines::machine::Link;
use palisade_cluster::workloads::Claim;
use palisade_scenarios::embedded::Embedded;
use serde_json::Value;

use crate::acts::Acts;
use crate::oracle::Oracle;

/// What happens to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {
    /// It loses its power.
    PowerFailure,
    /// It is cut off from everybody but its disk, writes on, and is healed after three minutes.
    Partition,
}

/// A run with a crash.
#[derive(Clone, Debug, Default)]
pub struct Crashed {
    /// What the operator had just done.
    pub after: String,
    /// What was broken; empty: nothing.
    pub broken: Vec<String>,
    /// The database runs on another node than before.
    pub moved: bool,
    /// How many acts there were in all.
    pub acts: u64,
    /// What people were told, in order.
    pub told: Vec<String>,
}

const CALM: Duration = Duration::from_mins(2);
const HEALED: Duration = Duration::from_mins(3);
/// Two boots, the return checks, and a second try of everything.
const LIMIT: Duration = Duration::from_mins(12);

/// Plays a story, and lets the operator that acts die right after each of these acts, counted from the failure on; another one
/// starts at once in its place.
pub fn crashed_after(story: Story, replicas: usize, points: &[u64]) -> Crashed {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(play(story, replicas, points)),
        Err(why) => Crashed { broken: vec![format!("could not run: {why}")], ..Crashed::default() },
    }
}

async fn play(story: Story, replicas: usize, points: &[u64]) -> Crashed {
    let mut world = Embedded::up(&Shape { nodes: 4, ..Shape::default() }).await;
    let kind = |name: &str| world.cluster.api().kind(names::GROUP, name);
    let (fences, policies) = (kind("NodeFence"), kind("FencePolicy"));
    let oracle = Oracle::watch(&world.cluster, fences);
    for number in 0..replicas {
        world.start(&format!("palisade-{number}"));
    }
    let mut crashed = Crashed::default();
    if let Err(why) = world.cluster.stateful_set("db", 1, Claim::ReadWriteOnce) {
        crashed.broken.push(format!("db could not be made: {why:?}"));
    }
    world.cluster.run_for(CALM).await;
    let home = world.cluster.node_of("db-0");
    let acts = Acts::count(&world.cluster);
    let failed = world.cluster.elapsed();
    match story {
        Story::PowerFailure => world.cluster.power_off(&home),
        Story::Partition => {
            world.cluster.cut(&home, Link::Api);
            world.cluster.cut(&home, Link::Peers);
        }
    }
    let mut healed = story == Story::PowerFailure;
    let mut left = points.iter().copied().peekable();
    loop {
        let next = if healed { failed + LIMIT } else { failed + HEALED };
        let until = next.saturating_sub(world.cluster.elapsed());
        let point = left.peek().copied();
        world.cluster.run_until(until, |_| point.is_some_and(|point| acts.so_far() >= point)).await;
        if point.is_some_and(|point| acts.so_far() >= point) {
            left.next();
            crashed.after = format!("{}{}; ", crashed.after, acts.last());
            let name = Some(acts.last_by()).filter(|name| !name.is_empty()).unwrap_or_else(|| "palisade-0".to_owned());
            world.crash(&name);
            world.start(&name);
        } else if healed {
            break;
        } else {
            world.cluster.heal(&home, Link::Api);
            world.cluster.heal(&home, Link::Peers);
            healed = true;
        }
    }
    if !world.cluster.is_ready("db-0") {
        crashed.broken.push("db-0 does not run".to_owned());
    }
    crashed.moved = world.cluster.node_of("db-0") != home;
    oracle.at_the_end(&world.cluster, fences, policies);
    crashed.broken.extend(oracle.found());
    crashed.broken.extend(oracle.unexplained());
    crashed.acts = acts.so_far();
    crashed.told = told(&world);
    crashed
}

/// The Events of the run.
fn told(world: &Embedded) -> Vec<String> {
    let text = |event: &Value, field: &str| event.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let events = world.cluster.api().list(Kind::EVENT);
    let mut told: Vec<_> = events
        .iter()
        .map(|event| {
            (text(event, "eventTime"), text(event, "firstTimestamp"), text(event, "reason"), text(event, "message"))
        })
        .collect();
    told.sort();
    told.into_iter().map(|(at, first, reason, message)| format!("{at}{first} {reason}: {message}")).collect()
}
