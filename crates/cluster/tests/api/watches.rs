//! Watches: nothing missed, nothing twice.

use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, WatchEvent, WatchParams},
    core::NamespaceResourceScope,
    runtime::watcher,
};
use serde_json::json;
use tokio::time::Instant;

use crate::world::World;

/// `+a ~a -a`, a star for a bookmark, an exclamation mark for an error.
fn told<T: ResourceExt>(event: &WatchEvent<T>) -> String {
    match event {
        WatchEvent::Added(object) => format!("+{}", object.name_any()),
        WatchEvent::Modified(object) => format!("~{}", object.name_any()),
        WatchEvent::Deleted(object) => format!("-{}", object.name_any()),
        WatchEvent::Bookmark(mark) => format!("*{}", mark.metadata.resource_version),
        WatchEvent::Error(status) => format!("!{}", status.code),
    }
}

async fn label(world: &World, pod: &str, app: &str) {
    let label = json!({"metadata": {"labels": {"app": app}}});
    world.pods().patch(pod, &PatchParams::default(), &Patch::Merge(label)).await.unwrap();
}

async fn all<K>(api: Api<K>, params: WatchParams, version: &str, count: usize) -> Vec<String>
where
    K: kube::Resource<Scope = NamespaceResourceScope> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    let stream = api.watch(&params, version).await.unwrap();
    stream.take(count).map_ok(|event| told(&event)).try_collect().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn what_leaves_the_selection_is_deleted_for_its_watcher() {
    let world = World::new();
    let start = world.api.revision().to_string();
    world.pod("a", "n1").await;
    label(&world, "a", "db").await;
    label(&world, "a", "db2").await;
    label(&world, "a", "web").await;
    label(&world, "a", "db").await;
    let params = WatchParams::default().labels("app in (db,db2)");
    assert_eq!(all(world.pods(), params, &start, 4).await, ["+a", "~a", "-a", "+a"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_tells_what_comes_while_it_waits() {
    let world = World::new();
    let pods = world.pods();
    let stream = pods.watch(&WatchParams::default(), &world.api.revision().to_string()).await.unwrap();
    pin_mut!(stream);
    let (event, ()) = tokio::join!(stream.next(), async {
        tokio::time::sleep(Duration::from_secs(7)).await;
        world.pod("a", "n1").await;
    });
    assert_eq!(told(&event.unwrap().unwrap()), "+a");
}

#[tokio::test(start_paused = true)]
async fn a_watch_ends_when_its_time_is_up() {
    let world = World::new();
    let params = WatchParams::default().timeout(20).disable_bookmarks();
    let began = Instant::now();
    assert_eq!(all(world.pods(), params, "1", 1).await, [""; 0]);
    assert_eq!(began.elapsed(), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn bookmarks_tell_where_we_are() {
    let world = World::new();
    world.pod("a", "n1").await;
    world.node("n1").await;
    let began = Instant::now();
    let start = world.api.revision().to_string();
    // Not a pod: the watcher hears of it only in this way.
    world.node("n2").await;
    let now = world.api.revision();
    assert_eq!(all(world.pods(), WatchParams::default(), &start, 1).await, [format!("*{now}")]);
    assert_eq!(began.elapsed(), Duration::from_mins(1));
}

#[tokio::test(start_paused = true)]
async fn a_forgotten_past_is_gone() {
    let world = World::new();
    world.pod("a", "n1").await;
    world.api.compact(world.api.revision());
    assert_eq!(all(world.pods(), WatchParams::default(), "2", 5).await, ["!410"]);
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_zero_begins_with_what_is_there() {
    let world = World::new();
    world.pod("a", "n1").await;
    world.pod("b", "n1").await;
    label(&world, "a", "db").await;
    assert_eq!(all(world.pods(), WatchParams::default(), "0", 2).await, ["+a", "+b"]);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_list_says_when_it_is_complete() {
    let world = World::new();
    world.pod("a", "n1").await;
    let params = WatchParams::default().initial_events();
    let stream = world.pods().watch(&params, "0").await.unwrap();
    let events: Vec<WatchEvent<Pod>> = stream.take(2).try_collect().await.unwrap();
    let [WatchEvent::Added(_), WatchEvent::Bookmark(mark)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(mark.metadata.annotations["k8s.io/initial-events-end"], "true");
}

#[tokio::test(start_paused = true)]
async fn kubes_own_watcher_follows_over_a_forgotten_past_in_both_ways() {
    for config in [watcher::Config::default().page_size(2), watcher::Config::default().streaming_lists()] {
        let world = World::new();
        for name in ["a", "b", "c"] {
            world.node(name).await;
        }
        let stream = watcher(world.nodes(), config).boxed();
        let mut stream = std::pin::pin!(stream);
        let mut seen = Vec::new();
        let mut next = async || {
            let event = stream.next().await.unwrap();
            seen.push(match event {
                Ok(watcher::Event::Init) => "init".to_owned(),
                Ok(watcher::Event::InitApply(node)) => format!("has {}", node.name_any()),
                Ok(watcher::Event::InitDone) => "done".to_owned(),
                Ok(watcher::Event::Apply(node)) => format!("+{}", node.name_any()),
                Ok(watcher::Event::Delete(node)) => format!("-{}", node.name_any()),
                Err(error) => format!("error {error}"),
            });
        };
        for _ in 0..5 {
            next().await;
        }
        world.nodes().delete("b", &DeleteParams::default()).await.unwrap();
        world.node("d").await;
        next().await;
        next().await;
        assert_eq!(seen, ["init", "has a", "has b", "has c", "done", "-b", "+d"]);
    }
}

#[tokio::test(start_paused = true)]
async fn lines_begin_with_their_type() {
    let world = World::new();
    world.node("a").await;
    let request = http::Request::get("/api/v1/nodes?watch=true&resourceVersion=0").body(Vec::new()).unwrap();
    let stream = world.client.request_stream(request).await.unwrap();
    let mut lines = futures_util::AsyncBufReadExt::lines(stream);
    let line = lines.next().await.unwrap().unwrap();
    assert!(line.starts_with("{\"type\":\"ADDED\",\"object\":{"), "{line}");
    let event: WatchEvent<Node> = serde_json::from_str(&line).unwrap();
    assert_eq!(told(&event), "+a");
}
