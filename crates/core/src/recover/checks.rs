//! Recover / checks: is the node back, and clean?
//!
//! Promise (I9): a node is let back in only when it is Ready for long enough, every released pod and attachment is gone,
//! and it uses no released volume. A node that passes all of this is let in: no other check may hold it.

use std::collections::BTreeSet;

use crate::fence::{Fence, ReleaseState};
use crate::ident::VolumeName;
use crate::observe::{Deletion, NodeLive, NodeSeen, Observations, PodSeen};
use crate::planted::{self, Bug};
use crate::reason::recover::ReturnReason;
use crate::snapshot::Ready;

/// Whether the node is healthy: Ready, its lease moving, and everything it was fenced for has cleared.
pub fn returned(seen: &Observations) -> bool {
    match &seen.node {
        NodeSeen::There(node) => node.ready == Ready::True && !node.lease_silent && seen.evidence_cleared,
        NodeSeen::Gone => false,
    }
}

/// Everything that speaks against letting the node back in; empty: it is clean.
pub fn return_checks(fence: &Fence, seen: &Observations) -> Vec<ReturnReason> {
    let NodeSeen::There(node) = &seen.node else { return vec![ReturnReason::NodeGone] };
    if planted::is(Bug::LetsInUnchecked) {
        return Vec::new();
    }
    let mut against = Vec::new();
    readiness(node, seen, &mut against);
    let released: Vec<_> = fence.releases.iter().filter(|release| release.state > ReleaseState::Intended).collect();
    match &seen.pods {
        None => against.push(ReturnReason::PodsNotListed),
        Some(pods) => {
            let left = released.iter().filter(|release| pods.iter().any(|pod| pod.pod.uid == release.pod.uid));
            against.extend(left.map(|release| ReturnReason::PodLeft { pod: release.pod.to_string() }));
        }
    }
    let recorded: BTreeSet<_> = released.iter().flat_map(|release| &release.attachments).collect();
    match &seen.attachments {
        None => against.push(ReturnReason::AttachmentsNotListed),
        Some(attachments) => {
            let by_right = mounted_by_right(fence, seen);
            let left = attachments
                .iter()
                .filter(|seen| recorded.contains(&seen.attachment) && !by_right.contains(&seen.volume));
            against.extend(left.map(|seen| ReturnReason::AttachmentLeft { attachment: seen.attachment.to_string() }));
        }
    }
    against.extend(volumes_in_use(fence, node, seen));
    against
}

fn readiness(node: &NodeLive, seen: &Observations, against: &mut Vec<ReturnReason>) {
    if node.ready != Ready::True || node.lease_silent {
        against.push(ReturnReason::NotReady);
    } else {
        let left = seen.settings.return_hold - node.ready_for.unwrap_or_default();
        if left > crate::time::Span::ZERO || node.ready_for.is_none() {
            against.push(ReturnReason::ReadyTooShort { left });
        }
    }
    if !seen.evidence_cleared {
        against.push(ReturnReason::EvidenceStands);
    }
}

/// Released volumes that the node still uses. One that a new pod of the node mounts by right is not held against it.
fn volumes_in_use(fence: &Fence, node: &NodeLive, seen: &Observations) -> Vec<ReturnReason> {
    let released = fence.releases.iter().filter(|release| release.state >= ReleaseState::Removed);
    let volumes: BTreeSet<_> = released.flat_map(|release| &release.volumes).collect();
    let by_right = mounted_by_right(fence, seen);
    let used =
        volumes.into_iter().filter(|volume| node.volumes_in_use.contains(*volume) && !by_right.contains(*volume));
    used.map(|volume| ReturnReason::VolumeInUse { volume: volume.to_string() }).collect()
}

/// Volumes that pods of the node mount which were not released: those are there by right. So is a pod whose release never got
/// further than its intent, unless somebody has marked it since.
fn mounted_by_right<'a>(fence: &Fence, seen: &'a Observations) -> BTreeSet<&'a VolumeName> {
    let released = |pod: &PodSeen| {
        let mut releases = fence.releases.iter().filter(|release| release.pod.uid == pod.pod.uid);
        releases.any(|release| release.state > ReleaseState::Intended || pod.deletion != Deletion::No)
    };
    let rightful = seen.pods.iter().flatten().filter(|pod| !pod.completed && !released(pod));
    rightful.flat_map(|pod| crate::release::volumes_of(pod, seen)).collect()
}
