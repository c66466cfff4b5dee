//! How long half an hour of a cluster takes: `cargo run --release -p palisade-cluster --example speed [runs]`.

#![expect(clippy::disallowed_methods, reason = "this is what measures real time")]

use std::time::{Duration, Instant};

use palisade_cluster::{Cluster, Shape, machines::machine::Link, workloads::Claim};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let runs: u64 = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(20);
    println!("{runs} runs of 30 minutes, 8 nodes, 3 StatefulSets of 3, a ReplicaSet of 6");
    for (name, trouble) in [("quiet", false), ("a dead and a partitioned node", true)] {
        let begun = Instant::now();
        let mut writes = 0;
        let mut events = 0;
        for seed in 0..runs {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
            let (w, e) = runtime.block_on(half_an_hour(seed, trouble))?;
            writes += w;
            events += e;
        }
        let took = begun.elapsed() / u32::try_from(runs)?;
        println!("{name}: {took:?} a run; {} writes and {} events of nature", writes / runs, events / runs);
    }
    Ok(())
}

async fn half_an_hour(seed: u64, trouble: bool) -> Result<(u64, u64), Box<dyn std::error::Error>> {
    let cluster = Cluster::up(&Shape { nodes: 8, zones: 2, seed, ..Shape::default() }).await;
    for name in ["db", "queue", "index"] {
        cluster.stateful_set(name, 3, Claim::ReadWriteOnce)?;
    }
    cluster.replica_set("web", 6)?;
    cluster.run_for(Duration::from_mins(5)).await;
    if trouble {
        cluster.power_off("n1");
        cluster.cut("n2", Link::Api);
        cluster.run_for(Duration::from_mins(10)).await;
        cluster.outside_on("n1");
        cluster.heal("n2", Link::Api);
    }
    cluster.run_for(Duration::from_mins(30).saturating_sub(cluster.elapsed())).await;
    let events = cluster.truth().look(|world| world.events.len() as u64);
    Ok((cluster.api().revision(), events))
}
