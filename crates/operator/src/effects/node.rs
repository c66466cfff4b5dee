//! Effects / node: the Node and its lease are read; it is marked as ours, nudged, or deleted.

use k8s_openapi::api::core::v1::Taint;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use palisade_api::names::{annotations, taints};
use palisade_core::effect::{DeleteNode, NodeChange, NodeGuard, NodePatch};
use palisade_core::observe::{NodeRead, ReadId};
use palisade_core::planted::{self, Bug};
use serde_json::{Value, json};

use super::{Hand, Outcome, conflict, gone};
use crate::rights::NODE_LEASES;
use crate::view::{LeanLease, LeanNode, NodeFacts, ShownLease, seen_lease};

impl Hand {
    pub(super) async fn read_node(&mut self, id: ReadId) -> kube::Result<Outcome> {
        let read = NodeRead { id, began: self.context.clock.tick() };
        let found = self.nodes().get_opt(self.node.as_str()).await?;
        let facts = found.as_ref().map(|node| Box::new(NodeFacts::read(node)));
        self.facts.clone_from(&facts);
        let lease = self.read_lease().await?;
        Ok(Outcome::Node(read, facts, lease))
    }

    /// The node's lease, live: `Ready` is a word of up to 50 s ago, and a watch may stand still.
    async fn read_lease(&self) -> kube::Result<Option<ShownLease>> {
        let leases: Api<LeanLease> = Api::namespaced(self.context.client.clone(), NODE_LEASES);
        // A list, which needs no more rights than the watch.
        let its = ListParams::default().fields(&format!("metadata.name={}", self.node));
        let found = leases.list(&its).await?.items.into_iter().map(seen_lease);
        Ok(found.filter(|(name, _)| *name == self.node).map(|(_, lease)| lease).next())
    }

    pub(super) async fn patch_node(&mut self, patch: &NodePatch) -> kube::Result<Outcome> {
        let Some(facts) = &self.facts else { return Ok(Outcome::Nothing) };
        let spec = match patch.change {
            NodeChange::Quarantine => {
                let value = self.uid.to_string();
                json!({ "taints": with(&facts.taints, self.taint(taints::QUARANTINE, &value)) })
            }
            NodeChange::LiftQuarantine if planted::is(Bug::KeepsTheTaint) => return Ok(Outcome::Nothing),
            NodeChange::LiftQuarantine if planted::is(Bug::TakesEveryTaint) => json!({ "taints": [] }),
            NodeChange::LiftQuarantine => {
                json!({ "taints": without(&facts.taints, taints::QUARANTINE, Some(self.uid.as_str())) })
            }
            NodeChange::OutOfService => {
                json!({ "taints": with(&facts.taints, self.taint(taints::OUT_OF_SERVICE, "palisade")) })
            }
            NodeChange::LiftOutOfService => {
                json!({ "taints": without(&facts.taints, taints::OUT_OF_SERVICE, None) })
            }
            NodeChange::Cordon => json!({ "unschedulable": true }),
            NodeChange::Uncordon => json!({ "unschedulable": null }),
        };
        self.write_node(&patch.guard, json!({ "spec": spec }), None).await
    }

    /// Any event of the Node makes the attach/detach controller look again.
    pub(super) async fn touch(&mut self, guard: &NodeGuard) -> kube::Result<Outcome> {
        let now = self.context.clock.wall().to_string();
        let patch = json!({ "metadata": { "annotations": { annotations::LOOK_AGAIN: now } } });
        self.write_node(guard, patch, None).await
    }

    /// Writes to this Node, in this version; 409 means that somebody has to look again.
    pub(super) async fn write_node(
        &mut self,
        guard: &NodeGuard,
        mut patch: Value,
        subresource: Option<&str>,
    ) -> kube::Result<Outcome> {
        let guarded = json!({ "uid": guard.uid.as_str(), "resourceVersion": guard.resource_version.as_str() });
        let meta = patch["metadata"].as_object().cloned().unwrap_or_default();
        patch["metadata"] = guarded;
        for (key, value) in meta {
            patch["metadata"][key] = value;
        }
        let (name, params, patch) = (self.node.as_str(), PatchParams::default(), Patch::Merge(patch));
        let written = match subresource {
            None => self.nodes().patch(name, &params, &patch).await,
            Some(_) => self.nodes().patch_status(name, &params, &patch).await,
        };
        match written {
            Ok(node) => {
                let facts = Box::new(NodeFacts::read(&node));
                self.facts = Some(facts.clone());
                Ok(Outcome::NodeWritten(facts))
            }
            Err(why) if conflict(&why) || gone(&why) => {
                Ok(Outcome::Failed { effect: "PatchNode", why: "the Node has changed; it is read again".to_owned() })
            }
            Err(why) => Err(why),
        }
    }

    pub(super) async fn delete_node(&mut self, delete: &DeleteNode) -> kube::Result<Outcome> {
        let guard = delete.guard();
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(guard.uid.to_string()),
                resource_version: Some(guard.resource_version.to_string()),
            }),
            ..DeleteParams::default()
        };
        match self.nodes().delete(self.node.as_str(), &params).await {
            Ok(_) => Ok(Outcome::Nothing),
            Err(why) if gone(&why) => Ok(Outcome::Nothing),
            Err(why) => Err(why),
        }
    }

    fn taint(&self, key: &str, value: &str) -> Taint {
        Taint {
            key: key.to_owned(),
            value: Some(value.to_owned()),
            effect: "NoSchedule".to_owned(),
            time_added: Some(Time(self.context.clock.wall())),
        }
    }

    fn nodes(&self) -> Api<LeanNode> {
        Api::all(self.context.client.clone())
    }
}

/// Everybody's taints, and this one once.
fn with(taints: &[Taint], ours: Taint) -> Vec<Taint> {
    let mut all: Vec<Taint> = taints.iter().filter(|taint| taint.key != ours.key).cloned().collect();
    all.push(ours);
    all
}

/// Everybody's taints but ours.
fn without(taints: &[Taint], key: &str, value: Option<&str>) -> Vec<Taint> {
    let ours = |taint: &&Taint| taint.key == key && value.is_none_or(|value| taint.value.as_deref() == Some(value));
    taints.iter().filter(|taint| !ours(taint)).cloned().collect()
}
