//! What a bad network and a lagging API server do to a client.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use kube::{
    ResourceExt,
    api::{DeleteParams, ListParams, PostParams, WatchParams},
};
use palisade_cluster::api::{
    Key, Kind, Verb, Wire,
    wire::{Call, Course, Delivery, Fate, Notice, View},
};
use tokio::{sync::Notify, time::Instant};

use crate::world::{World, node, read, refusal};

/// A wire that does what it is told next.
#[derive(Default)]
struct Scripted {
    fate: Mutex<Fate>,
    calls: Mutex<Vec<Call>>,
    /// Watches wait here before each event, if there is one.
    gate: Mutex<Option<Arc<Notify>>>,
    scissors: Arc<Notify>,
}

impl Scripted {
    fn next(&self, fate: Fate) {
        *self.fate.lock().unwrap() = fate;
    }
}

impl Wire for Scripted {
    fn carry(&self, call: &Call) -> Fate {
        self.calls.lock().unwrap().push(call.clone());
        self.fate.lock().unwrap().clone()
    }

    fn deliver(&self, _: &Call, _: &Notice) -> BoxFuture<'static, Delivery> {
        let gate = self.gate.lock().unwrap().clone();
        async move {
            if let Some(gate) = gate {
                gate.notified().await;
            }
            Delivery::Deliver
        }
        .boxed()
    }

    fn cut(&self, _: &Call) -> BoxFuture<'static, ()> {
        let scissors = Arc::clone(&self.scissors);
        async move { scissors.notified().await }.boxed()
    }
}

fn scripted() -> (Arc<Scripted>, World) {
    let wire = Arc::new(Scripted::default());
    (Arc::clone(&wire), World::over(wire))
}

#[tokio::test(start_paused = true)]
async fn the_wire_is_told_who_wants_what() {
    let (wire, world) = scripted();
    world.node("n1").await;
    let operator: kube::Api<k8s_openapi::api::core::v1::Pod> =
        kube::Api::namespaced(world.server.client("operator-0"), "default");
    let _ = operator.get_status("db-0").await;
    let calls = wire.calls.lock().unwrap();
    assert_eq!((calls[0].verb, calls[0].is_write(), calls[0].kind), (Verb::Create, true, Some(Kind::NODE)));
    assert_eq!(calls[1].to_string(), "operator-0 get default/db-0/status");
    assert_eq!(calls[1].key, Some(Key::new(Kind::POD, "default", "db-0")));
}

#[tokio::test(start_paused = true)]
async fn a_slow_wire_takes_its_time() {
    let (wire, world) = scripted();
    let (there, back) = (Duration::from_millis(20), Duration::from_millis(300));
    wire.next(Fate { there, back, ..Fate::default() });
    let began = Instant::now();
    world.node("n1").await;
    assert_eq!(began.elapsed(), there + back);
}

#[tokio::test(start_paused = true)]
async fn what_never_arrives_changes_nothing() {
    let (wire, world) = scripted();
    let before = world.api.revision();
    wire.next(Fate { course: Course::Unreachable, ..Fate::default() });
    let error = world.nodes().create(&PostParams::default(), &read(node("n1"))).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    for code in [429, 500, 503] {
        wire.next(Fate { course: Course::Answered(code), ..Fate::default() });
        let status = refusal(world.nodes().create(&PostParams::default(), &read(node("n1"))).await);
        assert_eq!(status.code, code);
    }
    assert_eq!(world.api.revision(), before);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_leaves_its_write_behind() {
    let (wire, world) = scripted();
    wire.next(Fate { course: Course::ReplyLost, ..Fate::default() });
    let error = world.nodes().create(&PostParams::default(), &read(node("n1"))).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "{error:?}");
    assert!(world.api.get(&Key::cluster(Kind::NODE, "n1")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_frozen_server_reads_the_past_and_writes_the_present() {
    let (wire, world) = scripted();
    world.node("n1").await;
    let then = world.api.revision();
    world.nodes().delete("n1", &DeleteParams::default()).await.unwrap();
    world.node("n2").await;

    wire.next(Fate { view: View::At(then), ..Fate::default() });
    assert!(world.nodes().get("n1").await.is_ok());
    assert!(world.nodes().get_opt("n2").await.unwrap().is_none());
    let list = world.nodes().list(&ListParams::default()).await.unwrap();
    assert_eq!(list.metadata.resource_version.clone().unwrap(), then.to_string());
    assert_eq!(list.iter().map(ResourceExt::name_any).collect::<Vec<_>>(), ["n1"]);
    // The truth has its say at the write.
    assert_eq!(refusal(world.nodes().create(&PostParams::default(), &read(node("n2"))).await).code, 409);
    world.node("n3").await;
    assert!(world.api.get(&Key::cluster(Kind::NODE, "n3")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_held_watch_goes_on_where_it_was() {
    let (wire, world) = scripted();
    let gate = Arc::new(Notify::new());
    *wire.gate.lock().unwrap() = Some(Arc::clone(&gate));
    let nodes = world.nodes();
    let stream = nodes.watch(&WatchParams::default(), &world.api.revision().to_string()).await.unwrap();
    let mut stream = std::pin::pin!(stream);
    world.node("a").await;
    world.node("b").await;
    let held = tokio::time::timeout(Duration::from_secs(100), stream.next()).await;
    assert!(held.is_err(), "nothing gets through");
    gate.notify_one();
    assert!(stream.next().await.is_some());
    gate.notify_one();
    assert!(stream.next().await.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_watch_can_be_cut_while_nothing_happens() {
    let (wire, world) = scripted();
    let nodes = world.nodes();
    let stream = nodes.watch(&WatchParams::default(), "1").await.unwrap();
    let mut stream = std::pin::pin!(stream);
    // The namespaces that were there before came first, for another kind: this watch has nothing to tell.
    let (next, ()) = tokio::join!(stream.next(), async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        wire.scissors.notify_one();
    });
    assert!(next.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_store_reaches_its_caller_and_everybody_after() {
    let world = World::new();
    world.api.on_write(Box::new(|_, change| assert_ne!(&*change.key.name, "bad", "the oracle saw it")));
    world.node("good").await;
    let client = world.client.clone();
    let caller = tokio::spawn(async move {
        let nodes: kube::Api<k8s_openapi::api::core::v1::Node> = kube::Api::all(client);
        nodes.create(&PostParams::default(), &read(node("bad"))).await
    });
    assert!(caller.await.unwrap_err().is_panic());
    let nodes = world.nodes();
    let later = tokio::spawn(async move { nodes.get("good").await });
    assert!(later.await.unwrap_err().is_panic(), "nobody goes on over a broken truth");
}
