//! Custom resources: definitions, schemas, rules.

use kube::api::{Patch, PatchParams, PostParams};
use palisade_cluster::api::{DeleteOptions, Key, Kind};
use serde_json::{Value, json};

use crate::world::{World, fence, read, refusal};

#[tokio::test(start_paused = true)]
async fn a_definition_makes_its_kind_and_takes_it_along() {
    let world = World::new().with_crds();
    let crd = Key::cluster(Kind::CUSTOM_RESOURCE_DEFINITION, "nodefences.palisade.dev");
    let status = &world.api.get(&crd).unwrap()["status"];
    assert_eq!(status["conditions"][1]["type"], "Established");
    assert_eq!(status["acceptedNames"]["listKind"], "NodeFenceList");

    world.fences().create(&PostParams::default(), &read(fence("n1"))).await.unwrap();
    world.api.delete(&crd, &DeleteOptions::default()).unwrap();
    assert_eq!(refusal(world.fences().get("n1").await).code, 404);
    assert_eq!(world.api.kind("palisade.dev", "NodeFence"), None);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_broken_names_its_field() {
    let world = World::new().with_crds();
    let mut wrong = fence("n1");
    wrong["spec"]["nodeName"] = json!("n2");
    let status = refusal(world.fences().create(&PostParams::default(), &read(wrong)).await);
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));
    let told = "NodeFence.palisade.dev \"n1\" is invalid: <nil>: Invalid value: metadata.name: a NodeFence has the name of \
                its node";
    assert!(status.message.starts_with(told), "{}", status.message);
}

#[tokio::test(start_paused = true)]
async fn a_transition_is_judged_against_what_was() {
    let world = World::new().with_crds();
    let fences = world.fences();
    fences.create(&PostParams::default(), &read(fence("n1"))).await.unwrap();
    let attempt = |attempt: u64| {
        Patch::Merge(json!({"status": {"step": "Isolation", "status": "New", "phase": "New", "attempt": attempt}}))
    };
    fences.patch_status("n1", &PatchParams::default(), &attempt(2)).await.unwrap();
    let status = refusal(fences.patch_status("n1", &PatchParams::default(), &attempt(1)).await);
    let cause = &status.details.unwrap().causes[0];
    assert_eq!(cause.field, "status.attempt");
}

#[tokio::test(start_paused = true)]
async fn unknown_fields_are_dropped_or_refused() {
    let world = World::new().with_crds();
    let mut odd = fence("n1");
    odd["spec"]["nodename"] = json!("typo");
    let strict = "/apis/palisade.dev/v1alpha1/nodefences?fieldValidation=Strict";
    let request = http::Request::post(strict).body(serde_json::to_vec(&odd).unwrap()).unwrap();
    let status = refusal(world.client.request::<Value>(request).await);
    assert_eq!(status.code, 400);
    assert!(status.message.contains("strict decoding error: unknown field \"spec.nodename\""), "{}", status.message);
    let made = world.fences().create(&PostParams::default(), &read(odd)).await.unwrap();
    assert_eq!(made.data["spec"].get("nodename"), None);
}

#[tokio::test(start_paused = true)]
async fn a_put_has_to_say_which_version_it_means() {
    let world = World::new().with_crds();
    let mut made = world.fences().create(&PostParams::default(), &read(fence("n1"))).await.unwrap();
    made.metadata.resource_version = None;
    let status = refusal(world.fences().replace("n1", &PostParams::default(), &made).await);
    assert_eq!(status.code, 422);
    assert!(status.message.contains("metadata.resourceVersion: Invalid value: 0: must be specified for an update"));
}
