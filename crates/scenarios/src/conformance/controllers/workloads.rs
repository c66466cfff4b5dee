//! Workloads: who replaces a pod that is going, and who waits until it is gone.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::kubelet::{marked, register, run, seconds, while_alive};
use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::places::{JOBS, PODS, REPLICA_SETS, STATEFUL_SETS, at};
use crate::conformance::{Told, table};

table! { "workloads";
    stateful_set_waits: "a StatefulSet does not replace a pod that is going";
    stateful_set_replaces: "it replaces one that is gone, under the same name and another UID";
    stateful_set_replaces_failed: "and one that has failed, by itself";
    stateful_set_in_order: "the second pod of a StatefulSet comes when the first is ready";
    replica_set_replaces_at_once: "a ReplicaSet replaces a pod that is going at once";
    job_replaces_at_once: "so does a Job";
    job_that_waits: "unless it wants to wait until the pod is gone";
}

fn template(bench: &Bench, node: &Made) -> Value {
    json!({
        "metadata": {"labels": {"app": bench.name("app")}},
        // Bound by its template: no scheduler is needed.
        "spec": {"nodeName": node.name(), "containers": [{"name": "c", "image": "none"}]},
    })
}

async fn stateful_set(bench: &Bench, node: &Made, replicas: u32) -> Told<String> {
    let name = bench.name("db");
    let selector = json!({"matchLabels": {"app": bench.name("app")}});
    let set = json!({"metadata": {"name": name}, "spec": {"replicas": replicas, "serviceName": name,
        "selector": selector, "template": template(bench, node)}});
    bench.make(STATEFUL_SETS, set).await?;
    let first = at(PODS, &format!("{name}-0"));
    let pod = bench.until(&first, seconds(20), |pod| !pod.is_null()).await?;
    bench.remember(PODS, pod);
    Ok(first)
}

/// The pods of this bench, when there are as many as wanted.
async fn pods(bench: &Bench, limit: Duration, wanted: impl Fn(&[Value]) -> bool) -> Told<Vec<Value>> {
    let path = format!("{PODS}?labelSelector=app={}", bench.name("app"));
    let list = |list: &Value| items(list, "/items").cloned().collect::<Vec<Value>>();
    let found = list(&bench.until(&path, limit, |found| wanted(&list(found))).await?);
    for pod in &found {
        bench.remember(PODS, pod.clone());
    }
    Ok(found)
}

async fn stateful_set_waits(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let path = stateful_set(bench, &node, 1).await?;
        let pod = run(bench, &path).await?;
        bench.delete(&path, &json!({"gracePeriodSeconds": 600})).await?.is(200)?;
        let uid = text(&pod, "/metadata/uid").to_owned();
        bench.holds(&path, seconds(30), |pod| text(pod, "/metadata/uid") == uid).await?;
        same("pods", pods(bench, seconds(1), |_| true).await?.len(), 1)
    })
    .await
}

async fn stateful_set_replaces(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let path = stateful_set(bench, &node, 1).await?;
        let pod = run(bench, &path).await?;
        let uid = text(&pod, "/metadata/uid");
        let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": uid}});
        bench.delete(&path, &options).await?.is(200)?;
        let another = |pod: &Value| !pod.is_null() && text(pod, "/metadata/uid") != uid;
        bench.until(&path, seconds(20), another).await.map(drop)
    })
    .await
}

async fn stateful_set_replaces_failed(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let path = stateful_set(bench, &node, 1).await?;
        let pod = run(bench, &path).await?;
        bench.merge(&format!("{path}/status"), &json!({"status": {"phase": "Failed"}})).await?.is(200)?;
        let uid = text(&pod, "/metadata/uid");
        let another = |pod: &Value| !pod.is_null() && text(pod, "/metadata/uid") != uid;
        bench.until(&path, seconds(30), another).await.map(drop)
    })
    .await
}

async fn stateful_set_in_order(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let first = stateful_set(bench, &node, 2).await?;
        let second = first.strip_suffix('0').map(|stem| format!("{stem}1")).unwrap_or_default();
        bench.holds(&second, seconds(10), Value::is_null).await?;
        run(bench, &first).await?;
        bench.until(&second, seconds(20), |pod| !pod.is_null()).await.map(drop)
    })
    .await
}

async fn replica_set_replaces_at_once(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let selector = json!({"matchLabels": {"app": bench.name("app")}});
        let set = json!({"metadata": {"name": bench.name("web")}, "spec": {"replicas": 1, "selector": selector,
            "template": template(bench, &node)}});
        bench.make(REPLICA_SETS, set).await?;
        replaced_at_once(bench).await
    })
    .await
}

async fn job(bench: &Bench, node: &Made, policy: Option<&str>) -> Told {
    let mut template = template(bench, node);
    template["spec"]["restartPolicy"] = "Never".into();
    let mut job = json!({"metadata": {"name": bench.name("job")}, "spec": {"template": template}});
    if let Some(policy) = policy {
        job["spec"]["podReplacementPolicy"] = policy.into();
    }
    bench.make(JOBS, job).await.map(drop)
}

async fn job_replaces_at_once(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        job(bench, &node, None).await?;
        replaced_at_once(bench).await
    })
    .await
}

async fn job_that_waits(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        job(bench, &node, Some("Failed")).await?;
        let first = pods(bench, seconds(20), |pods| pods.len() == 1).await?;
        let path = at(PODS, text(&first[0], "/metadata/name"));
        run(bench, &path).await?;
        bench.delete(&path, &json!({"gracePeriodSeconds": 600})).await?.is(200)?;
        let all = format!("{PODS}?labelSelector=app={}", bench.name("app"));
        bench.holds(&all, seconds(30), |list| items(list, "/items").count() == 1).await
    })
    .await
}

/// The only pod is marked, and soon there are two.
async fn replaced_at_once(bench: &Bench) -> Told {
    let first = pods(bench, seconds(20), |pods| pods.len() == 1).await?;
    let path = at(PODS, text(&first[0], "/metadata/name"));
    run(bench, &path).await?;
    bench.delete(&path, &json!({"gracePeriodSeconds": 600})).await?.is(200)?;
    let begin = Instant::now();
    let both = pods(bench, seconds(30), |pods| pods.len() == 2).await?;
    let going = both.iter().filter(|pod| marked(pod)).count();
    must(going == 1, || format!("{going} of two are going after {:?}", begin.elapsed()))
}
