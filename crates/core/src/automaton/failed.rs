//! Automaton / failed: hold, say why, try again; never give up silently, never release.

use super::finish::give_slot_back;
use super::isolating::vouched;
use super::{Next, Turn, go};
use crate::fence::{Fence, Phase, ReleaseState, StepWord};
use crate::planted::{self, Bug};
use crate::reason::automaton::{FailReason, MoveReason, WaitReason};
use crate::recover::returned;
use crate::time::Span;

pub(super) fn failed(turn: &Turn<'_>, at: StepWord, _why: &FailReason) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if let Some(next) = vouched(turn, StepWord::Isolation, &fence.next_attempt()) {
        return next;
    }
    let left = pause(turn) - turn.waited;
    // A recovery that failed is tried again after the pause; a node that recovered by itself is believed at once.
    if returned(seen) && !planted::is(Bug::FencesTheRecovered) && (at != StepWord::Recovery || left == Span::ZERO) {
        return Next::Record(go(fence, Phase::Returning), MoveReason::HealthyAgain);
    }
    if fence.stopped && left == Span::ZERO {
        return Next::Record(go(fence, Phase::Returning), MoveReason::StopAsked);
    }
    let outstanding = fence.releases.iter().any(|release| release.state == ReleaseState::Marked);
    if !outstanding && let Some(next) = give_slot_back(turn) {
        return next;
    }
    if left > Span::ZERO {
        return Next::Wait(WaitReason::BackingOff { left }, Some(turn.now + left));
    }
    let restarts = fence.restarts.saturating_add(1);
    if planted::is(Bug::GivesUp) && restarts > seen.settings.restarts {
        return Next::Wait(WaitReason::Stopped, None);
    }
    if planted::is(Bug::GivesUpAndReleases)
        && restarts > 1
        && let Some(next) = released_all_the_same(turn)
    {
        return next;
    }
    let why = if restarts <= seen.settings.restarts {
        MoveReason::Restarted { restarts }
    } else {
        MoveReason::SlowRetry { restarts }
    };
    Next::Record(Fence { restarts, phase: Phase::New, ..fence.next_attempt() }, why)
}

/// A bug on purpose: a proof out of nothing.
fn released_all_the_same(turn: &Turn<'_>) -> Option<Next> {
    let fence = Fence { restarts: turn.fence.restarts.saturating_add(1), ..turn.fence.next_attempt() };
    let crate::observe::NodeSeen::There(node) = &turn.seen.node else { return None };
    let boot = node.boot()?.clone();
    let target = crate::ident::Incarnation { node: fence.node.clone(), uid: node.uid.clone(), boot };
    let verified = crate::prove::person_said("nobody", true)?;
    let fence = Fence { target: Some(target.clone()), ..fence };
    let proof = crate::prove::Proof::state(fence.next_proof(), &target, &fence, verified, node.life.clone());
    let next = Fence { proofs: vec![proof], ..go(&fence, Phase::Isolated { by: StepWord::Isolation }) };
    Some(Next::Record(next, MoveReason::StopAsked))
}

/// The pause doubles with every restart, up to the slowest.
fn pause(turn: &Turn<'_>) -> Span {
    let settings = &turn.seen.settings;
    let doubled = settings.backoff.times(1_u64 << turn.fence.restarts.min(20));
    doubled.min(settings.slowest)
}
