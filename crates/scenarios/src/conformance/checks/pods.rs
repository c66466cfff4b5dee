//! Pods: how they go. Grace is given once and can only be shortened; who has no kubelet needs none.

use serde_json::{Value, json};

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::{NOBODY, pod, pod_on};
use crate::conformance::places::PODS;
use crate::conformance::{Told, table};

table! { "pods";
    unbound_goes_at_once: "a pod without a node goes at once";
    bound_is_marked: "a pod on a node gets a deletion time and its own grace, and stays";
    grace_of_the_delete: "the grace of the delete comes before the pod's own";
    deletion_time_is_the_end: "the deletion time is the end of the grace, not its beginning";
    shorter_second_delete: "a second delete with less grace shortens it";
    longer_second_delete: "one with more changes nothing";
    second_delete_without_grace: "neither does one that names no grace";
    at_once: "grace 0 with the right UID removes a marked pod";
    at_once_unmarked: "grace 0 removes a pod that nobody marked, too";
    at_once_another: "grace 0 with another UID is a conflict, and the mark stays as it was";
    held_at_once: "a held pod stays, also with grace 0, and goes with its last finalizer";
    held_with_grace: "a marked pod stays in its grace when its last finalizer goes: that is for its kubelet";
    finished_goes_at_once: "a pod that has failed goes at once, though it has a node and grace";
    own_grace_of_zero: "a pod whose own grace is 0 goes at once";
    negative_grace: "a grace below 0 is taken for 1";
    mark_is_patched_around: "a marked pod takes labels and a phase, and keeps its mark";
    marked_pod_answers: "a delete of a pod answers with the pod, gone or not";
    spec_is_kept: "the node of a pod cannot be changed by a patch";
    tolerations_can_be_added: "tolerations can be added to a pod, and not taken away";
    tolerations_by_default: "a pod tolerates five minutes on a node that is gone, unless it says otherwise";
    needs_a_container: "a pod without containers is refused";
}

async fn bound(bench: &Bench) -> Told<Made> {
    bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await
}

async fn marked(bench: &Bench, grace: i64) -> Told<Made> {
    let mut pod = bound(bench).await?;
    pod.object = bench.delete(&pod.path, &json!({"gracePeriodSeconds": grace})).await?.is(200)?;
    Ok(pod)
}

fn grace(pod: &Value) -> &Value {
    &pod["metadata"]["deletionGracePeriodSeconds"]
}

fn end(pod: &Value) -> Told<jiff::Timestamp> {
    let text = text(pod, "/metadata/deletionTimestamp");
    text.parse().map_err(|why| format!("deletion time {text:?}: {why}"))
}

async fn unbound_goes_at_once(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod(&bench.name("p"))).await?;
    bench.delete(&pod.path, &json!({})).await?.is(200)?;
    bench.gone(&pod.path).await
}

async fn bound_is_marked(bench: &Bench) -> Told {
    let pod = bound(bench).await?;
    bench.delete(&pod.path, &json!({})).await?.is(200)?;
    let now = bench.read(&pod.path).await?;
    same("grace", grace(&now), &json!(30))?;
    end(&now).map(drop)
}

async fn grace_of_the_delete(bench: &Bench) -> Told {
    let pod = bound(bench).await?;
    let marked = bench.delete(&format!("{}?gracePeriodSeconds=9", pod.path), &Value::Null).await?.is(200)?;
    same("grace", grace(&marked), &json!(9))
}

async fn deletion_time_is_the_end(bench: &Bench) -> Told {
    let (short, made) = (marked(bench, 100).await?, bench.name("q"));
    let long = bench.make(PODS, pod_on(&made, "nowhere")).await?;
    let long = bench.delete(&long.path, &json!({"gracePeriodSeconds": 4000})).await?.is(200)?;
    let apart = end(&long)?.duration_since(end(&short.object)?).as_secs();
    must((3890..=3930).contains(&apart), || format!("graces of 100 and 4000 s end {apart} s apart"))
}

async fn shorter_second_delete(bench: &Bench) -> Told {
    let pod = marked(bench, 500).await?;
    let again = bench.delete(&pod.path, &json!({"gracePeriodSeconds": 20})).await?.is(200)?;
    same("grace", grace(&again), &json!(20))?;
    let sooner = end(&pod.object)?.duration_since(end(&again)?).as_secs();
    // It counts from the first delete; a second may have passed, and times are whole seconds.
    must((478..=480).contains(&sooner), || format!("it ends {sooner} s sooner"))
}

async fn longer_second_delete(bench: &Bench) -> Told {
    let pod = marked(bench, 20).await?;
    bench.delete(&pod.path, &json!({"gracePeriodSeconds": 500})).await?.is(200)?;
    bench.untouched(&pod.path, &pod.object).await
}

async fn second_delete_without_grace(bench: &Bench) -> Told {
    let pod = marked(bench, 500).await?;
    bench.delete(&pod.path, &json!({})).await?.is(200)?;
    bench.untouched(&pod.path, &pod.object).await
}

async fn at_once(bench: &Bench) -> Told {
    let pod = marked(bench, 500).await?;
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": pod.uid()}});
    bench.delete(&pod.path, &options).await?.is(200)?;
    bench.gone(&pod.path).await
}

async fn at_once_unmarked(bench: &Bench) -> Told {
    let pod = bound(bench).await?;
    bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
    bench.gone(&pod.path).await
}

async fn at_once_another(bench: &Bench) -> Told {
    let pod = marked(bench, 500).await?;
    let options = json!({"gracePeriodSeconds": 0, "preconditions": {"uid": NOBODY}});
    bench.delete(&pod.path, &options).await?.refused(409, "Conflict")?;
    bench.untouched(&pod.path, &pod.object).await
}

async fn held(bench: &Bench) -> Told<Made> {
    let mut pod = pod_on(&bench.name("p"), "nowhere");
    pod["metadata"]["finalizers"] = json!(["palisade.dev/test"]);
    bench.make(PODS, pod).await
}

async fn held_at_once(bench: &Bench) -> Told {
    let pod = held(bench).await?;
    let left = bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
    same("grace", grace(&left), &json!(0))?;
    bench.merge(&pod.path, &json!({"metadata": {"finalizers": null}})).await?.is(200)?;
    bench.gone(&pod.path).await
}

async fn held_with_grace(bench: &Bench) -> Told {
    let pod = held(bench).await?;
    bench.delete(&pod.path, &json!({"gracePeriodSeconds": 500})).await?.is(200)?;
    bench.merge(&pod.path, &json!({"metadata": {"finalizers": null}})).await?.is(200)?;
    let now = bench.read(&pod.path).await?;
    same("grace", grace(&now), &json!(500))
}

async fn finished_goes_at_once(bench: &Bench) -> Told {
    let pod = bound(bench).await?;
    bench.merge(&pod.status(), &json!({"status": {"phase": "Failed"}})).await?.is(200)?;
    bench.delete(&pod.path, &json!({})).await?.is(200)?;
    bench.gone(&pod.path).await
}

async fn own_grace_of_zero(bench: &Bench) -> Told {
    let mut hasty = pod_on(&bench.name("p"), "nowhere");
    hasty["spec"]["terminationGracePeriodSeconds"] = 0.into();
    let pod = bench.make(PODS, hasty).await?;
    bench.delete(&pod.path, &json!({})).await?.is(200)?;
    bench.gone(&pod.path).await
}

async fn negative_grace(bench: &Bench) -> Told {
    let pod = marked(bench, -5).await?;
    same("grace", grace(&pod.object), &json!(1))
}

async fn mark_is_patched_around(bench: &Bench) -> Told {
    let pod = marked(bench, 500).await?;
    bench.merge(&pod.path, &json!({"metadata": {"labels": {"a": "b"}}})).await?.is(200)?;
    let now = bench.merge(&pod.status(), &json!({"status": {"phase": "Failed"}})).await?.is(200)?;
    same("label", text(&now, "/metadata/labels/a"), "b")?;
    same("phase", text(&now, "/status/phase"), "Failed")?;
    same("end", end(&now)?, end(&pod.object)?)
}

async fn marked_pod_answers(bench: &Bench) -> Told {
    let pod = marked(bench, 500).await?;
    same("kind", text(&pod.object, "/kind"), "Pod")?;
    let last = bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
    same("last", [text(&last, "/kind"), text(&last, "/metadata/uid")], ["Pod", pod.uid()])
}

async fn spec_is_kept(bench: &Bench) -> Told {
    let pod = bound(bench).await?;
    let refusal = bench.merge(&pod.path, &json!({"spec": {"nodeName": "elsewhere"}})).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueForbidden", "spec", "pod updates may not change fields other than")
}

async fn tolerations_can_be_added(bench: &Bench) -> Told {
    let pod = bound(bench).await?;
    let mut more = pod.object["spec"]["tolerations"].clone();
    if let Some(list) = more.as_array_mut() {
        list.push(json!({"key": "palisade.dev/test", "operator": "Exists"}));
    }
    let now = bench.merge(&pod.path, &json!({"spec": {"tolerations": more}})).await?.is(200)?;
    same("tolerations", &now["spec"]["tolerations"], &more)?;
    bench.merge(&pod.path, &json!({"spec": {"tolerations": []}})).await?.refused(422, "Invalid").map(drop)
}

async fn tolerations_by_default(bench: &Bench) -> Told {
    let for_a_while =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    let (silent, gone) = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable");
    let pod = bound(bench).await?;
    same("tolerations", &pod.object["spec"]["tolerations"], &json!([for_a_while(silent), for_a_while(gone)]))?;
    let mut own = pod_on(&bench.name("q"), "nowhere");
    let short = json!({"key": gone, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5});
    own["spec"]["tolerations"] = json!([short]);
    let pod = bench.make(PODS, own).await?;
    same("tolerations", &pod.object["spec"]["tolerations"], &json!([short, for_a_while(silent)]))
}

async fn needs_a_container(bench: &Bench) -> Told {
    let mut empty = pod(&bench.name("p"));
    empty["spec"]["containers"] = json!([]);
    let refusal = bench.post(PODS, &empty).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueRequired", "spec.containers", "Required value")
}
