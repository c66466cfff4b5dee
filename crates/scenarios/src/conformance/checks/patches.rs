//! Patches: merge patches, and JSON patches that test before they write.

use http::Method;
use serde_json::json;

use crate::conformance::answer::{same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{config_map, fence, settled_node};
use crate::conformance::places::{CONFIG_MAPS, FENCES, NODES, at};
use crate::conformance::{Told, table};

table! { "patches";
    null_removes: "null in a merge patch removes a field";
    lists_are_replaced: "a merge patch replaces a list";
    merge_of_nothing: "a merge patch of nothing is NotFound";
    merge_of_a_list: "a merge patch that is no object is refused";
    merge_of_another_kind: "a patch cannot make another kind of an object";
    json_operations: "a JSON patch adds, replaces and removes, in order";
    json_test_fails: "a JSON patch whose test fails is Invalid, and nothing of it happens";
    json_path_is_missing: "so is one that removes what is not there";
    json_paths_are_escaped: "a slash in a name is written ~1";
    json_that_is_none: "a JSON patch that is none is refused";
    lever_pulls: "volumesInUse is emptied by a JSON patch of the status that tests the version";
    lever_in_an_old_version: "the same with an old version is Invalid, and the volumes stay";
    strategic_merge_of_ours: "our own kinds know no strategic merge: UnsupportedMediaType, with those that they know";
    patch_into_a_mistake: "a patch whose result is wrong is Invalid";
}

async fn null_removes(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    bench.merge(&node.path, &json!({"spec": {"unschedulable": true}})).await?.is(200)?;
    let freed = bench.merge(&node.path, &json!({"spec": {"unschedulable": null}})).await?.is(200)?;
    same("unschedulable", freed["spec"].get("unschedulable"), None)
}

async fn lists_are_replaced(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    for taint in [json!({"key": "a", "effect": "NoSchedule"}), json!({"key": "b", "effect": "NoSchedule"})] {
        let patched = bench.merge(&node.path, &json!({"spec": {"taints": [taint]}})).await?.is(200)?;
        same("taints", &patched["spec"]["taints"], &json!([taint]))?;
    }
    Ok(())
}

async fn merge_of_nothing(bench: &Bench) -> Told {
    let name = bench.name("n");
    let refusal = bench.merge(&at(NODES, &name), &json!({"spec": {}})).await?.refused(404, "NotFound")?;
    refusal.says(&format!("nodes \"{name}\" not found"))
}

async fn merge_of_a_list(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    bench.merge(&map.path, &json!(["a"])).await?.refused(400, "BadRequest")?;
    bench.untouched(&map.path, &map.object).await
}

async fn merge_of_another_kind(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let refusal = bench.merge(&fence.path, &json!({"kind": "FenceTemplate"})).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "kind", "Invalid value: \"FenceTemplate\": must be NodeFence")?;
    bench.untouched(&fence.path, &fence.object).await
}

async fn json_operations(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let operations = json!([
        {"op": "add", "path": "/data/a", "value": "1"},
        {"op": "copy", "from": "/data/a", "path": "/data/b"},
        {"op": "replace", "path": "/data/a", "value": "2"},
        {"op": "remove", "path": "/data/k"},
    ]);
    let patched = bench.patch(&map.path, &operations).await?.is(200)?;
    same("data", &patched["data"], &json!({"a": "2", "b": "1"}))
}

async fn json_test_fails(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let operations = json!([
        {"op": "replace", "path": "/data/k", "value": "w"},
        {"op": "test", "path": "/data/k", "value": "v"},
    ]);
    let refusal = bench.patch(&map.path, &operations).await?.refused(422, "Invalid")?;
    refusal.says("the server rejected our request due to an error in our request")?;
    bench.untouched(&map.path, &map.object).await
}

async fn json_path_is_missing(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let operations = json!([{"op": "remove", "path": "/data/other"}]);
    bench.patch(&map.path, &operations).await?.refused(422, "Invalid").map(drop)
}

async fn json_paths_are_escaped(bench: &Bench) -> Told {
    let mut map = config_map(&bench.name("m"));
    map["metadata"]["annotations"] = json!({"palisade.dev/a": "1", "palisade.dev/b": "2"});
    let map = bench.make(CONFIG_MAPS, map).await?;
    let operations = json!([{"op": "remove", "path": "/metadata/annotations/palisade.dev~1a"}]);
    let patched = bench.patch(&map.path, &operations).await?.is(200)?;
    same("annotations", &patched["metadata"]["annotations"], &json!({"palisade.dev/b": "2"}))
}

async fn json_that_is_none(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    bench.patch(&map.path, &json!({"data": {"k": "w"}})).await?.refused(400, "BadRequest").map(drop)
}

async fn lever_pulls(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let used = bench.merge(&node.status(), &json!({"status": {"volumesInUse": ["v", "w"]}})).await?.is(200)?;
    let operations = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": text(&used, "/metadata/resourceVersion")},
        {"op": "replace", "path": "/status/volumesInUse", "value": ["w"]},
    ]);
    let freed = bench.patch(&node.status(), &operations).await?.is(200)?;
    same("volumesInUse", &freed["status"]["volumesInUse"], &json!(["w"]))
}

async fn lever_in_an_old_version(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    let used = bench.merge(&node.status(), &json!({"status": {"volumesInUse": ["v"]}})).await?.is(200)?;
    let operations = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": node.version()},
        {"op": "replace", "path": "/status/volumesInUse", "value": []},
    ]);
    bench.patch(&node.status(), &operations).await?.refused(422, "Invalid")?;
    bench.untouched(&node.path, &used).await
}

async fn strategic_merge_of_ours(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let media = "application/strategic-merge-patch+json";
    let body = json!({"spec": {"stayOff": true}}).to_string().into_bytes();
    let answer = bench.send(Method::PATCH, &fence.path, media, "application/json", body).await?;
    answer.refused(415, "UnsupportedMediaType")?.mentions(
        "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, \
         application/merge-patch+json",
    )
}

async fn patch_into_a_mistake(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let operations = json!([{"op": "replace", "path": "/spec/admin/resume", "value": -1}]);
    let refusal = bench.patch(&fence.path, &operations).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.admin.resume", "should be greater than or equal to 0")
}
