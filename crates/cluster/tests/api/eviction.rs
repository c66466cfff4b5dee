//! Eviction asks the PodDisruptionBudget.

use kube::api::EvictParams;
use palisade_cluster::api::{Key, Kind};
use serde_json::json;

use crate::world::{World, refusal};

async fn guarded(allowed: i64) -> World {
    let world = World::new();
    world.pod("db-0", "n1").await;
    let key = Key::new(Kind::POD, "default", "db-0");
    let ready = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]});
    world
        .api
        .update(&key, |pod| {
            pod["metadata"]["labels"] = json!({"app": "db"});
            pod["status"] = ready;
        })
        .unwrap();
    let budget =
        json!({"metadata": {"name": "db"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}});
    world.api.create(Kind::POD_DISRUPTION_BUDGET, budget).unwrap();
    let status =
        json!({"observedGeneration": 1, "disruptionsAllowed": allowed, "currentHealthy": 1, "desiredHealthy": 1});
    world
        .api
        .update(&Key::new(Kind::POD_DISRUPTION_BUDGET, "default", "db"), |budget| budget["status"] = status)
        .unwrap();
    world
}

#[tokio::test(start_paused = true)]
async fn a_budget_without_room_refuses() {
    let world = guarded(0).await;
    let status = refusal(world.pods().evict("db-0", &EvictParams::default()).await);
    assert_eq!((status.code, status.reason.as_str()), (429, "TooManyRequests"));
    assert_eq!(status.message, "Cannot evict pod as it would violate the pod's disruption budget.");
    let cause = &status.details.unwrap().causes[0];
    assert_eq!(cause.message, "The disruption budget db needs 1 healthy pods and has 1 currently");
    assert!(world.pods().get("db-0").await.unwrap().metadata.deletion_timestamp.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_budget_with_room_is_spent() {
    let world = guarded(1).await;
    world.pods().evict("db-0", &EvictParams::default()).await.unwrap();
    let pod = world.pods().get("db-0").await.unwrap();
    assert!(pod.metadata.deletion_timestamp.is_some());
    let conditions = pod.status.unwrap().conditions.unwrap();
    assert!(conditions.iter().any(|condition| condition.type_ == "DisruptionTarget"));
    let budget = world.api.get(&Key::new(Kind::POD_DISRUPTION_BUDGET, "default", "db")).unwrap();
    assert_eq!(budget["status"]["disruptionsAllowed"], 0);
    assert_eq!(budget["status"]["disruptedPods"]["db-0"], "2026-03-01T12:00:00Z");
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_nobody_looked_at_yet_refuses() {
    let world = guarded(1).await;
    world
        .api
        .update(&Key::new(Kind::POD_DISRUPTION_BUDGET, "default", "db"), |budget| {
            budget["spec"]["minAvailable"] = json!(2);
        })
        .unwrap();
    let status = refusal(world.pods().evict("db-0", &EvictParams::default()).await);
    assert!(status.details.unwrap().causes[0].message.contains("is still being processed"));
}
