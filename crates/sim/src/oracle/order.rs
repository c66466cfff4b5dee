//! I2, its order: a pod is let go only when it was marked before, with a grace, when the machine's own device said off after
//! that mark, and when everybody who shares its volume on that node is marked as well.
//!
//! A release in the wrong order goes well almost always: the machine is off anyway. That is why the order itself is looked at,
//! and not only what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use palisade_api::fence::ProofClass;
use palisade_api::names::taints;
use palisade_cluster::api::{Change, Kind, Store, metadata};
use palisade_cluster::truth::{Name, World};
use palisade_cluster::volumes;
use serde_json::Value;

use super::{Seen, called, has_taint};

/// When each pod was marked, by its UID.
#[derive(Default)]
pub(super) struct Marks(BTreeMap<String, Mark>);

struct Mark {
    at: Duration,
    /// The pods of its node then; whoever was bound to the node later, by a scheduler that saw no taint, is held by the attachment.
    pods: BTreeSet<String>,
}

/// Whether somebody vouches for the end of what this node ran.
fn by_word(seen: &Seen, node: &str) -> bool {
    let status = seen.fences.get(node).and_then(|fence| fence.status.as_ref());
    status.is_some_and(|status| status.proofs.iter().any(|proof| proof.class == ProofClass::Confirmed))
}

/// Somebody wrote a pod: us, Kubernetes, or a person.
pub(super) fn mark(seen: &mut Seen, store: &Store, change: &Change, world: &World) {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return };
    if metadata::is_deleting(old) || !metadata::is_deleting(new) {
        return;
    }
    let beside = store.list(Kind::POD).map(|(_, pod)| pod).filter(|pod| node_of(pod) == node_of(old));
    let pods = beside.map(|pod| metadata::uid(pod).to_owned()).collect();
    seen.marks.0.insert(metadata::uid(old).to_owned(), Mark { at: world.now, pods });
}

/// We wrote a pod: whoever calls it failed, lets it have no grace, or removes it, lets go of it.
pub(super) fn release(seen: &mut Seen, store: &Store, change: &Change, world: &World) {
    let Some(old) = &change.old else { return };
    let lets_go = |pod: &Value| is_over(pod) || metadata::grace(pod) == Some(0);
    let goes = change.new.as_ref().is_none_or(|new| lets_go(new));
    let node = node_of(old);
    let (name, uid) = called(old);
    // What was never bound, and what is over or was let go of before, has been looked at or need not be.
    if !goes || lets_go(old) || node.is_empty() {
        return;
    }
    let Some(mark) = seen.marks.0.remove(&uid).filter(|_| metadata::is_deleting(old)) else {
        seen.broken(format!("I2: {name} on {node} was let go without a deletion mark"));
        return;
    };
    let said_off = world.bmcs.get(node).and_then(|bmc| bmc.said_off);
    // Who vouches for a pod that nobody reads back has no device that says off.
    if said_off.is_none_or(|at| at <= mark.at) && !by_word(seen, node) {
        seen.broken(format!("I2: {name} on {node} was let go, and its device has not said off since the mark"));
    }
    let volumes: BTreeSet<Name> = volumes::handles_of(store, old).into_iter().collect();
    let left = store.list(Kind::POD).map(|(_, pod)| pod).find(|other| {
        node_of(other) == node
            && metadata::uid(other) != uid
            && !metadata::is_deleting(other)
            && !is_over(other)
            && mark.pods.contains(metadata::uid(other))
            && volumes::handles_of(store, other).iter().any(|volume| volumes.contains(volume))
    });
    if let Some(other) = left {
        let other = metadata::name(other).to_owned();
        seen.broken(format!("I2: {name} on {node} was let go, and {other} on the same volume is not marked"));
    }
}

/// We wrote a Node: Kubernetes deletes and detaches whatever is on a node that is out of service, without asking anybody.
pub(super) fn out_of_service(seen: &mut Seen, store: &Store, change: &Change) {
    let (Some(old), Some(new)) = (&change.old, &change.new) else { return };
    if has_taint(old, taints::OUT_OF_SERVICE) || !has_taint(new, taints::OUT_OF_SERVICE) {
        return;
    }
    let node = &*change.key.name;
    let left = store
        .list(Kind::POD)
        .map(|(_, pod)| pod)
        .find(|pod| node_of(pod) == node && !is_over(pod) && !volumes::handles_of(store, pod).is_empty());
    if let Some(pod) = left {
        let pod = metadata::name(pod).to_owned();
        seen.broken(format!("I2: {node} was put out of service while {pod}, which has a volume, is still there"));
    }
}

fn node_of(pod: &Value) -> &str {
    pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default()
}

fn is_over(pod: &Value) -> bool {
    matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"))
}
