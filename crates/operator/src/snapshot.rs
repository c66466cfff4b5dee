//! Snapshot: the view, as vetting wants it.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::fence::{End, FencePhase, Slot};
use palisade_api::names::labels;
use palisade_core::detect::sight::{Sight, Watch};
use palisade_core::ident::{NodeName, Uid};
use palisade_core::snapshot::{FenceView, Member, NodeView, ObserverView, QuorumView, Snapshot};
use palisade_core::time::{Span, Tick};

use crate::effects::ledger_of;
use crate::view::View;
use crate::workload::Workloads;

/// What a picture is taken of.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) view: &'a View,
    pub(crate) watch: &'a Watch,
    pub(crate) workloads: &'a Workloads,
    pub(crate) sight: Sight,
    pub(crate) now: Tick,
}

/// The cluster as vetting sees it.
pub(crate) fn snapshot(scene: Scene<'_>) -> Snapshot {
    retouched(Snapshot::default(), scene.view.nodes().keys(), scene)
}

/// The same, from the picture of the turn before: a picture of thousands of nodes is not taken anew because one lease moved.
/// Expects in `looked` every node of which something was seen since, or whose lease fell silent.
pub(crate) fn refreshed(known: Snapshot, looked: &BTreeSet<NodeName>, scene: Scene<'_>) -> Snapshot {
    let stale: BTreeSet<_> = looked.iter().chain(scene.view.touched()).chain(scene.workloads.nodes()).collect();
    retouched(known, stale, scene)
}

fn retouched<'a>(known: Snapshot, names: impl IntoIterator<Item = &'a NodeName>, scene: Scene<'_>) -> Snapshot {
    let Snapshot { mut nodes, quorum, .. } = known;
    let mut members = quorum.map(|quorum| quorum.members).unwrap_or_default();
    for name in names {
        members.remove(name);
        let Some(node) = node_view(name, scene) else {
            nodes.remove(name);
            continue;
        };
        if node.labels.contains_key(labels::CONTROL_PLANE) {
            members.insert(name.clone(), if node.lease_silent { Member::Silent } else { Member::Alive });
        }
        nodes.insert(name.clone(), node);
    }
    let Scene { view, watch, .. } = scene;
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
        observer: observer(watch),
        ledger: view.policy.as_ref().and_then(ledger_of),
        storage: BTreeMap::new(),
        disruption_budgets: Vec::new(),
        quorum: Some(QuorumView { members, age: Span::ZERO }),
        nodes,
    }
}

/// How well this replica sees.
pub(crate) fn observer(watch: &Watch) -> ObserverView {
    ObserverView {
        api_last_answered: watch.last_answer(),
        outage_ended: watch.outage_ended(),
        self_check: None,
        standby: None,
    }
}

fn node_view(name: &NodeName, scene: Scene<'_>) -> Option<NodeView> {
    let Scene { view, workloads, sight, now, .. } = scene;
    let track = view.node(name)?;
    let facts = track.facts.as_ref()?;
    Some(NodeView {
        uid: facts.uid.clone(),
        boot: facts.boot.clone(),
        labels: facts.labels.clone(),
        annotations: facts.annotations.clone(),
        taints: facts.taints.iter().map(|taint| taint.key.clone()).collect(),
        deleting: facts.deleting,
        ready: facts.ready,
        lease_silent: track.lease_silent(name, sight, now),
        late_since: track.late_since(name, sight, now),
        last_renewal: track.memory.lease.last_renewal(),
        back_since: track.memory.lease.back_since(),
        workload: workloads.on(name, now),
        storage: Vec::new(),
        kdump: None,
        witnesses: track.memory.witnesses.views(),
        failures: track.memory.failures().to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use palisade_core::detect::lease::SeenLease;
    use palisade_core::snapshot::{Ready, WitnessKind, WitnessWord, WorkloadView};

    use super::*;
    use crate::detect::Detect;
    use crate::view::{Change, NodeFacts, Seen, ShownLease};

    const CLEAR: Sight = Sight::Clear { since: Tick::START };

    fn node(name: &str) -> (NodeName, NodeFacts) {
        let labels = BTreeMap::from([(labels::CONTROL_PLANE.to_owned(), String::new())]);
        (NodeName::from(name), NodeFacts { uid: Uid::from(name), ready: Ready::True, labels, ..NodeFacts::default() })
    }

    fn renew(view: &mut View, name: &str, now: Tick) {
        let seen = SeenLease { holder: Some(name.into()), seconds: Some(40), renewed: Some(now.to_string().into()) };
        view.take(Seen::Lease(Change::Set((NodeName::from(name), ShownLease { seen, version: 1 }))), now);
    }

    #[test]
    fn a_picture_that_is_kept_up_is_the_one_that_would_be_taken_anew() {
        let (mut view, mut detect, watch) = (View::default(), Detect::default(), Watch::default());
        let mut workloads = Workloads::default();
        let mut picture = None;
        for second in 0..60 {
            let now = Tick::at_millis(second * 1_000);
            match second {
                0 => view.take(Seen::Node(Change::All(vec![node("n1"), node("n2"), node("n3")])), now),
                1 => workloads.answered(NodeName::from("n3"), Some(WorkloadView::default()), now),
                2 => renew(&mut view, "n1", now),
                20 => Detect::heard(&mut view, &NodeName::from("n2"), WitnessKind::BmcPower, WitnessWord::Silent, now),
                30 => view.take(Seen::Node(Change::Gone(node("n3"))), now),
                _ if second % 9 == 0 => renew(&mut view, "n2", now),
                _ => {}
            }
            let pass = detect.look(&mut view, CLEAR, now);
            if second == 40 {
                view.track(&NodeName::from("n1")).unwrap().memory.fails(now);
            }
            let scene = Scene { view: &view, watch: &watch, workloads: &workloads, sight: CLEAR, now };
            let kept = picture.map_or_else(|| snapshot(scene), |known| refreshed(known, &pass.looked, scene));
            assert_eq!(kept, snapshot(scene), "after {second} s");
            picture = Some(kept);
        }
        let quorum = picture.unwrap().quorum.unwrap();
        let members: Vec<_> = quorum.members.into_iter().map(|(name, member)| (name.to_string(), member)).collect();
        assert_eq!(members, [("n1".to_owned(), Member::Silent), ("n2".to_owned(), Member::Alive)]);
    }
}
