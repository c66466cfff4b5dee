//! Vet / duplicates: one live fence per node (001: avoiding redundant fencing events).
//!
//! Promise (I5): a request for a node that is being fenced starts nothing; it is answered with that fence.
//! Never: takes the fence that was created for this very request for somebody else's.

use super::{Case, Gate};
use crate::reason::vet::HoldReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let Some(fence) = case.view.fences.get(&case.claim.target) else {
        return Gate::Open;
    };
    let uid = fence.uid.clone();
    // Held off is a person's decision, and only a person lifts it, whoever owns the fence.
    if fence.held_off {
        return case.hold(HoldReason::HeldOff { fence: uid });
    }
    if case.claim.fence.as_ref() == Some(&fence.uid) {
        return Gate::Open;
    }
    case.hold(HoldReason::FenceRunning { fence: uid })
}
