//! Vet / flap: a node that fails again and again is a person's task.
//!
//! Promise: after so many failures in so long a time nothing more happens by itself until some of them are old.
//! Never: counts failures that are older than the window.

use super::{Case, Gate};
use crate::reason::vet::HoldReason;
use crate::time::Tick;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let rule = case.policy.flap;
    let Some(node) = case.node.filter(|_| rule.count > 0 && !case.claim.approved) else {
        return Gate::Open;
    };
    let mut recent: Vec<Tick> = node.failures.iter().copied().filter(|at| case.age(*at) < rule.window).collect();
    recent.sort_unstable();
    let failures = u32::try_from(recent.len()).unwrap_or(u32::MAX);
    // The node is free again when so many have left the window that one less than the limit is in it.
    let leaves = usize::try_from(failures.saturating_sub(rule.count)).ok().and_then(|at| recent.get(at));
    match leaves {
        Some(oldest) if failures >= rule.count => {
            let why = HoldReason::Flapping { failures, window: rule.window };
            Case::hold_until(*oldest + rule.window, why)
        }
        Some(_) | None => Gate::Open,
    }
}
