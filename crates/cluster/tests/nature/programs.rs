//! Programs: pods that do something, on machines that may die under them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::Request;
use palisade_cluster::{
    Cluster, Shape,
    api::{Key, Kind, Object},
    machines::{
        bmc::{Behaviour, Fate},
        machine::{Link, Power},
        program::{End, Inside, Program, Programs},
        redfish,
    },
    truth::{Daemon, DaemonState},
    workloads,
};
use serde_json::{Value, json};

use crate::world::seconds;

/// A program that counts seconds, then switches n1 off, waits a little and ends.
struct Fencer {
    counts: Arc<AtomicU32>,
    after: u64,
}

impl Programs for Fencer {
    fn program(&self, pod: &Value, inside: Inside) -> Option<Program> {
        pod.pointer("/metadata/annotations/does")?;
        let (counts, after) = (Arc::clone(&self.counts), self.after);
        let body = async move {
            for _ in 0..after {
                inside.clock.sleep(seconds(1)).await;
                counts.fetch_add(1, Ordering::Relaxed);
            }
            let words = match switch_off(&inside).await {
                Some(204) => format!("off, from {}, as {}", inside.node, login(&inside).0),
                Some(code) => format!("refused with {code}"),
                None => "nobody answers".to_owned(),
            };
            inside.clock.sleep(seconds(1)).await;
            End { code: i32::from(!words.starts_with("off")), words }
        };
        let told = End { code: 1, words: "told to end".to_owned() };
        Some(Program { body: Box::pin(body), told })
    }
}

fn login(inside: &Inside) -> (String, String) {
    let file = |name: &str| inside.files.get(&format!("/login/{name}")).cloned().unwrap_or_default();
    (file("user"), file("password"))
}

async fn switch_off(inside: &Inside) -> Option<u16> {
    let (user, password) = login(inside);
    let path = redfish::system_path("n1");
    let sessions = Request::post("https://bmc-n1/redfish/v1/SessionService/Sessions");
    let session = sessions.body(Bytes::from(json!({"UserName": user, "Password": password}).to_string())).unwrap();
    let token = inside.bmcs.call(session).await.ok()?.headers().get("x-auth-token")?.clone();
    let off = Request::post(format!("https://bmc-n1{path}/Actions/ComputerSystem.Reset"));
    let off = off.header("x-auth-token", token).body(Bytes::from_static(br#"{"ResetType": "ForceOff"}"#)).unwrap();
    Some(inside.bmcs.call(off).await.ok()?.status().as_u16())
}

fn act() -> Value {
    let mut job = workloads::job("act", 1);
    job["spec"]["backoffLimit"] = json!(0);
    let template = &mut job["spec"]["template"];
    template["metadata"]["annotations"] = json!({"does": "off"});
    template["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"] =
        json!([{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n2"]}]}]);
    template["spec"]["volumes"] = json!([{"name": "login", "secret": {"secretName": "bmc", "items": [
        {"key": "u", "path": "user"}, {"key": "p", "path": "password"}]}}]);
    template["spec"]["containers"][0]["volumeMounts"] = json!([{"name": "login", "mountPath": "/login"}]);
    job
}

fn secret(cluster: &Cluster, password: &str) {
    let data =
        json!({"metadata": {"name": "bmc", "namespace": "default"}, "stringData": {"u": "fence", "p": password}});
    cluster.create(Kind::SECRET, data).unwrap();
}

/// A cluster with such a Job, whose program has run for as long as it counts.
async fn fencing(after: u64) -> (Cluster, Arc<AtomicU32>) {
    let cluster = Cluster::up(&Shape::default()).await;
    let counts = Arc::new(AtomicU32::new(0));
    cluster.set_programs(Arc::new(Fencer { counts: Arc::clone(&counts), after }));
    secret(&cluster, "secret-n1");
    cluster.create(Kind::JOB, act()).unwrap();
    (cluster, counts)
}

fn pod(cluster: &Cluster) -> Option<Object> {
    let all = cluster.api().list_in(Kind::POD, "default");
    all.into_iter().find(|pod| pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("act-")))
}

fn phase(cluster: &Cluster) -> String {
    pod(cluster).and_then(|pod| pod["status"]["phase"].as_str().map(str::to_owned)).unwrap_or_default()
}

fn end(cluster: &Cluster) -> Value {
    pod(cluster).unwrap()["status"]["containerStatuses"][0]["state"]["terminated"].clone()
}

fn job(cluster: &Cluster) -> Object {
    cluster.api().get(&Key::new(Kind::JOB, "default", "act")).unwrap()
}

async fn until_running(cluster: &Cluster, counts: &AtomicU32, count: u32) {
    cluster.run_until(seconds(30), |c| phase(c) == "Running").await.expect("it runs");
    for _ in 0..200 {
        if counts.load(Ordering::Relaxed) >= count {
            return;
        }
        cluster.run_for(Duration::from_millis(100)).await;
    }
    panic!("it never counted to {count}");
}

#[tokio::test(start_paused = true)]
async fn a_program_acts_through_a_bmc_with_the_login_that_is_mounted_and_leaves_its_last_words() {
    let (cluster, _) = fencing(2).await;
    cluster.run_until(seconds(30), |c| phase(c) == "Succeeded").await.expect("it ends well");
    assert_eq!((end(&cluster)["exitCode"].clone(), end(&cluster)["reason"].clone()), (json!(0), json!("Completed")));
    assert_eq!(end(&cluster)["message"], "off, from n2, as fence");
    assert_eq!(cluster.power("n1"), Some(Power::Off));
    assert_eq!(cluster.bmc("n1").log().iter().map(|(_, told)| told.fate).collect::<Vec<_>>(), [Fate::Done]);
    cluster.run_until(seconds(5), |c| job(c)["status"]["succeeded"] == 1).await.expect("and is counted");
}

#[tokio::test(start_paused = true)]
async fn a_pod_waits_until_its_secret_is_there_and_a_wrong_one_opens_nothing() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.set_programs(Arc::new(Fencer { counts: Arc::default(), after: 0 }));
    cluster.create(Kind::JOB, act()).unwrap();
    cluster.run_for(seconds(20)).await;
    assert_eq!(phase(&cluster), "Pending");
    secret(&cluster, "guessed");
    cluster.run_until(seconds(60), |c| phase(c) == "Failed").await.expect("it starts, and fails");
    assert_eq!((end(&cluster)["exitCode"].clone(), end(&cluster)["reason"].clone()), (json!(1), json!("Error")));
    assert_eq!(cluster.power("n1"), Some(Power::On));
}

#[tokio::test(start_paused = true)]
async fn a_program_dies_with_its_machine_and_does_nothing_more() {
    let (cluster, counts) = fencing(10).await;
    until_running(&cluster, &counts, 3).await;
    cluster.power_off("n2");
    cluster.run_for(seconds(60)).await;
    assert_eq!(counts.load(Ordering::Relaxed), 3);
    assert_eq!(
        (phase(&cluster).as_str(), cluster.power("n1")),
        ("Running", Some(Power::On)),
        "nobody has said anything"
    );
    cluster.outside_on("n2");
    cluster.run_until(seconds(120), |c| phase(c) == "Failed").await.expect("its kubelet finds it dead");
    assert_eq!((end(&cluster)["exitCode"].clone(), end(&cluster)["message"].clone()), (json!(137), Value::Null));
    assert_eq!((counts.load(Ordering::Relaxed), cluster.bmc("n1").log().len()), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_program_stands_still_with_its_machine_and_goes_on_with_it() {
    let (cluster, counts) = fencing(10).await;
    until_running(&cluster, &counts, 3).await;
    cluster.suspend("n2");
    cluster.run_for(seconds(60)).await;
    assert_eq!(counts.load(Ordering::Relaxed), 3);
    cluster.resume("n2");
    cluster.run_for(seconds(15)).await;
    assert_eq!(counts.load(Ordering::Relaxed), 10);
    assert_eq!(cluster.power("n1"), Some(Power::Off), "a minute late, and nobody expects it any more");
}

#[tokio::test(start_paused = true)]
async fn a_program_goes_on_while_its_kubelet_is_away_and_its_end_is_found() {
    for away in [Away::Hangs, Away::Restarts, Away::ApiIsDown] {
        let (cluster, counts) = fencing(5).await;
        until_running(&cluster, &counts, 4).await;
        away.begins(&cluster);
        cluster.run_for(seconds(20)).await;
        away.ends(&cluster);
        cluster.run_until(seconds(60), |c| phase(c) == "Succeeded").await.unwrap_or_else(|| panic!("{away:?}"));
        assert_eq!(end(&cluster)["message"], "off, from n2, as fence", "{away:?}");
    }
}

#[derive(Clone, Copy, Debug)]
enum Away {
    Hangs,
    Restarts,
    ApiIsDown,
}

impl Away {
    fn begins(self, cluster: &Cluster) {
        match self {
            Self::Hangs => cluster.kubelet_hang("n2"),
            Self::Restarts => cluster.kubelet_restart("n2"),
            Self::ApiIsDown => cluster.set_daemon(Daemon::ApiServer, DaemonState::Down),
        }
    }

    fn ends(self, cluster: &Cluster) {
        match self {
            Self::Hangs => cluster.kubelet_resume("n2"),
            Self::Restarts => {}
            Self::ApiIsDown => cluster.set_daemon(Daemon::ApiServer, DaemonState::Running),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_without_a_way_to_the_bmcs_reaches_none() {
    let (cluster, counts) = fencing(3).await;
    until_running(&cluster, &counts, 1).await;
    cluster.cut("n2", Link::Devices);
    cluster.run_until(seconds(30), |c| phase(c) == "Failed").await.expect("it fails");
    assert_eq!(end(&cluster)["message"], "nobody answers");
    assert_eq!((cluster.power("n1"), cluster.bmc("n1").log().len()), (Some(Power::On), 0));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_is_told_to_end_ends_as_it_wants_to() {
    let (cluster, counts) = fencing(1000).await;
    until_running(&cluster, &counts, 1).await;
    let key = Key::of(Kind::POD, &pod(&cluster).unwrap());
    let before = cluster.api().revision();
    cluster.api().delete(&key, &palisade_cluster::api::DeleteOptions::default()).unwrap();
    cluster.run_until(seconds(10), |c| c.api().get(&key).is_none()).await.expect("it goes within its grace");
    let changes = cluster.api().changes_since(before).unwrap();
    let last = changes.iter().rev().filter(|change| change.key == key).find_map(|change| change.new.clone()).unwrap();
    let end = &last["status"]["containerStatuses"][0]["state"]["terminated"];
    assert_eq!((end["exitCode"].clone(), end["message"].clone()), (json!(1), json!("told to end")));
    assert_eq!((last["status"]["phase"].clone(), cluster.bmc("n1").log().len()), (json!("Failed"), 0));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_active_for_too_long_is_ended_by_its_kubelet() {
    let cluster = Cluster::up(&Shape::default()).await;
    let counts = Arc::new(AtomicU32::new(0));
    cluster.set_programs(Arc::new(Fencer { counts: Arc::clone(&counts), after: 1000 }));
    secret(&cluster, "secret-n1");
    let mut late = act();
    late["spec"]["template"]["spec"]["activeDeadlineSeconds"] = json!(5);
    cluster.create(Kind::JOB, late).unwrap();
    cluster.run_until(seconds(30), |c| phase(c) == "Failed").await.expect("it fails");
    assert_eq!(pod(&cluster).unwrap()["status"]["reason"], "DeadlineExceeded");
    assert_eq!(end(&cluster)["message"], "told to end");
    let counted = counts.load(Ordering::Relaxed);
    assert!((3..=5).contains(&counted), "it ran for {counted} s");
    cluster.run_for(seconds(30)).await;
    assert_eq!(counts.load(Ordering::Relaxed), counted);
}

#[tokio::test(start_paused = true)]
async fn an_image_that_nobody_has_keeps_a_pod_waiting_and_the_kubelet_says_so() {
    for (policy, words) in [("IfNotPresent", ["ErrImagePull", "ImagePullBackOff"]), ("Never", ["ErrImageNeverPull"; 2])]
    {
        let cluster = Cluster::up(&Shape::default()).await;
        let mut job = workloads::job("act", 1);
        job["spec"]["template"]["spec"]["containers"][0]["image"] = "nowhere.invalid/act:1".into();
        job["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = policy.into();
        job["spec"]["template"]["spec"]["activeDeadlineSeconds"] = json!(120);
        cluster.create(Kind::JOB, job).unwrap();
        for word in words {
            let says = |c: &Cluster| {
                let status = pod(c).map(|pod| pod["status"].clone()).unwrap_or_default();
                status["containerStatuses"][0]["state"]["waiting"]["reason"] == word && status["phase"] == "Pending"
            };
            cluster.run_until(seconds(60), says).await.unwrap_or_else(|| panic!("{word}"));
        }
        cluster.run_until(seconds(130), |c| phase(c) == "Failed").await.expect("its deadline counts all the same");
        assert_eq!(pod(&cluster).unwrap()["status"]["reason"], "DeadlineExceeded");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_program_sent_arrives_although_its_machine_died() {
    let (cluster, counts) = fencing(3).await;
    cluster.bmc("n1").set(Behaviour::Slow(seconds(5)));
    until_running(&cluster, &counts, 3).await;
    // The login is on its way, then the command; the machine dies while the BMC thinks about the latter.
    cluster.run_for(seconds(7)).await;
    cluster.power_off("n2");
    cluster.run_for(seconds(10)).await;
    assert_eq!(cluster.power("n1"), Some(Power::Off));
}

#[tokio::test(start_paused = true)]
async fn a_program_that_was_never_reported_is_not_run_again() {
    for dies in [false, true] {
        let (cluster, counts) = fencing(1).await;
        // The pod is bound, and its node hears of it; then the node cannot say anything any more.
        cluster.run_until(seconds(30), |c| pod(c).is_some_and(|pod| pod["spec"]["nodeName"] == "n2")).await.unwrap();
        cluster.run_for(Duration::from_millis(50)).await;
        cluster.cut("n2", Link::Api);
        for _ in 0..100 {
            cluster.run_for(Duration::from_millis(100)).await;
            if counts.load(Ordering::Relaxed) == 1 {
                break;
            }
        }
        if dies {
            cluster.power_off("n2");
            cluster.outside_on("n2");
            cluster.run_for(seconds(60)).await;
        } else {
            cluster.run_for(seconds(10)).await;
            cluster.kubelet_restart("n2");
        }
        assert_eq!(phase(&cluster), "Pending", "the API knows nothing of it");
        cluster.heal("n2", Link::Api);
        let done = if dies { "Failed" } else { "Succeeded" };
        cluster.run_until(seconds(60), |c| phase(c) == done).await.unwrap_or_else(|| panic!("{done}"));
        cluster.run_for(seconds(60)).await;
        assert_eq!(counts.load(Ordering::Relaxed), 1, "it ran once");
    }
}
