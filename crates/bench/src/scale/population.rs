//! Scale / population: nodes, leases and pods as large as real ones look, and Palisade installed among them.

use anyhow::{Result, anyhow};
use palisade_api::names;
use palisade_cluster::api::{Api, Kind};
use serde_json::{Value, json};

/// Where kubelets keep their leases.
pub(crate) const NODE_LEASES: &str = "kube-node-lease";
/// As many as a kubelet reports by default (`nodeStatusMaxImages`).
const IMAGES: u32 = 50;

/// Makes everything.
pub(crate) fn settle(api: &Api, nodes: u32, pods: u32) -> Result<()> {
    for crd in palisade_api::crds() {
        create(api, Kind::CUSTOM_RESOURCE_DEFINITION, serde_json::to_value(&crd)?)?;
    }
    create(api, Kind::NAMESPACE, json!({"metadata": {"name": names::SYSTEM_NAMESPACE}}))?;
    for number in 1..=nodes {
        create(api, Kind::NODE, node(number))?;
        create(api, Kind::LEASE, lease(number))?;
        let secret = json!({
            "metadata": {"name": format!("bmc-n{number}"), "namespace": names::SYSTEM_NAMESPACE},
            "data": {"username": "YWRtaW4=", "password": "c2VjcmV0"},
        });
        create(api, Kind::SECRET, secret)?;
    }
    for number in 0..pods {
        create(api, Kind::POD, pod(number, nodes))?;
    }
    ours(api, "FenceTemplate", template())?;
    ours(api, "FenceConfig", config())?;
    ours(api, "FencePolicy", json!({"metadata": {"name": names::POLICY_NAME}, "spec": {}}))
}

/// A Node with the labels, conditions and images of a node in a cloud.
pub(crate) fn node(number: u32) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": "2026-03-01T12:00:00Z", "lastTransitionTime": "2026-03-01T12:00:00Z",
        })
    };
    let image = |image: u32| {
        let digest = format!("{image:064x}");
        json!({
            "names": [
                format!("registry.example.com/team-{}/service-{image}@sha256:{digest}", image % 7),
                format!("registry.example.com/team-{}/service-{image}:v1.{image}.{}", image % 7, number % 10),
            ],
            "sizeBytes": 50_000_000_u32 + image,
        })
    };
    let resources = json!({
        "cpu": "16", "ephemeral-storage": "203234260Ki", "hugepages-1Gi": "0", "hugepages-2Mi": "0",
        "memory": "65842504Ki", "pods": "250",
    });
    let name = format!("n{number}");
    json!({
        "metadata": {
            "name": name,
            "labels": {
                "beta.kubernetes.io/arch": "amd64", "beta.kubernetes.io/os": "linux",
                "beta.kubernetes.io/instance-type": "m7.4xlarge", "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "node.kubernetes.io/instance-type": "m7.4xlarge",
                "failure-domain.beta.kubernetes.io/region": "eu-1",
                "topology.kubernetes.io/region": "eu-1",
                "topology.kubernetes.io/zone": format!("eu-1{}", ["a", "b", "c"][(number % 3) as usize]),
                "example.com/rack": format!("rack-{}", number / 40),
                "example.com/pool": format!("pool-{}", number % 5),
            },
            "annotations": {
                "alpha.kubernetes.io/provided-node-ip": address(number),
                "csi.volume.kubernetes.io/nodeid": format!("{{\"block.csi.example.com\":\"i-{number:017x}\"}}"),
                "node.alpha.kubernetes.io/ttl": "15",
                "volumes.kubernetes.io/controller-managed-attach-detach": "true",
                "networking.example.com/node-subnet": format!("10.{}.{}.0/24", number / 256, number % 256),
            },
        },
        "spec": {
            "podCIDR": format!("10.{}.{}.0/24", number / 256, number % 256),
            "providerID": format!("cloud:///eu-1a/i-{number:017x}"),
        },
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": address(number)},
                {"type": "Hostname", "address": name},
            ],
            "allocatable": resources,
            "capacity": resources,
            "conditions": [
                condition("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
                condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
                condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
                condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
                condition("KernelDeadlock", "False", "KernelHasNoDeadlock", "kernel has no deadlock"),
                condition("ReadonlyFilesystem", "False", "FilesystemIsNotReadOnly", "Filesystem is not read-only"),
            ],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "images": (0..IMAGES).map(image).collect::<Vec<_>>(),
            "nodeInfo": {
                "architecture": "amd64", "bootID": format!("boot-1-{number:08}"), "containerRuntimeVersion": "containerd://2.0.4",
                "kernelVersion": "6.12.0", "kubeProxyVersion": "v1.33.0", "kubeletVersion": "v1.33.0",
                "machineID": uuid(number), "systemUUID": uuid(number), "operatingSystem": "linux", "osImage": "Debian 12",
            },
        },
    })
}

fn address(number: u32) -> String {
    format!("10.200.{}.{}", number / 250, number % 250 + 1)
}

/// The UUID of a machine, as its Node and its BMC both tell it.
pub(crate) fn uuid(number: u32) -> String {
    format!("{number:08x}-0000-4000-8000-000000000000")
}

fn lease(number: u32) -> Value {
    let name = format!("n{number}");
    json!({
        "metadata": {
            "name": name, "namespace": NODE_LEASES,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": name, "uid": uuid(number)}],
        },
        "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": "2026-03-01T12:00:00.000000Z"},
    })
}

/// One of many pods, on the nodes in turn. The operator reads those of one node only, so they need not be large.
pub(crate) fn pod(number: u32, nodes: u32) -> Value {
    let owner = if number.is_multiple_of(2) { "StatefulSet" } else { "ReplicaSet" };
    json!({
        "metadata": {
            "name": format!("pod-{number}"), "namespace": "default", "labels": {"app": format!("app-{}", number % 500)},
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": owner, "name": "owner", "uid": "owner", "controller": true},
            ],
        },
        "spec": {
            "nodeName": format!("n{}", number % nodes + 1),
            "containers": [{"name": "main", "image": "registry.example.com/service:v1"}],
        },
        "status": {"phase": "Running"},
    })
}

fn template() -> Value {
    json!({
        "metadata": {"name": "bmc"},
        "spec": {
            "native": {"driver": "redfish"},
            "parameters": {"ip": "bmc-{node}"},
            "secretRef": {"name": "bmc-{node}", "keys": {"username": "username", "password": "password"}},
            "timeout": "10s",
            "proves": {"class": "Power"},
        },
    })
}

fn config() -> Value {
    json!({
        "metadata": {"name": "bare-metal"},
        "spec": {
            "nodeSelector": {},
            "powerManagement": {"levels": [{"name": "bmc", "methods": [{"name": "bmc", "template": "bmc"}]}]},
        },
    })
}

fn ours(api: &Api, name: &str, mut object: Value) -> Result<()> {
    object["apiVersion"] = format!("{}/{}", names::GROUP, names::VERSION).into();
    object["kind"] = name.into();
    let kind = api.kind(names::GROUP, name).ok_or_else(|| anyhow!("there is no kind {name}"))?;
    create(api, kind, object)
}

fn create(api: &Api, kind: Kind, object: Value) -> Result<()> {
    api.create(kind, object).map(drop).map_err(|why| anyhow!("{}", why.message))
}
