//! The same calls give the same bytes, whatever waits for what.

use std::{
    fmt::Write,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::StreamExt;
use kube::{
    Api, ResourceExt,
    api::{ListParams, Patch, PatchParams, PostParams},
    runtime::watcher,
};
use palisade_cluster::api::{Kind, metadata};
use serde_json::json;

use crate::world::{World, fence, read};

/// Three writers and four watchers, entangled; everything that anybody saw, in order.
async fn run() -> String {
    let world = World::new().with_crds();
    let trace = Arc::new(Mutex::new(String::new()));
    let log = Arc::clone(&trace);
    world.api.on_write(Box::new(move |_, change| {
        let new = change.new.as_deref().map_or("gone", |new| metadata::text(new, "resourceVersion"));
        writeln!(log.lock().unwrap(), "{} {} {} {new}", change.at, change.by, change.key.name).unwrap();
    }));
    for watching in 0..4 {
        let (nodes, log) = (world.nodes(), Arc::clone(&trace));
        tokio::spawn(async move {
            let mut stream = watcher(nodes, watcher::Config::default()).boxed();
            while let Some(Ok(event)) = stream.next().await {
                writeln!(log.lock().unwrap(), "{watching} saw {event:?}").unwrap();
            }
        });
    }
    let writers = (0..3).map(|writer| {
        let client = world.server.client(&format!("writer-{writer}"));
        async move {
            let nodes: Api<k8s_openapi::api::core::v1::Node> = Api::all(client);
            for round in 0..10 {
                let name = format!("n{}", (round * 7 + writer) % 5);
                let wish = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}});
                let _ = nodes.create(&PostParams::default(), &read(wish)).await;
                let label = json!({"metadata": {"labels": {"round": format!("{writer}-{round}")}}});
                let _ = nodes.patch(&name, &PatchParams::default(), &Patch::Merge(label)).await;
                tokio::time::sleep(Duration::from_millis(10 * (1 + writer))).await;
            }
        }
    });
    futures_util::future::join_all(writers).await;
    let generated = json!({"metadata": {"generateName": "x-"}});
    world.api.create(Kind::CONFIG_MAP, generated).unwrap();
    world.fences().create(&PostParams::default(), &read(fence("n1"))).await.unwrap();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let list = world.nodes().list(&ListParams::default()).await.unwrap();
    let uids: Vec<String> = list.iter().filter_map(ResourceExt::uid).collect();
    let mut trace = trace.lock().unwrap();
    writeln!(trace, "{uids:?}").unwrap();
    let names: Vec<String> =
        world.api.list(Kind::CONFIG_MAP).iter().map(|object| metadata::name(object).to_owned()).collect();
    writeln!(trace, "{names:?}").unwrap();
    trace.clone()
}

#[test]
fn the_same_story_is_told_twice_in_the_same_words() {
    let told = || {
        // A thread of its own, as a simulation has: nothing is left over from the last run.
        let thread = std::thread::spawn(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
            runtime.block_on(run())
        });
        thread.join().unwrap()
    };
    let first = told();
    assert!(first.lines().count() > 100, "{first}");
    for _ in 0..4 {
        assert_eq!(told(), first);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_drawn_by_lot_between_two_clusters_of_one_process() {
    let uid = |world: &World| world.api.list(Kind::NAMESPACE)[0]["metadata"]["uid"].clone();
    assert_eq!(uid(&World::new()), uid(&World::new()));
}
