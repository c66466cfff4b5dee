//! View / lean: Node and Lease as they come over the wire, without what nobody decides by.
//!
//! A Node carries its images, capacities and managedFields: ten times as much as is kept. They are passed over while it is
//! read, so that a list of thousands of nodes is never in memory as a whole.

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{AttachedVolume, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::ObjectMeta;
use serde::{Deserialize, Deserializer};

/// A Node.
#[derive(Clone, Debug, Default, Deserialize, kube::Resource)]
#[resource(inherit = Node)]
pub(crate) struct LeanNode {
    #[serde(default, deserialize_with = "meta")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Option<LeanSpec>,
    #[serde(default)]
    pub(crate) status: Option<LeanStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct LeanSpec {
    pub(crate) unschedulable: Option<bool>,
    pub(crate) taints: Option<Vec<Taint>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeanStatus {
    pub(crate) conditions: Option<Vec<NodeCondition>>,
    pub(crate) node_info: Option<LeanInfo>,
    pub(crate) addresses: Option<Vec<NodeAddress>>,
    pub(crate) daemon_endpoints: Option<NodeDaemonEndpoints>,
    pub(crate) volumes_in_use: Option<Vec<String>>,
    pub(crate) volumes_attached: Option<Vec<AttachedVolume>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct LeanInfo {
    #[serde(rename = "bootID")]
    pub(crate) boot_id: Option<String>,
    #[serde(rename = "systemUUID")]
    pub(crate) system_uuid: Option<String>,
}

/// A Lease.
#[derive(Clone, Debug, Default, Deserialize, kube::Resource)]
#[resource(inherit = Lease)]
pub(crate) struct LeanLease {
    #[serde(default, deserialize_with = "meta")]
    pub(crate) metadata: ObjectMeta,
    #[serde(default)]
    pub(crate) spec: Option<LeanRenewal>,
}

/// What a lease says. When it was renewed is a word that changes; nobody reckons with it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LeanRenewal {
    pub(crate) holder_identity: Option<Box<str>>,
    pub(crate) lease_duration_seconds: Option<i64>,
    pub(crate) renew_time: Option<Box<str>>,
}

/// Metadata without owners, finalizers and managedFields.
fn meta<'de, D: Deserializer<'de>>(from: D) -> Result<ObjectMeta, D::Error> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kept {
        name: Option<String>,
        namespace: Option<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        labels: Option<BTreeMap<String, String>>,
        annotations: Option<BTreeMap<String, String>>,
        deletion_timestamp: Option<Time>,
    }
    let kept = Kept::deserialize(from)?;
    Ok(ObjectMeta {
        name: kept.name,
        namespace: kept.namespace,
        uid: kept.uid,
        resource_version: kept.resource_version,
        labels: kept.labels,
        annotations: kept.annotations,
        deletion_timestamp: kept.deletion_timestamp,
        ..ObjectMeta::default()
    })
}

#[cfg(test)]
mod tests {
    use kube::core::DeserializeGuard;
    use palisade_core::ident::BootId;
    use serde_json::json;

    use super::*;
    use crate::view::NodeFacts;

    #[test]
    fn what_is_decided_by_is_kept_and_the_rest_is_passed_over() {
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": "n1", "uid": "u1", "resourceVersion": "7", "labels": {"rack": "a"},
                "annotations": {"palisade.dev/maintenance": "disk", "csi.volume.kubernetes.io/nodeid": "{}"},
                "managedFields": [{"manager": "kubelet", "fieldsV1": {"f:status": {}}}],
            },
            "spec": {"unschedulable": true, "taints": [{"key": "k", "effect": "NoSchedule"}]},
            "status": {
                "conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-03-01T12:00:00Z"}],
                "images": [{"names": ["registry.example.com/a:1"], "sizeBytes": 1}],
                "nodeInfo": {"bootID": "b1", "systemUUID": "ABCD", "kernelVersion": "6.12.0"},
                "addresses": [{"type": "Hostname", "address": "n1"}, {"type": "InternalIP", "address": "fd00::7"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
                "volumesInUse": ["v1"], "volumesAttached": [{"name": "v1", "devicePath": ""}],
            },
        });
        let lean: LeanNode = serde_json::from_value(node).unwrap();
        assert_eq!(lean.metadata.managed_fields, None);
        let facts = NodeFacts::read(&lean);
        assert_eq!(facts.labels["rack"], "a");
        let annotations: Vec<_> = facts.annotations.keys().collect();
        assert_eq!(annotations, ["palisade.dev/maintenance"]);
        assert_eq!((facts.cordoned, facts.taints.len()), (true, 1));
        assert_eq!(facts.boot.as_ref().map(BootId::as_str), Some("b1"));
        assert_eq!(facts.system_uuid.as_deref(), Some("abcd"));
        assert_eq!(facts.heartbeat.as_deref(), Some("2026-03-01T12:00:00Z"));
        assert_eq!(facts.kubelet.as_deref(), Some(&"[fd00::7]:10250".parse().unwrap()));
        assert_eq!((facts.volumes_in_use.len(), facts.volumes_attached.len()), (1, 1));
    }

    #[test]
    fn a_node_that_nobody_understands_is_still_known_by_its_name() {
        let node = json!({"metadata": {"name": "n1"}, "status": {"conditions": "none"}});
        let guarded: DeserializeGuard<LeanNode> = serde_json::from_value(node).unwrap();
        assert_eq!(guarded.0.unwrap_err().metadata.name.as_deref(), Some("n1"));
    }
}
