//! The main job, in virtual time: how long from the death of a node to its database running elsewhere, volume and all?
//!
//! Stock timings of the control plane, detection by lease. Virtual time is the same on every machine, so this may be asserted.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::time::Duration;

use palisade_cluster::workloads::Claim;
use palisade_cluster::{Cluster, Shape};
use palisade_scenarios::embedded::Embedded;
use serde_json::Value;

/// When each thing was done, since the node died.
#[derive(Debug, Default)]
struct Split {
    claimed: Duration,
    admitted: Duration,
    proven: Duration,
    released: Duration,
    running: Duration,
    back: Duration,
}

#[test]
fn a_node_loses_its_power_and_its_database_moves_within_half_a_minute() {
    let mut splits: Vec<Split> = (1..=41).map(failover).collect();
    splits.sort_by_key(|split| split.running);
    println!("{:>9} {:>9} {:>9} {:>9} {:>9} {:>9}", "claimed", "admitted", "proven", "released", "running", "back");
    for split in &splits {
        let Split { claimed, admitted, proven, released, running, back } = split;
        println!("{claimed:>9.1?} {admitted:>9.1?} {proven:>9.1?} {released:>9.1?} {running:>9.1?} {back:>9.1?}");
    }
    let (median, longest) = (splits[splits.len() / 2].running, splits.last().unwrap().running);
    println!("failover over {} seeds: median {median:.1?}, longest {longest:.1?}", splits.len());
    assert!(median <= Duration::from_secs(24), "median {median:?}");
    assert!(longest <= Duration::from_secs(30), "longest {longest:?}");
}

fn failover(seed: u64) -> Split {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async move {
        let mut world = Embedded::up(&Shape { nodes: 4, seed, ..Shape::default() }).await;
        world.start("palisade-0");
        world.cluster.stateful_set("db", 1, Claim::ReadWriteOnce).unwrap();
        // Past the quiet period of a new operator, and at another moment of the lease's interval with every seed.
        world.cluster.run_for(Duration::from_mins(3) + Duration::from_millis(seed * 257)).await;
        assert!(world.cluster.is_ready("db-0"));
        let home = world.cluster.node_of("db-0");
        let (died, before) = (world.cluster.elapsed(), world.cluster.api().revision());
        world.cluster.power_off(&home);
        let moved = |cluster: &Cluster| cluster.is_ready("db-0") && cluster.node_of("db-0") != home;
        let running = world.cluster.run_until(Duration::from_mins(2), moved).await.unwrap();
        let fences = world.cluster.api().kind("palisade.dev", "NodeFence").unwrap();
        let over = |cluster: &Cluster| cluster.api().list(fences).is_empty();
        world.cluster.run_until(Duration::from_mins(10), over).await.unwrap();
        let mut split = Split { running, back: world.cluster.elapsed().saturating_sub(died), ..Split::default() };
        let epoch = Shape::default().epoch;
        for change in world.cluster.api().changes_since(before).unwrap() {
            let at = Duration::try_from(change.at.duration_since(epoch)).unwrap().saturating_sub(died);
            let first = |place: &mut Duration| *place = if place.is_zero() { at } else { *place };
            let new = change.new.as_deref();
            let has = |list: &str| {
                let all = new.and_then(|new| new.pointer(list)).and_then(Value::as_array);
                all.is_some_and(|all| !all.is_empty())
            };
            if change.key.kind == fences {
                first(&mut split.admitted);
                if has("/status/proofs") {
                    first(&mut split.proven);
                }
            } else if change.key.namespace.as_ref() == "palisade-system" && change.key.name.starts_with(&home) {
                first(&mut split.claimed);
            } else if *change.key.name == *"db-0" && new.is_none() {
                first(&mut split.released);
            }
        }
        split
    })
}
