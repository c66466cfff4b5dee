//! I5: before anything is done to a machine, a pod, a volume or a Node, a fence has it on record.

use std::time::Duration;

use palisade_api::NodeFence;
use palisade_api::fence::{IsolationKind, IsolationState, NodeFenceStatus};
use palisade_api::names::{labels, look_prefix, taints};
use palisade_cluster::api::{Change, Kind, metadata};
use palisade_cluster::machines::machine::Switch;
use palisade_cluster::truth::{Event, What};
use serde_json::Value;

use super::{Seen, called, deleting, has_taint, in_use};

/// What was sent while it was intended may be carried out so much later: the slowest BMC of the seeds takes 6 s for a request, and goes
/// on with it when its caller has hung up. The same word twice changes nothing.
const SLOWEST: Duration = Duration::from_secs(6);

/// The intent to switch a machine on leaves the record when the machine was seen on.
pub(super) fn fence(seen: &mut Seen, node: &str, old: Option<&NodeFence>, new: &NodeFence) {
    let intends = |fence: &NodeFence| fence.status.as_ref().is_some_and(|status| undoes(status, IsolationKind::Power));
    if old.is_some_and(intends) && !intends(new) {
        seen.switched_on.insert(node.to_owned(), seen.now);
    }
}

pub(super) fn event(seen: &mut Seen, event: &Event) {
    let What::Told { node, command } = &event.what else { return };
    let on_record = record(seen, node).is_some_and(|status| match command.switch {
        Switch::On => undoes(status, IsolationKind::Power),
        Switch::ForceOff | Switch::GracefulOff | Switch::Restart => has(status, IsolationKind::Power),
    });
    let on_late =
        command.switch == Switch::On && seen.switched_on.get(&**node).is_some_and(|since| seen.now < *since + SLOWEST);
    if !on_record && !on_late && !seen.may_be_late() {
        seen.broken(format!("I5: the BMC of {node} was told {:?}, and no record intends it", command.switch));
    }
}

/// Whether this is a pod that calls a device for a fence that has the call on record, or one that only looks: of what changes nothing,
/// there is no record.
pub(super) fn is_pod_of_a_call(seen: &Seen, change: &Change) -> bool {
    let pod = change.old.as_ref().or(change.new.as_ref()).filter(|_| change.key.kind == Kind::POD);
    let label = |name: &str| pod?.pointer("/metadata/labels")?.get(name)?.as_str();
    let (Some(fence), Some(job)) = (label(labels::FENCE_UID), label(labels::JOB_NAME)) else {
        return false;
    };
    let its = |known: &&NodeFence| known.metadata.uid.as_deref() == Some(fence);
    let status = seen.fences.values().find(its).and_then(|fence| fence.status.as_ref());
    let looks = job.starts_with(&look_prefix(fence));
    looks || status.is_some_and(|status| status.jobs.iter().any(|known| known == job))
}

pub(super) fn write(seen: &mut Seen, change: &Change) {
    let Some(old) = &change.old else { return };
    let goes = change.new.as_ref().is_none_or(|new| deleting(new)) && !(deleting(old) && change.new.is_some());
    match change.key.kind {
        Kind::POD if goes => {
            let (name, uid) = called(old);
            let node = old.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
            let released =
                record(seen, node).is_some_and(|status| status.releases.iter().any(|release| release.pod_uid == uid));
            if !released {
                seen.broken(format!("I5: {name} ({uid}) on {node} was deleted, and no record intends it"));
            }
        }
        Kind::VOLUME_ATTACHMENT if goes => {
            let node = old.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
            let (name, uid) = (metadata::name(old).to_owned(), metadata::uid(old));
            let recorded = record(seen, node).is_some_and(|status| {
                status.releases.iter().flat_map(|release| &release.attachments).any(|known| known.uid == uid)
            });
            if !recorded {
                seen.broken(format!("I5: the attachment {name} was deleted, and no record intends it"));
            }
        }
        Kind::NODE => {
            taint(seen, change, old);
            volumes(seen, change, old);
        }
        _ => {}
    }
}

fn taint(seen: &mut Seen, change: &Change, old: &Value) {
    let Some(new) = &change.new else { return };
    let node = &*change.key.name;
    let kinds =
        [(taints::QUARANTINE, IsolationKind::Quarantine), (taints::OUT_OF_SERVICE, IsolationKind::OutOfService)];
    for (key, kind) in kinds {
        let set = !has_taint(old, key) && has_taint(new, key);
        if set && !record(seen, node).is_some_and(|status| has(status, kind)) {
            seen.broken(format!("I5: {node} got the taint {key}, and no record intends it"));
        }
    }
}

fn volumes(seen: &mut Seen, change: &Change, old: &Value) {
    let Some(new) = &change.new else { return };
    let node = &*change.key.name;
    for volume in in_use(old).filter(|volume| !in_use(new).any(|left| left == *volume)) {
        let intended =
            record(seen, node).is_some_and(|status| status.detach.adding.iter().any(|known| known == volume));
        if !intended {
            seen.broken(format!("I5: {volume} was taken out of volumesInUse of {node}, and no record intends it"));
        }
    }
}

fn record<'a>(seen: &'a Seen, node: &str) -> Option<&'a NodeFenceStatus> {
    seen.fences.get(node)?.status.as_ref()
}

fn undoes(status: &NodeFenceStatus, kind: IsolationKind) -> bool {
    status.isolations.iter().any(|known| known.kind == kind && known.state == IsolationState::Undoing)
}

fn has(status: &NodeFenceStatus, kind: IsolationKind) -> bool {
    status.isolations.iter().any(|known| known.kind == kind)
}
