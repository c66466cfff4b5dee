//! The way in.

use std::time::Duration;

use palisade_cluster::api::{Key, Kind};
use serde_json::json;
use tokio::time::Instant;

use crate::world::{FINALIZER, World, until};

#[tokio::test]
async fn a_volume_is_attached_and_everything_is_written_down() {
    let world = World::new();
    world.volume("v1").await;
    world.want("a", "v1", "n1");
    let attachment = world.attached("a").await;
    assert_eq!(world.holders("v1"), ["id-n1"]);
    assert_eq!(attachment["metadata"]["finalizers"], json!([FINALIZER]));
    let annotations = &attachment["metadata"]["annotations"];
    assert_eq!(annotations["csi.alpha.kubernetes.io/node-id"], "id-n1");
    assert_eq!(annotations["palisade.dev/volume-handle"], "v1");
    assert_eq!(attachment["status"]["attachmentMetadata"], json!({"lab.palisade.dev/published-to": "id-n1"}));
    let volume = world.api.get(&Key::cluster(Kind::PERSISTENT_VOLUME, "v1")).unwrap();
    assert_eq!(volume["metadata"]["finalizers"], json!([FINALIZER]));
}

#[tokio::test]
async fn the_finalizer_is_there_before_the_san_is_asked() {
    let world = World::new();
    world.volume("v1").await;
    let san = world.place.san();
    world.api.on_write(Box::new(move |_, change| {
        let Some(attachment) = change.new.as_ref().filter(|_| change.key.kind == Kind::VOLUME_ATTACHMENT) else {
            return;
        };
        let held = attachment["metadata"]["finalizers"] == json!([FINALIZER]);
        let holders = palisade_san::published(&san).unwrap().remove("v1").unwrap_or_default();
        assert!(held || holders.is_empty(), "published before it was written down");
    }));
    world.want("a", "v1", "n1");
    world.attached("a").await;
}

#[tokio::test]
async fn attachments_of_other_drivers_are_left_alone() {
    let world = World::new();
    world.volume("v1").await;
    world.want_of("csi.example.com", "other", "v1", "n1");
    world.want("a", "v1", "n1");
    world.attached("a").await;
    let other = world.attachment("other").unwrap();
    assert_eq!((other["metadata"].get("finalizers"), &other["status"]["attached"]), (None, &json!(false)));
}

#[tokio::test]
async fn a_volume_that_another_node_has_is_refused_and_given_the_moment_it_is_free() {
    let world = World::new();
    world.volume("v1").await;
    world.want("old", "v1", "n1");
    world.attached("old").await;
    world.want("new", "v1", "n2");
    let why = world.error("new", "attachError").await;
    assert_eq!(why, "FailedPrecondition: v1 is published to node id-n1, and cannot be published to id-n2 beside");
    assert!(world.attachment("new").unwrap()["status"]["attachError"]["time"].is_string());
    // Failures at 0, 1 and 3 s: the next try of its own would come at 7 s.
    tokio::time::sleep(Duration::from_millis(3_500)).await;
    let began = Instant::now();
    world.unwant("old");
    let attachment = world.attached("new").await;
    assert!(began.elapsed() < Duration::from_secs(2), "it sat out its pause: {:?}", began.elapsed());
    assert_eq!(attachment["status"].get("attachError"), None, "what is over is not told any more");
    assert_eq!(world.holders("v1"), ["id-n2"]);
    assert!(world.attachment("old").is_none());
}

#[tokio::test]
async fn what_is_missing_is_said_and_its_coming_ends_the_wait() {
    let world = World::new();
    world.make("v1").await;
    world.want("a", "v1", "n3");
    assert_eq!(world.error("a", "attachError").await, "there is no PersistentVolume v1");
    world.persistent_volume("v1", "v1");
    let what = "the next thing that is missing is said";
    until(what, async || {
        let said = world.error("a", "attachError").await;
        (said == "driver lab.palisade.dev is not registered on node n3 (CSINode)").then_some(())
    })
    .await;
    world.register("n3", "id-n3");
    world.attached("a").await;
    assert_eq!(world.holders("v1"), ["id-n3"]);
}

#[tokio::test]
async fn a_node_that_comes_back_under_another_id_loses_what_the_old_one_may_have() {
    let world = World::new();
    world.volume("v1").await;
    // As if a pass had written down its intent and published, and its answer were lost.
    world.want("a", "v1", "n1");
    world.attached("a").await;
    world.unregister("n1");
    world.register("n1", "id-n1-again");
    world.change("a", |attachment| attachment["status"] = json!({"attached": false}));
    world.attached("a").await;
    assert_eq!(world.holders("v1"), ["id-n1-again"]);
    let annotations = &world.attachment("a").unwrap()["metadata"]["annotations"];
    assert_eq!(annotations["csi.alpha.kubernetes.io/node-id"], "id-n1-again");
}

#[tokio::test]
async fn a_secret_is_handed_to_the_driver_or_missed_by_name() {
    let world = World::new();
    world.volume("v1").await;
    let secret = json!({"namespace": "default", "name": "array"});
    let key = Key::cluster(Kind::PERSISTENT_VOLUME, "v1");
    world.api.update(&key, |volume| volume["spec"]["csi"]["controllerPublishSecretRef"] = secret).unwrap();
    world.want("a", "v1", "n1");
    assert_eq!(world.error("a", "attachError").await, "there is no Secret default/array");
    let object = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "array", "namespace": "default"},
        "data": {"password": "aHVudGVyMg=="}});
    world.api.create(Kind::SECRET, object).unwrap();
    world.attached("a").await;
}
