//! Vet / budget: how many fences at once, how far apart, how many in how long a time.
//!
//! Promise (I3): this gate only spares a lost race; what holds is the compare-and-swap on the ledger (`ledger::take`),
//! which asks the same questions again.
//! Never: admits without a ledger for this very policy.

use super::{Case, Gate};
use crate::ledger::{Full, Ledger};
use crate::policy::Mode;
use crate::reason::vet::HoldReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    match &case.view.ledger {
        Some(ledger) if ledger.is_for(&case.policy.uid) => judge(case, ledger),
        // A rehearsal writes no ledger, so there may never be one: what is in view has to do.
        Some(_) | None if case.policy.mode == Mode::DryRun => judge_by_view(case),
        Some(ledger) => case.hold(HoldReason::LedgerForeign { built_for: ledger.policy_uid.clone() }),
        None => case.hold(HoldReason::LedgerMissing),
    }
}

fn judge(case: &Case<'_>, ledger: &Ledger) -> Gate {
    // That members of the control plane go one at a time is the quorum gate's to say.
    match ledger.full(case.claim.fence.as_ref(), false, &case.policy.budget) {
        None => Gate::Open,
        Some(Full::Concurrency { in_flight, allowed }) => case.hold(HoldReason::BudgetFull { in_flight, allowed }),
        Some(Full::ControlPlane { by }) => case.hold(HoldReason::ControlPlaneBusy { by }),
        Some(Full::Spacing { since, spacing }) => {
            let look_again = case.now + spacing.left_after(since);
            Case::hold_until(look_again, HoldReason::TooSoon { since, spacing })
        }
        Some(Full::Rate { granted, allowed, per, left }) => {
            Case::hold_until(case.now + left, HoldReason::RateReached { granted, allowed, per })
        }
    }
}

fn judge_by_view(case: &Case<'_>) -> Gate {
    let in_flight = case.view.fences.values().filter(|fence| fence.slot).count();
    let (in_flight, allowed) = (u32::try_from(in_flight).unwrap_or(u32::MAX), case.policy.budget.max_concurrent);
    if in_flight < allowed {
        return Gate::Open;
    }
    case.hold(HoldReason::BudgetFull { in_flight, allowed })
}
