//! Vet / exclusions: is the node there, and is it ours to touch?
//!
//! Promise (I4): a request that names another Node object than the one in view is never carried out on its namesake.
//! Never: refuses on a stale view; takes a mark of another tool for ours, nor ours for another's.

use std::collections::BTreeMap;

use palisade_api::names::annotations::MAINTENANCE;
use palisade_api::names::{annotations, labels, taints};
use palisade_api::selector::LabelSelector;

use super::{Case, Gate};
use crate::reason::vet::{HoldReason, RejectReason};
use crate::resolve::selects;
use crate::snapshot::NodeView;

/// Taints of tools that drain a node for maintenance (node-maintenance-operator, old and new).
pub const MAINTENANCE_TAINTS: &[&str] = &[taints::MEDIK8S_DRAIN, taints::KUBEVIRT_DRAIN];

/// Taints of autoscalers on nodes that they remove or are about to.
pub const AUTOSCALER_TAINTS: &[&str] = &[
    taints::AUTOSCALER_DELETES,
    taints::AUTOSCALER_CANDIDATE,
    taints::KARPENTER_DISRUPTED,
    taints::KARPENTER_DISRUPTION,
];

/// Annotations that count by being there (Cluster API, Deckhouse, kured).
pub const PEER_ANNOTATIONS: &[&str] = &[
    annotations::CAPI_SKIP,
    annotations::CAPI_PAUSED,
    annotations::DECKHOUSE_NO_FENCING,
    annotations::DECKHOUSE_UPDATE,
    annotations::DECKHOUSE_DISRUPTION,
    annotations::KURED_REBOOT,
];

/// Annotations that count with this value only (kube-fencing; the machine-config-operator while it reconfigures and reboots a node).
pub const PEER_ANNOTATION_VALUES: &[(&str, &str)] =
    &[(annotations::KUBE_FENCING, "false"), (annotations::MACHINE_CONFIG_STATE, "Working")];

/// Labels that count with this value only (medik8s).
pub const PEER_LABEL_VALUES: &[(&str, &str)] = &[(labels::MEDIK8S_EXCLUDE, "true")];

/// Whether this gate knows an annotation of that name; the others need not be kept.
pub fn counts(annotation: &str) -> bool {
    annotation == MAINTENANCE
        || PEER_ANNOTATIONS.contains(&annotation)
        || PEER_ANNOTATION_VALUES.iter().any(|(key, _)| *key == annotation)
}

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let node = match case.node {
        Some(node) if case.claim.uid.as_ref().is_none_or(|uid| *uid == node.uid) => node,
        Some(_) | None => return not_in_view(case),
    };
    excluded(case, node).map_or(Gate::Open, |why| case.hold(why))
}

/// The node that was meant is not in view. A request can overtake our watch, so that is believed only after a while.
fn not_in_view(case: &Case<'_>) -> Gate {
    let patience = case.policy.observer_fresh;
    let watched = case.claim.observed_for;
    let fresh = case.view.observer.api_last_answered.is_some_and(|answered| case.age(answered) <= patience);
    if !fresh {
        return case.hold(HoldReason::TargetNotSeen { watched });
    }
    if watched < patience {
        let look_again = case.now + patience.left_after(watched);
        return Case::hold_until(look_again, HoldReason::TargetNotSeen { watched });
    }
    let node = case.claim.target.clone();
    Gate::Refused(match (&case.claim.uid, case.node) {
        (Some(asked), Some(found)) => {
            RejectReason::NodeReplaced { node, asked: asked.clone(), found: found.uid.clone() }
        }
        (Some(_) | None, None) | (None, Some(_)) => RejectReason::NodeUnknown { node },
    })
}

fn excluded(case: &Case<'_>, node: &NodeView) -> Option<HoldReason> {
    let rules = &case.policy.exclusions;
    if node.deleting {
        return Some(HoldReason::NodeBeingDeleted);
    }
    if let Some(label) = matching_labels(&rules.selectors, node) {
        return Some(HoldReason::ExcludedByLabel { label });
    }
    if in_maintenance(node) {
        return Some(HoldReason::InMaintenance { mark: MAINTENANCE.to_owned() });
    }
    if rules.honour_peers { marked_by_peer(node) } else { None }
}

/// Whether our own annotation says that people are at work.
pub(super) fn in_maintenance(node: &NodeView) -> bool {
    node.annotations.get(MAINTENANCE).is_some_and(|value| value != "false")
}

/// The labels of the node that the first matching selector looked at.
fn matching_labels(excluded: &[LabelSelector], node: &NodeView) -> Option<String> {
    let selector = excluded.iter().find(|selector| selects(selector, &node.labels))?;
    let keys = selector.match_labels.keys().chain(selector.match_expressions.iter().map(|wanted| &wanted.key));
    let shown = keys.map(|key| format!("{key}={}", node.labels.get(key).map_or("", String::as_str)));
    Some(shown.collect::<Vec<_>>().join(","))
}

fn marked_by_peer(node: &NodeView) -> Option<HoldReason> {
    let taint = |known: &[&str]| node.taints.iter().find(|key| known.contains(&key.as_str())).cloned();
    if let Some(mark) = taint(MAINTENANCE_TAINTS) {
        return Some(HoldReason::InMaintenance { mark });
    }
    if let Some(taint) = taint(AUTOSCALER_TAINTS) {
        return Some(HoldReason::LeavingByAutoscaler { taint });
    }
    peer_mark(node).map(|mark| HoldReason::PausedByPeer { mark })
}

fn peer_mark(node: &NodeView) -> Option<String> {
    let has = |marks: &BTreeMap<String, String>, (key, value): &(&str, &str)| {
        (marks.get(*key).map(String::as_str) == Some(*value)).then(|| format!("{key}={value}"))
    };
    let present = PEER_ANNOTATIONS.iter().find(|key| node.annotations.contains_key(**key)).map(|key| (*key).to_owned());
    present
        .or_else(|| PEER_ANNOTATION_VALUES.iter().find_map(|mark| has(&node.annotations, mark)))
        .or_else(|| PEER_LABEL_VALUES.iter().find_map(|mark| has(&node.labels, mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_annotation_that_holds_a_node_is_kept() {
        let holding = |key: &str, value: &str| {
            let annotations = BTreeMap::from([(key.to_owned(), value.to_owned())]);
            let node = NodeView { annotations, ..NodeView::default() };
            in_maintenance(&node) || marked_by_peer(&node).is_some()
        };
        let present = PEER_ANNOTATIONS.iter().map(|key| (*key, ""));
        for (key, value) in present.chain(PEER_ANNOTATION_VALUES.iter().copied()).chain([(MAINTENANCE, "yes")]) {
            assert!(holding(key, value) && counts(key), "{key}");
        }
        assert!(!counts("volumes.kubernetes.io/controller-managed-attach-detach"));
    }
}
