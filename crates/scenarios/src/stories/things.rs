//! Things that people create in stories.

use serde_json::{Value, json};

/// A pod that writes its node and its own UID to its volume, if it has one.
fn template(name: &str) -> Value {
    let from = |name: &str, path: &str| json!({ "name": name, "valueFrom": { "fieldRef": { "fieldPath": path } } });
    let container = json!({
        "name": "main", "image": "example.com/writer:1",
        "env": [from("NODE_NAME", "spec.nodeName"), from("POD_UID", "metadata.uid")],
    });
    json!({ "metadata": { "labels": { "app": name } }, "spec": { "containers": [container] } })
}

/// The same with a volume: a claim of the StatefulSet's own, or one that is named.
fn with_volume(mut template: Value, claim: Option<&str>) -> Value {
    template["spec"]["containers"][0]["volumeMounts"] = json!([{ "name": "data", "mountPath": "/data" }]);
    if let Some(claim) = claim {
        template["spec"]["volumes"] = json!([{ "name": "data", "persistentVolumeClaim": { "claimName": claim } }]);
    }
    template
}

fn claim_spec() -> Value {
    json!({ "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } }, "storageClassName": "standard" })
}

/// A StatefulSet whose pods have a volume of their own each, for one node at a time.
pub fn stateful_set(name: &str, replicas: u32) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": {
            "serviceName": name, "replicas": replicas, "selector": { "matchLabels": { "app": name } },
            "template": with_volume(template(name), None),
            "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": claim_spec() }],
        },
    })
}

/// A claim for one node at a time.
pub fn claim(name: &str) -> Value {
    json!({ "metadata": { "name": name }, "spec": claim_spec() })
}

/// A ReplicaSet; its pods share the claim, if there is one.
pub fn replica_set(name: &str, replicas: u32, shared: Option<&str>) -> Value {
    let template = match shared {
        Some(claim) => with_volume(template(name), Some(claim)),
        None => template(name),
    };
    let selector = json!({ "matchLabels": { "app": name } });
    json!({ "metadata": { "name": name }, "spec": { "replicas": replicas, "selector": selector, "template": template } })
}

/// A pod that nobody looks after; with a volume, if a claim is named.
pub fn bare_pod(name: &str, claim: Option<&str>) -> Value {
    let mut pod = match claim {
        Some(claim) => with_volume(template(name), Some(claim)),
        None => template(name),
    };
    pod["metadata"]["name"] = name.into();
    pod
}

/// Cordons a node, or lifts that.
pub fn cordon(closed: bool) -> Value {
    json!({ "spec": { "unschedulable": if closed { Value::Bool(true) } else { Value::Null } } })
}

/// An admin's request about a node: `Fence`, `PowerStep` or `PowerOff`.
pub fn request(name: &str, node: &str, operation: &str) -> Value {
    json!({
        "metadata": { "name": name },
        "spec": { "nodeName": node, "operation": operation, "reason": "Manual", "message": "because I say so", "source": "alice" },
    })
}

/// The name of [`ready_only`].
pub const READY_ONLY: &str = "ready-only";

/// A NodeRemedy by which a node has failed when the control plane says `Ready=Unknown`, and by nothing else.
pub fn ready_only() -> Value {
    let lost = json!({
        "name": "ready-unknown", "condition": { "type": "Ready", "status": "Unknown", "period": "0s" },
        "first": { "name": "fence" },
    });
    json!({ "metadata": { "name": READY_ONLY }, "spec": { "thresholds": [lost] } })
}
