//! Vet / quorum: the control plane must be able to go on without the target.
//!
//! Promise (I3): members minus silent ones minus the target are still a quorum, and members are fenced one at a time:
//! the ledger keeps that in the same write that takes the slot.
//! Never: guesses who the members are.

use palisade_api::names::labels;

use super::{Case, Gate};
use crate::ident::NodeName;
use crate::policy::Policy;
use crate::reason::vet::HoldReason;
use crate::snapshot::{Member, NodeView, QuorumView, Snapshot};

/// Labels of nodes that may be members, for when the members themselves are not known.
const ROLES: &[&str] = &[labels::CONTROL_PLANE, labels::MASTER, labels::ETCD];

pub(super) fn gate(case: &Case<'_>) -> Gate {
    if !guards(&case.claim.target, case.view, case.policy) {
        return Gate::Open;
    }
    let Some(quorum) = case.view.quorum.as_ref().filter(|quorum| !quorum.members.is_empty()) else {
        return case.hold(HoldReason::QuorumUnknown);
    };
    let (age, limit) = (quorum.age, case.policy.observer_fresh);
    if age > limit {
        return case.hold(HoldReason::QuorumStale { age, limit });
    }
    if let Some(why) = at_risk(quorum, &case.claim.target) {
        return case.hold(why);
    }
    let other = case.view.ledger.as_ref().and_then(|ledger| ledger.other_member(case.claim.fence.as_ref()));
    other.map_or(Gate::Open, |by| case.hold(HoldReason::ControlPlaneBusy { by: by.clone() }))
}

/// Whether the node is, or may be, a member whose quorum the policy guards.
pub(super) fn guards(target: &NodeName, view: &Snapshot, policy: &Policy) -> bool {
    if !policy.protect_quorum {
        return false;
    }
    match view.quorum.as_ref().filter(|quorum| !quorum.members.is_empty()) {
        Some(quorum) => quorum.members.contains_key(target),
        None => view.nodes.get(target).is_some_and(has_role),
    }
}

fn has_role(node: &NodeView) -> bool {
    ROLES.iter().any(|role| node.labels.contains_key(*role))
}

fn at_risk(quorum: &QuorumView, target: &NodeName) -> Option<HoldReason> {
    let (mut members, mut silent) = (0, 0);
    for (name, member) in &quorum.members {
        members += 1;
        silent += match member {
            Member::Silent if name != target => 1,
            Member::Silent | Member::Alive => 0,
        };
    }
    let needed = members / 2 + 1;
    let left: u32 = members - silent - 1;
    (left < needed).then_some(HoldReason::QuorumAtRisk { members, silent, left, needed })
}
