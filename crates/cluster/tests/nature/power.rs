//! Nodes that die or fall silent.

use palisade_cluster::{
    Cluster, Shape,
    api::{Kind, metadata},
    machines::machine::{Link, Power},
};
use serde_json::Value;

use crate::world::{has_taint, is_marked, ready, seconds, uid, with_db};

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_up_and_runs_a_database() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let writers = cluster.writers(&volume);
    assert_eq!(writers.len(), 1);
    assert_eq!(*writers[0].node, *node);
    assert_eq!(*writers[0].pod, uid(&cluster, "db-0"));
}

#[tokio::test(start_paused = true)]
async fn a_dead_node_is_unknown_after_50_s_tainted_and_emptied_but_its_database_stays_down_for_ever() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    cluster.replica_set("web", 3).unwrap();
    cluster.run_for(seconds(30)).await;
    let old = uid(&cluster, "db-0");
    cluster.power_off(&node);
    assert_eq!(cluster.power(&node), Some(Power::Off));

    // The last renewal was up to 10 s before the death, and the controller looks every 5 s.
    let silent = cluster.run_until(seconds(70), |c| ready(c, &node) == "Unknown").await.unwrap();
    assert!((40..=56).contains(&silent.as_secs()), "{silent:?}");
    let unreachable = "node.kubernetes.io/unreachable";
    let tainted = cluster.run_until(seconds(20), |c| has_taint(c, &node, unreachable, "NoExecute")).await.unwrap();
    assert!(tainted <= seconds(6), "{tainted:?}");
    assert!(has_taint(&cluster, &node, unreachable, "NoSchedule"));

    let marked = cluster.run_until(seconds(400), |c| is_marked(c, "db-0")).await.unwrap();
    assert!((299..=301).contains(&marked.as_secs()), "{marked:?}");
    // Nobody waits for the old pods of a ReplicaSet.
    let replaced = |c: &Cluster| {
        let pods = c.api().list_in(Kind::POD, "default");
        let elsewhere = |pod: &Value| metadata::name(pod).starts_with("web-") && pod["spec"]["nodeName"] != node;
        pods.iter().filter(|pod| elsewhere(pod) && pod["status"]["phase"] == "Running").count() == 3
    };
    cluster.run_until(seconds(30), replaced).await.expect("the ReplicaSet runs elsewhere");

    cluster.run_for(seconds(24 * 3600)).await;
    assert_eq!(uid(&cluster, "db-0"), old);
    assert!(is_marked(&cluster, "db-0"));
    assert!(cluster.writers(&volume).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_partitioned_node_goes_on_writing_until_it_hears_that_it_should_not() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let old = uid(&cluster, "db-0");
    cluster.cut(&node, Link::Api);
    cluster.run_for(seconds(600)).await;
    assert_eq!(ready(&cluster, &node), "Unknown");
    assert!(is_marked(&cluster, "db-0"));
    assert_eq!(cluster.writers(&volume).len(), 1, "it knows nothing of all this");
    let lines = cluster.truth().look(|world| world.storage.lines(&volume, cluster.elapsed()).len());
    assert!(lines >= 600, "{lines}");

    cluster.heal(&node, Link::Api);
    let back = cluster.run_until(seconds(120), |c| c.is_ready("db-0") && uid(c, "db-0") != old).await;
    assert!(back.is_some());
    assert_eq!(cluster.writers(&volume).len(), 1);
    assert_eq!(ready(&cluster, &node), "True");
}

#[tokio::test(start_paused = true)]
async fn a_hung_kubelet_leaves_its_pods_running_and_goes_on_where_it_stood() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    cluster.kubelet_hang(&node);
    cluster.run_until(seconds(70), |c| ready(c, &node) == "Unknown").await.expect("its lease runs out");
    assert_eq!(cluster.writers(&volume).len(), 1);

    cluster.kubelet_resume(&node);
    let back = cluster.run_until(seconds(30), |c| ready(c, &node) == "True" && c.is_ready("db-0")).await.unwrap();
    assert!(back <= seconds(12), "{back:?}");
    assert_eq!(cluster.truth().look(|world| world.storage.stretches(&volume).count()), 1, "it never stopped writing");
    let untainted = |c: &Cluster| !has_taint(c, &node, "node.kubernetes.io/unreachable", "NoExecute");
    cluster.run_until(seconds(10), untainted).await.expect("the taints go with the cause");
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_deleted_node_are_collected_and_the_node_stays_away_until_its_kubelet_starts_anew() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let old = uid(&cluster, "db-0");
    cluster.cut(&node, Link::Api);
    cluster.delete_node(&node).unwrap();
    // 40 s of quarantine, looked at every 20 s.
    let gone = cluster.run_until(seconds(100), |c| uid(c, "db-0") != old).await.unwrap();
    assert!((40..=81).contains(&gone.as_secs()), "{gone:?}");
    assert_eq!(cluster.writers(&volume).len(), 1, "the old one writes all the same");

    cluster.heal(&node, Link::Api);
    let stopped = |c: &Cluster| c.writers(&volume).iter().all(|writer| *writer.pod != *old);
    cluster.run_until(seconds(30), stopped).await.expect("the kubelet ends a pod whose object is gone");
    cluster.run_for(seconds(60)).await;
    assert!(cluster.node(&node).is_none());
    cluster.kubelet_restart(&node);
    cluster.run_until(seconds(30), |c| c.node(&node).is_some()).await.expect("it registers when it starts");
}

#[tokio::test(start_paused = true)]
async fn a_machine_with_two_supplies_is_off_only_when_both_are() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    cluster.truth().act(|world| {
        world.plug_in(&node, "pdu-a", 3);
        world.plug_in(&node, "pdu-b", 3);
        assert!(world.switch_outlet("pdu-a", 3, false));
        assert!(!world.switch_outlet("pdu-a", 9, false), "there is no such outlet");
    });
    assert_eq!(cluster.power(&node), Some(Power::On));
    assert_eq!(cluster.writers(&volume).len(), 1);
    cluster.truth().act(|world| world.switch_outlet("pdu-b", 3, false));
    assert_eq!(cluster.power(&node), Some(Power::Off));
    assert!(cluster.writers(&volume).is_empty());
    cluster.truth().act(|world| world.switch_outlet("pdu-a", 3, true));
    assert_eq!(cluster.power(&node), Some(Power::PoweringOn), "one feed is enough to start by itself");
}
