//! Preconditions: a write that names what it means hits that, or nothing.
//!
//! This is what keeps the operator from deleting the successor of a pod (I2) and from writing over another leader's record (I5).

use serde_json::json;

use crate::conformance::answer::same;
use crate::conformance::bench::Bench;
use crate::conformance::objects::{NOBODY, config_map, fence, fence_status, pod_on, settled_node};
use crate::conformance::places::{CONFIG_MAPS, FENCES, PODS, at};
use crate::conformance::{Told, table};

table! { "preconditions";
    delete_with_another_uid: "a delete with another UID is a conflict that names both, and nothing happens";
    delete_of_ours_with_another_uid: "so it is for our own kinds, whose group is named";
    delete_with_an_old_version: "a delete with an old version is a conflict that names both";
    delete_with_uid_and_version: "a delete with the right UID and version goes through, as a mark is sent";
    delete_of_nothing: "a delete of nothing is NotFound, whatever it insists on";
    replace_with_another_uid: "a replace with another UID is a conflict that names both";
    replace_with_an_old_version: "a replace with an old version is a conflict";
    merge_patch_with_another_uid: "a merge patch with another UID is refused as invalid: a UID never changes";
    merge_patch_of_ours_with_another_uid: "so it is for our own kinds";
    status_patch_with_another_uid: "so it is for the status of a pod";
    merge_patch_with_an_old_version: "a merge patch with an old version is a conflict";
    merge_patch_with_uid_and_version: "a merge patch with the right UID and version goes through, as a taint is written";
    json_patch_that_sets_an_old_version: "a JSON patch that sets an old version is a conflict";
    status_replace_with_another_uid: "a status of ours with another UID is a conflict";
}

async fn delete_with_another_uid(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": NOBODY}});
    let refusal = bench.delete(&pod.path, &options).await?.refused(409, "Conflict")?;
    refusal.says(&format!(
        "Operation cannot be fulfilled on Pod \"{}\": the UID in the precondition ({NOBODY}) does not match the UID in record \
         ({}). The object might have been deleted and then recreated",
        pod.name(),
        pod.uid()
    ))?;
    refusal.about(pod.name(), "", "Pod")?;
    bench.untouched(&pod.path, &pod.object).await
}

async fn delete_of_ours_with_another_uid(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let options = json!({"preconditions": {"uid": NOBODY}});
    let refusal = bench.delete(&fence.path, &options).await?.refused(409, "Conflict")?;
    refusal.mentions(&format!("on NodeFence.palisade.dev \"{}\"", fence.name()))?;
    bench.untouched(&fence.path, &fence.object).await
}

async fn delete_with_an_old_version(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let newer = bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    let options = json!({"preconditions": {"resourceVersion": map.version()}});
    let refusal = bench.delete(&map.path, &options).await?.refused(409, "Conflict")?;
    refusal.mentions(&format!(
        "the ResourceVersion in the precondition ({}) does not match the ResourceVersion in record ({}). The object might \
         have been modified",
        map.version(),
        newer["metadata"]["resourceVersion"].as_str().unwrap_or_default()
    ))?;
    bench.untouched(&map.path, &newer).await
}

async fn delete_with_uid_and_version(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    let named = json!({"uid": pod.uid(), "resourceVersion": pod.version()});
    let marked = bench.delete(&pod.path, &json!({"gracePeriodSeconds": 7, "preconditions": named})).await?.is(200)?;
    same("grace", &marked["metadata"]["deletionGracePeriodSeconds"], &json!(7))
}

async fn delete_of_nothing(bench: &Bench) -> Told {
    let name = bench.name("p");
    let options = json!({"preconditions": {"uid": NOBODY, "resourceVersion": "1"}});
    let refusal = bench.delete(&at(PODS, &name), &options).await?.refused(404, "NotFound")?;
    refusal.says(&format!("pods \"{name}\" not found"))?;
    refusal.about(&name, "", "pods")
}

async fn replace_with_another_uid(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let mut other = map.object.clone();
    other["metadata"]["uid"] = NOBODY.into();
    let refusal = bench.put(&map.path, &other).await?.refused(409, "Conflict")?;
    let (name, uid) = (map.name(), map.uid());
    refusal.says(&format!(
        "Operation cannot be fulfilled on configmaps \"{name}\": StorageError: invalid object, Code: 4, Key: \
         /registry/configmaps/default/{name}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in \
         precondition: {NOBODY}, UID in object meta: {uid}"
    ))
}

async fn replace_with_an_old_version(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    let refusal = bench.put(&map.path, &map.object).await?.refused(409, "Conflict")?;
    refusal.says(&format!(
        "Operation cannot be fulfilled on configmaps \"{}\": the object has been modified; please apply your changes to the \
         latest version and try again",
        map.name()
    ))?;
    refusal.about(map.name(), "", "configmaps")
}

async fn merge_patch_with_another_uid(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let patch = json!({"metadata": {"uid": NOBODY}, "spec": {"unschedulable": true}});
    let refusal = bench.merge(&node.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.uid", "field is immutable")?;
    bench.untouched(&node.path, &node.object).await
}

async fn merge_patch_of_ours_with_another_uid(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let patch = json!({"metadata": {"uid": NOBODY}, "spec": {"stayOff": true}});
    let refusal = bench.merge(&fence.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.uid", "field is immutable")?;
    bench.untouched(&fence.path, &fence.object).await
}

async fn status_patch_with_another_uid(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    let patch = json!({"metadata": {"uid": NOBODY}, "status": {"phase": "Failed"}});
    let refusal = bench.merge(&pod.status(), &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.uid", "field is immutable")?;
    bench.untouched(&pod.path, &pod.object).await
}

async fn merge_patch_with_an_old_version(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    bench.merge(&fence.path, &json!({"spec": {"stayOff": true}})).await?.is(200)?;
    let patch = json!({"metadata": {"resourceVersion": fence.version(), "finalizers": []}});
    let refusal = bench.merge(&fence.path, &patch).await?.refused(409, "Conflict")?;
    refusal.says(&format!(
        "Operation cannot be fulfilled on nodefences.palisade.dev \"{}\": the object has been modified; please apply your \
         changes to the latest version and try again",
        fence.name()
    ))?;
    refusal.about(fence.name(), "palisade.dev", "nodefences")
}

async fn merge_patch_with_uid_and_version(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let taint = json!({"key": "palisade.dev/quarantine", "value": "x", "effect": "NoSchedule"});
    let named = json!({"uid": node.uid(), "resourceVersion": node.version()});
    let patched = bench.merge(&node.path, &json!({"metadata": named, "spec": {"taints": [taint]}})).await?.is(200)?;
    same("taints", &patched["spec"]["taints"], &json!([taint]))
}

async fn json_patch_that_sets_an_old_version(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    let operations = json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": map.version()},
        {"op": "replace", "path": "/data/k", "value": "x"},
    ]);
    bench.patch(&map.path, &operations).await?.refused(409, "Conflict").map(drop)
}

async fn status_replace_with_another_uid(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut other = fence.object.clone();
    other["metadata"]["uid"] = NOBODY.into();
    other["status"] = fence_status(1);
    bench.put(&fence.status(), &other).await?.refused(409, "Conflict")?;
    bench.untouched(&fence.path, &fence.object).await
}
