//! Pods that call fence agents, on the embedded world and without the operator: what such a pod does to a machine, what it
//! says of it, and what the Job and the BMC's record say.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::time::Duration;

use palisade_cluster::Shape;
use palisade_cluster::machines::machine::Power;
use palisade_devices::act::{Order, Report, Shown, Task, Verdict};
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::look::Look;
use palisade_scenarios::world::{Agent, Bmc, Kind, Link, Switched, World};
use serde_json::{Value, json};

const TARGET: &str = "n1";
const OFF: Task = Task::Off { only_if_on: false };
const LOOK: Task = Task::Look { steady_ms: 5_000 };

fn order(task: Task) -> Order {
    let mut order = Order::new("fence_redfish", task, Duration::from_secs(25));
    order.parameters.insert("ip".to_owned(), format!("bmc-{TARGET}"));
    order.secrets.insert("username".to_owned(), "0/username".to_owned());
    order.secrets.insert("password".to_owned(), "0/password".to_owned());
    order
}

fn job(order: &Order, node: &str) -> Value {
    let item = |key: &str| json!({ "key": key, "path": key });
    let secret = json!({ "secretName": format!("bmc-{TARGET}"), "items": [item("username"), item("password")] });
    let container = json!({
        "name": "act", "image": "example.com/palisade:1",
        "volumeMounts": [{ "name": "secret-0", "mountPath": "/etc/palisade/secrets/0" }],
    });
    let here = json!({ "key": "kubernetes.io/hostname", "operator": "In", "values": [node] });
    json!({
        "metadata": { "name": "act" },
        "spec": {
            "backoffLimit": 0, "activeDeadlineSeconds": 40,
            "template": {
                "metadata": { "annotations": { "palisade.dev/order": order.text() } },
                "spec": {
                    "restartPolicy": "Never", "containers": [container],
                    "volumes": [{ "name": "secret-0", "secret": secret }],
                    "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
                        "nodeSelectorTerms": [{ "matchExpressions": [here] }] } } },
                },
            },
        },
    })
}

fn pod(world: &dyn Look) -> Option<Value> {
    let acts = |pod: &Value| pod["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("act-"));
    world.list(Kind::Pod).into_iter().find(acts)
}

fn ended(world: &dyn Look) -> Value {
    let status = pod(world).map(|pod| pod["status"].clone()).unwrap_or_default();
    status.pointer("/containerStatuses/0/state/terminated").cloned().unwrap_or_default()
}

fn says(world: &dyn Look, kind: &str) -> bool {
    let job = world.get(Kind::Job, "act").unwrap_or_default();
    let conditions = job.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    conditions.iter().any(|said| said["type"] == kind && said["status"] == "True")
}

async fn world() -> Embedded {
    Embedded::up(&Shape { nodes: 3, ..Shape::default() }).await
}

/// What came of an order: the exit code, the report if there is one, and whether the Job is complete.
struct Came {
    code: i64,
    report: Option<Report>,
    complete: bool,
}

impl Came {
    fn shown(&self) -> Vec<Shown> {
        self.report.iter().flat_map(|report| &report.looks).map(|look| look.state).collect()
    }

    fn verdict(&self) -> Option<Verdict> {
        self.report.as_ref().map(|report| report.verdict)
    }
}

async fn carry_out(world: &mut Embedded, order: &Order) -> Came {
    world.create(Kind::Job, job(order, "n2")).await.unwrap();
    let over = |world: &dyn Look| says(world, "Complete") || says(world, "Failed");
    world.run_until(90, "the Job is over", over).await.unwrap();
    let ended = ended(world);
    let came = Came {
        code: ended["exitCode"].as_i64().unwrap(),
        report: Report::read(ended["message"].as_str().unwrap_or_default()).ok(),
        complete: says(world, "Complete"),
    };
    assert_eq!(came.complete, came.code == 0, "a Job goes by exit codes");
    world.delete(Kind::Job, "act").await.unwrap();
    world.run_until(30, "the Job's pod is gone", |world| pod(world).is_none()).await.unwrap();
    came
}

#[tokio::test(start_paused = true)]
async fn each_personality_does_and_says_what_it_is_called() {
    use Verdict::{Taken, Unknown};
    let off: &[Switched] = &[Switched::Off];
    let table = [
        (Agent::Honest, 0, Some(Taken), off, Power::Off),
        (Agent::Slow(5), 0, Some(Taken), off, Power::Off),
        (Agent::SaysSuccess, 0, Some(Taken), &[], Power::On),
        (Agent::LiesWholly, 0, Some(Taken), &[], Power::On),
        (Agent::FailsAfterSuccess, 1, Some(Unknown), off, Power::Off),
        (Agent::ErrorTextExitZero, 1, Some(Unknown), &[], Power::On),
        (Agent::Hangs, 1, Some(Unknown), &[], Power::On),
        (Agent::KilledBySignal, 137, None, off, Power::Off),
        (Agent::WrongReport, 0, None, off, Power::Off),
    ];
    for (behaves, code, verdict, told, power) in table {
        let mut world = world().await;
        world.agent(behaves).await.unwrap();
        let came = carry_out(&mut world, &order(OFF)).await;
        assert_eq!((came.code, came.verdict()), (code, verdict), "{behaves:?}");
        assert_eq!(world.commands_to(TARGET), told, "{behaves:?}: what reached the BMC");
        assert_eq!(world.cluster.power(TARGET), Some(power), "{behaves:?}: what is true");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_looked_at_afterwards_gives_away_who_only_says_so_but_not_who_lies_wholly() {
    for (behaves, shown) in
        [(Agent::Honest, Shown::Off), (Agent::SaysSuccess, Shown::On), (Agent::LiesWholly, Shown::Off)]
    {
        let mut world = world().await;
        world.agent(behaves).await.unwrap();
        let off = carry_out(&mut world, &order(OFF)).await;
        assert_eq!(off.shown().last(), Some(&shown), "{behaves:?}: in the same pod");
        let look = carry_out(&mut world, &order(LOOK)).await;
        assert_eq!((look.verdict(), look.shown().last()), (Some(Verdict::Taken), Some(&shown)), "{behaves:?}");
        let looks = look.report.unwrap().looks;
        let steady = looks.last().unwrap().began_ms - looks.first().unwrap().began_ms;
        assert_eq!(steady >= 5_000, shown == Shown::Off, "{behaves:?}: {steady} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn an_honest_agent_takes_as_long_as_one_does() {
    let mut world = world().await;
    let off = carry_out(&mut world, &order(OFF)).await.report.unwrap();
    assert!((1_200..3_500).contains(&off.took_ms), "off took {} ms", off.took_ms);
    let look = off.looks.last().unwrap();
    assert!((150..300).contains(&(look.ended_ms - look.began_ms)), "a look: {look:?}");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_meets_a_power_cycle_says_already_off_and_the_machine_comes_back() {
    let mut world = world().await;
    world.agent(Agent::FlapsWithCycle).await.unwrap();
    let boots = world.boots_of(TARGET);
    let came = carry_out(&mut world, &order(OFF)).await;
    let report = came.report.clone().unwrap();
    assert!(report.said.contains("Already OFF"), "{}", report.said);
    assert_eq!((came.verdict(), came.shown().last()), (Some(Verdict::Taken), Some(&Shown::Off)));
    assert!(world.commands_to(TARGET).is_empty(), "nothing was sent");
    world.run_for(10).await;
    assert_eq!((world.cluster.power(TARGET), world.boots_of(TARGET)), (Some(Power::On), boots + 1));
    let again = carry_out(&mut world, &order(OFF)).await;
    assert_eq!((again.verdict(), world.cluster.power(TARGET)), (Some(Verdict::Taken), Some(Power::Off)), "once only");
}

#[tokio::test(start_paused = true)]
async fn a_bmc_s_own_faults_reach_the_agent() {
    use Verdict::{Refused, Taken, Unknown};
    let table = [
        (Bmc::Unreachable, Refused, Power::On),
        (Bmc::Silent, Unknown, Power::On),
        (Bmc::AcceptsOnly, Unknown, Power::On),
        (Bmc::Refuses, Unknown, Power::On),
        (Bmc::SaysOff, Taken, Power::On),
        (Bmc::Slow(2), Taken, Power::Off),
    ];
    for (behaves, verdict, power) in table {
        let mut world = world().await;
        world.bmc(TARGET, behaves).await.unwrap();
        let came = carry_out(&mut world, &order(OFF)).await;
        assert_eq!((came.verdict(), world.cluster.power(TARGET)), (Some(verdict), Some(power)), "{behaves:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_without_a_way_to_the_bmcs_sends_nothing() {
    let mut world = world().await;
    world.cut("n2", Link::Devices).await.unwrap();
    let came = carry_out(&mut world, &order(OFF)).await;
    assert_eq!((came.verdict(), world.commands_to(TARGET).len()), (Some(Verdict::Refused), 0));
}

#[tokio::test(start_paused = true)]
async fn an_off_that_wants_to_see_it_on_first_does_not_touch_what_is_off() {
    let mut world = world().await;
    let careful = order(Task::Off { only_if_on: true });
    assert_eq!(carry_out(&mut world, &careful).await.verdict(), Some(Verdict::Taken));
    assert_eq!(carry_out(&mut world, &careful).await.verdict(), Some(Verdict::Refused));
    assert_eq!(world.commands_to(TARGET), [Switched::Off]);
    assert_eq!(carry_out(&mut world, &order(Task::On)).await.verdict(), Some(Verdict::Taken));
    assert_eq!(world.commands_to(TARGET), [Switched::Off, Switched::On]);
}

#[tokio::test(start_paused = true)]
async fn an_agent_s_pod_dies_with_its_node_and_the_job_is_not_over() {
    let mut world = world().await;
    world.agent(Agent::Slow(10)).await.unwrap();
    world.create(Kind::Job, job(&order(OFF), "n2")).await.unwrap();
    let runs = |world: &dyn Look| pod(world).is_some_and(|pod| pod["status"]["phase"] == "Running");
    world.run_until(30, "it runs", runs).await.unwrap();
    world.power_off("n2").await.unwrap();
    world.run_until(60, "its deadline has passed", |world| says(world, "FailureTarget")).await.unwrap();
    world.hold_for(600, "nobody knows how it ended", |world| !says(world, "Failed")).await.unwrap();
    assert!(world.commands_to(TARGET).is_empty());
    world.outside_on("n2").await.unwrap();
    world.run_until(120, "its kubelet has said so", |world| says(world, "Failed")).await.unwrap();
    assert!(world.commands_to(TARGET).is_empty(), "and it is not started again");
}

#[tokio::test(start_paused = true)]
async fn a_pod_without_its_secret_or_with_an_order_of_another_version_sends_nothing() {
    let mut world = world().await;
    let mut lost = order(OFF);
    lost.secrets.insert("password".to_owned(), "1/password".to_owned());
    let later = Order { form: 2, ..order(OFF) };
    for (order, words) in [(lost, "1/password"), (later, "form 2")] {
        let report = carry_out(&mut world, &order).await.report.unwrap();
        assert_eq!(report.verdict, Verdict::Refused);
        assert!(report.said.contains(words), "{}", report.said);
    }
    assert!(world.commands_to(TARGET).is_empty());
}

#[tokio::test(start_paused = true)]
async fn no_secret_is_in_what_a_pod_leaves_or_the_cluster_keeps() {
    let mut world = world().await;
    for behaves in [Agent::Honest, Agent::FailsAfterSuccess] {
        world.agent(behaves).await.unwrap();
        let came = carry_out(&mut world, &order(OFF)).await;
        assert!(!came.report.unwrap().text().contains("secret-n1"));
        carry_out(&mut world, &order(Task::On)).await;
    }
    for kind in [Kind::Job, Kind::Pod, Kind::Event] {
        assert!(world.list(kind).iter().all(|object| !object.to_string().contains("secret-n1")), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_s_own_pod_may_switch_its_target_off_or_just_end() {
    let own = |command: Value, marks: Value| {
        let container = json!({ "name": "mine", "image": "example.com/mine:1", "command": command });
        let mut annotations = json!({ "palisade.dev/target-node": TARGET });
        for (name, value) in marks.as_object().unwrap() {
            annotations[name] = value.clone();
        }
        json!({
            "metadata": { "name": "act" },
            "spec": { "backoffLimit": 0, "template": {
                "metadata": { "annotations": annotations },
                "spec": { "restartPolicy": "Never", "containers": [container] },
            } },
        })
    };
    let idle = json!({ "cluster.palisade.dev/runs-for": "3", "cluster.palisade.dev/exit-code": "0" });
    for (job, power) in
        [(own(json!(["true"]), idle), Power::On), (own(json!(["switch", "off"]), json!({})), Power::Off)]
    {
        let mut world = world().await;
        world.create(Kind::Job, job).await.unwrap();
        world.run_until(60, "the Job is over", |world| says(world, "Complete")).await.unwrap();
        assert_eq!(world.cluster.power(TARGET), Some(power));
    }
}

/// Everything that happened, by its hash, in a world with this seed.
async fn told(seed: u64) -> u64 {
    let mut world = Embedded::up(&Shape { nodes: 3, seed, ..Shape::default() }).await;
    for behaves in [Agent::FlapsWithCycle, Agent::Honest, Agent::KilledBySignal] {
        world.agent(behaves).await.unwrap();
        carry_out(&mut world, &order(OFF)).await;
    }
    world.cluster.trace_hash()
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_tells_the_same_story_of_agents() {
    let first = told(7).await;
    assert_eq!(first, told(7).await);
    assert_ne!(first, told(8).await);
}
