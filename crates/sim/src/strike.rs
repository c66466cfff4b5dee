//! Strike: lets the faults of a plan happen to the world, and mends everything at the end.

use palisade_api::names::{self, taints};
use palisade_cluster::Cluster;
use palisade_cluster::api::{DeleteOptions, Key, Kind};
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::{Link, Power};
use palisade_scenarios::embedded::Embedded;
use serde_json::{Value, json};

use crate::faults::{Fault, Plan};
use crate::run::NODES;
use crate::wire::Lossy;

/// The name of an operator process.
pub(crate) fn operator(number: usize) -> String {
    format!("palisade-{number}")
}

/// Lets one thing go wrong.
pub(crate) fn strike(world: &mut Embedded, wire: &Lossy, fault: &Fault, plan: &Plan, fences: Option<Kind>) {
    let cluster = world.cluster.clone();
    match fault {
        Fault::PowerOff(node) => cluster.power_off(node),
        Fault::OutsideOn(node) => cluster.outside_on(node),
        Fault::Cut(node, link) => cluster.cut(node, *link),
        Fault::Heal(node, link) => cluster.heal(node, *link),
        Fault::Hang(node) => cluster.kubelet_hang(node),
        Fault::Resume(node) => cluster.kubelet_resume(node),
        Fault::Suspend(node) => cluster.suspend(node),
        Fault::Bmc(node, behaviour) => cluster.bmc(node).set(behaviour.clone()),
        Fault::DeleteNode(node) => {
            let _ = cluster.delete_node(node);
        }
        Fault::TakeTaintOff(node) => {
            let _ = cluster.api().update(&Key::cluster(Kind::NODE, node), |node| {
                if let Some(all) = node.pointer_mut("/spec/taints").and_then(Value::as_array_mut) {
                    all.retain(|taint| taint.get("key").and_then(Value::as_str) != Some(taints::QUARANTINE));
                }
            });
        }
        Fault::DeleteFence(node) => {
            if let Some(kind) = fences {
                let _ = cluster.api().delete(&Key::cluster(kind, node), &DeleteOptions::default());
            }
        }
        Fault::PolicyAgain => {
            if let Some(kind) = cluster.api().kind(names::GROUP, "FencePolicy") {
                let _ = cluster.api().delete(&Key::cluster(kind, names::POLICY_NAME), &DeleteOptions::default());
                let policy = json!({
                    "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "FencePolicy",
                    "metadata": { "name": names::POLICY_NAME }, "spec": {},
                });
                let _ = cluster.create(kind, policy);
            }
        }
        Fault::CrashOperator(number) => {
            let name = operator(number % plan.operators.max(1));
            world.crash(&name);
            world.start(&name);
        }
        Fault::Blackout(time) => wire.go_dark(*time),
        Fault::FreezeWatches(time) => wire.freeze(*time),
    }
}

/// Everything works again, and somebody walks through the rack and switches on whatever is off.
pub(crate) fn mend(cluster: &Cluster) {
    for number in 1..=NODES {
        let node = format!("n{number}");
        for link in [Link::Api, Link::Peers, Link::Storage] {
            cluster.heal(&node, link);
        }
        cluster.kubelet_resume(&node);
        cluster.bmc(&node).set(Behaviour::Honest);
        if cluster.power(&node) != Some(Power::On) {
            cluster.outside_on(&node);
        }
    }
}
