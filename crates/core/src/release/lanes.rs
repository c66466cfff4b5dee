//! Release / lanes: may this pod go, and on what ground?
//!
//! The lanes differ in what a proof covers, not in how a pod is released. Node lane: whatever the node could do is
//! covered. Pod lane: only the pod's volumes are, so the pod has to say that this is enough for it.

use crate::fence::Fence;
use crate::observe::{Access, Mount, Observations, Owner, PodSeen, VolumeSeen};
use crate::prove::{Basis, Coverage, cover};
use crate::reason::release::KeepReason;

/// Which lane a pod goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lane {
    /// A proof about the whole node.
    Node,
    /// Proofs about its volumes.
    Pod,
}

/// Judges one pod by itself; its group and the pace are judged in `plan`.
pub fn may_go(fence: &Fence, pod: &PodSeen, seen: &Observations) -> Result<(Lane, Basis), KeepReason> {
    movable(pod, seen)?;
    match cover(fence, pod, seen) {
        Coverage::Node(basis) => {
            budget_allows(pod, seen)?;
            Ok((Lane::Node, basis))
        }
        Coverage::Volumes(basis) => {
            pod_lane(pod, &basis, seen)?;
            budget_allows(pod, seen)?;
            Ok((Lane::Pod, basis))
        }
        Coverage::Missing(why) => Err(why),
    }
}

/// What neither lane moves.
fn movable(pod: &PodSeen, seen: &Observations) -> Result<(), KeepReason> {
    match pod.owner {
        Owner::DaemonSet => return Err(KeepReason::DaemonSet),
        Owner::Static => return Err(KeepReason::StaticPod),
        Owner::Nobody => return Err(KeepReason::NoController),
        Owner::StatefulSet | Owner::Replaces => {}
    }
    if pod.completed {
        return Err(KeepReason::Completed);
    }
    if pod.after_taint {
        return Err(KeepReason::AfterTaint);
    }
    for name in claims(pod) {
        let Some(volume) = seen.volumes.get(name) else {
            // Perhaps local, perhaps shared: nobody can say, so it stays.
            return Err(KeepReason::UnknownVolume { volume: name.to_string() });
        };
        if volume.local {
            return Err(KeepReason::LocalVolume { volume: volume.name.to_string() });
        }
    }
    Ok(())
}

/// What the pod lane demands besides cover: storage cannot stop what a pod does over the network.
fn pod_lane(pod: &PodSeen, basis: &Basis, seen: &Observations) -> Result<(), KeepReason> {
    let opted_in = seen.release.opt_in.iter().any(|(key, value)| pod.labels.get(key) == Some(value));
    if seen.release.opt_in_required && !opted_in {
        return Err(KeepReason::NoOptIn);
    }
    if pod.mounts.contains(&Mount::HostPath) {
        return Err(KeepReason::HostPath);
    }
    if pod.mounts.contains(&Mount::InlineNetwork) {
        return Err(KeepReason::InlineNetwork);
    }
    for volume in claims(pod).filter_map(|name| seen.volumes.get(name)) {
        volume_allows(volume)?;
    }
    if pod.owner == Owner::Replaces && !basis.unpublish().is_empty() {
        return Err(KeepReason::MarkWouldRelease);
    }
    Ok(())
}

fn volume_allows(volume: &VolumeSeen) -> Result<(), KeepReason> {
    let name = || volume.name.to_string();
    if volume.access == Access::ReadWriteMany {
        return Err(KeepReason::SharedVolume { volume: name() });
    }
    match volume.healthy {
        Some(false) => Err(KeepReason::Unhealthy { volume: name() }),
        // Where a provider could be asked, its silence is no yes. A driver that fences by itself has no provider.
        None if volume.provider.is_some() => Err(KeepReason::HealthUnknown { volume: name() }),
        Some(true) | None => Ok(()),
    }
}

fn budget_allows(pod: &PodSeen, seen: &Observations) -> Result<(), KeepReason> {
    if seen.release.respect_pdb && pod.pdb_blocks { Err(KeepReason::DisruptionBudget) } else { Ok(()) }
}

/// The PersistentVolumes behind the pod's bound claims.
pub(super) fn claims(pod: &PodSeen) -> impl Iterator<Item = &Box<str>> {
    pod.mounts.iter().filter_map(|mount| match mount {
        Mount::Claim { volume, .. } => volume.as_ref(),
        Mount::HostPath | Mount::InlineNetwork | Mount::Private => None,
    })
}
