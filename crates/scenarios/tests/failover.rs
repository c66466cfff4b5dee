//! The main job, in virtual time: how long from the death of a node to its database running elsewhere, volume and all?
//!
//! Stock timings of the control plane, detection by lease. Virtual time is the same on every machine, so this may be asserted.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::time::Duration;

use palisade_cluster::Shape;
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::failover::{Split, failover, table};
use palisade_scenarios::stories::database;
use palisade_scenarios::world::World;

#[test]
fn a_node_loses_its_power_and_its_database_moves_within_half_a_minute() {
    let splits: Vec<Split> = (1..=41).map(moved).collect();
    println!("{}", table(&splits));
    let mut running: Vec<Duration> = splits.iter().map(|split| split.running.unwrap()).collect();
    running.sort_unstable();
    let (median, longest) = (running[running.len() / 2], running[running.len() - 1]);
    assert!(median <= Duration::from_secs(24), "median {median:?}");
    assert!(longest <= Duration::from_secs(30), "longest {longest:?}");
}

fn moved(seed: u64) -> Split {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async move {
        let mut world = Embedded::up(&Shape { nodes: 4, seed, ..Shape::default() }).await;
        let home = database(&mut world).await.unwrap();
        // At another moment of the lease's interval with every seed.
        world.cluster.run_for(Duration::from_millis(seed * 257)).await;
        let split = failover(&mut world, "db-0", 120, async |world, node| world.power_off(node).await).await.unwrap();
        world.run_until(600, "the node is back", |world| world.node_is_clean(&home)).await.unwrap();
        split
    })
}
