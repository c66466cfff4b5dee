//! Pod garbage collection: which pods go without their kubelet.

use serde_json::{Value, json};

use super::kubelet::{register, running, says, seconds, unmarked, while_alive};
use crate::conformance::answer::{items, must, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::pod_on;
use crate::conformance::places::PODS;
use crate::conformance::{Told, table};

table! { "pod gc";
    out_of_service_and_marked: "a marked pod of a node that is not ready and out of service is removed";
    out_of_service_and_unmarked: "one that is not marked stays, as long as the taint is not against running";
    out_of_service_against_running: "a taint against running marks it, and so it goes";
    out_of_service_and_ready: "a marked pod of a node that is ready stays, whatever the taint says";
    not_ready_and_marked: "a marked pod of a node that is not ready stays, without the taint";
    told_to_have_failed: "a pod that is removed so is told to have failed first";
    of_no_node: "a pod of a Node that does not exist is removed, after a while";
}

const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";

/// A node that says that it is not ready, and a pod on it.
async fn ill(bench: &Bench) -> Told<(Made, Made)> {
    let node = register(bench, "n").await?;
    let condition = json!({"type": "Ready", "status": "False", "reason": "KubeletNotReady",
        "lastHeartbeatTime": "2026-03-01T12:00:05Z", "lastTransitionTime": "2026-03-01T12:00:05Z"});
    bench.merge(&node.status(), &json!({"status": {"conditions": [condition]}})).await?.is(200)?;
    let mut pod = pod_on(&bench.name("p"), node.name());
    // Tolerates that its node is not ready: only what the check does may mark it.
    pod["spec"]["tolerations"] = json!([
        {"key": "node.kubernetes.io/not-ready", "operator": "Exists"},
        {"key": "node.kubernetes.io/unreachable", "operator": "Exists"},
    ]);
    let pod = running(bench, pod).await?;
    Ok((node, pod))
}

/// Adds the taint to what is there. Somebody else writes taints, too: a conflict is tried again.
async fn out_of_service(bench: &Bench, node: &Made, effect: &str) -> Told {
    for _ in 0..20 {
        let now = bench.read(&node.path).await?;
        let mut taints: Vec<Value> = items(&now, "/spec/taints").cloned().collect();
        taints.push(json!({"key": OUT_OF_SERVICE, "value": "x", "effect": effect}));
        let version = text(&now, "/metadata/resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version}, "spec": {"taints": taints}});
        let answer = bench.merge(&node.path, &patch).await?;
        if answer.code != 409 {
            return answer.is(200).map(drop);
        }
    }
    Err("the taint could not be written".to_owned())
}

async fn mark(bench: &Bench, pod: &Made) -> Told {
    bench.delete(&pod.path, &json!({"gracePeriodSeconds": 3600})).await?.is(200).map(drop)
}

async fn out_of_service_and_marked(bench: &Bench) -> Told {
    let other = register(bench, "o").await?;
    while_alive(bench, &[&other], async {
        let (node, pod) = ill(bench).await?;
        mark(bench, &pod).await?;
        out_of_service(bench, &node, "NoSchedule").await?;
        bench.until(&pod.path, seconds(45), Value::is_null).await.map(drop)
    })
    .await
}

async fn out_of_service_and_unmarked(bench: &Bench) -> Told {
    let other = register(bench, "o").await?;
    while_alive(bench, &[&other], async {
        let (node, pod) = ill(bench).await?;
        out_of_service(bench, &node, "NoSchedule").await?;
        bench.holds(&pod.path, seconds(45), unmarked).await
    })
    .await
}

async fn out_of_service_against_running(bench: &Bench) -> Told {
    let other = register(bench, "o").await?;
    while_alive(bench, &[&other], async {
        let (node, pod) = ill(bench).await?;
        out_of_service(bench, &node, "NoExecute").await?;
        bench.until(&pod.path, seconds(60), Value::is_null).await.map(drop)
    })
    .await
}

async fn out_of_service_and_ready(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let pod = running(bench, pod_on(&bench.name("p"), node.name())).await?;
        mark(bench, &pod).await?;
        out_of_service(bench, &node, "NoSchedule").await?;
        bench.holds(&pod.path, seconds(45), |pod| !pod.is_null()).await
    })
    .await
}

async fn not_ready_and_marked(bench: &Bench) -> Told {
    let other = register(bench, "o").await?;
    while_alive(bench, &[&other], async {
        let (node, pod) = ill(bench).await?;
        mark(bench, &pod).await?;
        bench.holds(&pod.path, seconds(45), |pod| !pod.is_null()).await?;
        let now = bench.read(&node.path).await?;
        must(says(&now, "Ready") != "True", || "the node is ready".to_owned())
    })
    .await
}

async fn told_to_have_failed(bench: &Bench) -> Told {
    let other = register(bench, "o").await?;
    while_alive(bench, &[&other], async {
        let (node, pod) = ill(bench).await?;
        mark(bench, &pod).await?;
        let list = bench.read(&format!("{PODS}?limit=1")).await?;
        let query = format!(
            "fieldSelector=metadata.name={}&resourceVersion={}",
            pod.name(),
            text(&list, "/metadata/resourceVersion")
        );
        let mut watch = bench.watch(PODS, &query).await?;
        out_of_service(bench, &node, "NoSchedule").await?;
        bench.until(&pod.path, seconds(45), Value::is_null).await?;
        let mut phases = Vec::new();
        loop {
            let line = watch.next().await?;
            phases.push(text(&line.object, "/status/phase").to_owned());
            if line.word == "DELETED" {
                break;
            }
        }
        must(phases.iter().any(|phase| phase == "Failed"), || format!("its phases were {phases:?}"))
    })
    .await
}

async fn of_no_node(bench: &Bench) -> Told {
    let pod = running(bench, pod_on(&bench.name("p"), &bench.name("nowhere"))).await?;
    bench.holds(&pod.path, seconds(30), unmarked).await?;
    bench.until(&pod.path, seconds(90), Value::is_null).await.map(drop)
}
