//! Vet / quiet: who has just started has not seen enough.
//!
//! Promise (I3): a process that comes up in the middle of an outage does not begin with a shot.
//! Never: counts from leadership: standby replicas watch too, so a takeover costs no second quiet period.

use super::{Case, Gate};
use crate::reason::vet::HoldReason;
use crate::time::Tick;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let quiet = case.policy.startup_quiet;
    let over = Tick::START + quiet;
    if case.now >= over {
        return Gate::Open;
    }
    Case::hold_until(over, HoldReason::StartingUp { running: case.age(Tick::START), quiet })
}
