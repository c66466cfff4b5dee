//! Checks of devices, as Prometheus and the API server see them.
#![allow(missing_docs, clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

#[path = "preflight/by_job.rs"]
mod by_job;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palisade_cluster::Shape;
use palisade_cluster::api::wire::{Call, Fate};
use palisade_cluster::api::{Kind as Stored, Verb, Wire};
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::stories::FIRST;
use palisade_scenarios::world::{Bmc, Kind, Needs, World};
use serde_json::json;

fn metrics(world: &Embedded) -> String {
    world.metrics(FIRST).unwrap().text()
}

/// The value of a series; nothing if there is none.
fn value(world: &Embedded, series: &str) -> Option<f64> {
    let text = metrics(world);
    let line = text.lines().find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

fn age(world: &Embedded, node: &str) -> Option<f64> {
    value(world, &format!("palisade_device_check_age_seconds{{node=\"{node}\""))
}

#[tokio::test(start_paused = true)]
async fn the_metrics_tell_which_device_fails_and_how_old_the_last_good_check_is() {
    let mut world = Embedded::for_story(&Needs { nodes: 4, zones: 1 }, 1).await;
    world.operator_start(FIRST).await.unwrap();
    World::run_for(&mut world, 700).await;
    for node in ["n1", "n2", "n3", "n4"] {
        assert!(age(&world, node).is_some_and(|age| age <= 620.0), "{node}:\n{}", metrics(&world));
    }
    world.bmc("n1", Bmc::Silent).await.unwrap();
    World::run_for(&mut world, 1_300).await;
    assert!(age(&world, "n1").is_some_and(|age| age > 1_200.0), "{}", metrics(&world));
    assert!(age(&world, "n2").is_some_and(|age| age <= 620.0), "{}", metrics(&world));
    let failing = |node: &str, reason: &str| {
        format!("palisade_device_check_failing{{node=\"{node}\",template=\"bmc\",reason=\"{reason}\"}}")
    };
    assert_eq!(value(&world, &failing("n1", "NoAnswer")), Some(1.0), "{}", metrics(&world));
    assert_eq!(value(&world, &failing("n2", "Good")), Some(0.0), "{}", metrics(&world));
    assert!(value(&world, "palisade_device_checks_total{outcome=\"NoAnswer\"}").is_some_and(|count| count >= 3.0));
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_gone_is_not_shown_any_more() {
    let mut world = Embedded::for_story(&Needs { nodes: 4, zones: 1 }, 1).await;
    world.operator_start(FIRST).await.unwrap();
    world.patch(Kind::Template, "bmc", json!({ "spec": { "checkInterval": "30s" } })).await.unwrap();
    world.create(Kind::Node, json!({ "metadata": { "name": "n99" }, "spec": {}, "status": {} })).await.unwrap();
    World::run_for(&mut world, 120).await;
    assert!(metrics(&world).contains("node=\"n99\",template=\"bmc\",reason=\"Refused\"} 1"), "{}", metrics(&world));
    world.delete(Kind::Node, "n99").await.unwrap();
    World::run_for(&mut world, 90).await;
    assert!(!metrics(&world).contains("n99"), "{}", metrics(&world));
}

#[tokio::test(start_paused = true)]
async fn only_the_leader_asks_and_shows() {
    let mut world = Embedded::for_story(&Needs { nodes: 4, zones: 1 }, 1).await;
    for name in [FIRST, "palisade-1"] {
        world.operator_start(name).await.unwrap();
    }
    World::run_for(&mut world, 700).await;
    let shows = |name: &str| world.metrics(name).unwrap().text().contains("palisade_device_check_failing{");
    assert_eq!([FIRST, "palisade-1"].into_iter().filter(|name| shows(name)).count(), 1);
}

/// How often a Secret is read.
#[derive(Default)]
struct Reads(AtomicUsize);

impl Wire for Reads {
    fn carry(&self, call: &Call) -> Fate {
        if call.verb == Verb::Get && call.kind == Some(Stored::SECRET) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
        let way = Duration::from_millis(1);
        Fate { there: way, back: way, ..Fate::default() }
    }
}

#[tokio::test(start_paused = true)]
async fn devices_that_share_a_secret_are_asked_together_and_it_is_read_once() {
    let reads = Arc::new(Reads::default());
    let shape = Shape { nodes: 16, ..Shape::default() };
    let mut world = Embedded::over(&shape, reads.clone()).await;
    for number in 1..=16 {
        world.cluster.bmc(&format!("n{number}")).set_login("fence", "shared");
    }
    let login = json!({ "username": STANDARD.encode("fence"), "password": STANDARD.encode("shared") });
    world.create(Kind::Secret, json!({ "metadata": { "name": "shared" }, "data": login })).await.unwrap();
    let spec = json!({ "checkInterval": "60s", "secretRef": { "name": "shared" } });
    world.patch(Kind::Template, "bmc", json!({ "spec": spec })).await.unwrap();
    world.operator_start(FIRST).await.unwrap();
    World::run_for(&mut world, 1_800).await;
    let good = value(&world, "palisade_device_checks_total{outcome=\"Good\"}").unwrap();
    assert!(good >= 16.0 * 28.0, "{good} checks");
    let reads = f64::from(u32::try_from(reads.0.load(Ordering::Relaxed)).unwrap());
    assert!(reads * 2.0 < good, "{reads} reads for {good} checks");
    assert!(reads <= 600.0, "one in three seconds: {reads}");
}
