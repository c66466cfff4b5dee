//! People: what admins and other tools do to the objects of a cluster.

use palisade_api::names::{self, taints};
use palisade_cluster::Cluster;
use palisade_cluster::api::{Api, DeleteOptions, Key, Kind, Part, Patch, metadata};
use serde_json::{Value, json};

use crate::agents::{self, By};
use crate::faults::{Asked, Marked};
use crate::plan::Plan;

pub(crate) fn take_taint_off(node: &mut Value) {
    if let Some(all) = node.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
        all.retain(|taint| taint.get("key").and_then(Value::as_str) != Some(taints::QUARANTINE));
    }
}

pub(crate) fn delete(cluster: &Cluster, kind: &str, name: &str) {
    if let Some(kind) = cluster.api().kind(names::GROUP, kind) {
        let _ = cluster.api().delete(&Key::cluster(kind, name), &DeleteOptions::default());
    }
}

/// An admin speaks in the NodeFence.
pub(crate) fn say(cluster: &Cluster, node: &str, word: &str) {
    let Some(kind) = cluster.api().kind(names::GROUP, "NodeFence") else { return };
    let key = Key::cluster(kind, node);
    let Some(fence) = cluster.api().get(&key) else { return };
    let said = if word == "stop" {
        json!({ "stop": true })
    } else {
        let before = fence.pointer("/spec/admin/resume").and_then(Value::as_u64).unwrap_or(0);
        json!({ "stop": false, "resume": before + 1 })
    };
    let _ = cluster.api().patch(&key, Part::Main, &Patch::Merge(json!({ "spec": { "admin": said } })));
}

/// Somebody asks for something. What the request is called tells the oracle whether it counts.
pub(crate) fn ask(cluster: &Cluster, node: &str, what: Asked) {
    let Some(kind) = cluster.api().kind(names::GROUP, "NodeFencingRequest") else { return };
    let (who, namespace, operation) = match what {
        Asked::PowerStep => ("admin-", names::SYSTEM_NAMESPACE, "PowerStep"),
        Asked::PowerOff => ("admin-", names::SYSTEM_NAMESPACE, "PowerOff"),
        Asked::ByAStranger => ("stranger-", "default", "PowerOff"),
        Asked::ForAPredecessor => ("stranger-", names::SYSTEM_NAMESPACE, "PowerOff"),
    };
    let mut request = json!({
        "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "NodeFencingRequest",
        "metadata": { "generateName": who, "namespace": namespace },
        "spec": { "nodeName": node, "reason": "Maintenance", "message": "a person asked", "operation": operation },
    });
    if what == Asked::ForAPredecessor {
        request["spec"]["nodeUID"] = "00000000-0000-4000-8000-00000000dead".into();
    }
    if let Err(why) = cluster.create(kind, request) {
        eprintln!("the admin's request was refused: {why:?}");
    }
}

/// The label that the policy of every plan excludes nodes by.
pub(crate) const PET: &str = "example.org/pet";
const ROLE: &str = "node-role.kubernetes.io/control-plane";
const LEAVING: &str = "ToBeDeletedByClusterAutoscaler";
const PEER: &str = "cluster.x-k8s.io/skip-remediation";
const MAINTENANCE: &str = "palisade.dev/maintenance";

/// Somebody marks a Node.
pub(crate) fn mark(cluster: &Cluster, node: &str, what: Marked) {
    let _ = cluster.api().update(&Key::cluster(Kind::NODE, node), |node| match what {
        Marked::Excluded => node["metadata"]["labels"][PET] = "yes".into(),
        Marked::ControlPlane => node["metadata"]["labels"][ROLE] = "".into(),
        Marked::Maintenance => node["metadata"]["annotations"][MAINTENANCE] = "new fans".into(),
        Marked::ByAPeer => node["metadata"]["annotations"][PEER] = "".into(),
        Marked::Leaving => {
            let mut taints = node.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
            taints.push(json!({ "key": LEAVING, "effect": "NoSchedule" }));
            node["spec"]["taints"] = taints.into();
        }
    });
}

/// Somebody takes every such mark off.
pub(crate) fn unmark(cluster: &Cluster, node: &str) {
    let _ = cluster.api().update(&Key::cluster(Kind::NODE, node), |node| {
        for (place, keys) in [("/metadata/labels", [PET, ROLE]), ("/metadata/annotations", [MAINTENANCE, PEER])] {
            if let Some(all) = node.pointer_mut(place).and_then(Value::as_object_mut) {
                for key in keys {
                    all.remove(key);
                }
            }
        }
        if let Some(all) = node.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
            all.retain(|taint| taint.get("key").and_then(Value::as_str) != Some(LEAVING));
        }
    });
}

pub(crate) fn delete_requests(cluster: &Cluster, node: &str) {
    let Some(kind) = cluster.api().kind(names::GROUP, "NodeFencingRequest") else { return };
    for request in cluster.api().list(kind) {
        if request.pointer("/spec/nodeName").and_then(Value::as_str) == Some(node) {
            let _ = cluster.api().delete(&Key::of(kind, &request), &DeleteOptions::default());
        }
    }
}

pub(crate) fn pods_on(api: &Api, node: &str) -> Vec<Key> {
    let here =
        |pod: &&palisade_cluster::api::Object| pod.pointer("/spec/nodeName").and_then(Value::as_str) == Some(node);
    api.list(Kind::POD).iter().filter(here).map(|pod| Key::of(Kind::POD, pod)).collect()
}

/// The node that a pod of the default namespace is bound to.
pub(crate) fn node_under(api: &Api, pod: &str) -> Option<String> {
    let pod = api.get(&Key::new(Kind::POD, "default", pod))?;
    pod.pointer("/spec/nodeName").and_then(Value::as_str).map(str::to_owned)
}

pub(crate) fn let_pods_go(api: &Api) {
    for pod in api.list(Kind::POD) {
        if pod.pointer("/metadata/finalizers").is_some() {
            let key = Key::new(Kind::POD, metadata::namespace(&pod), metadata::name(&pod));
            let _ = api.update(&key, |pod| pod["metadata"]["finalizers"] = json!([]));
        }
    }
}

pub(crate) fn policy_again(cluster: &Cluster, plan: &Plan) {
    delete(cluster, "FencePolicy", names::POLICY_NAME);
    if let Some(kind) = cluster.api().kind(names::GROUP, "FencePolicy") {
        let mut policy = json!({
            "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "FencePolicy",
            "metadata": { "name": names::POLICY_NAME },
            "spec": { "budget": { "maxConcurrent": plan.budget } },
        });
        if plan.by == By::Word {
            policy["spec"]["declaredPower"] = json!([agents::MINE]);
        }
        let _ = cluster.create(kind, policy);
    }
}

/// What an admin edits in the policy. Enforce takes everything back.
pub(crate) fn edit(what: &str) -> Value {
    match what {
        "Budget" => json!({ "spec": { "budget": { "maxConcurrent": 1 } } }),
        "Grace" => json!({ "spec": { "grace": "20s" } }),
        "Approval" => json!({ "spec": { "approval": "Always" } }),
        "Spacing" => json!({ "spec": { "budget": { "spacing": "2m" } } }),
        "Rate" => json!({ "spec": { "budget": { "rate": { "count": 1, "per": "5m" } } } }),
        "Enforce" => json!({ "spec": {
            "mode": "Enforce", "grace": "0s", "approval": "Never", "budget": { "spacing": "0s", "rate": null },
        } }),
        mode => json!({ "spec": { "mode": mode } }),
    }
}

pub(crate) fn edit_policy(cluster: &Cluster, patch: &Value) {
    if let Some(kind) = cluster.api().kind(names::GROUP, "FencePolicy") {
        let key = Key::cluster(kind, names::POLICY_NAME);
        let _ = cluster.api().patch(&key, Part::Main, &Patch::Merge(patch.clone()));
    }
}
