//! Failover: the main job with a stopwatch. The same measurement in every world.
//!
//! Promise: nothing is taken from what the operator says of itself. A moment counts when it can be seen, in the API or in the
//! machine room; so each is late by as much as the world's eyes are.

use std::fmt;
use std::time::Duration;

use crate::look::Look;
use crate::world::{Power, Told, World};

/// When each thing was so, since the node failed. What was never seen has no time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Split {
    /// A request about the node is there.
    pub detected: Option<Duration>,
    /// The fence is there.
    pub admitted: Option<Duration>,
    /// The machine is off.
    pub isolated: Option<Duration>,
    /// A proof is on record.
    pub proven: Option<Duration>,
    /// The old pod is gone from the API.
    pub released: Option<Duration>,
    /// Its successor has a node.
    pub scheduled: Option<Duration>,
    /// Its successor is ready, with its volume.
    pub running: Option<Duration>,
}

impl Split {
    /// The words over the columns.
    pub const HEAD: [&'static str; 7] =
        ["detected", "admitted", "isolated", "proven", "released", "scheduled", "running"];

    fn times(&self) -> [Option<Duration>; 7] {
        let Self { detected, admitted, isolated, proven, released, scheduled, running } = *self;
        [detected, admitted, isolated, proven, released, scheduled, running]
    }

    fn look(&mut self, world: &dyn Look, of: &Victim<'_>) {
        let at = world.elapsed().saturating_sub(of.failed);
        let note = |place: &mut Option<Duration>, so: &dyn Fn() -> bool| {
            if place.is_none() && so() {
                *place = Some(at);
            }
        };
        let uid = world.uid_of(of.pod);
        let bound = world.node_of(of.pod);
        note(&mut self.detected, &|| world.requests_of(of.node).len() > of.requests);
        note(&mut self.admitted, &|| world.fence_of(of.node).is_some());
        note(&mut self.isolated, &|| world.power_of(of.node) == Power::Off);
        note(&mut self.proven, &|| {
            world.fence_of(of.node).and_then(|fence| fence.status).is_some_and(|status| !status.proofs.is_empty())
        });
        note(&mut self.released, &|| uid != of.uid);
        note(&mut self.scheduled, &|| uid != of.uid && !bound.is_empty());
        note(&mut self.running, &|| uid != of.uid && world.has_left(of.pod, of.node));
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for time in self.times() {
            match time {
                Some(time) => write!(f, "{:>9.1} s", time.as_secs_f32())?,
                None => write!(f, "{:>11}", "-")?,
            }
        }
        Ok(())
    }
}

/// Whom it happens to.
struct Victim<'a> {
    node: &'a str,
    pod: &'a str,
    uid: String,
    requests: usize,
    failed: Duration,
}

/// Watches from the failure of the pod's node, which `fail` brings about, until the pod runs elsewhere.
pub async fn failover<W: World>(
    world: &mut W,
    pod: &str,
    within: u64,
    fail: impl AsyncFnOnce(&mut W, &str) -> Told,
) -> Told<Split> {
    let node = world.node_of(pod);
    let (uid, requests, failed) = (world.uid_of(pod), world.requests_of(&node).len(), world.elapsed());
    let victim = Victim { node: &node, pod, uid, requests, failed };
    let mut split = Split::default();
    fail(world, &node).await?;
    let moved = |world: &dyn Look| {
        split.look(world, &victim);
        split.running.is_some()
    };
    world.run_until(within, "the pod runs on another node", moved).await?;
    Ok(split)
}

/// A table of splits, the fastest first, with the median and the longest.
pub fn table(splits: &[Split]) -> String {
    use fmt::Write as _;
    let mut sorted = splits.to_vec();
    sorted.sort_by_key(|split| split.running);
    let mut text = String::new();
    for word in Split::HEAD {
        let _infallible = write!(text, "{word:>11}");
    }
    for split in &sorted {
        let _infallible = write!(text, "\n{split}");
    }
    let running = |split: Option<&Split>| split.and_then(|split| split.running).unwrap_or_default().as_secs_f32();
    let _infallible = write!(
        text,
        "\nfailover over {} runs: median {:.1} s, longest {:.1} s",
        sorted.len(),
        running(sorted.get(sorted.len() / 2)),
        running(sorted.last())
    );
    text
}
