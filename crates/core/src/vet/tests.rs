//! What a golden case cannot say: size, and the words that the ledger is told.

use super::*;
use crate::policy::{DomainBrake, Share, WholeDomain};
use crate::snapshot::{Member, QuorumView};

fn claim(target: &str) -> Claim {
    Claim {
        namespace: "palisade-system".to_owned(),
        target: target.into(),
        uid: None,
        source: Source::Condition,
        observed_for: Span::mins(5),
        grace: None,
        approved: false,
        fence: None,
    }
}

/// Nodes `n0`, `n1`, ... in racks of forty and ten zones, the first `down` of them down.
fn cluster(size: usize, down: usize) -> Snapshot {
    let node = |at: usize| {
        let labels = [("rack", at / 40), ("zone", at % 10)].map(|(key, value)| (key.to_owned(), value.to_string()));
        let ready = if at < down { Ready::Unknown } else { Ready::True };
        (NodeName::new(format!("n{at}")), NodeView { labels: labels.into(), ready, ..NodeView::default() })
    };
    Snapshot { nodes: (0..size).map(node).collect(), ..Snapshot::default() }
}

fn brakes(policy: &mut Policy) {
    for (key, percent) in [("rack", 50), ("zone", 30), ("switch", 50)] {
        let (topology_key, limit) = (key.to_owned(), Share::Percent(percent));
        policy.storm.domains.push(DomainBrake { topology_key, limit, whole_domain: WholeDomain::Hold });
    }
}

#[test]
fn five_thousand_nodes_are_counted_by_cluster_rack_and_zone() {
    let mut policy = Policy::default();
    brakes(&mut policy);
    let storm = |down| {
        let answers = walk(&claim("n4999"), &cluster(5_000, down), &policy, Tick::at_millis(600_000));
        answers.into_iter().find(|(gate, _)| *gate == GateName::Storm).map(|(_, answer)| answer)
    };
    let held = |why| Some(Gate::Closed { why, look_again: Tick::at_millis(630_000) });
    assert_eq!(storm(0), Some(Gate::Open));
    assert_eq!(
        storm(2_500),
        held(HoldReason::StormBrake { domain: "zone=9".to_owned(), down: 251, size: 500, allowed: 150 })
    );
    assert_eq!(storm(5_000), held(HoldReason::ObserverSuspect { size: 5_000 }));
}

#[test]
fn the_ledger_is_told_of_a_member_exactly_where_its_quorum_is_guarded() {
    let mut view = cluster(3, 0);
    let members = ["n0", "n1"].map(|node| (node.into(), Member::Alive)).into();
    view.quorum = Some(QuorumView { members, age: Span::ZERO });
    let guarded = Policy::default();
    let unguarded = Policy { protect_quorum: false, ..Policy::default() };
    let told = |node: &str, policy| entry_for(&node.into(), 1, &view, policy).control_plane;
    assert!(told("n0", &guarded));
    assert!(!told("n2", &guarded));
    assert!(!told("n0", &unguarded));
}

#[test]
fn who_knows_nothing_admits_nothing() {
    let verdict = vet(&claim("n0"), &Snapshot::default(), &Policy::default(), Tick::START);
    assert!(matches!(verdict, Verdict::Hold { gate: GateName::Exclusions, .. }), "{verdict:?}");
    let verdict = vet(&claim("n0"), &cluster(9, 1), &Policy::default(), Tick::at_millis(600_000));
    assert!(matches!(verdict, Verdict::Hold { gate: GateName::Observer, .. }), "{verdict:?}");
}
