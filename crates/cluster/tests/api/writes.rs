//! Create, update and patch.

use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use palisade_cluster::api::{Key, Kind};
use serde_json::{Value, json};

use crate::world::{World, fence, node, pod, read, refusal, resource};

#[tokio::test(start_paused = true)]
async fn a_new_object_is_signed() {
    let world = World::new();
    let made = world.node("n1").await;
    assert_eq!(made.metadata.creation_timestamp.as_ref().unwrap().0.to_string(), "2026-03-01T12:00:00Z");
    assert!(made.uid().unwrap().len() == 36);
    assert_eq!(made.resource_version().unwrap(), world.api.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_name_is_taken_once() {
    let world = World::new();
    world.node("n1").await;
    let again = refusal(world.nodes().create(&PostParams::default(), &read(node("n1"))).await);
    assert_eq!((again.code, again.reason.as_str()), (409, "AlreadyExists"));
    assert_eq!(again.message, "nodes \"n1\" already exists");
}

#[tokio::test(start_paused = true)]
async fn a_name_can_be_generated() {
    let world = World::new();
    let mut wish = pod("", "");
    wish["metadata"] = json!({"generateName": "job-"});
    let params = PostParams::default();
    let first: Pod = world.pods().create(&params, &read(wish.clone())).await.unwrap();
    let second: Pod = world.pods().create(&params, &read(wish)).await.unwrap();
    assert!(first.name_any().starts_with("job-") && first.name_any().len() == 9);
    assert_ne!(first.name_any(), second.name_any());
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_to_be_there() {
    let world = World::new();
    let elsewhere: Api<Pod> = Api::namespaced(world.client.clone(), "shop");
    let status = refusal(elsewhere.create(&PostParams::default(), &read(pod("db-0", ""))).await);
    assert_eq!((status.code, status.message.as_str()), (404, "namespaces \"shop\" not found"));
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let world = World::new();
    let before = world.api.revision();
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let would: Node = world.nodes().create(&dry, &read(node("n1"))).await.unwrap();
    assert!(would.uid().is_some());
    assert_eq!(world.api.revision(), before);
    assert!(world.nodes().get_opt("n1").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn an_old_version_cannot_overwrite_a_new_one() {
    let world = World::new();
    let mut mine = world.node("n1").await;
    let mut theirs = mine.clone();
    theirs.labels_mut().insert("theirs".into(), "1".into());
    world.nodes().replace("n1", &PostParams::default(), &theirs).await.unwrap();
    mine.labels_mut().insert("mine".into(), "1".into());
    let status = refusal(world.nodes().replace("n1", &PostParams::default(), &mine).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert!(status.message.contains("the object has been modified"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_patch_may_insist_on_a_version_and_on_a_uid() {
    let world = World::new();
    let node = world.node("n1").await;
    let stale = json!({"metadata": {"resourceVersion": "1", "labels": {"a": "b"}}});
    let status = refusal(world.nodes().patch("n1", &PatchParams::default(), &Patch::Merge(stale)).await);
    assert_eq!(status.code, 409);
    let other = json!({"metadata": {"uid": "somebody-else", "labels": {"a": "b"}}});
    let status = refusal(world.nodes().patch("n1", &PatchParams::default(), &Patch::Merge(other)).await);
    assert_eq!(status.code, 422);
    assert!(
        status.message.contains("metadata.uid: Invalid value: \"somebody-else\": field is immutable"),
        "{}",
        status.message
    );
    let right = json!({"metadata": {"uid": node.uid(), "resourceVersion": node.resource_version(),
        "labels": {"a": "b"}}});
    world.nodes().patch("n1", &PatchParams::default(), &Patch::Merge(right)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_json_patch_whose_test_fails_is_refused() {
    let world = World::new();
    world.node("n1").await;
    let patch = |value: &str| {
        let operations = json!([{"op": "test", "path": "/metadata/name", "value": value},
            {"op": "add", "path": "/spec/unschedulable", "value": true}]);
        Patch::Json::<()>(serde_json::from_value(operations).unwrap())
    };
    let status = refusal(world.nodes().patch("n1", &PatchParams::default(), &patch("n2")).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    assert_eq!(status.message, "the server rejected our request due to an error in our request");
    let node = world.nodes().patch("n1", &PatchParams::default(), &patch("n1")).await.unwrap();
    assert_eq!(node.spec.unwrap().unschedulable, Some(true));
}

#[tokio::test(start_paused = true)]
async fn strategic_merge_and_apply_are_refused_in_clear_words() {
    let world = World::new();
    world.node("n1").await;
    let change = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"labels": {"a": "b"}}});
    let status = refusal(world.nodes().patch("n1", &PatchParams::default(), &Patch::Strategic(&change)).await);
    assert_eq!(status.code, 415);
    assert!(
        status.message.contains("in an unknown format - accepted media types include: application/json-patch+json"),
        "{}",
        status.message
    );
    let status = refusal(world.nodes().patch("n1", &PatchParams::apply("me"), &Patch::Apply(&change)).await);
    assert_eq!(status.code, 415);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_changes_nothing_is_no_write() {
    let world = World::new();
    world.node("n1").await;
    let before = world.api.revision();
    let same = json!({"spec": {"unschedulable": null}});
    world.nodes().patch("n1", &PatchParams::default(), &Patch::Merge(same)).await.unwrap();
    world.api.update(&Key::cluster(Kind::NODE, "n1"), |_| ()).unwrap();
    assert_eq!(world.api.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn spec_and_status_are_written_apart() {
    let world = World::new().with_crds();
    let mut wish = fence("n1");
    wish["status"] = json!({"phase": "Final"});
    let fences = world.fences();
    let made = fences.create(&PostParams::default(), &read(wish)).await.unwrap();
    assert_eq!(made.data.get("status"), None, "a new object has no status");
    assert_eq!(made.metadata.generation, Some(1));

    let both = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"admin": {"resume": 7}},
        "status": {"step": "Isolation", "status": "New", "phase": "New", "attempt": 1}});
    let patched = fences.patch_status("n1", &PatchParams::default(), &Patch::Merge(&both)).await.unwrap();
    assert_eq!(patched.data["status"]["phase"], "New");
    assert_ne!(patched.data["spec"]["admin"]["resume"], 7);
    assert_eq!(patched.metadata.labels, None);
    assert_eq!(patched.metadata.generation, Some(1), "a status is no wish");

    let mut change = both.clone();
    change["status"]["attempt"] = json!(9);
    let patched = fences.patch("n1", &PatchParams::default(), &Patch::Merge(&change)).await.unwrap();
    assert_eq!(patched.data["spec"]["admin"]["resume"], 7);
    assert_eq!(patched.data["status"]["attempt"], 1);
    assert_eq!(patched.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_runs_is_not_rewritten() {
    let world = World::new();
    world.pod("db-0", "n1").await;
    let change = json!({"spec": {"nodeName": "n2"}});
    let status = refusal(world.pods().patch("db-0", &PatchParams::default(), &Patch::Merge(change)).await);
    assert_eq!(status.code, 422);
    assert!(status.message.contains("pod updates may not change fields other than"), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_taint_stands_once() {
    let world = World::new();
    world.node("n1").await;
    let taint = json!({"key": "palisade.dev/quarantine", "value": "1", "effect": "NoSchedule"});
    let twice = json!({"spec": {"taints": [taint, taint]}});
    let status = refusal(world.nodes().patch("n1", &PatchParams::default(), &Patch::Merge(twice)).await);
    assert_eq!(status.code, 422);
    assert_eq!(status.details.unwrap().causes[0].field, "metadata.taints[1]");
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_bound_once() {
    let world = World::new();
    world.pod("db-0", "").await;
    let bind = |node: &str| {
        let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": "db-0"},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node}});
        let request = http::Request::post("/api/v1/namespaces/default/pods/db-0/binding");
        world.client.request::<Value>(request.body(serde_json::to_vec(&binding).unwrap()).unwrap())
    };
    bind("n1").await.unwrap();
    let status = refusal(bind("n2").await);
    assert_eq!(status.code, 409);
    assert!(status.message.contains("is already assigned to node \"n1\""), "{}", status.message);
    let pod = world.pods().get("db-0").await.unwrap();
    assert_eq!(pod.spec.unwrap().node_name.unwrap(), "n1");
}

#[tokio::test(start_paused = true)]
async fn an_event_of_either_group_is_seen_in_both() {
    let world = World::new();
    let newer: Api<DynamicObject> =
        Api::namespaced_with(world.client.clone(), "default", &resource("events.k8s.io", "v1", "Event"));
    let event = json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e1"},
        "regarding": {"kind": "Node", "name": "n1"}, "note": "n1 is off", "reason": "SeenOff", "type": "Normal",
        "action": "Fence", "eventTime": "2026-03-01T12:00:00.000000Z", "reportingController": "palisade",
        "reportingInstance": "palisade-0"});
    newer.create(&PostParams::default(), &read(event)).await.unwrap();
    let core: Api<Event> = Api::namespaced(world.client.clone(), "default");
    let seen = core.get("e1").await.unwrap();
    assert_eq!(seen.message.unwrap(), "n1 is off");
    assert_eq!(seen.involved_object.name.unwrap(), "n1");
    assert_eq!(newer.get("e1").await.unwrap().data["note"], "n1 is off");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_not_found() {
    let world = World::new();
    let status = refusal(world.nodes().get("n9").await);
    assert_eq!((status.code, status.message.as_str()), (404, "nodes \"n9\" not found"));
    let dogs: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource("zoo.dev", "v1", "Dog"));
    let status = refusal(dogs.get("rex").await);
    assert_eq!(status.message, "the server could not find the requested resource");
}
