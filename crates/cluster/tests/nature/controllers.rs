//! The built-in controllers, one story each.

use palisade_cluster::{
    Cluster, Shape,
    api::{DeleteOptions, Key, Kind, Object, Propagation, metadata},
    workloads::{self, Claim},
};
use serde_json::{Value, json};

use crate::world::{seconds, uid};

fn pods(cluster: &Cluster, prefix: &str) -> Vec<Object> {
    let all = cluster.api().list_in(Kind::POD, "default");
    all.into_iter().filter(|pod| metadata::name(pod).starts_with(prefix)).collect()
}

fn job(cluster: &Cluster, name: &str) -> Object {
    cluster.api().get(&Key::new(Kind::JOB, "default", name)).unwrap()
}

fn says(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.iter().any(|condition| condition["type"] == kind && condition["status"] == "True")
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_starts_and_ends_in_order() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.stateful_set("db", 3, Claim::ReadWriteOnce).unwrap();
    cluster.run_until(seconds(60), |c| c.pod("db-1").is_some()).await.unwrap();
    assert!(cluster.is_ready("db-0"), "the first is ready before the second is made");
    assert!(cluster.pod("db-2").is_none());
    cluster.run_until(seconds(120), |c| c.is_ready("db-2")).await.unwrap();
    let set = cluster.api().get(&Key::new(Kind::STATEFUL_SET, "default", "db")).unwrap();
    assert_eq!(set["status"]["replicas"], 3);

    cluster
        .api()
        .update(&Key::new(Kind::STATEFUL_SET, "default", "db"), |set| set["spec"]["replicas"] = json!(1))
        .unwrap();
    cluster.run_until(seconds(60), |c| c.pod("db-2").is_none()).await.unwrap();
    assert!(cluster.is_ready("db-1"), "the highest goes first");
    cluster.run_until(seconds(60), |c| c.pod("db-1").is_none()).await.unwrap();
    assert!(cluster.volume_of("data-db-2").is_some(), "claims stay");
}

#[tokio::test(start_paused = true)]
async fn a_failed_pod_of_a_stateful_set_is_made_again() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.stateful_set("db", 1, Claim::None).unwrap();
    cluster.run_until(seconds(60), |c| c.is_ready("db-0")).await.unwrap();
    let old = uid(&cluster, "db-0");
    let fail = |pod: &mut Value| pod["status"]["phase"] = "Failed".into();
    cluster.api().update(&Key::new(Kind::POD, "default", "db-0"), fail).unwrap();
    cluster.run_until(seconds(30), |c| c.is_ready("db-0") && uid(c, "db-0") != old).await.expect("another one");
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_end_and_its_indexes_each_once() {
    let cluster = Cluster::up(&Shape::default()).await;
    let mut indexed = workloads::job("act", 3);
    indexed["spec"]["completionMode"] = "Indexed".into();
    indexed["spec"]["completions"] = json!(2);
    indexed["spec"]["parallelism"] = json!(1);
    indexed["spec"]["template"]["metadata"]["annotations"]["cluster.palisade.dev/last-words"] = "off".into();
    cluster.create(Kind::JOB, indexed).unwrap();
    cluster.run_until(seconds(60), |c| says(&job(c, "act"), "Complete")).await.expect("both are done");
    let job = job(&cluster, "act");
    assert_eq!(job["status"]["completedIndexes"], "0,1");
    let pods = pods(&cluster, "act-");
    assert_eq!(pods.len(), 2);
    assert!(pods.iter().all(|pod| metadata::finalizers(pod).next().is_none()), "counted, so they may go");
    assert_eq!(pods[0]["status"]["containerStatuses"][0]["state"]["terminated"]["message"], "off");
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_too_often_has_failed() {
    let cluster = Cluster::up(&Shape::default()).await;
    let mut failing = workloads::job("act", 1);
    failing["spec"]["backoffLimit"] = json!(1);
    failing["spec"]["template"]["metadata"]["annotations"]["cluster.palisade.dev/exit-code"] = "1".into();
    cluster.create(Kind::JOB, failing).unwrap();
    cluster.run_until(seconds(120), |c| says(&job(c, "act"), "Failed")).await.expect("it gives up");
    assert_eq!(job(&cluster, "act")["status"]["failed"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_job_replaces_a_pod_that_is_being_deleted_before_it_is_gone() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.job("act", 3600).unwrap();
    let running = |c: &Cluster| pods(c, "act-").iter().any(|pod| pod["status"]["phase"] == "Running");
    cluster.run_until(seconds(30), running).await.unwrap();
    let old = pods(&cluster, "act-").remove(0);
    let node = old["spec"]["nodeName"].as_str().unwrap().to_owned();
    cluster.power_off(&node);
    cluster.api().delete(&Key::of(Kind::POD, &old), &DeleteOptions::default()).unwrap();
    // After its back-off; the dead one is still there.
    let replaced = |c: &Cluster| pods(c, "act-").iter().any(|pod| metadata::uid(pod) != metadata::uid(&old));
    cluster.run_until(seconds(30), replaced).await.expect("a second pod");
    assert!(pods(&cluster, "act-").iter().any(|pod| metadata::uid(pod) == metadata::uid(&old)));
}

#[tokio::test(start_paused = true)]
async fn pods_keep_away_from_tainted_cordoned_and_disliked_nodes() {
    let cluster = Cluster::up(&Shape { nodes: 4, ..Shape::default() }).await;
    crate::world::taint(&cluster, "n1", "k", "NoSchedule");
    cluster.api().update(&Key::cluster(Kind::NODE, "n2"), |node| node["spec"]["unschedulable"] = json!(true)).unwrap();
    let mut web = workloads::replica_set("web", 2, None);
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "web"}}});
    web["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"] =
        json!({"requiredDuringSchedulingIgnoredDuringExecution": [term]});
    web["spec"]["replicas"] = json!(3);
    cluster.create(Kind::REPLICA_SET, web).unwrap();
    cluster.run_for(seconds(30)).await;
    let mut places: Vec<String> =
        pods(&cluster, "web-").iter().map(|pod| pod["spec"]["nodeName"].as_str().unwrap_or("").to_owned()).collect();
    places.sort();
    assert_eq!(places, ["", "n3", "n4"]);

    cluster.api().update(&Key::cluster(Kind::NODE, "n2"), |node| node["spec"]["unschedulable"] = json!(false)).unwrap();
    let placed = |c: &Cluster| pods(c, "web-").iter().all(|pod| pod["spec"]["nodeName"].is_string());
    cluster.run_until(seconds(30), placed).await.expect("the third one finds n2");
}

#[tokio::test(start_paused = true)]
async fn garbage_goes_behind_before_or_not_at_all() {
    let cluster = Cluster::up(&Shape::default()).await;
    for (name, propagation) in
        [("behind", Propagation::Background), ("before", Propagation::Foreground), ("orphans", Propagation::Orphan)]
    {
        cluster.replica_set(name, 2).unwrap();
        cluster
            .run_until(seconds(30), |c| {
                pods(c, name).len() == 2 && pods(c, name).iter().all(|p| p["status"]["phase"] == "Running")
            })
            .await
            .unwrap();
        let key = Key::new(Kind::REPLICA_SET, "default", name);
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        let deleted = cluster.api().delete(&key, &options).unwrap();
        assert_eq!(deleted.is_gone(), propagation == Propagation::Background);
        cluster.run_until(seconds(60), |c| c.api().get(&key).is_none()).await.expect("the owner goes");
        match propagation {
            Propagation::Orphan => {
                cluster.run_for(seconds(60)).await;
                assert_eq!(pods(&cluster, name).len(), 2);
                assert!(
                    pods(&cluster, name)
                        .iter()
                        .all(|pod| pod["metadata"]["ownerReferences"].as_array().is_none_or(Vec::is_empty))
                );
            }
            Propagation::Foreground => assert!(pods(&cluster, name).is_empty(), "they went first"),
            Propagation::Background => {
                cluster.run_until(seconds(60), |c| pods(c, name).is_empty()).await.expect("they go afterwards");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_volume_goes_with_its_claim() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.create(Kind::PERSISTENT_VOLUME_CLAIM, workloads::claim("data", "ReadWriteOnce")).unwrap();
    cluster.run_until(seconds(5), |c| c.volume_of("data").is_some()).await.expect("bound at once");
    let key = Key::new(Kind::PERSISTENT_VOLUME_CLAIM, "default", "data");
    cluster.api().delete(&key, &DeleteOptions::default()).unwrap();
    cluster.run_until(seconds(5), |c| c.api().list(Kind::PERSISTENT_VOLUME).is_empty()).await.expect("given back");
}
