//! Eviction: a delete that asks the PodDisruptionBudget first.

use std::time::Duration;

use serde_json::{Value, json};

use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::{NOBODY, pod_on};
use crate::conformance::places::{BUDGETS, PODS, at};
use crate::conformance::{Told, table};

table! { "eviction";
    without_a_budget: "an eviction without a budget marks the pod, and answers Created";
    says_why: "it says in the pod's status why it goes";
    beyond_the_budget: "a budget that allows no disruption refuses: TooManyRequests, with its name and numbers";
    within_the_budget: "one that allows a disruption lets it go, and counts";
    pending_pod: "a pod that does not run yet goes, whatever the budget says";
    two_budgets: "a pod with two budgets cannot be evicted at all";
    of_another: "an eviction with another UID is a conflict";
    of_nothing: "an eviction of nothing is NotFound";
    as_a_rehearsal: "a dry run asks the budget, and marks nobody";
}

/// A pod that runs and is ready, as far as its status says.
async fn running(bench: &Bench) -> Told<Made> {
    let mut pod = pod_on(&bench.name("p"), "nowhere");
    pod["metadata"]["labels"] = json!({"app": bench.name("app")});
    let mut pod = bench.make(PODS, pod).await?;
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"});
    let status = json!({"phase": "Running", "conditions": [ready]});
    pod.object = bench.merge(&pod.status(), &json!({"status": status})).await?.is(200)?;
    Ok(pod)
}

/// A budget over the pods of this bench. Its status is written as the controller writes it, where none runs.
async fn budget(bench: &Bench, word: &str, needed: u32) -> Told<Made> {
    let selector = json!({"matchLabels": {"app": bench.name("app")}});
    let budget =
        json!({"metadata": {"name": bench.name(word)}, "spec": {"minAvailable": needed, "selector": selector}});
    let budget = bench.make(BUDGETS, budget).await?;
    let status = json!({"observedGeneration": 1, "disruptionsAllowed": 1 - needed, "currentHealthy": 1,
        "desiredHealthy": needed, "expectedPods": 1});
    bench.merge(&budget.status(), &json!({"status": status})).await?;
    let settled =
        |budget: &Value| budget["status"]["currentHealthy"] == 1 && budget["status"]["observedGeneration"] == 1;
    bench.until(&budget.path, Duration::from_secs(20), settled).await?;
    Ok(budget)
}

fn eviction(pod: &Made) -> (String, Value) {
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": pod.name()}});
    (format!("{}/eviction", pod.path), body)
}

async fn without_a_budget(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    let (path, body) = eviction(&pod);
    let answer = bench.post(&path, &body).await?.is(201)?;
    let said = [text(&answer, "/kind"), text(&answer, "/status")];
    same("answer", said, ["Status", "Success"])?;
    let now = bench.read(&pod.path).await?;
    same("grace", &now["metadata"]["deletionGracePeriodSeconds"], &json!(30))
}

async fn says_why(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    let (path, body) = eviction(&pod);
    bench.post(&path, &body).await?.is(201)?;
    let now = bench.read(&pod.path).await?;
    let said = items(&now, "/status/conditions").find(|condition| condition["type"] == "DisruptionTarget");
    let told = said.map(|condition| [text(condition, "/reason"), text(condition, "/message")]);
    same("condition", told, Some(["EvictionByEvictionAPI", "Eviction API: evicting"]))
}

async fn beyond_the_budget(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    let budget = budget(bench, "b", 1).await?;
    let (path, body) = eviction(&pod);
    let refusal = bench.post(&path, &body).await?.refused(429, "TooManyRequests")?;
    refusal.says("Cannot evict pod as it would violate the pod's disruption budget.")?;
    let why = format!("The disruption budget {} needs 1 healthy pods and has 1 currently", budget.name());
    refusal.cause("DisruptionBudget", "", &why)?;
    let now = bench.read(&pod.path).await?;
    same("mark", now["metadata"].get("deletionTimestamp"), None)
}

async fn within_the_budget(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    let budget = budget(bench, "b", 0).await?;
    let (path, body) = eviction(&pod);
    bench.post(&path, &body).await?.is(201)?;
    let now = bench.read(&pod.path).await?;
    must(now["metadata"].get("deletionTimestamp").is_some(), || "the pod is not marked".to_owned())?;
    let counted = |budget: &Value| budget["status"]["disruptedPods"].get(pod.name()).is_some();
    let spent = |budget: &Value| counted(budget) || budget["status"]["disruptionsAllowed"] == 0;
    bench.until(&budget.path, Duration::from_secs(5), spent).await.map(drop)
}

async fn pending_pod(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    budget(bench, "b", 1).await?;
    bench.merge(&pod.status(), &json!({"status": {"phase": "Pending"}})).await?.is(200)?;
    let (path, body) = eviction(&pod);
    bench.post(&path, &body).await?.is(201).map(drop)
}

async fn two_budgets(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    budget(bench, "b", 0).await?;
    budget(bench, "c", 0).await?;
    let (path, body) = eviction(&pod);
    let refusal = bench.post(&path, &body).await?.refused(500, "")?;
    refusal.says("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
}

async fn of_another(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    let (path, mut body) = eviction(&pod);
    body["deleteOptions"] = json!({"preconditions": {"uid": NOBODY}});
    bench.post(&path, &body).await?.refused(409, "Conflict")?;
    let now = bench.read(&pod.path).await?;
    same("mark", now["metadata"].get("deletionTimestamp"), None)
}

async fn of_nothing(bench: &Bench) -> Told {
    let name = bench.name("p");
    let body = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}});
    let path = format!("{}/eviction", at(PODS, &name));
    bench.post(&path, &body).await?.refused(404, "NotFound")?.says(&format!("pods \"{name}\" not found"))
}

async fn as_a_rehearsal(bench: &Bench) -> Told {
    let pod = running(bench).await?;
    let (path, body) = eviction(&pod);
    bench.post(&format!("{path}?dryRun=All"), &body).await?.is(201)?;
    bench.untouched(&pod.path, &pod.object).await
}
