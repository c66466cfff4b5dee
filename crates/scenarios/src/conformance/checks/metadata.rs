//! Metadata: what the server looks after itself.

use serde_json::json;

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{config_map, fence, fence_status, pod_on};
use crate::conformance::places::{CONFIG_MAPS, FENCES, PODS};
use crate::conformance::{Told, table};

table! { "metadata";
    generation_counts_wishes: "generation rises by one with each change of the spec";
    generation_is_not_for_metadata: "labels, annotations and finalizers leave it";
    generation_is_not_for_status: "so does the status";
    generation_is_the_servers: "a client cannot set it";
    generation_of_a_pod: "a pod has one too, which its deletion raises";
    creation_time_never_changes: "a creation time that a patch sets is left out in silence";
    deletion_time_is_not_a_wish: "nobody can set a deletion time by a patch";
    name_never_changes: "a patch cannot rename";
    labels_have_rules: "a label that is none is refused, with its field";
    labels_are_merged: "a merge patch adds labels, and null removes one";
    own_namespace_label: "a namespaced object says its namespace, a cluster-scoped one says none";
    owner_needs_a_uid: "an owner is named with its UID, or not at all";
    two_controllers: "an object has at most one controller";
}

async fn generation_counts_wishes(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    same("at first", &fence.object["metadata"]["generation"], &json!(1))?;
    for (wish, count) in [(true, 2), (false, 3)] {
        let changed = bench.merge(&fence.path, &json!({"spec": {"stayOff": wish}})).await?.is(200)?;
        same("generation", &changed["metadata"]["generation"], &json!(count))?;
    }
    Ok(())
}

async fn generation_is_not_for_metadata(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let metadata = json!({"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["palisade.dev/test"]});
    let changed = bench.merge(&fence.path, &json!({"metadata": metadata})).await?.is(200)?;
    same("label", &changed["metadata"]["labels"]["a"], &json!("b"))?;
    same("generation", &changed["metadata"]["generation"], &json!(1))
}

async fn generation_is_not_for_status(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let changed = bench.merge(&fence.status(), &json!({"status": fence_status(1)})).await?.is(200)?;
    same("attempt", &changed["status"]["attempt"], &json!(1))?;
    same("generation", &changed["metadata"]["generation"], &json!(1))
}

async fn generation_is_the_servers(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let patch = json!({"metadata": {"generation": 9, "labels": {"a": "b"}}});
    let changed = bench.merge(&fence.path, &patch).await?.is(200)?;
    same("generation", &changed["metadata"]["generation"], &json!(1))
}

async fn generation_of_a_pod(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    same("generation", &pod.object["metadata"]["generation"], &json!(1))?;
    let marked = bench.delete(&pod.path, &json!({})).await?.is(200)?;
    same("generation", &marked["metadata"]["generation"], &json!(2))
}

async fn creation_time_never_changes(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let patch = json!({"metadata": {"creationTimestamp": "2020-01-01T00:00:00Z"}});
    bench.merge(&map.path, &patch).await?.is(200)?;
    bench.untouched(&map.path, &map.object).await
}

async fn deletion_time_is_not_a_wish(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let patch = json!({"metadata": {"deletionTimestamp": "2020-01-01T00:00:00Z"}});
    let refusal = bench.merge(&map.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.deletionTimestamp", "field is immutable")?;
    bench.untouched(&map.path, &map.object).await
}

async fn name_never_changes(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let answer = bench.merge(&map.path, &json!({"metadata": {"name": "other"}})).await?;
    let refusal = answer.refused(400, "BadRequest")?;
    refusal.says(&format!("the name of the object (other) does not match the name on the URL ({})", map.name()))
}

async fn labels_have_rules(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let patch = json!({"metadata": {"labels": {"a": "not a label"}}});
    let refusal = bench.merge(&fence.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.labels", "a valid label must be an empty string or consist of")
}

async fn labels_are_merged(bench: &Bench) -> Told {
    let mut map = config_map(&bench.name("m"));
    map["metadata"]["labels"] = json!({"a": "1", "b": "2"});
    let map = bench.make(CONFIG_MAPS, map).await?;
    let patch = json!({"metadata": {"labels": {"a": null, "c": "3"}}});
    let changed = bench.merge(&map.path, &patch).await?.is(200)?;
    same("labels", &changed["metadata"]["labels"], &json!({"b": "2", "c": "3"}))
}

async fn own_namespace_label(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    same("namespace", text(&map.object, "/metadata/namespace"), "default")?;
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    must(fence.object["metadata"].get("namespace").is_none(), || "a fence has a namespace".to_owned())
}

async fn owner_needs_a_uid(bench: &Bench) -> Told {
    let mut map = config_map(&bench.name("m"));
    map["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": ""}]);
    let refusal = bench.post(CONFIG_MAPS, &map).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.ownerReferences.uid", "must not be empty")
}

async fn two_controllers(bench: &Bench) -> Told {
    let owner = |uid: &str| json!({"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": uid, "controller": true});
    let mut map = config_map(&bench.name("m"));
    map["metadata"]["ownerReferences"] = json!([owner("a"), owner("b")]);
    let refusal = bench.post(CONFIG_MAPS, &map).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.ownerReferences", "Only one reference can have Controller set to true")
}
