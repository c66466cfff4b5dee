//! Look: what can be seen of a world at an instant, in the API and in the machine room.

use std::time::Duration;

use k8s_openapi::api::core::v1::{Node, Pod};
use palisade_api::fence::{FencePhase, ReleaseState};
use palisade_api::names::taints;
use palisade_api::request::{Phase, RequestResult};
use palisade_api::{NodeFence, NodeFencingRequest};
use serde_json::Value;

use crate::world::{Kind, Power, Switched};

/// What can be seen. A world gives the first seven; the rest is read off them.
pub trait Look {
    /// An object by name, in the namespace in which stories keep its kind.
    fn get(&self, kind: Kind, name: &str) -> Option<Value>;
    /// All objects of a kind.
    fn list(&self, kind: Kind) -> Vec<Value>;
    /// The power of a machine, in truth.
    fn power_of(&self, node: &str) -> Power;
    /// Which nodes could write to the volume of a claim at this instant, in truth.
    fn writers_of(&self, claim: &str) -> Vec<String>;
    /// Every command that reached a machine's BMC, in order.
    fn commands_to(&self, node: &str) -> Vec<Switched>;
    /// How many times a machine has booted.
    fn boots_of(&self, node: &str) -> u32;
    /// How long the world has been there, by a clock that only runs forward.
    fn elapsed(&self) -> Duration;

    /// The names of all Nodes.
    fn nodes(&self) -> Vec<String> {
        self.list(Kind::Node).iter().map(name).collect()
    }

    /// The Node of this name.
    fn node(&self, node: &str) -> Option<Node> {
        serde_json::from_value(self.get(Kind::Node, node)?).ok()
    }

    /// The live operation on a node.
    fn fence_of(&self, node: &str) -> Option<NodeFence> {
        serde_json::from_value(self.get(Kind::Fence, node)?).ok()
    }

    /// Where the operation on a node stands.
    fn phase_of(&self, node: &str) -> Option<FencePhase> {
        self.fence_of(node).map(|fence| fence.status.unwrap_or_default().phase)
    }

    /// Every request about a node, the latest last.
    fn requests_of(&self, node: &str) -> Vec<NodeFencingRequest> {
        let all = self.list(Kind::Request).into_iter().filter_map(|object| serde_json::from_value(object).ok());
        let about = |request: &NodeFencingRequest| request.spec.node_name.as_deref() == Some(node);
        let mut found: Vec<NodeFencingRequest> = all.filter(about).collect();
        found.sort_by_key(|request| request.metadata.creation_timestamp.clone());
        found
    }

    /// The latest request about a node.
    fn request_of(&self, node: &str) -> Option<NodeFencingRequest> {
        self.requests_of(node).pop()
    }

    /// Whether a request about the node is held for this reason.
    fn is_held(&self, node: &str, reason: &str) -> bool {
        self.requests_of(node).iter().any(|request| {
            let status = request.status.clone().unwrap_or_default();
            status.phase == Phase::Held && status.reason.as_deref() == Some(reason)
        })
    }

    /// How the latest request about a node ended, if it has.
    fn result_of(&self, node: &str) -> Option<RequestResult> {
        self.request_of(node)?.status?.result
    }

    /// How far the release of a pod of this name has come.
    fn release_of(&self, node: &str, pod: &str) -> Option<ReleaseState> {
        let status = self.fence_of(node)?.status?;
        status.releases.iter().rfind(|release| release.pod_name == pod).map(|release| release.state)
    }

    /// Whether a node is Ready.
    fn node_is_ready(&self, node: &str) -> bool {
        self.get(Kind::Node, node).is_some_and(|node| is_true(&node, "Ready"))
    }

    /// Whether a node carries a taint of ours, or one that we may set.
    fn is_quarantined(&self, node: &str) -> bool {
        let taints = self.node(node).and_then(|node| node.spec).and_then(|spec| spec.taints).unwrap_or_default();
        taints.iter().any(|taint| taint.key == taints::QUARANTINE || taint.key == taints::OUT_OF_SERVICE)
    }

    /// Whether a node is back: Ready, without any taint, and without an operation.
    fn node_is_clean(&self, node: &str) -> bool {
        let free = |node: &Node| node.spec.as_ref().is_none_or(|spec| spec.taints.as_ref().is_none_or(Vec::is_empty));
        self.fence_of(node).is_none() && self.node_is_ready(node) && self.node(node).is_some_and(|node| free(&node))
    }

    /// A pod of this name.
    fn pod(&self, pod: &str) -> Option<Pod> {
        serde_json::from_value(self.get(Kind::Pod, pod)?).ok()
    }

    /// The UID of a pod; empty if there is none.
    fn uid_of(&self, pod: &str) -> String {
        self.pod(pod).and_then(|pod| pod.metadata.uid).unwrap_or_default()
    }

    /// Where a pod is bound to; empty if nowhere.
    fn node_of(&self, pod: &str) -> String {
        self.pod(pod).and_then(|pod| pod.spec).and_then(|spec| spec.node_name).unwrap_or_default()
    }

    /// Whether a pod is ready.
    fn is_ready(&self, pod: &str) -> bool {
        self.get(Kind::Pod, pod).is_some_and(|pod| is_true(&pod, "Ready"))
    }

    /// Whether a pod runs, and not on this node.
    fn has_left(&self, pod: &str, node: &str) -> bool {
        self.is_ready(pod) && self.node_of(pod) != node
    }

    /// Whether somebody was told of this with an Event.
    fn was_told(&self, reason: &str, about: &str) -> bool {
        self.list(Kind::Event).iter().any(|event| {
            let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
            text("/reason") == reason && text("/involvedObject/name") == about
        })
    }
}

fn name(object: &Value) -> String {
    object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn is_true(object: &Value, condition: &str) -> bool {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| one["type"] == condition && one["status"] == "True")
}
