//! Checks of devices that a fence agent reaches: a Job asks, and nothing else comes of it.

use palisade_api::names::{annotations, labels};
use palisade_cluster::Shape;
use palisade_devices::act::{Order, Task};
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::look::Look;
use palisade_scenarios::stories::{FIRST, SECOND, things};
use palisade_scenarios::world::{Agent, Bmc, Kind, World};
use serde_json::{Value, json};

use super::{age, metrics, value};

/// How often devices are asked in here.
const INTERVAL: u64 = 60;
/// In this time each is asked, one after the other.
const ROUND: u64 = 2 * INTERVAL + 60;

/// A world whose machines are fenced by an agent alone, before any operator runs.
async fn by_agent() -> Embedded {
    let mut world = Embedded::up(&Shape { nodes: 3, ..Shape::default() }).await;
    let template = json!({
        "metadata": { "name": "agent" },
        "spec": {
            "agent": { "name": "fence_redfish" },
            "parameters": { "ip": "bmc-{node}", "systems_uri": "/redfish/v1/Systems/{node}" },
            "secretRef": { "name": "bmc-{node}", "keys": { "username": "username", "password": "password" } },
            "timeout": "25s",
            "checkInterval": format!("{INTERVAL}s"),
            "proves": { "class": "Power", "hibernation": "Impossible" },
        },
    });
    world.create(Kind::Template, template).await.unwrap();
    let levels = json!([{ "name": "agent", "methods": [{ "name": "agent", "template": "agent" }] }]);
    world
        .patch(Kind::Config, "bare-metal", json!({ "spec": { "powerManagement": { "levels": levels } } }))
        .await
        .unwrap();
    world
}

/// The same with an operator that has found every device good.
async fn found_good() -> Embedded {
    let mut world = by_agent().await;
    world.operator_start(FIRST).await.unwrap();
    let found = world.run_until(ROUND, "all are good", watched(all_good)).await;
    assert!(found.is_ok(), "{}\n{}", healthy(&world, "agent"), metrics(&world));
    world
}

fn healthy(world: &dyn Look, template: &str) -> Value {
    let template = world.get(Kind::Template, template).unwrap();
    let conditions = template.pointer("/status/conditions").and_then(Value::as_array).cloned();
    conditions.into_iter().flatten().find(|one| one["type"] == "DevicesHealthy").unwrap_or_default()
}

fn says(world: &dyn Look, status: &str, reason: &str, words: &str) -> bool {
    let healthy = healthy(world, "agent");
    let message = healthy["message"].as_str().unwrap_or_default();
    healthy["status"] == status && healthy["reason"] == reason && message.contains(words)
}

fn all_good(world: &dyn Look) -> bool {
    says(world, "True", "AllGood", "")
}

/// At every instant: no more than one Job, no command to any BMC, nobody fenced.
fn watched(mut so: impl FnMut(&dyn Look) -> bool) -> impl FnMut(&dyn Look) -> bool {
    move |world| {
        assert!(world.list(Kind::Job).len() <= 1, "one at a time");
        for node in ["n1", "n2", "n3"] {
            assert!(world.commands_to(node).is_empty(), "{node} was told something");
        }
        so(world)
    }
}

fn job_uid(world: &dyn Look) -> Option<String> {
    world.list(Kind::Job).first().map(|job| job["metadata"]["uid"].to_string())
}

/// The node that a check's Job is about.
fn about(world: &dyn Look) -> Option<String> {
    let job = world.list(Kind::Job).into_iter().next()?;
    job["metadata"]["annotations"][annotations::TARGET_NODE].as_str().map(ToOwned::to_owned)
}

fn pods_of_jobs(world: &dyn Look) -> Vec<Value> {
    let made = |pod: &Value| pod.pointer("/metadata/ownerReferences/0/kind").is_some_and(|kind| kind == "Job");
    world.list(Kind::Pod).into_iter().filter(made).collect()
}

fn nothing_left(world: &dyn Look) -> bool {
    world.list(Kind::Job).is_empty() && pods_of_jobs(world).is_empty()
}

fn checks(world: &Embedded, outcome: &str) -> f64 {
    value(world, &format!("palisade_device_checks_total{{outcome=\"{outcome}\"}}")).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_dead_bmc_behind_an_agent_is_told_of_before_it_is_needed_and_so_is_its_return() {
    let mut world = found_good().await;
    world.bmc("n1", Bmc::Unreachable).await.unwrap();
    let fails = |world: &dyn Look| says(world, "False", "NoAnswer", "the device of n1 does not answer");
    world.run_until(ROUND, "it is told of", watched(fails)).await.unwrap();
    assert!(world.was_told("DeviceCheckFailed", "n1"));
    let failing = "palisade_device_check_failing{node=\"n1\",template=\"agent\",reason=\"NoAnswer\"}";
    assert_eq!(value(&world, failing), Some(1.0), "{}", metrics(&world));
    let clean = |world: &dyn Look| world.list(Kind::Fence).is_empty() && world.list(Kind::Request).is_empty();
    world.hold_for(300, "nothing is done about the node", watched(clean)).await.unwrap();
    assert!(age(&world, "n1").is_some_and(|age| age > 300.0), "{}", metrics(&world));
    assert!(age(&world, "n2").is_some_and(|age| age < 120.0), "{}", metrics(&world));
    world.bmc("n1", Bmc::Honest).await.unwrap();
    world.run_until(ROUND, "all is well again", watched(all_good)).await.unwrap();
    assert!(world.was_told("DeviceCheckGood", "n1"));
    assert!(age(&world, "n1").is_some_and(|age| age < 60.0), "{}", metrics(&world));
    world.run_until(30, "no Job is left", nothing_left).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_checks_job_only_looks_and_cannot_be_taken_for_a_fences() {
    let mut world = by_agent().await;
    world.operator_start(FIRST).await.unwrap();
    world.run_until(ROUND, "its pod runs", |world| !pods_of_jobs(world).is_empty()).await.unwrap();
    let job = world.list(Kind::Job).remove(0);
    let pod = world.list(Kind::Pod).into_iter().find(|pod| pods_of_jobs(&world).contains(pod)).unwrap();
    let order = pod["metadata"]["annotations"][annotations::ORDER].as_str().unwrap();
    assert_eq!(Order::read(order).unwrap().task, Task::Look { steady_ms: 0 });
    for object in [&job, &pod] {
        assert!(object["metadata"]["labels"].get(labels::FENCE_UID).is_none(), "{object}");
        assert_eq!(object["metadata"]["labels"]["palisade.dev/device-check"], "true");
    }
    let template = world.get(Kind::Template, "agent").unwrap();
    let owner = &job["metadata"]["ownerReferences"];
    assert_eq!((&owner[0]["kind"], &owner[0]["uid"]), (&json!("FenceTemplate"), &template["metadata"]["uid"]));
    assert_eq!(owner.as_array().unwrap().len(), 1);
    assert!(job["spec"]["ttlSecondsAfterFinished"].as_u64().unwrap() <= 60);
    assert!(job["spec"]["activeDeadlineSeconds"].as_u64().unwrap() <= 60);
    assert!(pod["spec"].get("priorityClassName").is_none(), "it puts nobody out");
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    assert_eq!(pod["spec"]["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
}

#[tokio::test(start_paused = true)]
async fn a_check_runs_neither_on_the_node_that_it_is_about_nor_on_one_in_trouble() {
    let mut world = found_good().await;
    world.kubelet_hang("n3").await.unwrap();
    let elsewhere = |world: &dyn Look| {
        let about = about(world).unwrap_or_default();
        pods_of_jobs(world).iter().all(|pod| pod["spec"]["nodeName"] != json!(about))
    };
    world.hold_for(ROUND, "never on its own node", elsewhere).await.unwrap();
    let avoids = |world: &dyn Look| {
        let one = world.list(Kind::Job).into_iter().next();
        let terms = "/spec/template/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution";
        one.is_some_and(|job| {
            about(world).as_deref() == Some("n1") && job.pointer(terms).unwrap().to_string().contains("n3")
        })
    };
    world.run_until(ROUND, "it stays away from the one whose kubelet hangs", avoids).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_is_no_answer_and_keeps_nobody_else_from_being_asked() {
    let mut world = found_good().await;
    // It takes the request and never answers, so the agent never ends.
    world.bmc("n1", Bmc::Silent).await.unwrap();
    let fails = |world: &dyn Look| says(world, "False", "NoAnswer", "1 of 3 nodes: the device of n1 ");
    world.run_until(ROUND, "it is told of", watched(fails)).await.unwrap();
    let good = checks(&world, "Good");
    World::run_for(&mut world, 600).await;
    assert!(checks(&world, "Good") >= good + 12.0, "{}", metrics(&world));
    assert!(age(&world, "n2").is_some_and(|age| age < 150.0), "{}", metrics(&world));
    world.agent(Agent::Hangs).await.unwrap();
    let all_fail = |world: &dyn Look| says(world, "False", "NoAnswer", "3 of 3 nodes");
    world.run_until(2 * ROUND, "all hang", watched(all_fail)).await.unwrap();
    world.agent(Agent::Honest).await.unwrap();
    world.bmc("n1", Bmc::Honest).await.unwrap();
    world.run_until(ROUND, "all is well again", watched(all_good)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_an_agent_says_means_what_it_means_for_a_native_device() {
    for (behaves, reason) in
        [(Agent::LiesWholly, "OffWhileReady"), (Agent::KilledBySignal, "Unclear"), (Agent::WrongReport, "Unclear")]
    {
        let mut world = found_good().await;
        world.agent(behaves).await.unwrap();
        let fails = |world: &dyn Look| says(world, "False", reason, "3 of 3 nodes");
        world.run_until(2 * ROUND, reason, watched(fails)).await.unwrap();
    }
    // They read honestly.
    for behaves in [Agent::SaysSuccess, Agent::ErrorTextExitZero, Agent::FailsAfterSuccess, Agent::Slow(3)] {
        let mut world = found_good().await;
        world.agent(behaves).await.unwrap();
        world.hold_for(ROUND, "all are good", watched(all_good)).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_cannot_tell_whose_machine_it_switches() {
    let mut world = found_good().await;
    world.patch(Kind::Template, "agent", json!({ "spec": { "identity": "Required" } })).await.unwrap();
    let fails = |world: &dyn Look| says(world, "False", "CannotTell", "3 of 3 nodes");
    world.run_until(2 * ROUND, "nobody can tell", watched(fails)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_keeps_a_job_from_starting_is_said_and_accuses_no_device() {
    let mut world = by_agent().await;
    for node in ["n1", "n2", "n3"] {
        world.patch(Kind::Node, node, things::cordon(true)).await.unwrap();
    }
    world.operator_start(FIRST).await.unwrap();
    let said = |world: &dyn Look| says(world, "Unknown", "NotCheckedYet", "was not asked: no node took its pod in 20s");
    world.run_until(ROUND, "it is said why", watched(said)).await.unwrap();
    assert!(!world.was_told("DeviceCheckFailed", "n1"));
    for node in ["n1", "n2", "n3"] {
        world.patch(Kind::Node, node, things::cordon(false)).await.unwrap();
    }
    world.run_until(2 * ROUND, "all are good", watched(all_good)).await.unwrap();
    for node in ["n1", "n2", "n3"] {
        world.patch(Kind::Node, node, things::cordon(true)).await.unwrap();
    }
    world.hold_for(600, "what is known stands", watched(all_good)).await.unwrap();
    assert!(checks(&world, "NotAsked") >= 3.0, "{}", metrics(&world));
    assert!(age(&world, "n1").is_some_and(|age| age > 500.0), "its age tells: {}", metrics(&world));
}

#[tokio::test(start_paused = true)]
async fn a_crash_in_the_middle_leaves_no_job_behind_for_ever() {
    let mut world = found_good().await;
    world.agent(Agent::Slow(10)).await.unwrap();
    let runs = |world: &dyn Look| !pods_of_jobs(world).is_empty();
    world.run_until(ROUND, "a check is under way", runs).await.unwrap();
    let left = job_uid(&world).unwrap();
    world.operator_crash(FIRST).await.unwrap();
    World::run_for(&mut world, 60).await;
    assert_eq!(job_uid(&world), Some(left.clone()), "nobody is there who could take it away");
    world.agent(Agent::Honest).await.unwrap();
    world.operator_start(SECOND).await.unwrap();
    let gone = |world: &dyn Look| job_uid(world).is_none_or(|uid| uid != left);
    world.run_until(ROUND, "the next check takes it away", watched(gone)).await.unwrap();
    world.run_until(ROUND, "another one was made", |world| job_uid(world).is_some()).await.unwrap();
    world.run_until(60, "and goes as they do", nothing_left).await.unwrap();
    let good = "palisade_device_checks_total{outcome=\"Good\"}";
    let count = |world: &Embedded| {
        let text = world.metrics(SECOND).unwrap().text();
        text.lines().find(|line| line.starts_with(good)).is_some()
    };
    World::run_for(&mut world, ROUND).await;
    assert!(count(&world), "and devices are asked again");
}

#[tokio::test(start_paused = true)]
async fn a_template_that_goes_takes_a_job_along_that_a_crash_has_left() {
    let mut world = found_good().await;
    world.agent(Agent::Slow(10)).await.unwrap();
    world.run_until(ROUND, "a check is under way", |world| !pods_of_jobs(world).is_empty()).await.unwrap();
    world.operator_crash(FIRST).await.unwrap();
    world.delete(Kind::Template, "agent").await.unwrap();
    world.run_until(60, "no Job is left", nothing_left).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn whoever_lost_the_lease_neither_makes_a_job_nor_ends_that_of_the_next_leader() {
    let mut world = found_good().await;
    world.operator_start(SECOND).await.unwrap();
    world.agent(Agent::Slow(10)).await.unwrap();
    world.run_until(ROUND, "a check is under way", |world| !pods_of_jobs(world).is_empty()).await.unwrap();
    let first = job_uid(&world).unwrap();
    world.freeze(FIRST);
    let of_another =
        |world: &dyn Look| job_uid(world).is_some_and(|uid| uid != first) && !pods_of_jobs(world).is_empty();
    world.run_until(2 * ROUND, "the next leader's is under way", watched(of_another)).await.unwrap();
    let second = job_uid(&world).unwrap();
    world.thaw(FIRST);
    let stays = |world: &dyn Look| job_uid(world) == Some(second.clone());
    world.hold_for(6, "it is left alone", watched(stays)).await.unwrap();
    world.agent(Agent::Honest).await.unwrap();
    World::run_for(&mut world, ROUND).await;
    let shows = |name: &str| world.metrics(name).unwrap().text().contains("palisade_device_check_failing{");
    assert!(shows(SECOND) && !shows(FIRST));
    world.run_until(ROUND, "all is well", watched(all_good)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_check_gives_way_to_a_fence_of_its_node() {
    let mut world = found_good().await;
    world.settle().await;
    // Long enough that it would still be there.
    world.patch(Kind::Template, "agent", json!({ "spec": { "timeout": "2m" } })).await.unwrap();
    world.agent(Agent::Hangs).await.unwrap();
    let about_n1 = |world: &dyn Look| about(world).as_deref() == Some("n1") && !pods_of_jobs(world).is_empty();
    world.run_until(10 * ROUND, "the device of n1 is asked", watched(about_n1)).await.unwrap();
    let check = job_uid(&world).unwrap();
    // Its agent is called, and hangs, before others are honest again.
    World::run_for(&mut world, 5).await;
    world.agent(Agent::Honest).await.unwrap();
    world.create(Kind::Request, things::request("please", "n1", "PowerStep")).await.unwrap();
    world.run_until(30, "n1 is being fenced", |world| world.fence_of("n1").is_some()).await.unwrap();
    assert_eq!(job_uid(&world), Some(check.clone()), "it is still there");
    let gone = |world: &dyn Look| {
        let uids: Vec<String> = world.list(Kind::Job).iter().map(|job| job["metadata"]["uid"].to_string()).collect();
        !uids.contains(&check)
    };
    world.run_until(5, "the check is ended", gone).await.unwrap();
    let no_check = |world: &dyn Look| {
        let check = |job: &Value| job["metadata"]["labels"]["palisade.dev/device-check"] == "true";
        let of_n1 = |job: &Value| job["metadata"]["annotations"][annotations::TARGET_NODE] == "n1";
        !world.list(Kind::Job).iter().any(|job| check(job) && of_n1(job)) || world.fence_of("n1").is_none()
    };
    let mut alone = true;
    let clean = |world: &dyn Look| {
        alone &= no_check(world);
        world.fence_of("n1").is_none() && world.node_is_clean("n1") && world.boots_of("n1") == 2
    };
    world.run_until(900, "n1 is fenced by its agent, and back", clean).await.unwrap();
    assert!(alone, "no check asks its device meanwhile");
}

#[tokio::test(start_paused = true)]
async fn a_users_own_pod_is_not_run_for_a_check_and_its_template_says_so() {
    let mut world = by_agent().await;
    let container = json!({ "name": "mine", "image": "example.com/mine:1", "command": ["switch", "off"] });
    let own = json!({
        "metadata": { "name": "agent-of-mine" },
        "spec": { "podTemplate": { "spec": { "containers": [container] } }, "proves": { "class": "None" } },
    });
    world.create(Kind::Template, own).await.unwrap();
    world.patch(Kind::Template, "agent", json!({ "spec": { "checkInterval": "0s" } })).await.unwrap();
    world.operator_start(FIRST).await.unwrap();
    world.hold_for(ROUND, "nothing is run", |world| world.list(Kind::Job).is_empty()).await.unwrap();
    let said = |name: &str| healthy(&world, name)["reason"].clone();
    assert_eq!((said("agent-of-mine"), said("agent")), (json!("OwnPod"), json!("NotWanted")));
}
