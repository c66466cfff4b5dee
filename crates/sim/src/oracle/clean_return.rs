//! I9: our taint goes only when nothing of a released pod is left, neither in the node's memory nor in the API, and nobody else's
//! goes with it.

use palisade_api::fence::ReleaseState;
use palisade_api::names::taints;
use palisade_cluster::api::{Change, Kind, Store, metadata};
use palisade_cluster::truth::World;
use serde_json::Value;

use super::{Seen, has_taint};

/// Taints that neither we nor Kubernetes set.
fn foreign(node: &Value) -> impl Iterator<Item = &str> {
    let all = node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten();
    let keys = all.filter_map(|taint| taint.get("key").and_then(Value::as_str));
    keys.filter(|key| *key != taints::QUARANTINE && !key.starts_with("node.kubernetes.io/"))
}

pub(super) fn write(seen: &mut Seen, store: &Store, change: &Change, world: &World) {
    let (Kind::NODE, Some(old), Some(new)) = (change.key.kind, &change.old, &change.new) else { return };
    if !has_taint(old, taints::QUARANTINE) || has_taint(new, taints::QUARANTINE) {
        return;
    }
    let node = &*change.key.name;
    if let Some(lost) = foreign(old).find(|key| !foreign(new).any(|left| left == *key)) {
        seen.broken(format!("I9: {node} lost the taint {lost}, which is not ours"));
    }
    let Some(status) = seen.fences.get(node).and_then(|fence| fence.status.clone()) else { return };
    let Some(machine) = world.machines.get(node) else { return };
    // Whose release never got further than its intent may run here as before.
    for release in status.releases.iter().filter(|release| release.state != ReleaseState::Intended) {
        // One without a volume that a kubelet started from an old list writes nowhere, and ends when its kubelet catches up.
        let process = machine.processes.get(release.pod_uid.as_str());
        if process.is_some_and(|process| !process.mounts.is_empty()) {
            let pod = &release.pod_name;
            seen.broken(format!("I9: {node} was let back in with the released pod {pod} still on it"));
        }
        let left = store.list(Kind::POD).any(|(_, pod)| metadata::uid(pod) == release.pod_uid);
        if left {
            let pod = &release.pod_name;
            seen.broken(format!("I9: {node} was let back in, and the released pod {pod} is not gone"));
        }
    }
}
