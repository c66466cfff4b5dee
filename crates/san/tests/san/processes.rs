//! Many who ask at once: the lock is what stands between them and two writers.

use std::sync::Arc;

use palisade_csi::messages::registration::{InfoRequest, RegistrationStatus};
use palisade_csi::{Client, Code};
use palisade_san::{DRIVER, What};

use crate::world::{PATIENCE, World, publish, unpublish, until};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_who_want_a_volume_at_once_one_gets_it() {
    let mut world = World::new().await;
    // A second process would do the same: each opens the lock file for itself.
    let socket = world.dir.join("second.sock");
    let (san, at) = (world.san(), socket.clone());
    world.run(async move { palisade_san::serve_controller(&san, &at, std::future::pending()).await.unwrap() });
    let second = Client::new(&socket);
    until("the second controller answers", async || {
        second.call(palisade_csi::messages::identity::ProbeRequest {}, PATIENCE).await.ok()
    })
    .await;
    let volume: Arc<str> = world.volume("v").await.into();
    for round in 0..10 {
        let tries = (0..16).map(|number| {
            let client = if number % 2 == 0 { world.controller.clone() } else { second.clone() };
            let (volume, node) = (Arc::clone(&volume), format!("n{}", 1 + (number + round) % 2));
            tokio::spawn(async move {
                let answer = client.call(publish(&volume, &node), PATIENCE).await;
                answer.map(|_| node).map_err(|why| why.code())
            })
        });
        let mut winners = Vec::new();
        for answer in futures_util::future::join_all(tries).await {
            match answer.unwrap() {
                Ok(node) => winners.push(node),
                Err(code) => assert_eq!(code, Code::FailedPrecondition),
            }
        }
        winners.dedup();
        assert_eq!(winners, world.holders("v"), "in round {round}");
        assert_eq!(winners.len(), 1);
        world.ask(unpublish(&volume, "")).await.unwrap();
    }
    // The log tells the same story: never two at once.
    let mut holder = None;
    for (what, node) in world.history("v") {
        match what {
            What::Published => assert!(holder.replace(node).is_none(), "two at once"),
            What::Unpublished => assert_eq!(holder.take(), Some(node)),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_kubelet_finds_the_driver_and_where_it_serves() {
    let mut world = World::new().await;
    let _node = world.node("n1").await;
    let kubelet = Client::new(&world.dir.join("n1-reg.sock"));
    let info = kubelet.call(InfoRequest {}, PATIENCE).await.unwrap();
    assert_eq!((info.r#type.as_str(), info.name.as_str()), ("CSIPlugin", DRIVER));
    assert_eq!(info.endpoint, world.dir.join("n1.sock").display().to_string());
    assert_eq!(info.supported_versions, ["1.0.0"]);
    let told = RegistrationStatus { plugin_registered: true, error: String::new() };
    kubelet.call(told, PATIENCE).await.unwrap();
}
