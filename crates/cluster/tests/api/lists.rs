//! Lists: selected, in pages, and of the past.

use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, ListParams, PartialObjectMeta, Patch, PatchParams},
};
use palisade_cluster::api::{Kind, Server};
use serde_json::json;

use crate::world::{World, node, refusal};

fn names<T: ResourceExt>(items: impl IntoIterator<Item = T>) -> Vec<String> {
    items.into_iter().map(|item| item.name_any()).collect()
}

#[tokio::test(start_paused = true)]
async fn labels_and_fields_select() {
    let world = World::new();
    for (name, on, app) in [("a", "n1", "db"), ("b", "n2", "db"), ("c", "n1", "web")] {
        world.pod(name, on).await;
        let label = json!({"metadata": {"labels": {"app": app}}});
        world.pods().patch(name, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
    }
    let list = async |params: ListParams| names(world.pods().list(&params).await.unwrap());
    assert_eq!(list(ListParams::default().fields("spec.nodeName=n1")).await, ["a", "c"]);
    assert_eq!(list(ListParams::default().labels("app in (db)")).await, ["a", "b"]);
    assert_eq!(list(ListParams::default().labels("app!=db").fields("spec.nodeName=n1")).await, ["c"]);
    let status = refusal(world.pods().list(&ListParams::default().fields("spec.hostNetwork=true")).await);
    assert_eq!((status.code, status.message.as_str()), (400, "field label not supported: spec.hostNetwork"));
}

#[tokio::test(start_paused = true)]
async fn pages_are_of_one_moment() {
    let world = World::new();
    for name in ["a", "b", "c", "d"] {
        world.node(name).await;
    }
    let first = world.nodes().list(&ListParams::default().limit(2)).await.unwrap();
    assert_eq!(first.metadata.remaining_item_count, Some(2));
    world.node("c0").await;
    world.nodes().delete("d", &DeleteParams::default()).await.unwrap();
    let token = first.metadata.continue_.clone().unwrap();
    let second = world.nodes().list(&ListParams::default().limit(2).continue_token(&token)).await.unwrap();
    assert_eq!(second.metadata.resource_version, first.metadata.resource_version);
    assert_eq!(names(second), ["c", "d"]);

    world.api.compact(world.api.revision());
    let status = refusal(world.nodes().list(&ListParams::default().limit(2).continue_token(&token)).await);
    assert_eq!((status.code, status.reason.as_str()), (410, "Expired"));
}

#[tokio::test(start_paused = true)]
async fn a_list_may_be_of_the_past() {
    let world = World::new();
    world.node("a").await;
    let then = world.api.revision().to_string();
    world.node("b").await;
    let exact = ListParams::default().at(&then).matching(kube::api::VersionMatch::Exact);
    let past = world.nodes().list(&exact).await.unwrap();
    assert_eq!(past.metadata.resource_version.clone().unwrap(), then);
    assert_eq!(names(past), ["a"]);
    let at_least = ListParams::default().at(&then).matching(kube::api::VersionMatch::NotOlderThan);
    assert_eq!(names(world.nodes().list(&at_least).await.unwrap()), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_lags_says_so_after_three_seconds() {
    let world = World::new();
    let began = tokio::time::Instant::now();
    let ahead = ListParams::default().at("1000").matching(kube::api::VersionMatch::NotOlderThan);
    let status = refusal(world.nodes().list(&ahead).await);
    assert_eq!((status.code, status.reason.as_str()), (504, "Timeout"));
    assert!(status.message.starts_with("Too large resource version: 1000"), "{}", status.message);
    assert_eq!(began.elapsed(), Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn metadata_alone_can_be_asked_for() {
    let world = World::new();
    world.node("a").await;
    let all: Api<PartialObjectMeta<Node>> = Api::all(world.client.clone());
    let list = all.list(&ListParams::default()).await.unwrap();
    assert_eq!(names(list), ["a"]);
    assert!(all.get("a").await.unwrap().metadata.uid.is_some());
}

#[tokio::test(start_paused = true)]
async fn the_store_lists_without_a_client() {
    let world = World::new();
    world.api.create(Kind::NODE, node("b")).unwrap();
    world.api.create(Kind::NODE, node("a")).unwrap();
    assert_eq!(world.api.list(Kind::NODE).len(), 2);
    // And another server over the same store sees the same.
    let other = Server::new(world.api.clone()).client("other");
    assert_eq!(names(Api::<Node>::all(other).list(&ListParams::default()).await.unwrap()), ["a", "b"]);
}
