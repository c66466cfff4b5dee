//! Vet / kdump: a node that saves a kernel dump should not be switched off in the middle of it (003).
//!
//! Promise: after a failure a dump gets the time to begin (`kdump.wait` of the policy), and once it runs, to end.
//! Never: releases anything: whether a dump is a proof is for the policy and the proofs to say.

use super::{Case, Gate};
use crate::reason::vet::HoldReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let Some(node) = case.node.filter(|node| case.policy.kdump.enabled && node.down()) else {
        return Gate::Open;
    };
    let kdump = &case.policy.kdump;
    match node.kdump {
        Some(dump) if case.age(dump.last) < kdump.running_for => {
            // A dump that proves lets pods go at once; the power step waits for its end by itself.
            if kdump.proves {
                return Gate::Open;
            }
            let running = HoldReason::KdumpRunning { running: case.age(dump.began) };
            Case::hold_until(dump.last + kdump.running_for, running)
        }
        // None yet, one of an earlier failure, or one that has ended: then the wait is over as well.
        Some(_) | None => wait_for_start(case),
    }
}

fn wait_for_start(case: &Case<'_>) -> Gate {
    let (watched, wait) = (case.observed(), case.policy.kdump.wait_for_start);
    if watched >= wait {
        return Gate::Open;
    }
    Case::hold_until(case.now + wait.left_after(watched), HoldReason::KdumpExpected { watched, wait })
}
