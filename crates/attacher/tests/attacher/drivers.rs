//! Drivers that are late, slow, or of no use.

use std::sync::Arc;
use std::time::Duration;

use palisade_attacher::Error;
use palisade_cluster::api::Server;
use palisade_csi::messages::controller::{
    ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse, ControllerPublishVolumeRequest,
    ControllerPublishVolumeResponse, ControllerRpcType, ControllerUnpublishVolumeRequest,
    ControllerUnpublishVolumeResponse,
};
use palisade_csi::messages::identity::{GetPluginInfoRequest, GetPluginInfoResponse, ProbeRequest, ProbeResponse};
use palisade_csi::{Listener, Services, Status};
use palisade_san::DRIVER;
use serde_json::json;
use tokio::sync::Notify;

use crate::world::World;

/// A driver of that name that can do these things, and nothing of the kind yet.
fn identity(can: &'static [ControllerRpcType]) -> Services {
    Services::new()
        .on(|_: ProbeRequest| async { Ok(ProbeResponse { ready: None }) })
        .on(|_: GetPluginInfoRequest| async {
            Ok(GetPluginInfoResponse { name: DRIVER.to_owned(), ..GetPluginInfoResponse::default() })
        })
        .on(|_: ControllerGetCapabilitiesRequest| async {
            Ok(ControllerGetCapabilitiesResponse { capabilities: can.iter().map(|rpc| (*rpc).into()).collect() })
        })
}

const PUBLISHES: &[ControllerRpcType] = &[ControllerRpcType::PublishUnpublishVolume];

async fn serve(world: &mut World, services: Services) {
    let listener = Listener::bind(&world.place.socket()).await.unwrap();
    world.run(async move { listener.serve(services, std::future::pending()).await.unwrap() });
}

#[tokio::test]
async fn a_driver_that_hangs_on_one_volume_holds_up_no_other() {
    let mut world = World::without_attacher();
    let services = identity(PUBLISHES).on(|request: ControllerPublishVolumeRequest| async move {
        if request.volume_id == "stuck" {
            std::future::pending::<()>().await;
        }
        Ok(ControllerPublishVolumeResponse::default())
    });
    serve(&mut world, services).await;
    world.register("n1", "id-n1");
    world.persistent_volume("stuck", "stuck");
    world.persistent_volume("free", "free");
    for number in 0..20 {
        world.want(&format!("stuck-{number}"), "stuck", "n1");
    }
    world.attach_for();
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.want("free", "free", "n1");
    world.attached("free").await;
    let stuck = world.attachment("stuck-0").unwrap();
    assert_eq!(stuck["status"], json!({"attached": false}), "nobody knows yet, so nothing is said");
}

#[tokio::test]
async fn a_driver_that_refuses_to_let_go_keeps_the_attachment_until_it_does() {
    let mut world = World::without_attacher();
    let lets_go = Arc::new(Notify::new());
    let (told, asked) = (Arc::clone(&lets_go), Arc::new(std::sync::atomic::AtomicU32::new(0)));
    let count = Arc::clone(&asked);
    let services = identity(PUBLISHES)
        .on(|_: ControllerPublishVolumeRequest| async { Ok(ControllerPublishVolumeResponse::default()) })
        .on(move |_: ControllerUnpublishVolumeRequest| {
            let first = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed) == 0;
            let told = Arc::clone(&told);
            async move {
                if first {
                    told.notify_one();
                    return Err(Status::internal("the array is busy"));
                }
                Ok(ControllerUnpublishVolumeResponse {})
            }
        });
    serve(&mut world, services).await;
    world.register("n1", "id-n1");
    world.persistent_volume("v1", "v1");
    world.attach_for();
    world.want("a", "v1", "n1");
    world.attached("a").await;
    world.unwant("a");
    lets_go.notified().await;
    assert_eq!(world.error("a", "detachError").await, "Internal: the array is busy");
    assert_eq!(world.attachment("a").unwrap()["status"]["attached"], true, "until the driver says otherwise");
    world.detached("a").await;
    assert_eq!(asked.load(std::sync::atomic::Ordering::Relaxed), 2);
}

#[tokio::test]
async fn what_was_published_for_an_attachment_that_was_torn_away_is_taken_back() {
    let mut world = World::without_attacher();
    let (asked, go_on, taken) = (Arc::new(Notify::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (tell, wait, back) = (Arc::clone(&asked), Arc::clone(&go_on), Arc::clone(&taken));
    let services = identity(PUBLISHES)
        .on(move |_: ControllerPublishVolumeRequest| {
            let (tell, wait) = (Arc::clone(&tell), Arc::clone(&wait));
            async move {
                tell.notify_one();
                wait.notified().await;
                Ok(ControllerPublishVolumeResponse::default())
            }
        })
        .on(move |request: ControllerUnpublishVolumeRequest| {
            assert_eq!((request.volume_id.as_str(), request.node_id.as_str()), ("v1", "id-n1"));
            back.notify_one();
            async { Ok(ControllerUnpublishVolumeResponse {}) }
        });
    serve(&mut world, services).await;
    world.register("n1", "id-n1");
    world.persistent_volume("v1", "v1");
    world.attach_for();
    world.want("a", "v1", "n1");
    asked.notified().await;
    world.change("a", |attachment| attachment["metadata"]["finalizers"] = json!([]));
    world.unwant("a");
    go_on.notify_one();
    tokio::time::timeout(Duration::from_secs(10), taken.notified()).await.expect("it stays published for nobody");
}

#[tokio::test]
async fn a_driver_that_comes_late_is_waited_for() {
    let mut world = World::without_attacher();
    world.attach_for();
    world.persistent_volume("v1", "v1");
    world.want("a", "v1", "n1");
    tokio::time::sleep(Duration::from_millis(300)).await;
    world.serve_san();
    world.make("v1").await;
    world.register("n1", "id-n1");
    world.attached("a").await;
}

#[tokio::test]
async fn a_driver_that_publishes_nothing_is_refused_with_advice() {
    let mut world = World::without_attacher();
    serve(&mut world, identity(&[])).await;
    let client = Server::new(world.api.clone()).client("attacher");
    let why = palisade_attacher::run(client, &world.place.socket(), std::future::pending()).await.unwrap_err();
    assert!(matches!(&why, Error::CannotPublish(name) if name == DRIVER));
    assert!(why.to_string().contains("attachRequired: false"), "{why}");
}
