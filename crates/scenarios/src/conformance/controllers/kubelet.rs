//! Conformance / controllers / kubelet: speaks for nodes that have no machine.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::conformance::Told;
use crate::conformance::answer::{items, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::{named, node, ready_status};
use crate::conformance::places::{NODE_LEASES, NODES, PODS, at};

/// As often as kubelets renew their Lease.
const EVERY: Duration = Duration::from_secs(10);

/// Seconds, for waits.
pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// A node of this bench's zone, ready, with a Lease that nobody renews yet.
pub(super) async fn register(bench: &Bench, word: &str) -> Told<Made> {
    register_as(bench, word, true).await
}

/// The same, served by attach/detach or not.
pub(super) async fn register_as(bench: &Bench, word: &str, served: bool) -> Told<Made> {
    let name = bench.name(word);
    let mut wished = node(&name);
    wished["metadata"]["labels"] = json!({"topology.kubernetes.io/zone": bench.name("zone")});
    if served {
        wished["metadata"]["annotations"]["volumes.kubernetes.io/controller-managed-attach-detach"] = "true".into();
    }
    let node = bench.make(NODES, wished).await?;
    bench.make(NODE_LEASES, named(&name)).await?;
    renew_lease(bench, &name).await?;
    Ok(node)
}

/// Does something while these nodes live, as their kubelets say.
pub(super) async fn while_alive<T>(bench: &Bench, nodes: &[&Made], doing: impl Future<Output = Told<T>>) -> Told<T> {
    let living = async {
        loop {
            for node in nodes {
                // Somebody else may have removed it: then that is what the check is about.
                let _ = renew(bench, node.name()).await;
            }
            tokio::time::sleep(EVERY).await;
        }
    };
    tokio::select! {
        biased;
        done = doing => done,
        () = living => Err("nobody stops a kubelet".to_owned()),
    }
}

/// Lease and status, as a kubelet writes them that is well.
pub(super) async fn renew(bench: &Bench, node: &str) -> Told {
    renew_lease(bench, node).await?;
    let status = json!({"status": ready_status(&moment(""))});
    bench.merge(&format!("{}/status", at(NODES, node)), &status).await?.is(200).map(drop)
}

/// The Lease alone.
pub(super) async fn renew_lease(bench: &Bench, node: &str) -> Told {
    let spec = json!({"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": moment(".000000")});
    bench.merge(&at(NODE_LEASES, node), &json!({"spec": spec})).await?.is(200).map(drop)
}

/// A later time each time. Controllers only look whether it has changed: they measure silence by their own clock.
fn moment(fraction: &str) -> String {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let given = GIVEN.fetch_add(1, Ordering::Relaxed);
    format!("2026-03-01T{:02}:{:02}:{:02}{fraction}Z", given / 3600 % 24, given / 60 % 60, given % 60)
}

/// What a condition of a node or a pod says; empty if it is not there.
pub(super) fn says<'a>(object: &'a Value, kind: &str) -> &'a str {
    items(object, "/status/conditions").find(|said| said["type"] == kind).map_or("", |said| text(said, "/status"))
}

/// Whether a node bears a taint.
pub(super) fn tainted(node: &Value, key: &str, effect: &str) -> bool {
    items(node, "/spec/taints").any(|taint| taint["key"] == key && taint["effect"] == effect)
}

/// A pod on a node that runs and is ready, as its kubelet says.
pub(super) async fn running(bench: &Bench, pod: Value) -> Told<Made> {
    let mut made = bench.make(PODS, pod).await?;
    made.object = run(bench, &made.path).await?;
    Ok(made)
}

/// Says of a pod that it runs and is ready.
pub(super) async fn run(bench: &Bench, path: &str) -> Told<Value> {
    let ready = json!({"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"});
    let container = json!({"name": "c", "image": "none", "imageID": "", "ready": true, "restartCount": 0,
        "state": {"running": {"startedAt": "2026-03-01T12:00:00Z"}}});
    let status = json!({"phase": "Running", "conditions": [ready], "containerStatuses": [container]});
    bench.merge(&format!("{path}/status"), &json!({"status": status})).await?.is(200)
}

/// Whether somebody has asked for an object's deletion; not so of one that is gone.
pub(super) fn marked(object: &Value) -> bool {
    !text(object, "/metadata/deletionTimestamp").is_empty()
}

/// Whether an object is there, and nobody has asked for its deletion.
pub(super) fn unmarked(object: &Value) -> bool {
    !object.is_null() && !marked(object)
}
