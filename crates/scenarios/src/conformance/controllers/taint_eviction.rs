//! Taint eviction: a taint against running marks pods, and does no more.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::kubelet::{marked, register, running, seconds, unmarked, while_alive};
use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::pod_on;
use crate::conformance::{Told, table};

table! { "taint eviction";
    untolerated: "a pod that does not tolerate a NoExecute taint is marked at once, with its own grace";
    says_why: "and its status says why";
    tolerated: "one that tolerates it stays";
    tolerated_for_a_while: "one that tolerates it for a while is marked after that";
    taken_back_in_time: "a taint that is taken back in time marks nobody";
    against_scheduling_only: "a NoSchedule taint marks nobody";
}

const KEY: &str = "palisade.dev/test";

async fn taint(bench: &Bench, node: &Made, effect: &str) -> Told {
    let taints = json!([{"key": KEY, "value": "x", "effect": effect}]);
    bench.merge(&node.path, &json!({"spec": {"taints": taints}})).await?.is(200).map(drop)
}

/// A node that has lost the taint of every new one: a merge patch would take that for the check's own wish.
async fn clean_node(bench: &Bench) -> Told<Made> {
    let node = register(bench, "n").await?;
    bench.until(&node.path, seconds(20), |node| items(node, "/spec/taints").next().is_none()).await?;
    Ok(node)
}

fn pod(bench: &Bench, node: &Made, toleration: Option<Value>) -> Value {
    let mut pod = pod_on(&bench.name("p"), node.name());
    if let Some(toleration) = toleration {
        pod["spec"]["tolerations"] = json!([toleration]);
    }
    pod
}

async fn untolerated(bench: &Bench) -> Told {
    let node = clean_node(bench).await?;
    while_alive(bench, &[&node], async {
        let pod = running(bench, pod(bench, &node, None)).await?;
        taint(bench, &node, "NoExecute").await?;
        let now = bench.until(&pod.path, seconds(15), marked).await?;
        same("uid", text(&now, "/metadata/uid"), pod.uid())?;
        same("grace", &now["metadata"]["deletionGracePeriodSeconds"], &json!(30))
    })
    .await
}

async fn says_why(bench: &Bench) -> Told {
    let node = clean_node(bench).await?;
    while_alive(bench, &[&node], async {
        let pod = running(bench, pod(bench, &node, None)).await?;
        taint(bench, &node, "NoExecute").await?;
        let now = bench.until(&pod.path, seconds(15), marked).await?;
        let said = items(&now, "/status/conditions").find(|said| said["type"] == "DisruptionTarget");
        let told = said.map(|said| [text(said, "/reason"), text(said, "/message")]);
        same("condition", told, Some(["DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"]))
    })
    .await
}

async fn tolerated(bench: &Bench) -> Told {
    let node = clean_node(bench).await?;
    while_alive(bench, &[&node], async {
        let toleration = json!({"key": KEY, "operator": "Exists"});
        let pod = running(bench, pod(bench, &node, Some(toleration))).await?;
        taint(bench, &node, "NoExecute").await?;
        bench.holds(&pod.path, seconds(20), unmarked).await
    })
    .await
}

async fn tolerated_for_a_while(bench: &Bench) -> Told {
    let node = clean_node(bench).await?;
    while_alive(bench, &[&node], async {
        let toleration = json!({"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 12});
        let pod = running(bench, pod(bench, &node, Some(toleration))).await?;
        taint(bench, &node, "NoExecute").await?;
        let begin = Instant::now();
        bench.until(&pod.path, seconds(30), marked).await?;
        let after = begin.elapsed();
        must(after >= seconds(10), || format!("it is marked after {after:?} already"))
    })
    .await
}

async fn taken_back_in_time(bench: &Bench) -> Told {
    let node = clean_node(bench).await?;
    while_alive(bench, &[&node], async {
        let toleration = json!({"key": KEY, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 10});
        let pod = running(bench, pod(bench, &node, Some(toleration))).await?;
        taint(bench, &node, "NoExecute").await?;
        tokio::time::sleep(seconds(3)).await;
        bench.merge(&node.path, &json!({"spec": {"taints": []}})).await?.is(200)?;
        bench.holds(&pod.path, seconds(20), unmarked).await
    })
    .await
}

async fn against_scheduling_only(bench: &Bench) -> Told {
    let node = clean_node(bench).await?;
    while_alive(bench, &[&node], async {
        let pod = running(bench, pod(bench, &node, None)).await?;
        taint(bench, &node, "NoSchedule").await?;
        bench.holds(&pod.path, seconds(20), unmarked).await
    })
    .await
}
