//! How things go: at once, with grace, or when their finalizers let them.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, Patch, PatchParams, Preconditions, PropagationPolicy, WatchEvent, WatchParams},
};
use palisade_cluster::api::{DeleteOptions, Key, Kind};
use serde_json::json;

use crate::world::{World, refusal};

fn grace(seconds: u32) -> DeleteParams {
    DeleteParams { grace_period_seconds: Some(seconds), ..DeleteParams::default() }
}

fn deadline(pod: &Pod) -> String {
    pod.metadata.deletion_timestamp.as_ref().unwrap().0.to_string()
}

#[tokio::test(start_paused = true)]
async fn a_running_pod_gets_its_own_grace() {
    let world = World::new();
    world.pod("db-0", "n1").await;
    let marked = world.pods().delete("db-0", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(deadline(&marked), "2026-03-01T12:00:30Z");
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(30));
    assert!(world.pods().get("db-0").await.is_ok(), "it is its kubelet that ends it");
}

#[tokio::test(start_paused = true)]
async fn a_grace_can_only_be_shortened() {
    let world = World::new();
    world.pod("db-0", "n1").await;
    let pods = world.pods();
    pods.delete("db-0", &grace(20)).await.unwrap();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let same = pods.delete("db-0", &grace(60)).await.unwrap().left().unwrap();
    assert_eq!(deadline(&same), "2026-03-01T12:00:20Z");
    let same = pods.delete("db-0", &DeleteParams::default()).await.unwrap().left().unwrap();
    assert_eq!(same.metadata.deletion_grace_period_seconds, Some(20));
    let shorter = pods.delete("db-0", &grace(10)).await.unwrap().left().unwrap();
    assert_eq!(deadline(&shorter), "2026-03-01T12:00:10Z", "counted from the first deletion");
    pods.delete("db-0", &grace(0)).await.unwrap();
    assert!(pods.get_opt("db-0").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_no_kubelet_has_to_stop_goes_at_once() {
    let world = World::new();
    let pods = world.pods();
    world.pod("waiting", "").await;
    pods.delete("waiting", &grace(30)).await.unwrap();
    assert!(pods.get_opt("waiting").await.unwrap().is_none());

    world.pod("finished", "n1").await;
    let failed = json!({"status": {"phase": "Failed"}});
    pods.patch_status("finished", &PatchParams::default(), &Patch::Merge(failed)).await.unwrap();
    pods.delete("finished", &grace(30)).await.unwrap();
    assert!(pods.get_opt("finished").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_forced_pod_is_seen_marked_and_then_gone() {
    let world = World::new();
    let made = world.pod("db-0", "n1").await;
    let version = made.resource_version().unwrap();
    world.pods().delete("db-0", &grace(0)).await.unwrap();
    let events = world.pods().watch(&WatchParams::default(), &version).await.unwrap();
    let seen: Vec<WatchEvent<Pod>> = events.take(2).try_collect().await.unwrap();
    let [WatchEvent::Modified(marked), WatchEvent::Deleted(gone)] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(0));
    assert_eq!(gone.resource_version().unwrap(), world.api.revision().to_string());
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_keeps_what_was_deleted() {
    let world = World::new();
    world.pod("db-0", "n1").await;
    let pods = world.pods();
    let keep = json!({"metadata": {"finalizers": ["palisade.dev/keep"]}});
    pods.patch("db-0", &PatchParams::default(), &Patch::Merge(keep)).await.unwrap();
    let marked = pods.delete("db-0", &grace(0)).await.unwrap().left().unwrap();
    assert_eq!(marked.metadata.deletion_grace_period_seconds, Some(0));
    assert!(pods.get("db-0").await.is_ok());

    let more = json!({"metadata": {"finalizers": ["palisade.dev/keep", "palisade.dev/another"]}});
    let status = refusal(pods.patch("db-0", &PatchParams::default(), &Patch::Merge(more)).await);
    assert!(status.message.contains("no new finalizers can be added if the object is being deleted"));

    let free = json!({"metadata": {"finalizers": null}});
    pods.patch("db-0", &PatchParams::default(), &Patch::Merge(free)).await.unwrap();
    assert!(pods.get_opt("db-0").await.unwrap().is_none(), "the last finalizer took it along");
}

#[tokio::test(start_paused = true)]
async fn a_finalizer_does_not_end_a_grace() {
    let world = World::new();
    world.pod("db-0", "n1").await;
    let pods = world.pods();
    let finalizers = |names: &[&str]| Patch::Merge(json!({"metadata": {"finalizers": names}}));
    pods.patch("db-0", &PatchParams::default(), &finalizers(&["a.dev/x"])).await.unwrap();
    pods.delete("db-0", &DeleteParams::default()).await.unwrap();
    pods.patch("db-0", &PatchParams::default(), &finalizers(&[])).await.unwrap();
    assert!(pods.get("db-0").await.is_ok(), "its kubelet has not ended it yet");
}

#[tokio::test(start_paused = true)]
async fn a_precondition_names_exactly_one_object() {
    let world = World::new();
    let made = world.pod("db-0", "n1").await;
    let with = |uid: Option<String>, resource_version: Option<String>| DeleteParams {
        preconditions: Some(Preconditions { uid, resource_version }),
        ..grace(0)
    };
    let status = refusal(world.pods().delete("db-0", &with(Some("other".into()), None)).await);
    assert_eq!((status.code, status.reason.as_str()), (409, "Conflict"));
    assert_eq!(
        status.message,
        format!(
            "Operation cannot be fulfilled on Pod \"db-0\": the UID in the precondition (other) does not match the UID in \
             record ({}). The object might have been deleted and then recreated",
            made.uid().unwrap()
        )
    );
    let status = refusal(world.pods().delete("db-0", &with(made.uid(), Some("1".into()))).await);
    assert!(status.message.contains("the ResourceVersion in the precondition (1)"), "{}", status.message);
    world.pods().delete("db-0", &with(made.uid(), made.resource_version())).await.unwrap();
    assert!(world.pods().get_opt("db-0").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn a_node_goes_at_once_and_says_so() {
    let world = World::new();
    let made = world.node("n1").await;
    let status = world.nodes().delete("n1", &DeleteParams::default()).await.unwrap().right().unwrap();
    assert!(status.is_success());
    assert_eq!(status.details.unwrap().uid, made.uid().unwrap());
}

#[tokio::test(start_paused = true)]
async fn an_owner_may_wait_for_its_dependents() {
    let world = World::new();
    let set = json!({"metadata": {"name": "db"}, "spec": {"serviceName": "db"}});
    world.api.create(Kind::STATEFUL_SET, set).unwrap();
    let sets: kube::Api<k8s_openapi::api::apps::v1::StatefulSet> =
        kube::Api::namespaced(world.client.clone(), "default");
    let first = DeleteParams { propagation_policy: Some(PropagationPolicy::Foreground), ..DeleteParams::default() };
    let marked = sets.delete("db", &first).await.unwrap().left().unwrap();
    assert_eq!(marked.finalizers(), ["foregroundDeletion"]);
    assert_eq!(marked.metadata.generation, Some(2));
}

#[tokio::test(start_paused = true)]
async fn a_dry_deletion_deletes_nothing() {
    let world = World::new();
    world.pod("db-0", "n1").await;
    let before = world.api.revision();
    let dry = DeleteParams { dry_run: true, ..grace(0) };
    world.pods().delete("db-0", &dry).await.unwrap();
    assert_eq!(world.api.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn a_collection_goes_object_by_object() {
    let world = World::new();
    for name in ["a", "b", "c"] {
        world.pod(name, if name == "c" { "n1" } else { "" }).await;
    }
    let gone = world.pods().delete_collection(&DeleteParams::default(), &ListParams::default()).await.unwrap();
    assert_eq!(gone.left().unwrap().items.len(), 3);
    let left: Vec<String> =
        world.pods().list(&ListParams::default()).await.unwrap().iter().map(ResourceExt::name_any).collect();
    assert_eq!(left, ["c"], "it runs, and ends with grace");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_ends_takes_nothing_new() {
    let world = World::new();
    world.api.create(Kind::NAMESPACE, json!({"metadata": {"name": "shop"}})).unwrap();
    let key = Key::cluster(Kind::NAMESPACE, "shop");
    let deleted = world.api.delete(&key, &DeleteOptions::default()).unwrap();
    assert_eq!(deleted.object()["status"]["phase"], "Terminating");
    let config = json!({"metadata": {"name": "c", "namespace": "shop"}});
    let status = world.api.create(Kind::CONFIG_MAP, config).unwrap_err();
    assert_eq!(status.code, 403);
    assert_eq!(status.details.causes[0].reason, "NamespaceTerminating");
    world.api.update(&key, |namespace| namespace["spec"]["finalizers"] = json!([])).unwrap();
    assert!(world.api.get(&key).is_none());
}
