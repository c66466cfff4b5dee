//! Concurrency: versions, and who wins when two write at once.

use serde_json::{Value, json};

use crate::conformance::answer::{must, same, version};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{config_map, fence, fence_status, lease, node};
use crate::conformance::places::{CONFIG_MAPS, FENCES, LEASES, NODES, at};
use crate::conformance::{Told, table};

table! { "concurrency";
    second_writer_loses: "of two that replace what they both read, the second is refused and changes nothing";
    versions_rise: "a later write has a higher version, also to another object of another kind";
    version_is_of_the_object: "a write to one object leaves the version of another";
    replace_that_changes_nothing: "a replace that changes nothing is no write: the version stays";
    patch_that_changes_nothing: "neither is a patch that changes nothing";
    replace_without_version: "a built-in kind may be replaced without a version";
    replace_of_ours_without_version: "our own kinds may not: a version must be specified";
    status_replace_of_ours_without_version: "neither may their status";
    one_version_for_both_parts: "a write to the main part makes an older reading of the status stale";
    patch_of_ours_without_version: "a merge patch needs no version, and two from the same reading both apply";
    replace_of_nothing: "a replace of nothing is NotFound";
    replace_under_another_name: "a replace whose body has another name than its path is refused";
    replace_in_another_namespace: "so is one whose body has another namespace";
    replace_without_a_name: "and one whose body has no name";
}

async fn second_writer_loses(bench: &Bench) -> Told {
    let lease = bench.make(LEASES, lease(&bench.name("l"), "a")).await?;
    let held_by = |holder: &str| {
        let mut taken = lease.object.clone();
        taken["spec"]["holderIdentity"] = holder.into();
        taken
    };
    let first = bench.put(&lease.path, &held_by("b")).await?.is(200)?;
    bench.put(&lease.path, &held_by("c")).await?.refused(409, "Conflict")?;
    let now = bench.read(&lease.path).await?;
    same("what is there", now, first)
}

async fn versions_rise(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let again = bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    let seen = [&map.object, &fence.object, &again].map(version);
    must(0 < seen[0] && seen[0] < seen[1] && seen[1] < seen[2], || format!("versions do not rise: {seen:?}"))
}

async fn version_is_of_the_object(bench: &Bench) -> Told {
    let one = bench.make(CONFIG_MAPS, config_map(&bench.name("a"))).await?;
    let other = bench.make(CONFIG_MAPS, config_map(&bench.name("b"))).await?;
    bench.merge(&other.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    bench.untouched(&one.path, &one.object).await
}

async fn replace_that_changes_nothing(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let again = bench.put(&fence.path, &fence.object).await?.is(200)?;
    same("version", version(&again), version(&fence.object))
}

async fn patch_that_changes_nothing(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let again = bench.merge(&map.path, &json!({"data": {"k": "v"}})).await?.is(200)?;
    same("version", version(&again), version(&map.object))
}

async fn replace_without_version(bench: &Bench) -> Told {
    let node = bench.make(NODES, node(&bench.name("n"))).await?;
    let mut blind = node.object.clone();
    without_version(&mut blind);
    blind["metadata"]["labels"]["seen"] = "yes".into();
    let written = bench.put(&node.path, &blind).await?.is(200)?;
    same("label", &written["metadata"]["labels"]["seen"], &json!("yes"))
}

async fn replace_of_ours_without_version(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut blind = fence.object.clone();
    without_version(&mut blind);
    let refusal = bench.put(&fence.path, &blind).await?.refused(422, "Invalid")?;
    refusal.says(&format!(
        "nodefences.palisade.dev \"{}\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        fence.name()
    ))?;
    refusal.about(fence.name(), "palisade.dev", "nodefences")
}

async fn status_replace_of_ours_without_version(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut blind = fence.object.clone();
    without_version(&mut blind);
    blind["status"] = fence_status(1);
    let refusal = bench.put(&fence.status(), &blind).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "metadata.resourceVersion", "must be specified for an update")
}

async fn one_version_for_both_parts(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    bench.merge(&fence.path, &json!({"spec": {"stayOff": true}})).await?.is(200)?;
    let mut stale = fence.object.clone();
    stale["status"] = fence_status(1);
    bench.put(&fence.status(), &stale).await?.refused(409, "Conflict").map(drop)
}

async fn patch_of_ours_without_version(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    bench.merge(&fence.path, &json!({"spec": {"stayOff": true}})).await?.is(200)?;
    let both = bench.merge(&fence.path, &json!({"spec": {"powerStep": true}})).await?.is(200)?;
    same("spec", [&both["spec"]["stayOff"], &both["spec"]["powerStep"]], [&json!(true), &json!(true)])
}

async fn replace_of_nothing(bench: &Bench) -> Told {
    let name = bench.name("m");
    let refusal = bench.put(&at(CONFIG_MAPS, &name), &config_map(&name)).await?.refused(404, "NotFound")?;
    refusal.says(&format!("configmaps \"{name}\" not found"))
}

async fn replace_under_another_name(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let mut other = map.object.clone();
    other["metadata"]["name"] = "other".into();
    let refusal = bench.put(&map.path, &other).await?.refused(400, "BadRequest")?;
    refusal.says(&format!("the name of the object (other) does not match the name on the URL ({})", map.name()))
}

async fn replace_in_another_namespace(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let mut other = map.object.clone();
    other["metadata"]["namespace"] = "kube-system".into();
    let refusal = bench.put(&map.path, &other).await?.refused(400, "BadRequest")?;
    refusal.says("the namespace of the provided object does not match the namespace sent on the request")
}

async fn replace_without_a_name(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let refusal = bench.put(&map.path, &json!({"data": {}})).await?.refused(400, "BadRequest")?;
    let why = "name must be provided";
    refusal.says(&format!("the name of the object ({} based on URL) was undeterminable: {why}", map.name()))
}

fn without_version(object: &mut Value) {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("resourceVersion");
    }
}
