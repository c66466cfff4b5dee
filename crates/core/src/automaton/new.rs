//! Automaton / new: nothing has been done yet.
//!
//! New, healthy before any effect: closed. New, every gate open and a slot taken: the incarnation is read live, all old
//! proofs are dropped, and the isolation step begins.

use super::finish::give_slot_back;
use super::{Next, Turn, crossing, held_slot, take_slot};
use crate::fence::{End, Fence, Phase, Slot};
use crate::ident::Incarnation;
use crate::isolate::enter;
use crate::observe::{LedgerSeen, Memory, NodeSeen, Observations, Vetted};
use crate::planted::{self, Bug};
use crate::reason::automaton::{FailReason, MoveReason, WaitReason};
use crate::recover::returned;

pub(super) fn new(turn: &Turn<'_>, memory: &Memory) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if fence.stopped {
        return end_or_return(turn, End::Stopped, MoveReason::Stopped);
    }
    if returned(seen) && !planted::is(Bug::FencesTheRecovered) {
        return end_or_return(turn, End::NeverNeeded, MoveReason::RecoveredByItself);
    }
    let NodeSeen::There(node) = &seen.node else {
        return end_or_return(turn, End::NodeGone, MoveReason::NodeGone);
    };
    if fence.slot == Slot::None && matches!(seen.ledger, LedgerSeen::Present { grant } if grant > fence.grant) {
        // A slot that was taken is on record before anything else is decided: only then can it be given back.
        return take_slot(turn, fence.grant.saturating_add(1));
    }
    // A restart of a flow that has left traces goes on: what it protects must not be forgotten over a closed gate.
    if !fence.left_traces() {
        match seen.vetted {
            Vetted::Open => {}
            Vetted::Closed => {
                let wait = Next::Wait(WaitReason::VettingClosed, Some(turn.now + seen.release.look_again));
                // It may wait for long: the budget of others must not wait with it. Not at once: each slot counts for the rate.
                let for_long = turn.waited >= seen.release.look_again;
                return if for_long { give_slot_back(turn).unwrap_or(wait) } else { wait };
            }
            Vetted::Refused => return end_or_return(turn, End::Refused, MoveReason::VettingRefused),
        }
    }
    // I1: what an earlier process was lifting must not be lifted after it was cut off, and read back, anew. Before the slot: others
    // need not wait with us.
    if let Some(wait) = crossing(turn, memory, None) {
        return wait;
    }
    match (fence.slot, seen.ledger) {
        (Slot::None, _) => return take_slot(turn, fence.grant.saturating_add(1)),
        // Nothing was done under it, so it is given up on paper first: no later ledger may be built with it in it.
        (Slot::Held, LedgerSeen::Absent) => {
            return Next::Record(Fence { slot: Slot::None, ..fence.clone() }, MoveReason::SlotLost);
        }
        (Slot::Held, _) => {
            if let Some(next) = held_slot(turn) {
                return next;
            }
        }
    }
    if !turn.live(node) {
        return Next::Look;
    }
    let Some(boot) = node.boot() else {
        let failed = Phase::Failed { at: crate::fence::StepWord::Isolation, why: FailReason::NoBoot };
        return Next::Record(super::go(fence, failed), MoveReason::Failed { why: FailReason::NoBoot });
    };
    let target = Incarnation { node: fence.node.clone(), uid: node.uid.clone(), boot: boot.clone() };
    begin(fence, target, seen)
}

/// A new attempt: old proofs are dropped, and the first method's intent is on record.
pub(super) fn begin(fence: &Fence, target: Incarnation, seen: &Observations) -> Next {
    let run = fence.first_run();
    let isolations = enter(fence, &seen.settings.isolation, run, seen);
    let next = Fence { phase: Phase::Isolating(run), target: Some(target), isolations, ..fence.next_attempt() };
    let attempt = next.attempt;
    Next::Record(next, MoveReason::IsolationBegins { attempt })
}

/// Over, if nothing was ever done; otherwise what was done has to be undone first.
fn end_or_return(turn: &Turn<'_>, end: End, why: MoveReason) -> Next {
    let phase = if turn.fence.left_traces() { Phase::Returning } else { Phase::Final(end) };
    Next::Record(super::go(turn.fence, phase), why)
}
