//! Executor / builtin: what the operator does to the Node object itself, and the drain of a node that still lives.
//!
//! Promise (I4): a Node is changed by its UID and version, or not at all; other people's taints and cordons stay.
//! Promise: a drain only evicts, so a PodDisruptionBudget can say no; nothing is forced. On a node that does not answer nobody
//! would hear it, so nothing is asked there.

use k8s_openapi::api::core::v1::{Node, Pod, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, EvictParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use palisade_api::names::annotations;
use palisade_api::template::{Builtin, BuiltinName, TaintEffect};
use palisade_core::effect::DeviceCall;
use palisade_core::resolve::call::Device as Target;
use palisade_core::time::Tick;
use palisade_devices::{Failure, Permit};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{BETWEEN, Executor, no_answer};
use crate::clock::duration;
use crate::effects::{conflict, gone};
use crate::said::brief;

/// What came of one try to change the Node.
enum Changed {
    Yes,
    Already,
    Again,
}

impl Executor {
    /// Does what a builtin does.
    pub(super) async fn done(&self, builtin: &Builtin, target: &Target, call: &DeviceCall) -> Result<String, Failure> {
        let work = async {
            match builtin.name {
                BuiltinName::Cordon => self.changed(call, |node| self.cordon(node)).await,
                BuiltinName::Uncordon => self.changed(call, |node| self.uncordon(node)).await,
                BuiltinName::Taint => {
                    let Some(wanted) = &builtin.taint else {
                        return Err(Failure::Refused(format!("{}: no taint is named", target.template)));
                    };
                    let effect = match wanted.effect {
                        TaintEffect::NoSchedule => "NoSchedule",
                        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
                    };
                    let taint = Taint {
                        key: wanted.key.clone(),
                        value: Some(wanted.value.clone()).filter(|value| !value.is_empty()),
                        effect: effect.to_owned(),
                        time_added: Some(Time(self.context.clock.wall())),
                    };
                    self.changed(call, |node| tainted(node, &taint)).await
                }
                BuiltinName::Drain => self.drain(call.send_before).await,
                // These are releases: the core plans them by what is proven, and calls nobody for them.
                BuiltinName::ReleasePods | BuiltinName::DeleteNode => Ok(String::new()),
            }
        };
        tokio::time::timeout(duration(target.timeout), work).await.unwrap_or_else(|_| Err(no_answer(target)))
    }

    /// Lays what `change` asks for over the Node as it is now, until nobody else was faster.
    async fn changed(&self, call: &DeviceCall, change: impl Fn(&Node) -> Option<Value>) -> Result<String, Failure> {
        let nodes: Api<Node> = Api::all(self.context.client.clone());
        loop {
            match self.change(&nodes, call.send_before, &change).await {
                Ok(Changed::Yes) => return Ok(String::new()),
                Ok(Changed::Already) => return Ok("; it was so already".to_owned()),
                Ok(Changed::Again) => sleep(BETWEEN).await,
                Err(why) => return Err(why),
            }
        }
    }

    async fn change(
        &self,
        nodes: &Api<Node>,
        before: Tick,
        change: impl Fn(&Node) -> Option<Value>,
    ) -> Result<Changed, Failure> {
        let unknown = |why: kube::Error| Failure::Unknown(brief(&why));
        let found = nodes.get_opt(self.node.as_str()).await.map_err(unknown)?;
        let node =
            found.filter(|node| self.node_uid.as_ref().is_none_or(|uid| node.uid().as_deref() == Some(uid.as_str())));
        let Some(node) = node else {
            return Err(Failure::Refused(format!("the Node {} is gone, or another one has its name", self.node)));
        };
        let Some(mut patch) = change(&node) else { return Ok(Changed::Already) };
        patch["metadata"]["uid"] = json!(node.uid());
        patch["metadata"]["resourceVersion"] = json!(node.resource_version());
        self.permit(before).may_send()?;
        match nodes.patch(self.node.as_str(), &PatchParams::default(), &Patch::Merge(patch)).await {
            Ok(_) => Ok(Changed::Yes),
            Err(why) if conflict(&why) => Ok(Changed::Again),
            Err(why) => Err(unknown(why)),
        }
    }

    /// Somebody else's cordon stays somebody else's.
    fn cordon(&self, node: &Node) -> Option<Value> {
        let cordoned = node.spec.as_ref().and_then(|spec| spec.unschedulable).unwrap_or_default();
        let note = json!({ "annotations": { annotations::CORDONED_BY: self.fence.as_str() } });
        (!cordoned).then(|| json!({ "metadata": note, "spec": { "unschedulable": true } }))
    }

    /// Only our own cordon is ours to lift.
    fn uncordon(&self, node: &Node) -> Option<Value> {
        let ours = node.annotations().get(annotations::CORDONED_BY).is_some_and(|by| by == self.fence.as_str());
        let note = json!({ "annotations": { annotations::CORDONED_BY: null } });
        ours.then(|| json!({ "metadata": note, "spec": { "unschedulable": null } }))
    }

    /// Evicts what can be evicted, and waits until it is gone.
    async fn drain(&self, before: Tick) -> Result<String, Failure> {
        if self.silent {
            return Ok("; the node does not answer, so nobody there could be asked to go".to_owned());
        }
        self.permit(before).may_send()?;
        let all: Api<Pod> = Api::all(self.context.client.clone());
        let bound = ListParams::default().fields(&format!("spec.nodeName={}", self.node));
        let mut asked = 0_u32;
        loop {
            let pods = all.list(&bound).await.map_err(|why| Failure::Unknown(brief(&why)))?;
            let left: Vec<&Pod> = pods.items.iter().filter(|pod| evictable(pod)).collect();
            if left.is_empty() {
                return Ok(format!("; {asked} pods were evicted"));
            }
            for pod in left.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
                asked += u32::from(self.evicted(pod).await?);
            }
            sleep(BETWEEN * 2).await;
        }
    }

    /// Whether the pod was told to go. A budget that allows no disruption now is asked again later.
    async fn evicted(&self, pod: &Pod) -> Result<bool, Failure> {
        let namespace = pod.namespace().unwrap_or_default();
        let pods: Api<Pod> = Api::namespaced(self.context.client.clone(), &namespace);
        let delete = kube::api::DeleteParams {
            preconditions: Some(Preconditions { uid: pod.uid(), resource_version: None }),
            ..kube::api::DeleteParams::default()
        };
        let params = EvictParams { delete_options: Some(delete), post_options: PostParams::default() };
        match pods.evict(&pod.name_any(), &params).await {
            Ok(_) => Ok(true),
            Err(why) if gone(&why) || conflict(&why) => Ok(false),
            Err(kube::Error::Api(status)) if status.code == 429 => Ok(false),
            Err(why) => Err(Failure::Unknown(format!("{namespace}/{}: {}", pod.name_any(), brief(&why)))),
        }
    }
}

/// Pods that stay on their node whatever happens are left alone, and so are those that have ended.
fn evictable(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let ended = matches!(phase, Some("Succeeded" | "Failed"));
    let mirror = pod.annotations().contains_key("kubernetes.io/config.mirror");
    let of_daemon_set = pod.owner_references().iter().any(|owner| owner.kind == "DaemonSet");
    !ended && !mirror && !of_daemon_set
}

/// Everybody's taints, and this one once; nothing if it is there.
fn tainted(node: &Node, wanted: &Taint) -> Option<Value> {
    let same = |taint: &Taint| taint.key == wanted.key && taint.effect == wanted.effect;
    let known = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
    if known.iter().any(|taint| same(taint) && taint.value == wanted.value) {
        return None;
    }
    let mut taints: Vec<Taint> = known.into_iter().filter(|taint| !same(taint)).collect();
    taints.push(wanted.clone());
    Some(json!({ "spec": { "taints": taints } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(spec: &Value, annotations: &Value) -> Node {
        serde_json::from_value(json!({ "metadata": { "name": "n1", "annotations": annotations }, "spec": spec }))
            .unwrap()
    }

    #[test]
    fn a_taint_is_added_once_and_nobody_elses_goes() {
        let wanted = Taint { key: "example.com/fenced".into(), effect: "NoSchedule".into(), ..Taint::default() };
        let theirs = json!([{ "key": "gpu", "effect": "NoSchedule" }]);
        let patch = tainted(&node(&json!({ "taints": theirs }), &json!({})), &wanted).unwrap();
        let keys: Vec<&str> =
            patch["spec"]["taints"].as_array().unwrap().iter().map(|t| t["key"].as_str().unwrap()).collect();
        assert_eq!(keys, ["gpu", "example.com/fenced"]);
        assert_eq!(tainted(&node(&patch["spec"], &json!({})), &wanted), None);
    }

    #[test]
    fn a_drain_leaves_alone_what_stays_on_its_node() {
        let pod = |owner: &str, phase: &str, mirror: bool| -> Pod {
            let notes = if mirror { json!({ "kubernetes.io/config.mirror": "x" }) } else { json!({}) };
            let owners = json!([{ "apiVersion": "v1", "kind": owner, "name": "o", "uid": "u" }]);
            serde_json::from_value(json!({
                "metadata": { "name": "p", "annotations": notes, "ownerReferences": owners }, "status": { "phase": phase },
            }))
            .unwrap()
        };
        assert!(evictable(&pod("StatefulSet", "Running", false)));
        assert!(!evictable(&pod("DaemonSet", "Running", false)));
        assert!(!evictable(&pod("Job", "Succeeded", false)));
        assert!(!evictable(&pod("Node", "Running", true)));
    }
}
