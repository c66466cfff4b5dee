//! Vet / approval: where the policy wants it, a person says yes to each fence.
//!
//! Promise: under `approval: Always` nothing is admitted that nobody approved.
//! Never: takes a request for its own approval, not even an administrator's: a request says of itself where it comes
//! from, an approval is tied to a user.

use super::{Case, Gate};
use crate::policy::Approval;
use crate::reason::vet::HoldReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    match case.policy.approval {
        Approval::Always if !case.claim.approved => case.hold(HoldReason::AwaitingApproval),
        Approval::Always | Approval::Never => Gate::Open,
    }
}
