//! Machines that come back.

use palisade_cluster::{
    Cluster, Shape,
    api::{DeleteOptions, Key, Kind},
    machines::machine::{Link, Power},
    storage::StorageSettings,
    truth::Name,
};

use crate::world::{is_marked, ready, seconds, uid, with_db};

fn mark(cluster: &Cluster, pod: &str) {
    let deleted = cluster.api().delete(&Key::new(Kind::POD, "default", pod), &DeleteOptions::default()).unwrap();
    assert!(!deleted.is_gone());
}

#[tokio::test(start_paused = true)]
async fn an_unmarked_pod_comes_back_with_its_machine_under_the_same_uid() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let (old, first) = (uid(&cluster, "db-0"), cluster.boot(&node).unwrap());
    cluster.power_off(&node);
    cluster.run_for(seconds(20)).await;
    cluster.outside_on(&node);
    let back = cluster.run_until(seconds(120), |c| !c.writers(&volume).is_empty()).await.unwrap();
    assert!((24..=70).contains(&back.as_secs()), "{back:?}");
    let writers = cluster.writers(&volume);
    assert_eq!(*writers[0].pod, *old);
    assert_ne!(writers[0].boot, first);
    let seen = cluster.node(&node).unwrap()["status"]["nodeInfo"]["bootID"].clone();
    assert_eq!(seen, *writers[0].boot);
}

#[tokio::test(start_paused = true)]
async fn a_marked_pod_does_not_come_back_and_another_takes_its_place() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let old = uid(&cluster, "db-0");
    cluster.power_off(&node);
    mark(&cluster, "db-0");
    assert!(is_marked(&cluster, "db-0"));
    cluster.run_for(seconds(20)).await;
    cluster.outside_on(&node);
    cluster.run_until(seconds(180), |c| c.is_ready("db-0") && uid(c, "db-0") != old).await.expect("a new pod runs");
    let by_old = |line: &palisade_cluster::storage::Stretch| *line.writer.pod == *old;
    let stretches = cluster.truth().look(|world| world.storage.stretches(&volume).filter(|s| by_old(s)).count());
    assert_eq!(stretches, 1, "only what it wrote before the power went");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_lists_from_a_lagging_api_server_is_stopped_by_volumes_attached_alone() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let (old, before) = (uid(&cluster, "db-0"), cluster.api().revision());
    cluster.power_off(&node);
    cluster.force_delete("db-0").unwrap();
    crate::world::taint(&cluster, &node, "test", "NoSchedule");
    let drop_in_use = |node: &mut serde_json::Value| node["status"]["volumesInUse"] = serde_json::json!([]);
    cluster.api().update(&Key::cluster(Kind::NODE, &node), drop_in_use).unwrap();
    cluster.run_until(seconds(60), |c| c.is_ready("db-0")).await.expect("it runs elsewhere");

    cluster.kubelet_lists_from(&node, Some(before));
    cluster.outside_on(&node);
    cluster.run_until(seconds(90), |c| ready(c, &node) == "True").await.unwrap();
    cluster.run_for(seconds(120)).await;
    assert!(cluster.writers(&volume).iter().all(|writer| *writer.pod != *old));
    assert_eq!(cluster.node(&node).unwrap()["status"]["volumesInUse"].as_array().map(Vec::len), Some(1), "it wants to");
    cluster.kubelet_lists_from(&node, None);
    let given_up = |c: &Cluster| c.node(&node).unwrap()["status"]["volumesInUse"].as_array().is_some_and(Vec::is_empty);
    cluster.run_until(seconds(30), given_up).await.expect("with fresh eyes it sees that the pod is gone");
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_only_asleep_goes_on_where_it_stood() {
    for hibernates in [false, true] {
        let (cluster, node, volume) = with_db(&Shape::default()).await;
        let boot = cluster.boot(&node);
        if hibernates {
            cluster.hibernate(&node);
        } else {
            cluster.suspend(&node);
        }
        assert!(cluster.writers(&volume).is_empty());
        cluster.run_for(seconds(120)).await;
        assert_eq!(ready(&cluster, &node), "Unknown");
        cluster.resume(&node);
        cluster.run_until(seconds(30), |c| !c.writers(&volume).is_empty()).await.expect("it writes again");
        assert_eq!(cluster.boot(&node), boot);
        assert_eq!(cluster.power(&node), Some(Power::On));
        let stale = cluster.truth().look(|world| world.storage.flushes(&volume).count());
        assert_eq!(stale, 1, "with what it had in memory all the time");
    }
}

#[tokio::test(start_paused = true)]
async fn a_process_that_hung_through_a_fence_flushes_when_it_is_lifted() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let began = cluster.elapsed();
    cluster.truth().act(|world| world.fence(&node, None));
    assert!(cluster.writers(&volume).is_empty());
    cluster.run_for(seconds(300)).await;
    cluster.truth().act(|world| world.unfence(&node, None));
    let stale = cluster.truth().look(|world| world.storage.flushes(&volume).next().cloned()).expect("a stale write");
    assert_eq!(stale.stale_since, Some(began));
    assert_eq!(stale.at, began + seconds(300));
}

#[tokio::test(start_paused = true)]
async fn a_storage_that_revokes_sessions_lets_nothing_old_through() {
    let storage = StorageSettings { revokes_sessions: true, ..StorageSettings::default() };
    let (cluster, node, volume) = with_db(&Shape { storage, ..Shape::default() }).await;
    cluster.truth().act(|world| world.fence(&node, None));
    cluster.truth().act(|world| world.unfence(&node, None));
    assert!(cluster.writers(&volume).is_empty());
    assert_eq!(cluster.truth().look(|world| world.storage.flushes(&volume).count()), 0);
    // A new boot opens a new session.
    cluster.power_off(&node);
    cluster.outside_on(&node);
    cluster.run_until(seconds(120), |c| !c.writers(&volume).is_empty()).await.expect("the next boot may write");
}

#[tokio::test(start_paused = true)]
async fn a_key_that_was_preempted_stays_so_over_a_boot() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let holders = |names: &[&str]| Some(names.iter().map(|name| Name::from(*name)).collect());
    cluster.truth().act(|world| world.reserve(&volume, holders(&[&node, "n9"])));
    assert!(!cluster.writers(&volume).is_empty(), "its key is registered");
    cluster.truth().act(|world| world.reserve(&volume, holders(&["n9"])));
    assert!(cluster.writers(&volume).is_empty());
    cluster.power_off(&node);
    cluster.outside_on(&node);
    cluster.run_for(seconds(120)).await;
    assert!(cluster.writers(&volume).is_empty(), "a boot registers nothing");
    cluster.truth().act(|world| world.reserve(&volume, None));
    cluster
        .run_until(seconds(120), |c| !c.writers(&volume).is_empty())
        .await
        .expect("without a reservation it may write");
}

#[tokio::test(start_paused = true)]
async fn a_fence_of_one_boot_does_not_hit_the_next() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let boot = cluster.boot(&node).unwrap();
    cluster.truth().act(|world| world.fence(&node, Some(&boot)));
    assert!(cluster.writers(&volume).is_empty());
    assert!(cluster.truth().look(|world| world.storage.is_fenced(&node, Some(&boot))));
    cluster.power_off(&node);
    cluster.outside_on(&node);
    cluster.run_until(seconds(120), |c| !c.writers(&volume).is_empty()).await.expect("the next boot may write");
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_hangs_in_a_write_cannot_be_ended_until_the_storage_is_back() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let old = uid(&cluster, "db-0");
    cluster.cut(&node, Link::Storage);
    mark(&cluster, "db-0");
    cluster.run_for(seconds(600)).await;
    assert!(is_marked(&cluster, "db-0"), "SIGKILL does not reach state D");
    cluster.heal(&node, Link::Storage);
    assert_eq!(cluster.truth().look(|world| world.storage.flushes(&volume).count()), 1, "its last write gets through");
    cluster.run_until(seconds(60), |c| uid(c, "db-0") != old).await.expect("then it ends");
}
