//! Conformance / objects: the smallest objects that an API server takes.

use std::time::Duration;

use serde_json::{Value, json};

use super::Told;
use super::answer::items;
use super::bench::{Bench, Made};
use super::places::NODES;

/// A UID that no object has.
pub(super) const NOBODY: &str = "00000000-dead-4000-8000-000000000000";

/// Anything that needs no more than a name.
pub(super) fn named(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

/// A ConfigMap with one entry: no controller looks at it, so that its version is the check's alone.
pub(super) fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}, "data": {"k": "v"}})
}

/// A pod without a node, and of no scheduler that runs.
pub(super) fn pod(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"schedulerName": "nobody", "containers": [{"name": "c", "image": "none"}]},
    })
}

/// A pod that is bound to a node. That there is no such Node bothers the pod garbage collector, a minute later.
pub(super) fn pod_on(name: &str, node: &str) -> Value {
    let mut pod = pod(name);
    pod["spec"]["nodeName"] = node.into();
    pod
}

/// What a kubelet says of a node that is well.
pub(super) fn ready_status(now: &str) -> Value {
    json!({"conditions": [
        {"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now},
    ]})
}

/// A Node that is ready. The annotation is the one that a controller would write a moment later.
pub(super) fn node(name: &str) -> Value {
    json!({
        "metadata": {"name": name, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
        "status": ready_status("2026-03-01T12:00:00Z"),
    })
}

/// A Node that no controller has anything to say about for the next half minute.
pub(super) async fn settled_node(bench: &Bench, word: &str) -> Told<Made> {
    let mut node = bench.make(NODES, node(&bench.name(word))).await?;
    let settled = |node: &Value| items(node, "/spec/taints").next().is_none();
    node.object = bench.until(&node.path, Duration::from_secs(20), settled).await?;
    Ok(node)
}

/// A Lease that somebody holds.
pub(super) fn lease(name: &str, holder: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15, "leaseTransitions": 0,
            "acquireTime": "2026-03-01T12:00:00.000001Z", "renewTime": "2026-03-01T12:00:00.000001Z"},
    })
}

/// A fence of the node of the same name.
pub(super) fn fence(name: &str) -> Value {
    json!({
        "apiVersion": "palisade.dev/v1alpha1", "kind": "NodeFence",
        "metadata": {"name": name}, "spec": {"nodeName": name},
    })
}

/// A status that a fence may have.
pub(super) fn fence_status(attempt: u32) -> Value {
    json!({"step": "Isolation", "status": "New", "phase": "New", "attempt": attempt})
}

/// A template of a device that can be read back.
pub(super) fn template(name: &str) -> Value {
    json!({
        "apiVersion": "palisade.dev/v1alpha1", "kind": "FenceTemplate", "metadata": {"name": name},
        "spec": {"native": {"driver": "redfish"}, "proves": {"class": "Power"}},
    })
}

/// A request for a node that nobody has.
pub(super) fn request(name: &str) -> Value {
    json!({
        "apiVersion": "palisade.dev/v1alpha1", "kind": "NodeFencingRequest", "metadata": {"name": name},
        "spec": {"nodeName": "nowhere", "reason": "Manual"},
    })
}

/// The attachment of a volume, by an attacher that does not run.
pub(super) fn attachment(name: &str, node: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"attacher": "nobody.palisade.dev", "nodeName": node,
            "source": {"persistentVolumeName": format!("{name}-volume")}},
    })
}
