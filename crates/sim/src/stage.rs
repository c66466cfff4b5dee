//! Stage: the cluster of a plan, before anything goes wrong.

use palisade_api::names;
use palisade_cluster::api::{Key, Kind, Part, Patch, Status};
use palisade_cluster::workloads::{self, Claim};
use palisade_cluster::{Cluster, Shape};
use serde_json::json;

use crate::agents;
use crate::people::{PET, edit_policy};
use crate::plan::Plan;
use crate::run::NODES;

/// The cluster of a plan.
pub(crate) fn shape(seed: u64, plan: &Plan) -> Shape {
    let boot = if plan.quick_boots { (4_000, 9_000) } else { Shape::default().boot };
    Shape { nodes: NODES, zones: 3, seed, boot, ..Shape::default() }
}

/// What an administrator sets before anything goes wrong.
pub(crate) fn configure(cluster: &Cluster, plan: &Plan) {
    for node in ["n1", "n4"] {
        let _ = cluster.api().update(&Key::cluster(Kind::NODE, node), |node| {
            node["spec"]["taints"] = json!([{ "key": "example.org/old-disks", "effect": "PreferNoSchedule" }]);
        });
    }
    let pets = json!({ "nodeSelector": { "matchLabels": { PET: "yes" } } });
    edit_policy(cluster, &json!({ "spec": { "budget": { "maxConcurrent": plan.budget }, "exclusions": pets } }));
    if plan.out_of_service {
        edit_policy(cluster, &json!({ "spec": { "release": { "outOfService": "WithPowerProof" } } }));
    }
    if plan.hibernates
        && let Some(kind) = cluster.api().kind(names::GROUP, "FenceTemplate")
    {
        let possible = json!({ "spec": { "proves": { "hibernation": "Possible" } } });
        let _ = cluster.api().patch(&Key::cluster(kind, "bmc"), Part::Main, &Patch::Merge(possible));
    }
    agents::configure(cluster, plan);
}

/// What runs there: databases with a volume for each, pods that share one, and pods that need none.
pub(crate) fn make_workloads(cluster: &Cluster) -> Result<(), String> {
    let refused = |why: Status| format!("a workload could not be made: {why:?}");
    for (name, replicas) in [("db", 2), ("queue", 1)] {
        cluster.stateful_set(name, replicas, Claim::ReadWriteOnce).map_err(refused)?;
    }
    let claim = workloads::claim("shared", "ReadWriteOnce");
    cluster.create(Kind::PERSISTENT_VOLUME_CLAIM, claim).map_err(refused)?;
    let mut pair = workloads::replica_set("pair", 2, Some("shared"));
    let beside =
        json!({ "topologyKey": "kubernetes.io/hostname", "labelSelector": { "matchLabels": { "app": "pair" } } });
    pair["spec"]["template"]["spec"]["affinity"] =
        json!({ "podAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": [beside] } });
    cluster.create(Kind::REPLICA_SET, pair).map_err(refused)?;
    cluster.replica_set("web", 2).map_err(refused)?;
    Ok(())
}
