//! Jobs: how one ends, whom it counts, and what becomes of its pods. Palisade runs fence agents as Jobs without retries.

use serde_json::{Value, json};

use super::kubelet::{marked, register, run, says, seconds, while_alive};
use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::places::{JOBS, PODS};
use crate::conformance::{Told, table};

table! { "jobs";
    job_complete: "a Job is complete when its pod has succeeded, and says so twice";
    job_failed: "a Job without retries has failed with its only pod, and makes no other";
    job_counts_first: "a pod of a Job that is gone by force is counted all the same";
    job_takes_too_long: "a Job that takes too long has its pods deleted, and has failed only when they are gone";
    job_deleted_behind: "pods of a Job that is deleted go, and nothing holds them";
    job_deleted_before: "a Job that is deleted in the foreground waits for its pods";
    job_orphans: "a Job may leave its pods behind, and then nothing holds them";
    job_orphans_unasked: "and it does so if nobody says what is to become of them";
}

const TRACKING: &str = "batch.kubernetes.io/job-tracking";

/// A Job without retries, and its pod, which runs.
async fn job(bench: &Bench, node: &Made, deadline: Option<u32>) -> Told<(Made, Made)> {
    let template = json!({
        "metadata": {"labels": {"app": bench.name("app")}},
        "spec": {"nodeName": node.name(), "restartPolicy": "Never", "terminationGracePeriodSeconds": 600,
            "containers": [{"name": "c", "image": "none"}]},
    });
    let mut wished =
        json!({"metadata": {"name": bench.name("job")}, "spec": {"backoffLimit": 0, "template": template}});
    if let Some(deadline) = deadline {
        wished["spec"]["activeDeadlineSeconds"] = deadline.into();
    }
    let job = bench.make(JOBS, wished).await?;
    let all = format!("{PODS}?labelSelector=app={}", bench.name("app"));
    let list = bench.until(&all, seconds(20), |list| items(list, "/items").count() == 1).await?;
    let pod = items(&list, "/items").next().cloned().unwrap_or_default();
    must(tracked(&pod), || format!("no {TRACKING} on {pod}"))?;
    let pod = bench.remember(PODS, pod);
    run(bench, &pod.path).await?;
    Ok((job, pod))
}

fn tracked(pod: &Value) -> bool {
    items(pod, "/metadata/finalizers").any(|name| name == TRACKING)
}

/// Says of a pod that its container has ended, as its kubelet does.
async fn ends(bench: &Bench, pod: &Made, phase: &str, code: i32) -> Told {
    let end = json!({"exitCode": code, "reason": if code == 0 { "Completed" } else { "Error" }, "message": "last words",
        "startedAt": "2026-03-01T12:00:00Z", "finishedAt": "2026-03-01T12:00:01Z"});
    let container = json!({"name": "c", "image": "none", "imageID": "", "ready": false, "restartCount": 0,
        "state": {"terminated": end}});
    let status = json!({"phase": phase, "containerStatuses": [container]});
    bench.merge(&pod.status(), &json!({"status": status})).await?.is(200).map(drop)
}

/// The condition of a Job, and its reason.
fn reason<'a>(job: &'a Value, kind: &str) -> &'a str {
    let said = items(job, "/status/conditions").find(|said| said["type"] == kind && said["status"] == "True");
    said.map_or("", |said| text(said, "/reason"))
}

fn count(job: &Value, field: &str) -> u64 {
    job.pointer(&format!("/status/{field}")).and_then(Value::as_u64).unwrap_or_default()
}

async fn job_complete(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let (job, pod) = job(bench, &node, None).await?;
        ends(bench, &pod, "Succeeded", 0).await?;
        let job = bench.until(&job.path, seconds(30), |job| says(job, "Complete") == "True").await?;
        same("SuccessCriteriaMet", reason(&job, "SuccessCriteriaMet"), "CompletionsReached")?;
        same("Complete", reason(&job, "Complete"), "CompletionsReached")?;
        same("counts", (count(&job, "succeeded"), count(&job, "failed"), count(&job, "active")), (1, 0, 0))?;
        let pod = bench.read(&pod.path).await?;
        must(!tracked(&pod) && !marked(&pod), || format!("not let go: {pod}"))
    })
    .await
}

async fn job_failed(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let (job, pod) = job(bench, &node, None).await?;
        ends(bench, &pod, "Failed", 1).await?;
        let job = bench.until(&job.path, seconds(30), |job| says(job, "Failed") == "True").await?;
        same("FailureTarget", reason(&job, "FailureTarget"), "BackoffLimitExceeded")?;
        same("Failed", reason(&job, "Failed"), "BackoffLimitExceeded")?;
        same("counts", (count(&job, "succeeded"), count(&job, "failed"), count(&job, "active")), (0, 1, 0))?;
        let all = format!("{PODS}?labelSelector=app={}", bench.name("app"));
        bench.holds(&all, seconds(20), |list| items(list, "/items").count() == 1).await?;
        let pod = bench.read(&pod.path).await?;
        must(!tracked(&pod), || format!("not let go: {pod}"))?;
        same("last words", text(&pod, "/status/containerStatuses/0/state/terminated/message"), "last words")
    })
    .await
}

async fn job_counts_first(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let (job, pod) = job(bench, &node, None).await?;
        bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
        let job = bench.until(&job.path, seconds(30), |job| says(job, "Failed") == "True").await?;
        same("failed", count(&job, "failed"), 1)?;
        bench.until(&pod.path, seconds(10), Value::is_null).await.map(drop)
    })
    .await
}

async fn job_takes_too_long(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let (job, pod) = job(bench, &node, Some(5)).await?;
        let late = bench.until(&job.path, seconds(30), |job| says(job, "FailureTarget") == "True").await?;
        same("FailureTarget", reason(&late, "FailureTarget"), "DeadlineExceeded")?;
        let going = bench.until(&pod.path, seconds(10), marked).await?;
        must(!tracked(&going), || format!("not let go: {going}"))?;
        // Nobody finishes it: its node has no machine.
        bench.holds(&job.path, seconds(20), |job| says(job, "Failed") != "True").await?;
        let held = bench.read(&job.path).await?;
        same("counts", (count(&held, "terminating"), count(&held, "failed"), count(&held, "active")), (1, 1, 0))?;
        bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
        let over = bench.until(&job.path, seconds(30), |job| says(job, "Failed") == "True").await?;
        same("Failed", reason(&over, "Failed"), "DeadlineExceeded")
    })
    .await
}

async fn job_deleted_behind(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let (job, pod) = job(bench, &node, None).await?;
        bench.delete(&job.path, &json!({"propagationPolicy": "Background"})).await?.is(200)?;
        bench.gone(&job.path).await?;
        bench.until(&pod.path, seconds(60), |pod| marked(pod) && !tracked(pod)).await.map(drop)
    })
    .await
}

async fn job_deleted_before(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let (job, pod) = job(bench, &node, None).await?;
        bench.delete(&job.path, &json!({"propagationPolicy": "Foreground"})).await?.is(200)?;
        bench.until(&pod.path, seconds(60), |pod| marked(pod) && !tracked(pod)).await?;
        bench.holds(&job.path, seconds(10), |job| !job.is_null()).await?;
        bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
        bench.until(&job.path, seconds(60), Value::is_null).await.map(drop)
    })
    .await
}

async fn job_orphans(bench: &Bench) -> Told {
    leaves_its_pod(bench, json!({"propagationPolicy": "Orphan"})).await
}

async fn job_orphans_unasked(bench: &Bench) -> Told {
    leaves_its_pod(bench, Value::Null).await
}

async fn leaves_its_pod(bench: &Bench, options: Value) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let (job, pod) = job(bench, &node, None).await?;
        bench.delete(&job.path, &options).await?.is(200)?;
        bench.until(&job.path, seconds(60), Value::is_null).await?;
        let free = |pod: &Value| !tracked(pod) && items(pod, "/metadata/ownerReferences").next().is_none();
        let left = bench.until(&pod.path, seconds(60), free).await?;
        must(!left.is_null() && !marked(&left), || format!("it did not stay: {left}"))
    })
    .await
}
