//! Detach: when a volume leaves a node. These are the levers of a release, and what happens without them.

use serde_json::{Value, json};
use tokio::time::Instant;

use super::attach::{attached, pod_with, unique, volume};
use super::kubelet::{register, renew, says, seconds, while_alive};
use crate::conformance::answer::{items, must, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::{Told, table};

table! { "detach";
    unused_goes: "a volume that the node does not use goes when its pod is gone";
    used_stays: "one that the node says it uses stays, though its pod is gone";
    pod_that_goes_keeps_it: "a pod that is marked and still runs keeps its volume";
    pod_that_never_ran: "one that is marked, and whose status tells of no container that runs, gives it up";
    no_longer_in_use: "a volume goes at once when volumesInUse no longer names it";
    out_of_service: "it goes at once from a node that is out of service, ready or not, used or not";
    six_minutes: "it goes from a node that is not ready six minutes after its pod is gone";
    six_minutes_of_a_ready_node: "and never from one that is ready and uses it";
}

/// A node with a pod whose volume is attached, and in use if so wished.
async fn in_place(bench: &Bench, used: bool) -> Told<(Made, Made, Made)> {
    let node = register(bench, "n").await?;
    let volume = volume(bench).await?;
    // The kubelet lives while its pod starts.
    while_alive(bench, &[&node], async {
        let pod = pod_with(bench, "p", &volume, &node).await?;
        let held = attached(bench, &volume, &node).await?;
        if used {
            let status = json!({"volumesInUse": [unique(&volume)]});
            bench.merge(&node.status(), &json!({"status": status})).await?.is(200)?;
            // The controller has to have seen it before the pod goes.
            tokio::time::sleep(seconds(3)).await;
        }
        Ok((node.clone(), pod, held))
    })
    .await
}

async fn remove(bench: &Bench, pod: &Made) -> Told {
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid()}});
    bench.delete(&pod.path, &options).await?.is(200).map(drop)
}

async fn unused_goes(bench: &Bench) -> Told {
    let (node, pod, held) = in_place(bench, false).await?;
    while_alive(bench, &[&node], async {
        remove(bench, &pod).await?;
        bench.until(&held.path, seconds(15), Value::is_null).await.map(drop)
    })
    .await
}

async fn used_stays(bench: &Bench) -> Told {
    let (node, pod, held) = in_place(bench, true).await?;
    while_alive(bench, &[&node], async {
        remove(bench, &pod).await?;
        bench.holds(&held.path, seconds(30), |held| !held.is_null()).await
    })
    .await
}

async fn pod_that_goes_keeps_it(bench: &Bench) -> Told {
    let (node, pod, held) = in_place(bench, false).await?;
    while_alive(bench, &[&node], async {
        bench.delete(&pod.path, &json!({"gracePeriodSeconds": 600})).await?.is(200)?;
        bench.holds(&held.path, seconds(20), |held| !held.is_null()).await
    })
    .await
}

async fn pod_that_never_ran(bench: &Bench) -> Told {
    let (node, pod, held) = in_place(bench, false).await?;
    while_alive(bench, &[&node], async {
        bench.merge(&pod.status(), &json!({"status": {"containerStatuses": null}})).await?.is(200)?;
        bench.delete(&pod.path, &json!({"gracePeriodSeconds": 600})).await?.is(200)?;
        bench.until(&held.path, seconds(15), Value::is_null).await.map(drop)
    })
    .await
}

async fn no_longer_in_use(bench: &Bench) -> Told {
    let (node, pod, held) = in_place(bench, true).await?;
    while_alive(bench, &[&node], async {
        remove(bench, &pod).await?;
        bench.holds(&held.path, seconds(5), |held| !held.is_null()).await?;
        // As the operator does it, and storage.md 2.5 measured: tested for the version, so it may have to be read again.
        for _ in 0..20 {
            let now = bench.read(&node.path).await?;
            let operations = json!([
                {"op": "test", "path": "/metadata/resourceVersion", "value": text(&now, "/metadata/resourceVersion")},
                {"op": "replace", "path": "/status/volumesInUse", "value": []},
            ]);
            if bench.patch(&node.status(), &operations).await?.code == 200 {
                break;
            }
        }
        bench.until(&held.path, seconds(15), Value::is_null).await.map(drop)
    })
    .await
}

async fn out_of_service(bench: &Bench) -> Told {
    let (node, pod, held) = in_place(bench, true).await?;
    while_alive(bench, &[&node], async {
        remove(bench, &pod).await?;
        let taint = json!({"key": "node.kubernetes.io/out-of-service", "value": "x", "effect": "NoExecute"});
        bench.merge(&node.path, &json!({"spec": {"taints": [taint]}})).await?.is(200)?;
        bench.until(&held.path, seconds(15), Value::is_null).await.map(drop)
    })
    .await
}

async fn six_minutes(bench: &Bench) -> Told {
    let other = register(bench, "o").await?;
    while_alive(bench, &[&other], async {
        let (node, pod, held) = in_place(bench, true).await?;
        renew(bench, node.name()).await?;
        remove(bench, &pod).await?;
        let begin = Instant::now();
        bench.until(&node.path, seconds(90), |node| says(node, "Ready") == "Unknown").await?;
        bench.until(&held.path, seconds(420), Value::is_null).await?;
        let after = begin.elapsed();
        must(after >= seconds(355), || format!("it is gone after {after:?} already"))
    })
    .await
}

async fn six_minutes_of_a_ready_node(bench: &Bench) -> Told {
    let (node, pod, held) = in_place(bench, true).await?;
    while_alive(bench, &[&node], async {
        remove(bench, &pod).await?;
        bench.holds(&held.path, seconds(420), |held| !held.is_null()).await?;
        let now = bench.read(&node.path).await?;
        must(items(&now, "/status/volumesInUse").count() == 1, || now["status"].to_string())
    })
    .await
}
