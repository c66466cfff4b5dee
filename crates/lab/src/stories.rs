//! Stories: which of the catalogue are told in the lab, and telling them.
//!
//! All of them are told in the embedded world. Here it is those that real time allows: under three minutes each. The longer
//! ones are for `cargo xtask soak --lab`.

use std::time::{Duration, Instant};

use anyhow::Result;
use palisade_scenarios::catalogue::Story;
use palisade_scenarios::stories::FIRST;
use palisade_scenarios::world::World;

use crate::lab::Lab;
use crate::world::LabWorld;

/// Told in every run of the tests.
pub const TOLD: &[&str] = &[
    "power_failure",
    "power_failure_is_proven_first",
    "partition_that_still_writes",
    "partition_from_peers_too",
    "kubelet_hangs",
    "bmc_is_slow",
    "two_stateful_sets_on_one_node",
    "all_sorts_beside_the_database",
    "pods_that_share_a_claim_go_together",
    "pod_with_a_finalizer",
    "request_on_a_healthy_node",
    "node_returns_during_the_fence",
    "node_returns_after_the_release",
    "somebody_switches_it_on_before_the_release",
    "somebody_switches_it_on_after_the_mark",
    "somebody_switches_it_on_after_the_release",
    "fence_deleted_after_the_mark",
    "quarantine_taint_removed",
    "pod_deleted_by_an_admin",
    "two_operators_at_once",
    "crash_in_isolating",
    "crash_when_marked",
    "leader_on_the_dying_node",
];

/// How a story ended.
#[derive(Clone, Debug)]
pub struct Ended {
    /// Its name.
    pub name: &'static str,
    /// How long it took, with the cleaning up before it.
    pub took: Duration,
    /// What was not as told; empty if all was.
    pub wrong: Vec<String>,
}

/// Tells stories one after the other on one lab. `told` hears of each when it ends.
pub async fn tell(
    lab: &Lab,
    mut next: impl FnMut() -> Option<&'static str>,
    told: &mut dyn FnMut(&Ended),
) -> Result<()> {
    let mut world = LabWorld::over(lab).await?;
    while let Some(name) = next() {
        let Some(story) = Story::<LabWorld>::named(name) else { continue };
        let begin = Instant::now();
        let mut wrong = Vec::new();
        let bites = world.two_writers().len();
        match world.fresh(FIRST).await {
            Ok(()) => wrong.extend(story.tell(&mut world).await.err().map(|why| why.to_string())),
            Err(why) => wrong.push(format!("the lab did not become fresh: {why:#}")),
        }
        wrong.extend(world.two_writers().into_iter().skip(bites).map(|bite| format!("two writers: {bite}")));
        told(&Ended { name: story.name, took: begin.elapsed(), wrong });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_scenarios::catalogue::NAMES;

    #[test]
    fn at_least_twenty_stories_of_the_catalogue_are_told() {
        assert!(TOLD.len() >= 20);
        let unknown: Vec<_> = TOLD.iter().filter(|name| !NAMES.contains(name)).collect();
        assert!(unknown.is_empty(), "not in the catalogue: {unknown:?}");
    }
}
