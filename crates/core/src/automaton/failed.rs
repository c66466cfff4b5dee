//! Automaton / failed: hold, say why, try again; never give up silently, never release.

use super::finish::give_slot_back;
use super::isolating::vouched;
use super::{Next, Turn, go};
use crate::fence::{Fence, Phase, ReleaseState, StepWord};
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
    if returned(seen) && (at != StepWord::Recovery || left == Span::ZERO) {
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
    let why = if restarts <= seen.settings.restarts {
        MoveReason::Restarted { restarts }
    } else {
        MoveReason::SlowRetry { restarts }
    };
    Next::Record(Fence { restarts, phase: Phase::New, ..fence.next_attempt() }, why)
}

/// The pause doubles with every restart, up to the slowest.
fn pause(turn: &Turn<'_>) -> Span {
    let settings = &turn.seen.settings;
    let doubled = settings.backoff.times(1_u64 << turn.fence.restarts.min(20));
    doubled.min(settings.slowest)
}
