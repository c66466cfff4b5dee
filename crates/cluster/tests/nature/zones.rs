//! Many nodes at once.

use palisade_cluster::{
    Cluster, Shape,
    machines::machine::Link,
    truth::{Daemon, DaemonState},
};

use crate::world::{has_taint, ready, seconds};

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

fn evicted(cluster: &Cluster, nodes: &[&str]) -> usize {
    nodes.iter().filter(|node| has_taint(cluster, node, UNREACHABLE, "NoExecute")).count()
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_is_gone_is_emptied_one_node_every_ten_seconds() {
    let cluster = Cluster::up(&Shape { nodes: 6, zones: 2, ..Shape::default() }).await;
    let dark = ["n1", "n3", "n5"];
    for node in dark {
        cluster.power_off(node);
    }
    cluster.run_until(seconds(80), |c| evicted(c, &dark) == 1).await.expect("the first");
    let all = cluster.run_until(seconds(60), |c| evicted(c, &dark) == 3).await.unwrap();
    assert!((19..=30).contains(&all.as_secs()), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_is_mostly_gone_is_not_emptied() {
    let cluster = Cluster::up(&Shape { nodes: 5, ..Shape::default() }).await;
    let dark = ["n1", "n2", "n3"];
    for node in dark {
        cluster.power_off(node);
    }
    cluster.run_for(seconds(600)).await;
    assert!(dark.iter().all(|node| ready(&cluster, node) == "Unknown"));
    assert!(evicted(&cluster, &dark) <= 1, "all but those that were seen first, before it looked like a storm");
    assert!(dark.iter().all(|node| has_taint(&cluster, node, UNREACHABLE, "NoSchedule")));
}

#[tokio::test(start_paused = true)]
async fn when_everybody_is_silent_it_is_the_observer_who_is_blind() {
    let cluster = Cluster::up(&Shape { nodes: 4, zones: 2, ..Shape::default() }).await;
    let all = ["n1", "n2", "n3", "n4"];
    for node in all {
        cluster.cut(node, Link::Api);
    }
    cluster.run_for(seconds(900)).await;
    assert!(all.iter().all(|node| ready(&cluster, node) == "Unknown"));
    assert_eq!(evicted(&cluster, &all), 0);

    cluster.heal("n1", Link::Api);
    cluster.run_until(seconds(20), |c| ready(c, "n1") == "True").await.unwrap();
    // Now somebody is there to compare with: the others count as gone, one after the other.
    cluster.run_until(seconds(60), |c| evicted(c, &all) == 3).await.expect("the rest is evicted");
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_api_server_leaves_no_traces_but_conditions() {
    let cluster = Cluster::up(&Shape { nodes: 4, zones: 2, ..Shape::default() }).await;
    let all = ["n1", "n2", "n3", "n4"];
    cluster.set_daemon(Daemon::ApiServer, DaemonState::Down);
    let revision = cluster.api().revision();
    cluster.run_for(seconds(600)).await;
    assert_eq!(cluster.api().revision(), revision, "nobody gets through");
    cluster.set_daemon(Daemon::ApiServer, DaemonState::Running);
    cluster.run_for(seconds(30)).await;
    assert!(all.iter().all(|node| ready(&cluster, node) == "True"));
    assert_eq!(evicted(&cluster, &all), 0);
}
