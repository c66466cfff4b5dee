//! Vet / mode and dry-run: what the policy lets the operator do at all.
//!
//! Promise: while the policy is paused nothing new is admitted; in a dry run nothing is admitted, and the request says
//! what would have been.
//! Never: stops a fence that runs.

use super::{Case, Gate};
use crate::policy::Mode;
use crate::reason::vet::HoldReason;

/// The second gate: who has paused the policy wants to read that, and not the state of the cluster.
pub(super) fn gate(case: &Case<'_>) -> Gate {
    match case.policy.mode {
        Mode::Enforce | Mode::DryRun => Gate::Open,
        Mode::Paused => case.hold(HoldReason::Paused),
    }
}

/// The last gate: who rehearses wants to read every other obstacle first.
pub(super) fn rehearsal(case: &Case<'_>) -> Gate {
    match case.policy.mode {
        Mode::Enforce | Mode::Paused => Gate::Open,
        Mode::DryRun => case.hold(HoldReason::DryRun),
    }
}
