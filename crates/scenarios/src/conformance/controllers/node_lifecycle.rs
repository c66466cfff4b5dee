//! Node lifecycle: what silence is taken for, and after how long.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::kubelet::{marked, register, renew, renew_lease, running, says, seconds, tainted, while_alive};
use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{named, pod_on};
use crate::conformance::places::NODES;
use crate::conformance::{Told, table};

table! { "node lifecycle";
    silence_is_unknown: "a node that is silent for 50 s is Unknown, and that is told with its reason";
    all_conditions_are_unknown: "so are its other conditions, also those that it never had";
    silence_is_a_taint: "and it is tainted unreachable, first against scheduling, then against running";
    lease_is_enough: "a node whose Lease is renewed is believed, though its status is old";
    back_again: "a node that is back loses its taints";
    not_ready_by_its_own_word: "a node that says itself that it is not ready is tainted so";
    pods_are_not_ready: "the pods of a silent node are no longer ready, and are not deleted for five minutes";
    without_a_word: "a Node that says nothing about itself loses the taint of a new one";
    cordon_is_a_taint: "a cordon is a taint, and goes with it";
}

const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const NOT_READY: &str = "node.kubernetes.io/not-ready";

fn unknown(node: &Value) -> bool {
    says(node, "Ready") == "Unknown"
}

async fn silence_is_unknown(bench: &Bench) -> Told {
    let (silent, other) = (register(bench, "n").await?, register(bench, "o").await?);
    let begin = Instant::now();
    while_alive(bench, &[&other], async {
        let node = bench.until(&silent.path, seconds(80), unknown).await?;
        let after = begin.elapsed();
        must(after >= seconds(45), || format!("it is Unknown after {after:?} already"))?;
        let said = items(&node, "/status/conditions").find(|said| said["type"] == "Ready");
        let told = said.map(|said| [text(said, "/reason"), text(said, "/message")]);
        same("condition", told, Some(["NodeStatusUnknown", "Kubelet stopped posting node status."]))
    })
    .await
}

async fn all_conditions_are_unknown(bench: &Bench) -> Told {
    let (silent, other) = (register(bench, "n").await?, register(bench, "o").await?);
    while_alive(bench, &[&other], async {
        let node = bench.until(&silent.path, seconds(80), unknown).await?;
        for kind in ["MemoryPressure", "DiskPressure", "PIDPressure"] {
            let said = items(&node, "/status/conditions").find(|said| said["type"] == kind);
            let told = said.map(|said| [text(said, "/status"), text(said, "/reason"), text(said, "/message")]);
            same(kind, told, Some(["Unknown", "NodeStatusNeverUpdated", "Kubelet never posted node status."]))?;
        }
        Ok(())
    })
    .await
}

async fn silence_is_a_taint(bench: &Bench) -> Told {
    let (silent, other) = (register(bench, "n").await?, register(bench, "o").await?);
    while_alive(bench, &[&other], async {
        let scheduling = |node: &Value| tainted(node, UNREACHABLE, "NoSchedule");
        bench.until(&silent.path, seconds(90), scheduling).await?;
        let running = |node: &Value| scheduling(node) && tainted(node, UNREACHABLE, "NoExecute");
        let node = bench.until(&silent.path, seconds(40), running).await?;
        let hard = items(&node, "/spec/taints").find(|taint| taint["effect"] == "NoExecute");
        let since = hard.map(|taint| text(taint, "/timeAdded")).unwrap_or_default();
        must(!since.is_empty(), || format!("the taint has no time: {hard:?}"))
    })
    .await
}

async fn lease_is_enough(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    let renewing = async {
        loop {
            renew_lease(bench, node.name()).await?;
            tokio::time::sleep(seconds(10)).await;
        }
    };
    tokio::select! {
        held = bench.holds(&node.path, seconds(90), |node| says(node, "Ready") == "True") => held,
        broken = renewing => broken,
    }
}

async fn back_again(bench: &Bench) -> Told {
    let (silent, other) = (register(bench, "n").await?, register(bench, "o").await?);
    while_alive(bench, &[&other], async {
        let gone = |node: &Value| tainted(node, UNREACHABLE, "NoExecute");
        bench.until(&silent.path, seconds(130), gone).await?;
        renew(bench, silent.name()).await?;
        let clean = |node: &Value| items(node, "/spec/taints").next().is_none();
        bench.until(&silent.path, seconds(30), clean).await.map(drop)
    })
    .await
}

async fn not_ready_by_its_own_word(bench: &Bench) -> Told {
    let (ill, other) = (register(bench, "n").await?, register(bench, "o").await?);
    while_alive(bench, &[&other], async {
        let condition = json!({"type": "Ready", "status": "False", "reason": "KubeletNotReady",
            "lastHeartbeatTime": "2026-03-01T12:00:05Z", "lastTransitionTime": "2026-03-01T12:00:05Z"});
        bench.merge(&ill.status(), &json!({"status": {"conditions": [condition]}})).await?.is(200)?;
        let both = |node: &Value| tainted(node, NOT_READY, "NoSchedule") && tainted(node, NOT_READY, "NoExecute");
        bench.until(&ill.path, seconds(40), both).await.map(drop)
    })
    .await
}

async fn pods_are_not_ready(bench: &Bench) -> Told {
    let (silent, other) = (register(bench, "n").await?, register(bench, "o").await?);
    let pod = running(bench, pod_on(&bench.name("p"), silent.name())).await?;
    let begin = Instant::now();
    while_alive(bench, &[&other], async {
        let not_ready = |pod: &Value| says(pod, "Ready") == "False";
        bench.until(&pod.path, seconds(90), not_ready).await?;
        bench.until(&pod.path, seconds(420), marked).await?;
        let after = begin.elapsed();
        must(after >= seconds(340), || format!("it is marked after {after:?} already"))
    })
    .await
}

async fn without_a_word(bench: &Bench) -> Told {
    let node = bench.make(NODES, named(&bench.name("n"))).await?;
    let clean = |node: &Value| items(node, "/spec/taints").next().is_none();
    bench.until(&node.path, seconds(20), clean).await.map(drop)
}

async fn cordon_is_a_taint(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let cordoned = |node: &Value| tainted(node, "node.kubernetes.io/unschedulable", "NoSchedule");
        bench.merge(&node.path, &json!({"spec": {"unschedulable": true}})).await?.is(200)?;
        bench.until(&node.path, seconds(20), cordoned).await?;
        bench.merge(&node.path, &json!({"spec": {"unschedulable": null}})).await?.is(200)?;
        bench.until(&node.path, seconds(20), |node| !cordoned(node)).await.map(drop)
    })
    .await
}
