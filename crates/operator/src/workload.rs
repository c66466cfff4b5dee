//! Workload: what runs on nodes that somebody is asked about, listed when it is needed. Nobody watches pods.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use kube::{Client, ResourceExt};
use palisade_core::ident::NodeName;
use palisade_core::snapshot::WorkloadView;
use palisade_core::time::{Span, Tick};

/// What was listed longer ago says nothing any more.
const FRESH: Span = Span::secs(30);
/// A list is made again so long before it is out of date.
const BEFORE: Span = Span::secs(10);
/// So many nodes' pods are listed together: where more are late at once, nobody is fenced anyway, and each list is work for the
/// API server.
const TOGETHER: usize = 16;
/// The pause after a list that failed: an API server that is away must not find a flood when it is back.
const AGAIN: Span = Span::secs(1);

/// What runs on nodes, as far as somebody listed it.
#[derive(Debug, Default)]
pub(crate) struct Workloads {
    listed: BTreeMap<NodeName, (WorkloadView, Tick)>,
    /// Nodes that are being listed.
    under_way: BTreeSet<NodeName>,
    /// Nodes that could not be listed, and when that is tried again.
    refused: BTreeMap<NodeName, Tick>,
}

impl Workloads {
    /// What runs on a node, if that was listed lately.
    pub(crate) fn on(&self, node: &NodeName, now: Tick) -> Option<WorkloadView> {
        self.listed.get(node).filter(|(_, at)| now < *at + FRESH).map(|(seen, _)| *seen)
    }

    /// Every node that was ever listed.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.listed.keys()
    }

    /// Whether the node has to be listed now; if so, it is taken for under way until [`Self::answered`].
    pub(crate) fn begin(&mut self, node: &NodeName, now: Tick) -> bool {
        let fresh = self.listed.get(node).is_some_and(|(_, at)| now + BEFORE < *at + FRESH);
        let refused = self.refused.get(node).is_some_and(|again| now < *again);
        // Whoever finds no room is asked about again in a moment.
        !fresh && !refused && self.under_way.len() < TOGETHER && self.under_way.insert(node.clone())
    }

    /// A list has ended; without an answer it is made again after a pause.
    pub(crate) fn answered(&mut self, node: NodeName, seen: Option<WorkloadView>, now: Tick) {
        self.under_way.remove(&node);
        match seen {
            Some(seen) => {
                self.refused.remove(&node);
                self.listed.insert(node, (seen, now));
            }
            None => {
                self.refused.insert(node, now + AGAIN);
            }
        }
    }
}

/// Lists a node's pods.
pub(crate) async fn list(client: Client, node: &NodeName) -> Option<WorkloadView> {
    let pods: Api<Pod> = Api::all(client);
    let of_node = ListParams::default().fields(&format!("spec.nodeName={node}"));
    pods.list(&of_node).await.ok().map(|found| reduced(&found.items))
}

/// What runs on a node, as far as it decides whether fencing helps.
fn reduced(pods: &[Pod]) -> WorkloadView {
    let owned = |pod: &&Pod, kind: &str| pod.owner_references().iter().any(|owner| owner.kind == kind);
    let claims = |pod: &&Pod| {
        let all = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        all.iter().any(|volume| volume.persistent_volume_claim.is_some())
    };
    let stateful = pods.iter().filter(|pod| owned(pod, "StatefulSet")).count();
    let single = pods.iter().filter(|pod| !owned(pod, "StatefulSet") && claims(pod)).count();
    WorkloadView {
        statefulset_pods: u32::try_from(stateful).unwrap_or(u32::MAX),
        single_writer_pods: u32::try_from(single).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Tick {
        Tick::at_millis(millis)
    }

    #[test]
    fn while_the_api_is_away_a_node_is_listed_once_a_second() {
        let (mut workloads, node) = (Workloads::default(), NodeName::from("n1"));
        let mut lists = 0;
        for millis in 0..10_000 {
            if workloads.begin(&node, at(millis)) {
                lists += 1;
                workloads.answered(node.clone(), None, at(millis));
            }
        }
        assert_eq!(lists, 10);
    }

    #[test]
    fn what_is_known_is_listed_again_before_it_is_out_of_date() {
        let (mut workloads, node) = (Workloads::default(), NodeName::from("n1"));
        assert!(workloads.begin(&node, at(0)));
        assert!(!workloads.begin(&node, at(1)), "it is under way");
        workloads.answered(node.clone(), Some(WorkloadView::default()), at(0));
        assert!(!workloads.begin(&node, at(19_999)));
        assert!(workloads.begin(&node, at(20_000)));
        assert!(workloads.on(&node, at(29_999)).is_some());
        assert!(workloads.on(&node, at(30_000)).is_none());
    }

    #[test]
    fn where_many_are_late_only_some_are_listed_at_once() {
        let mut workloads = Workloads::default();
        let begun = (0..100).filter(|number| workloads.begin(&NodeName::new(format!("n{number}")), at(0))).count();
        assert_eq!(begun, TOGETHER);
    }
}
