//! Release / out of service: the upstream taint, for CSI drivers that act on it. Never by default.
//!
//! Promise (I2): set only under a power proof, only when every pod with a volume is past its removal: pod GC force-deletes
//! whatever is terminating on a node that has it. Gone before `on`: a Ready node with this taint can lose volumes in use.

use crate::fence::{Fence, IsolationKind, IsolationState, ReleaseState};
use crate::observe::{NodeLive, Observations, TaintSeen};
use crate::planted::{self, Bug};
use crate::prove::Class;
use crate::snapshot::Ready;

/// What to do about the taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutOfService {
    /// Record the intent, then set it.
    Set,
    /// Take it off.
    Lift,
    /// As it is.
    Leave,
}

/// Decides about the taint while the node is isolated.
pub(crate) fn out_of_service(fence: &Fence, node: &NodeLive, seen: &Observations) -> OutOfService {
    let ours = fence.isolations.iter().find(|isolation| isolation.kind == IsolationKind::OutOfService);
    let powered_off = fence.proofs_in_force().any(|proof| proof.class() == Class::Power);
    if planted::is(Bug::OutOfServiceUnproven) && seen.release.out_of_service {
        let set = ours.is_none() && !node.taints.contains(&TaintSeen::OutOfService);
        return if set { OutOfService::Set } else { OutOfService::Leave };
    }
    let all_detached = fence.releases.iter().all(|release| release.state == ReleaseState::Detached);
    if let Some(ours) = ours {
        let lift = !powered_off || all_detached || ours.state == IsolationState::Lifting;
        return if lift { OutOfService::Lift } else { OutOfService::Leave };
    }
    let wanted = seen.release.out_of_service
        && powered_off
        && !all_detached
        && !node.taints.contains(&TaintSeen::OutOfService)
        && (node.lease_silent || node.ready != Ready::True)
        && every_pod_is_past_removal(fence, seen);
    if wanted { OutOfService::Set } else { OutOfService::Leave }
}

/// No pod with a volume is left on the node outside the steps of its release.
fn every_pod_is_past_removal(fence: &Fence, seen: &Observations) -> bool {
    let removed = fence.releases.iter().all(|release| release.state >= ReleaseState::Removed);
    let Some(pods) = &seen.pods else { return false };
    removed && !pods.iter().any(|pod| super::lanes::claims(pod).next().is_some())
}
