//! Status: what is, written apart from what is wished for.

use serde_json::json;

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{attachment, config_map, fence, fence_status, pod_on, settled_node, template};
use crate::conformance::places::{ATTACHMENTS, CONFIG_MAPS, FENCES, PODS, TEMPLATES};
use crate::conformance::{Told, table};

table! { "status";
    main_replace_leaves_status: "a replace of a fence leaves its status, whatever it sends";
    main_patch_leaves_status: "so does a patch";
    status_replace_leaves_spec: "a replace of its status leaves its spec";
    status_write_leaves_metadata: "and its labels, annotations and finalizers, of our own kinds";
    status_patch_with_metadata_only: "a status patch that only names the UID and the version writes nothing";
    node_main_leaves_status: "a patch of a Node leaves its status";
    node_status_leaves_spec: "a patch of a Node's status leaves its taints";
    node_status_takes_annotations: "but takes its labels and annotations, as a kubelet's does";
    pod_main_leaves_status: "a patch of a pod leaves its status";
    pod_status_takes_phase: "a pod's phase and conditions are written by its status";
    attachment_main_leaves_status: "a patch of a VolumeAttachment leaves its status";
    status_can_be_read: "the status subresource shows the whole object";
    status_of_a_kind_without: "a kind without a status has no such page";
    conditions_are_replaced_whole: "a merge patch replaces the list of conditions, as any list";
    status_raises_the_version: "a write of a status raises the version of the object";
}

async fn main_replace_leaves_status(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut next = bench.merge(&fence.status(), &json!({"status": fence_status(2)})).await?.is(200)?;
    next["spec"]["stayOff"] = true.into();
    next["status"]["attempt"] = 9.into();
    let written = bench.put(&fence.path, &next).await?.is(200)?;
    same("spec", &written["spec"]["stayOff"], &json!(true))?;
    same("attempt", &written["status"]["attempt"], &json!(2))
}

async fn main_patch_leaves_status(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let patch = json!({"spec": {"stayOff": true}, "status": fence_status(2)});
    let written = bench.merge(&fence.path, &patch).await?.is(200)?;
    same("spec", &written["spec"]["stayOff"], &json!(true))?;
    same("status", written.get("status"), None)
}

async fn status_replace_leaves_spec(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut next = fence.object.clone();
    next["spec"]["stayOff"] = true.into();
    next["status"] = fence_status(1);
    let written = bench.put(&fence.status(), &next).await?.is(200)?;
    same("attempt", &written["status"]["attempt"], &json!(1))?;
    same("spec", &written["spec"], &fence.object["spec"])
}

async fn status_write_leaves_metadata(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let metadata = json!({"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["palisade.dev/test"]});
    let patch = json!({"metadata": metadata, "status": fence_status(1)});
    let written = bench.merge(&fence.status(), &patch).await?.is(200)?;
    same("attempt", &written["status"]["attempt"], &json!(1))?;
    for field in ["labels", "annotations", "finalizers"] {
        same(field, written["metadata"].get(field), None)?;
    }
    Ok(())
}

async fn status_patch_with_metadata_only(bench: &Bench) -> Told {
    let template = bench.make(TEMPLATES, template(&bench.name("t"))).await?;
    let named = json!({"uid": template.uid(), "resourceVersion": template.version()});
    bench.merge(&template.status(), &json!({"metadata": named})).await?.is(200)?;
    bench.untouched(&template.path, &template.object).await
}

async fn node_main_leaves_status(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let patch = json!({"spec": {"unschedulable": true}, "status": {"volumesInUse": ["v"]}});
    let written = bench.merge(&node.path, &patch).await?.is(200)?;
    same("unschedulable", &written["spec"]["unschedulable"], &json!(true))?;
    same("volumesInUse", written["status"].get("volumesInUse"), None)
}

async fn node_status_leaves_spec(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let taint = json!({"key": "a", "effect": "NoSchedule"});
    let patch = json!({"spec": {"taints": [taint]}, "status": {"volumesInUse": ["v"]}});
    let written = bench.merge(&node.status(), &patch).await?.is(200)?;
    same("volumesInUse", &written["status"]["volumesInUse"], &json!(["v"]))?;
    same("taints", written["spec"].get("taints"), None)
}

async fn node_status_takes_annotations(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let patch = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}}});
    let written = bench.merge(&node.status(), &patch).await?.is(200)?;
    let metadata = &written["metadata"];
    same("metadata", [&metadata["labels"]["a"], &metadata["annotations"]["c"]], [&json!("b"), &json!("d")])
}

async fn pod_main_leaves_status(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "status": {"phase": "Failed"}});
    let written = bench.merge(&pod.path, &patch).await?.is(200)?;
    same("phase", text(&written, "/status/phase"), "Pending")
}

async fn pod_status_takes_phase(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    let condition = json!({"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPalisade",
        "message": "gone", "lastTransitionTime": "2026-03-01T12:00:00Z"});
    let patch = json!({"metadata": {"uid": pod.uid()}, "spec": {"nodeName": "elsewhere"},
        "status": {"phase": "Failed", "conditions": [condition]}});
    let written = bench.merge(&pod.status(), &patch).await?.is(200)?;
    same("phase", text(&written, "/status/phase"), "Failed")?;
    same("reason", text(&written, "/status/conditions/0/reason"), "DeletionByPalisade")?;
    same("node", text(&written, "/spec/nodeName"), "nowhere")
}

async fn attachment_main_leaves_status(bench: &Bench) -> Told {
    let attachment = bench.make(ATTACHMENTS, attachment(&bench.name("a"), "nowhere")).await?;
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "status": {"attached": true}});
    let written = bench.merge(&attachment.path, &patch).await?.is(200)?;
    same("attached", &written["status"]["attached"], &json!(false))
}

async fn status_can_be_read(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let read = bench.read(&fence.status()).await?;
    same("object", &read, &fence.object)
}

async fn status_of_a_kind_without(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let refusal = bench.merge(&map.status(), &json!({"data": {}})).await?.refused(404, "NotFound")?;
    refusal.says("the server could not find the requested resource")
}

async fn conditions_are_replaced_whole(bench: &Bench) -> Told {
    let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "Test", "lastTransitionTime": "2026-03-01T12:00:00Z"});
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    for kind in ["One", "Two"] {
        let patch = json!({"status": {"conditions": [condition(kind)]}});
        let written = bench.merge(&fence.status(), &patch).await?.is(200)?;
        same("conditions", &written["status"]["conditions"], &json!([condition(kind)]))?;
    }
    Ok(())
}

async fn status_raises_the_version(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    bench.merge(&fence.status(), &json!({"status": fence_status(1)})).await?.is(200)?;
    let now = bench.read(&fence.path).await?;
    let (before, after) = (fence.version(), text(&now, "/metadata/resourceVersion"));
    must(before != after, || format!("the version is still {after}"))
}
