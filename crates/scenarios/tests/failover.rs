//! The main job, in virtual time.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::time::Duration;

use palisade_cluster::Shape;
use palisade_cluster::workloads::Claim;
use palisade_scenarios::embedded::Embedded;

#[tokio::test(start_paused = true)]
async fn a_node_loses_its_power_and_its_database_moves() {
    let shape = Shape { nodes: 4, ..Shape::default() };
    let mut world = Embedded::up(&shape).await;
    world.start("palisade-0");
    world.cluster.stateful_set("db", 1, Claim::ReadWriteOnce).unwrap();
    world.cluster.run_until(Duration::from_mins(1), |cluster| cluster.is_ready("db-0")).await.unwrap();
    // Past the quiet period of a new operator.
    world.run_for(120).await;
    let home = world.cluster.node_of("db-0");
    let (died, before) = (world.cluster.clock().now(), world.cluster.api().revision());
    world.cluster.power_off(&home);
    let moved = world
        .cluster
        .run_until(Duration::from_mins(2), |cluster| cluster.is_ready("db-0") && cluster.node_of("db-0") != home)
        .await;
    let fences = world.cluster.api().kind("palisade.dev", "NodeFence").unwrap();
    let back = world.cluster.run_until(Duration::from_mins(10), |cluster| cluster.api().list(fences).is_empty()).await;
    for change in world.cluster.api().changes_since(before).unwrap() {
        if change.at >= died {
            let said = change.new.as_ref().map(|new| {
                let text = |path: &str| new.pointer(path).map(ToString::to_string).unwrap_or_default();
                format!("{} {} {}", text("/status/phase"), text("/status/reason"), text("/status/message"))
            });
            println!(
                "{:>9} {:<24} {}/{} {}",
                change.at.duration_since(died).as_millis(),
                change.by.name(),
                change.key.namespace,
                change.key.name,
                said.unwrap_or_else(|| "gone".to_owned())
            );
        }
    }
    println!("moved after {moved:?}, back after {back:?}");
    assert!(back.is_some());
    assert!(moved.is_some());
}
