//! Jobs: how they end, whom they count, and what becomes of their pods.

use palisade_cluster::{
    Cluster, Shape,
    api::{DeleteOptions, Key, Kind, Object, Propagation, metadata},
    workloads,
};
use serde_json::{Value, json};

use crate::world::seconds;

fn key() -> Key {
    Key::new(Kind::JOB, "default", "act")
}

fn job(cluster: &Cluster) -> Value {
    cluster.api().get(&key()).map(|job| Value::clone(&job)).unwrap_or_default()
}

fn says(cluster: &Cluster, kind: &str) -> Option<String> {
    let job = job(cluster);
    let conditions = job["status"]["conditions"].as_array()?;
    let said = conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True")?;
    said["reason"].as_str().map(str::to_owned)
}

fn pods(cluster: &Cluster) -> Vec<Object> {
    let all = cluster.api().list_in(Kind::POD, "default");
    all.into_iter().filter(|pod| metadata::name(pod).starts_with("act-")).collect()
}

fn is_tracked(pod: &Value) -> bool {
    metadata::finalizers(pod).any(|name| name == "batch.kubernetes.io/job-tracking")
}

async fn running(job: Value) -> Cluster {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.create(Kind::JOB, job).unwrap();
    let runs = |c: &Cluster| pods(c).first().is_some_and(|pod| pod["status"]["phase"] == "Running");
    cluster.run_until(seconds(30), runs).await.expect("its pod runs");
    assert!(pods(&cluster).iter().all(|pod| is_tracked(pod)));
    cluster
}

#[tokio::test(start_paused = true)]
async fn a_job_without_retries_has_failed_with_its_only_pod() {
    let mut failing = workloads::job("act", 2);
    failing["spec"]["backoffLimit"] = json!(0);
    failing["spec"]["template"]["metadata"]["annotations"]["cluster.palisade.dev/exit-code"] = "1".into();
    let cluster = running(failing).await;
    cluster.run_until(seconds(20), |c| says(c, "Failed").is_some()).await.expect("it has failed");
    assert_eq!(says(&cluster, "FailureTarget").as_deref(), Some("BackoffLimitExceeded"));
    assert_eq!(says(&cluster, "Failed").as_deref(), Some("BackoffLimitExceeded"));
    let status = &job(&cluster)["status"];
    assert_eq!((&status["failed"], &status["active"], &status["terminating"]), (&json!(1), &json!(0), &json!(0)));
    assert_eq!(status["uncountedTerminatedPods"], json!({}));
    assert_eq!(pods(&cluster).len(), 1, "the failed pod stays for people to look at");
    assert!(!is_tracked(&pods(&cluster)[0]), "but nothing holds it");
    cluster.run_for(seconds(60)).await;
    assert_eq!(pods(&cluster).len(), 1, "and there is no other");
}

#[tokio::test(start_paused = true)]
async fn a_job_says_that_it_is_about_to_be_complete_before_it_is() {
    let cluster = running(workloads::job("act", 2)).await;
    cluster.run_until(seconds(20), |c| says(c, "SuccessCriteriaMet").is_some()).await.expect("it says so");
    cluster.run_until(seconds(20), |c| says(c, "Complete").is_some()).await.expect("it is complete");
    let job = job(&cluster);
    assert_eq!((&job["status"]["succeeded"], &job["status"]["active"]), (&json!(1), &json!(0)));
    assert!(job["status"]["completionTime"].is_string());
}

#[tokio::test(start_paused = true)]
async fn a_job_that_took_too_long_stops_its_pods_and_has_failed_when_they_are_gone() {
    let mut late = workloads::job("act", 3600);
    late["spec"]["activeDeadlineSeconds"] = json!(10);
    let cluster = running(late).await;
    let took = cluster.run_until(seconds(30), |c| says(c, "FailureTarget").is_some()).await.expect("it gives up");
    assert!(took <= seconds(10), "after {took:?}, and nobody had to wake it");
    assert_eq!(says(&cluster, "FailureTarget").as_deref(), Some("DeadlineExceeded"));
    assert_eq!(says(&cluster, "Failed"), None, "its pod is still on its way out");
    assert_eq!(job(&cluster)["status"]["terminating"], 1);
    cluster.run_until(seconds(10), |c| says(c, "Failed").is_some()).await.expect("it has failed");
    assert_eq!(says(&cluster, "Failed").as_deref(), Some("DeadlineExceeded"));
    assert!(pods(&cluster).is_empty(), "pods of a Job that took too long are deleted");
    assert_eq!(job(&cluster)["status"]["failed"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_job_whose_pod_is_on_a_dead_node_is_not_over() {
    let mut late = workloads::job("act", 3600);
    late["spec"]["activeDeadlineSeconds"] = json!(10);
    late["spec"]["backoffLimit"] = json!(0);
    let cluster = running(late).await;
    let pod = pods(&cluster).remove(0);
    cluster.power_off(pod["spec"]["nodeName"].as_str().unwrap());
    cluster.run_until(seconds(20), |c| says(c, "FailureTarget").is_some()).await.expect("it gives up");
    cluster.run_for(seconds(600)).await;
    assert_eq!(says(&cluster, "Failed"), None, "nobody knows what becomes of that pod");
    assert_eq!(job(&cluster)["status"]["terminating"], 1);
    cluster.force_delete(metadata::name(&pod)).unwrap();
    cluster.run_until(seconds(5), |c| says(c, "Failed").is_some()).await.expect("now it is over");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_listed_before_it_is_counted_and_loses_its_finalizer_in_between() {
    let cluster = running(workloads::job("act", 2)).await;
    let before = cluster.api().revision();
    cluster.run_until(seconds(20), |c| says(c, "Complete").is_some()).await.expect("it is complete");
    let mut steps = Vec::new();
    for change in cluster.api().changes_since(before).unwrap() {
        let Some(new) = &change.new else { continue };
        let was_tracked = change.old.as_ref().is_some_and(|old| is_tracked(old));
        if change.key.kind == Kind::POD && was_tracked && !is_tracked(new) {
            steps.push("free");
        } else if change.key == key() && new["status"]["uncountedTerminatedPods"]["succeeded"].is_array() {
            assert_eq!(new["status"].get("succeeded"), None, "not both");
            steps.push("listed");
        } else if change.key == key() && new["status"]["succeeded"] == 1 {
            steps.push("counted");
        }
    }
    assert_eq!(steps, ["listed", "free", "counted"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_with_its_pods_behind_it_before_it_or_without_them() {
    for propagation in [Propagation::Background, Propagation::Foreground, Propagation::Orphan] {
        let cluster = running(workloads::job("act", 3600)).await;
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        let deleted = cluster.api().delete(&key(), &options).unwrap();
        assert_eq!(deleted.is_gone(), propagation == Propagation::Background);
        if propagation == Propagation::Orphan {
            cluster.run_until(seconds(5), |c| c.api().get(&key()).is_none()).await.expect("the Job goes");
            cluster.run_for(seconds(60)).await;
            let left = pods(&cluster);
            assert_eq!(left.len(), 1, "its pod stays");
            assert!(!is_tracked(&left[0]) && !metadata::is_deleting(&left[0]), "and is nobody's");
            continue;
        }
        let gone = |c: &Cluster| pods(c).is_empty() && c.api().get(&key()).is_none();
        cluster.run_until(seconds(20), gone).await.unwrap_or_else(|| panic!("{propagation:?}: {:?}", pods(&cluster)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_wants_to_see_its_pods_gone_counts_them_only_then() {
    let mut patient = workloads::job("act", 3600);
    patient["spec"]["podReplacementPolicy"] = "Failed".into();
    patient["spec"]["backoffLimit"] = json!(0);
    let cluster = running(patient).await;
    let pod = pods(&cluster).remove(0);
    cluster.power_off(pod["spec"]["nodeName"].as_str().unwrap());
    cluster.api().delete(&Key::of(Kind::POD, &pod), &DeleteOptions::default()).unwrap();
    cluster.run_for(seconds(120)).await;
    let status = job(&cluster)["status"].clone();
    assert_eq!((&status["terminating"], status.get("failed")), (&json!(1), None));
    assert_eq!((says(&cluster, "FailureTarget"), pods(&cluster).len()), (None, 1));
}
