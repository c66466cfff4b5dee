//! Snapshot: the view, as vetting wants it.

use std::collections::BTreeMap;

use palisade_api::fence::{End, FencePhase, Slot};
use palisade_api::names::labels;
use palisade_core::detect::sight::{Sight, Watch};
use palisade_core::ident::{NodeName, Uid};
use palisade_core::snapshot::{FenceView, Member, NodeView, ObserverView, QuorumView, Snapshot, WorkloadView};
use palisade_core::time::{Span, Tick};

use crate::effects::ledger_of;
use crate::view::View;

/// What runs on nodes, as far as somebody listed it, and when.
pub(crate) type Workloads = BTreeMap<NodeName, (WorkloadView, Tick)>;

/// What was listed longer ago says nothing any more.
pub(crate) const FRESH: Span = Span::secs(30);

/// The cluster as vetting sees it.
pub(crate) fn snapshot(view: &View, watch: &Watch, workloads: &Workloads, sight: Sight, now: Tick) -> Snapshot {
    let mut nodes = BTreeMap::new();
    let mut members = BTreeMap::new();
    for (name, track) in &view.nodes {
        let Some(facts) = &track.facts else { continue };
        let lease_silent = track.lease_silent(name, sight, now);
        if facts.labels.contains_key(labels::CONTROL_PLANE) {
            members.insert(name.clone(), if lease_silent { Member::Silent } else { Member::Alive });
        }
        nodes.insert(
            name.clone(),
            NodeView {
                uid: facts.uid.clone(),
                boot: facts.boot.clone(),
                labels: facts.labels.clone(),
                annotations: facts.annotations.clone(),
                taints: facts.taints.iter().map(|taint| taint.key.clone()).collect(),
                deleting: facts.deleting,
                ready: facts.ready,
                lease_silent,
                late_since: track.late_since(name, sight, now),
                last_renewal: track.memory.lease.last_renewal(),
                workload: workloads.get(name).filter(|(_, at)| now < *at + FRESH).map(|(seen, _)| *seen),
                storage: Vec::new(),
                kdump: None,
                witnesses: track.memory.witnesses.views(),
                failures: track.failures.clone(),
            },
        );
    }
    let fences = view.fences.iter().map(|(node, fence)| {
        let status = fence.status.clone().unwrap_or_default();
        let seen = FenceView {
            uid: Uid::new(fence.metadata.uid.clone().unwrap_or_default()),
            slot: status.slot == Slot::Held,
            held_off: status.phase == FencePhase::Final && status.end == Some(End::HeldOff),
        };
        (node.clone(), seen)
    });
    Snapshot {
        fences: fences.collect(),
        observer: ObserverView {
            api_last_answered: watch.last_answer(),
            outage_ended: watch.outage_ended(),
            self_check: None,
            standby: None,
        },
        ledger: view.policy.as_ref().and_then(ledger_of),
        storage: BTreeMap::new(),
        disruption_budgets: Vec::new(),
        quorum: Some(QuorumView { members, age: Span::ZERO }),
        nodes,
    }
}
