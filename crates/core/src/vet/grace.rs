//! Vet / grace: give a node the chance to recover by itself (001).
//!
//! Promise: the grace period is time that somebody watched; it starts again after an outage of the observer, since
//! nobody knows how the node was in between.
//! Never: compares a wall clock.

use super::{Case, Gate};
use crate::reason::vet::HoldReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let grace = case.claim.grace.unwrap_or(case.policy.grace);
    let observed = case.observed();
    if observed >= grace {
        return Gate::Open;
    }
    Case::hold_until(case.now + grace.left_after(observed), HoldReason::InGrace { observed, grace })
}
