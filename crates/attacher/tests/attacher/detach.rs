//! The way out.

use palisade_cluster::api::{DeleteOptions, Key, Kind};
use serde_json::json;

use crate::world::{FINALIZER, World, until};

async fn with_v1_on_n1() -> World {
    let world = World::new();
    world.volume("v1").await;
    world.want("a", "v1", "n1");
    world.attached("a").await;
    world
}

#[tokio::test]
async fn a_volume_is_detached_before_its_attachment_goes() {
    let world = with_v1_on_n1().await;
    let san = world.place.san();
    world.api.on_write(Box::new(move |_, change| {
        if change.key.kind == Kind::VOLUME_ATTACHMENT && change.new.is_none() {
            assert!(palisade_san::published(&san).unwrap()["v1"].is_empty(), "gone while the node still has it");
        }
    }));
    world.unwant("a");
    world.detached("a").await;
    assert!(world.holders("v1").is_empty());
}

#[tokio::test]
async fn a_node_that_is_gone_is_known_by_what_was_written_down() {
    let world = with_v1_on_n1().await;
    world.unregister("n1");
    world.unwant("a");
    world.detached("a").await;
    assert!(world.holders("v1").is_empty());
}

#[tokio::test]
async fn a_node_that_was_made_anew_does_not_hide_the_one_that_has_the_volume() {
    let world = with_v1_on_n1().await;
    world.unregister("n1");
    world.register("n1", "id-n1-again");
    world.unwant("a");
    world.detached("a").await;
    assert!(world.holders("v1").is_empty(), "the old node still has it");
}

#[tokio::test]
async fn a_persistent_volume_that_was_torn_away_does_not_hold_up_a_detach() {
    let world = with_v1_on_n1().await;
    let key = Key::cluster(Kind::PERSISTENT_VOLUME, "v1");
    world.api.update(&key, |volume| volume["metadata"]["finalizers"] = json!([])).unwrap();
    world.api.delete(&key, &DeleteOptions::default()).unwrap();
    world.unwant("a");
    world.detached("a").await;
    assert!(world.holders("v1").is_empty());
}

#[tokio::test]
async fn a_persistent_volume_goes_after_its_last_attachment() {
    let world = with_v1_on_n1().await;
    let key = Key::cluster(Kind::PERSISTENT_VOLUME, "v1");
    world.api.delete(&key, &DeleteOptions::default()).unwrap();
    let volume = world.api.get(&key).expect("it is held while it is attached");
    assert_eq!(volume["metadata"]["finalizers"], json!([FINALIZER]));
    world.unwant("a");
    world.detached("a").await;
    until("the volume goes", async || world.api.get(&key).is_none().then_some(())).await;
}

#[tokio::test]
async fn an_attachment_that_somebody_else_holds_says_that_it_is_detached() {
    let world = with_v1_on_n1().await;
    world.change("a", |attachment| attachment["metadata"]["finalizers"] = json!(["example.com/other", FINALIZER]));
    world.unwant("a");
    until("our finalizer goes", async || {
        (world.attachment("a")?["metadata"]["finalizers"] == json!(["example.com/other"])).then_some(())
    })
    .await;
    let attachment = world.attachment("a").unwrap();
    assert_eq!(attachment["status"], json!({"attached": false}));
    assert!(world.holders("v1").is_empty());
}

#[tokio::test]
async fn a_new_attachment_of_the_same_name_is_another_one() {
    let world = with_v1_on_n1().await;
    for _ in 0..3 {
        world.unwant("a");
        world.detached("a").await;
        world.want("a", "v1", "n2");
        world.attached("a").await;
        assert_eq!(world.holders("v1"), ["id-n2"]);
    }
}
