//! Finalizers: an object that is held stays, marked, until the last of them is gone.

use serde_json::json;

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::{config_map, fence, fence_status};
use crate::conformance::places::{CONFIG_MAPS, FENCES};
use crate::conformance::{Told, table};

table! { "finalizers";
    held_object_stays: "a held object that is deleted stays, with a deletion time and no grace";
    held_object_counts_a_wish: "its deletion raises its generation";
    second_delete_changes_nothing: "a second delete changes nothing";
    last_one_gone: "with the last finalizer the object goes";
    last_one_gone_by_replace: "by a replace just as by a patch";
    one_of_two_gone: "with one of two it stays";
    no_new_ones: "a finalizer cannot be added to an object that is being deleted";
    other_writes_go_on: "spec, labels and status can still be written";
    deletion_cannot_be_taken_back: "a deletion time cannot be taken away, nor does a replace without one do it";
    removed_before_deletion: "finalizers that go before the deletion take nothing with them";
    name_without_a_domain: "a finalizer's name has a domain, or is refused";
    name_of_ours_without_a_domain: "for our own kinds it is only warned of";
    guarded_removal: "a patch of finalizers with an old version is a conflict, and the object stays held";
    answer_of_a_delete: "a delete that removes at once answers with a Status that names the object and its UID";
}

const TEST: &str = "palisade.dev/test";

async fn held(bench: &Bench, finalizers: &[&str]) -> Told<Made> {
    let mut fence = fence(&bench.name("n"));
    fence["metadata"]["finalizers"] = json!(finalizers);
    bench.make(FENCES, fence).await
}

async fn deleted(bench: &Bench, finalizers: &[&str]) -> Told<Made> {
    let mut made = held(bench, finalizers).await?;
    made.object = bench.delete(&made.path, &json!({})).await?.is(200)?;
    Ok(made)
}

async fn held_object_stays(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    let metadata = &fence.object["metadata"];
    same("kind", text(&fence.object, "/kind"), "NodeFence")?;
    must(text(&fence.object, "/metadata/deletionTimestamp").len() == 20, || format!("no deletion time: {metadata}"))?;
    same("grace", &metadata["deletionGracePeriodSeconds"], &json!(0))?;
    bench.read(&fence.path).await.map(drop)
}

async fn held_object_counts_a_wish(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    same("generation", &fence.object["metadata"]["generation"], &json!(2))
}

async fn second_delete_changes_nothing(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    bench.delete(&fence.path, &json!({})).await?.is(200)?;
    bench.untouched(&fence.path, &fence.object).await
}

async fn last_one_gone(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    let last = bench.merge(&fence.path, &json!({"metadata": {"finalizers": []}})).await?.is(200)?;
    same("uid", text(&last, "/metadata/uid"), fence.uid())?;
    bench.gone(&fence.path).await
}

async fn last_one_gone_by_replace(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    let mut free = fence.object.clone();
    free["metadata"]["finalizers"] = json!([]);
    bench.put(&fence.path, &free).await?.is(200)?;
    bench.gone(&fence.path).await
}

async fn one_of_two_gone(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST, "palisade.dev/other"]).await?;
    let patch = json!({"metadata": {"finalizers": ["palisade.dev/other"]}});
    bench.merge(&fence.path, &patch).await?.is(200)?;
    let now = bench.read(&fence.path).await?;
    same("finalizers", &now["metadata"]["finalizers"], &json!(["palisade.dev/other"]))
}

async fn no_new_ones(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    let patch = json!({"metadata": {"finalizers": [TEST, "palisade.dev/new"]}});
    let refusal = bench.merge(&fence.path, &patch).await?.refused(422, "Invalid")?;
    let why = "Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers \
               []string{\"palisade.dev/new\"}";
    refusal.cause("FieldValueForbidden", "metadata.finalizers", why)
}

async fn other_writes_go_on(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    let patch = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"stayOff": true}});
    bench.merge(&fence.path, &patch).await?.is(200)?;
    let now = bench.merge(&fence.status(), &json!({"status": fence_status(1)})).await?.is(200)?;
    same("label", text(&now, "/metadata/labels/a"), "b")?;
    same("spec", &now["spec"]["stayOff"], &json!(true))?;
    same("attempt", &now["status"]["attempt"], &json!(1))
}

async fn deletion_cannot_be_taken_back(bench: &Bench) -> Told {
    let fence = deleted(bench, &[TEST]).await?;
    let mut alive = fence.object.clone();
    alive["metadata"]["deletionTimestamp"] = json!(null);
    alive["metadata"]["labels"] = json!({"a": "b"});
    let written = bench.put(&fence.path, &alive).await?.is(200)?;
    let time = |object| text(object, "/metadata/deletionTimestamp").to_owned();
    same("deletion time", time(&written), time(&fence.object))
}

async fn removed_before_deletion(bench: &Bench) -> Told {
    let fence = held(bench, &[TEST]).await?;
    bench.merge(&fence.path, &json!({"metadata": {"finalizers": []}})).await?.is(200)?;
    let now = bench.read(&fence.path).await?;
    same("finalizers", now["metadata"].get("finalizers"), None)
}

async fn name_without_a_domain(bench: &Bench) -> Told {
    let mut map = config_map(&bench.name("m"));
    map["metadata"]["finalizers"] = json!(["test"]);
    let refusal = bench.post(CONFIG_MAPS, &map).await?.refused(422, "Invalid")?;
    let why = "name is neither a standard finalizer name nor is it fully qualified";
    refusal.cause("FieldValueInvalid", "metadata.finalizers[0]", why)
}

async fn name_of_ours_without_a_domain(bench: &Bench) -> Told {
    let mut fence = fence(&bench.name("n"));
    fence["metadata"]["finalizers"] = json!(["test"]);
    let answer = bench.post(FENCES, &fence).await?;
    let warned = answer.warnings().iter().any(|warning| warning.contains("prefer a domain-qualified finalizer name"));
    bench.remember(FENCES, answer.is(201)?);
    must(warned, || "there is no warning".to_owned())
}

async fn guarded_removal(bench: &Bench) -> Told {
    let fence = held(bench, &[TEST]).await?;
    let old = fence.version().to_owned();
    bench.delete(&fence.path, &json!({})).await?.is(200)?;
    let patch = json!({"metadata": {"resourceVersion": old, "finalizers": []}});
    bench.merge(&fence.path, &patch).await?.refused(409, "Conflict")?;
    bench.read(&fence.path).await.map(drop)
}

async fn answer_of_a_delete(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let answer = bench.delete(&fence.path, &json!({"preconditions": {"uid": fence.uid()}})).await?.is(200)?;
    let said = [text(&answer, "/kind"), text(&answer, "/status")];
    same("answer", said, ["Status", "Success"])?;
    let details = json!({"name": fence.name(), "group": "palisade.dev", "kind": "nodefences", "uid": fence.uid()});
    same("details", &answer["details"], &details)?;
    bench.gone(&fence.path).await
}
