//! Nodes: taints, and what a Node may say.

use serde_json::json;

use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{NOBODY, named, settled_node};
use crate::conformance::places::NODES;
use crate::conformance::{Told, table};

table! { "nodes";
    new_node_is_not_ready: "a new Node is tainted as not ready, before anybody has looked at it";
    taint_with_a_time: "a taint keeps its value and its time";
    taint_twice: "a taint that stands twice, by key and effect, is refused";
    same_key_two_effects: "the same key with two effects is two taints";
    taint_without_effect: "an effect that does not exist is refused, with those that do";
    taint_key_that_is_none: "so is a key that is none";
    deleted_with_its_uid: "a Node is deleted by its UID and version, and by no other";
    heartbeat_is_kept: "conditions are kept as a kubelet sends them";
    unschedulable_false: "a cordon that is lifted leaves nothing behind";
    node_info: "the boot ID is where it is looked for";
}

async fn new_node_is_not_ready(bench: &Bench) -> Told {
    let node = bench.make(NODES, named(&bench.name("n"))).await?;
    let tainted = items(&node.object, "/spec/taints")
        .any(|taint| taint["key"] == "node.kubernetes.io/not-ready" && taint["effect"] == "NoSchedule");
    must(tainted, || format!("its spec is {}", node.object["spec"]))
}

async fn taint_with_a_time(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let taint = json!({"key": "palisade.dev/quarantine", "value": "a1", "effect": "NoSchedule",
        "timeAdded": "2026-03-01T12:00:00Z"});
    let patched = bench.merge(&node.path, &json!({"spec": {"taints": [taint]}})).await?.is(200)?;
    same("taints", &patched["spec"]["taints"], &json!([taint]))
}

async fn taint_twice(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let taint = |value: &str| json!({"key": "a", "value": value, "effect": "NoSchedule"});
    let patch = json!({"spec": {"taints": [taint("x"), taint("y")]}});
    let refusal = bench.merge(&node.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueDuplicate", "metadata.taints[1]", "Duplicate value")
}

async fn same_key_two_effects(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let taint = |effect: &str| json!({"key": "a", "value": "x", "effect": effect});
    let taints = json!([taint("NoSchedule"), taint("PreferNoSchedule")]);
    let patched = bench.merge(&node.path, &json!({"spec": {"taints": taints}})).await?.is(200)?;
    same("taints", &patched["spec"]["taints"], &taints)
}

async fn taint_without_effect(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let patch = json!({"spec": {"taints": [{"key": "a", "effect": "Never"}]}});
    let refusal = bench.merge(&node.path, &patch).await?.refused(422, "Invalid")?;
    let why = "Unsupported value: \"Never\": supported values: \"NoSchedule\", \"PreferNoSchedule\", \"NoExecute\"";
    refusal.cause("FieldValueNotSupported", "metadata.taints[0].effect", why)
}

async fn taint_key_that_is_none(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let patch = json!({"spec": {"taints": [{"key": "not a key", "effect": "NoSchedule"}]}});
    let refusal = bench.merge(&node.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.taints[0].key", "name part must consist of alphanumeric characters")
}

async fn deleted_with_its_uid(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let other = json!({"preconditions": {"uid": NOBODY, "resourceVersion": node.version()}});
    let refusal = bench.delete(&node.path, &other).await?.refused(409, "Conflict")?;
    refusal.mentions(&format!("on Node \"{}\": the UID in the precondition", node.name()))?;
    let named = json!({"uid": node.uid(), "resourceVersion": node.version()});
    let answer = bench.delete(&node.path, &json!({"preconditions": named})).await?.is(200)?;
    same("answer", [text(&answer, "/kind"), text(&answer, "/status")], ["Status", "Success"])?;
    bench.gone(&node.path).await
}

async fn heartbeat_is_kept(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let conditions = json!([{"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "well",
        "lastHeartbeatTime": "2026-03-01T12:00:10Z", "lastTransitionTime": "2026-03-01T12:00:00Z"}]);
    let patch = json!({"status": {"conditions": conditions}});
    let patched = bench.merge(&node.status(), &patch).await?.is(200)?;
    same("conditions", &patched["status"]["conditions"], &conditions)
}

async fn unschedulable_false(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let patched = bench.merge(&node.path, &json!({"spec": {"unschedulable": false}})).await?.is(200)?;
    same("unschedulable", patched["spec"].get("unschedulable"), None)?;
    bench.untouched(&node.path, &node.object).await
}

async fn node_info(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let patch = json!({"status": {"nodeInfo": {"bootID": "boot-1", "machineID": "m"}}});
    let patched = bench.merge(&node.status(), &patch).await?.is(200)?;
    same("bootID", text(&patched, "/status/nodeInfo/bootID"), "boot-1")
}
