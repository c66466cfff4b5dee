//! Volumes that move, and those that do not want to.

use palisade_cluster::{
    Cluster, Shape,
    api::{DeleteOptions, Key, Kind},
    machines::machine::Link,
    storage::StorageSettings,
    truth::{Daemon, DaemonState},
    workloads::{self, Claim},
};
use serde_json::{Value, json};

use crate::world::{attachments, is_marked, listed, ready, seconds, taint, uid, with_db};

/// The node is dead and kept out, the pod was removed by force, its replacement waits elsewhere.
async fn after_force_delete() -> (Cluster, String, String) {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    cluster.power_off(&node);
    cluster.run_for(seconds(8)).await;
    taint(&cluster, &node, "test", "NoSchedule");
    cluster.force_delete("db-0").unwrap();
    let bound = |c: &Cluster| !c.node_of("db-0").is_empty() && c.node_of("db-0") != node;
    cluster.run_until(seconds(5), bound).await.expect("the replacement is bound at once");
    (cluster, node, volume)
}

async fn moves_within(cluster: &Cluster, limit: u64) -> Option<u64> {
    let there = cluster.node_of("db-0");
    let attached = |c: &Cluster| attachments(c, &there).iter().any(|a| a["status"]["attached"] == true);
    cluster.run_until(seconds(limit), attached).await.map(|time| time.as_secs())
}

#[tokio::test(start_paused = true)]
async fn a_volume_follows_its_pod_and_the_node_says_so() {
    let (cluster, node, _) = with_db(&Shape::default()).await;
    assert_eq!(listed(&cluster, &node, "volumesAttached"), 1);
    assert_eq!(listed(&cluster, &node, "volumesInUse"), 1);
    let attachment = &attachments(&cluster, &node)[0];
    assert!(attachment["metadata"]["name"].as_str().unwrap().starts_with("csi-"));
    assert_eq!(attachment["metadata"]["name"].as_str().unwrap().len(), 4 + 64);
    assert_eq!(attachment["metadata"]["finalizers"][0], "external-attacher/csi-cluster-palisade-dev");

    cluster
        .api()
        .update(&Key::new(Kind::STATEFUL_SET, "default", "db"), |set| set["spec"]["replicas"] = json!(0))
        .unwrap();
    cluster.run_until(seconds(60), |c| attachments(c, &node).is_empty()).await.expect("it is detached");
    assert_eq!(listed(&cluster, &node, "volumesAttached"), 0);
}

#[tokio::test(start_paused = true)]
async fn after_a_force_delete_the_volume_stays_for_six_minutes() {
    let (cluster, node, volume) = after_force_delete().await;
    cluster.run_for(seconds(1)).await;
    let told = cluster.api().list_in(Kind::EVENT, "default");
    assert!(told.iter().any(|event| event["reason"] == "FailedAttachVolume"
        && event["message"].as_str().unwrap().starts_with("Multi-Attach error")));
    let moved = moves_within(&cluster, 500).await.unwrap();
    assert!((357..=364).contains(&moved), "{moved}");
    assert!(attachments(&cluster, &node).is_empty());
    cluster.run_until(seconds(60), |c| c.is_ready("db-0")).await.unwrap();
    assert_eq!(cluster.writers(&volume).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn six_minutes_are_not_enough_while_the_node_says_that_it_is_ready() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    cluster.cut(&node, Link::Storage);
    taint(&cluster, &node, "test", "NoSchedule");
    cluster.force_delete("db-0").unwrap();
    cluster.run_for(seconds(900)).await;
    assert_eq!(ready(&cluster, &node), "True");
    assert_eq!(attachments(&cluster, &node).len(), 1, "its process hangs in a write, so it is in use");
    assert!(cluster.writers(&volume).is_empty());
}

#[tokio::test(start_paused = true)]
async fn taking_the_volume_out_of_volumes_in_use_detaches_it_in_seconds() {
    let (cluster, node, _) = after_force_delete().await;
    let edit = |node: &mut Value| node["status"]["volumesInUse"] = json!([]);
    cluster.api().update(&Key::cluster(Kind::NODE, &node), edit).unwrap();
    let moved = moves_within(&cluster, 60).await.unwrap();
    assert!(moved <= 3, "{moved}");
}

#[tokio::test(start_paused = true)]
async fn a_kubelet_that_lives_puts_its_volume_back_into_volumes_in_use() {
    let (cluster, node, _) = with_db(&Shape::default()).await;
    let edit = |node: &mut Value| node["status"]["volumesInUse"] = json!([]);
    cluster.api().update(&Key::cluster(Kind::NODE, &node), edit).unwrap();
    let back = cluster.run_until(seconds(20), |c| listed(c, &node, "volumesInUse") == 1).await.unwrap();
    assert!(back <= seconds(10), "{back:?}");
}

#[tokio::test(start_paused = true)]
async fn deleting_the_attachment_by_hand_waits_for_the_sync() {
    let (cluster, node, _) = after_force_delete().await;
    let key = Key::of(Kind::VOLUME_ATTACHMENT, &attachments(&cluster, &node)[0]);
    cluster.api().delete(&key, &DeleteOptions::default()).unwrap();
    cluster.run_until(seconds(5), |c| attachments(c, &node).is_empty()).await.expect("the attacher lets it go");
    let moved = moves_within(&cluster, 100).await.unwrap();
    assert!((5..=62).contains(&moved), "{moved}");
}

#[tokio::test(start_paused = true)]
async fn the_out_of_service_taint_frees_pod_and_volume() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    let old = uid(&cluster, "db-0");
    cluster.power_off(&node);
    cluster.run_until(seconds(70), |c| ready(c, &node) == "Unknown").await.unwrap();
    taint(&cluster, &node, "node.kubernetes.io/out-of-service", "NoExecute");
    // Evicted at once, collected within 20 s, detached at once.
    let moved = cluster.run_until(seconds(60), |c| c.is_ready("db-0") && uid(c, "db-0") != old).await.unwrap();
    assert!(moved <= seconds(42), "{moved:?}");
    assert_eq!(cluster.writers(&volume).len(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_out_of_service_taint_takes_a_volume_from_a_node_that_is_ready() {
    let (cluster, node, volume) = with_db(&Shape::default()).await;
    cluster.cut(&node, Link::Api);
    taint(&cluster, &node, "node.kubernetes.io/out-of-service", "NoExecute");
    cluster.run_until(seconds(5), |c| is_marked(c, "db-0")).await.unwrap();
    cluster.force_delete("db-0").unwrap();
    cluster.run_until(seconds(40), |c| c.is_ready("db-0")).await.unwrap();
    let two = cluster.truth().look(palisade_cluster::truth::World::volumes_with_two_writers);
    assert_eq!(two.len(), 1, "two nodes write to {volume}: that is what a proof is for");
}

#[tokio::test(start_paused = true)]
async fn a_driver_in_trouble_keeps_the_attachment_and_says_why() {
    let (cluster, node, volume) = after_force_delete().await;
    let trouble = "rpc error: code = Internal desc = array is busy";
    cluster.truth().act(|world| world.set_trouble(&volume, Some(trouble)));
    let edit = |node: &mut Value| node["status"]["volumesInUse"] = json!([]);
    cluster.api().update(&Key::cluster(Kind::NODE, &node), edit).unwrap();
    cluster.run_for(seconds(120)).await;
    assert_eq!(attachments(&cluster, &node)[0]["status"]["detachError"]["message"], trouble);
    cluster.truth().act(|world| world.set_trouble(&volume, None));
    cluster.run_until(seconds(300), |c| attachments(c, &node).is_empty()).await.expect("it goes on trying");
}

#[tokio::test(start_paused = true)]
async fn a_new_controller_manager_remembers_by_reading() {
    let (cluster, node, _) = after_force_delete().await;
    cluster.set_daemon(Daemon::ControllerManager, DaemonState::Down);
    cluster.run_for(seconds(30)).await;
    cluster.set_daemon(Daemon::ControllerManager, DaemonState::Running);
    cluster.run_for(seconds(60)).await;
    assert_eq!(attachments(&cluster, &node).len(), 1, "it still counts as attached, and as mounted");
    let moved = moves_within(&cluster, 500).await.unwrap();
    assert!((290..=310).contains(&moved), "its six minutes began anew: {moved}");
}

#[tokio::test(start_paused = true)]
async fn an_exclusive_storage_refuses_what_kubernetes_would_allow() {
    let storage = StorageSettings { exclusive: true, unpublish_revokes: true, ..StorageSettings::default() };
    let (cluster, node, volume) = with_db(&Shape { storage, ..Shape::default() }).await;
    cluster.truth().act(|world| {
        let other = world.machines.keys().find(|name| ***name != *node).unwrap().clone();
        assert!(world.publish(&volume, &other).unwrap_err().contains("FailedPrecondition"));
        world.unpublish(&volume, &node.as_str().into()).unwrap();
    });
    assert!(cluster.writers(&volume).is_empty(), "unpublished means refused here");
}

#[tokio::test(start_paused = true)]
async fn a_shared_volume_may_have_many_writers() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.create(Kind::PERSISTENT_VOLUME_CLAIM, workloads::claim("shared", "ReadWriteMany")).unwrap();
    cluster.create(Kind::REPLICA_SET, workloads::replica_set("web", 3, Some("shared"))).unwrap();
    let writing = |c: &Cluster| c.volume_of("shared").is_some_and(|volume| c.writers(&volume).len() == 3);
    cluster.run_until(seconds(90), writing).await.expect("three writers");
    assert!(cluster.truth().look(palisade_cluster::truth::World::volumes_with_two_writers).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_claim_for_one_pod_alone_keeps_the_second_one_waiting() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.stateful_set("db", 1, Claim::ReadWriteOncePod).unwrap();
    cluster.run_until(seconds(60), |c| c.is_ready("db-0")).await.unwrap();
    let pod = json!({
        "metadata": {"name": "guest"},
        "spec": {
            "containers": [{"name": "main", "image": "x"}],
            "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}}],
        },
    });
    cluster.create(Kind::POD, pod).unwrap();
    cluster.run_for(seconds(60)).await;
    assert_eq!(cluster.node_of("guest"), "");
}
