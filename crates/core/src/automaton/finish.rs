//! Automaton / finish: the slot goes back, the result is written, the fence goes.

use super::{Next, Turn, crossing, go};
use crate::effect::Effect;
use crate::fence::{End, Fence, Phase, Slot};
use crate::observe::{LedgerSeen, Memory, NodeSeen};
use crate::reason::automaton::{MoveReason, WaitReason};

pub(super) fn finish(turn: &Turn<'_>, memory: &Memory, end: End) -> Next {
    if let Some(next) = give_slot_back(turn) {
        return next;
    }
    let fence = turn.fence;
    // A call could still go out, and nobody would be left to undo it.
    if let Some(wait) = crossing(turn, memory, None) {
        return wait;
    }
    match end {
        End::HeldOff => held_off(turn),
        End::Recovered | End::NeverNeeded | End::Refused | End::NodeGone | End::Stopped => {
            Next::Do(vec![Effect::Close { fence: fence.uid.clone(), end }], WaitReason::Closing)
        }
    }
}

/// The record first, then the ledger: an entry without a slot is garbage, a slot without an entry would be a lie.
pub(super) fn give_slot_back(turn: &Turn<'_>) -> Option<Next> {
    let fence = turn.fence;
    if fence.slot == Slot::Held {
        return Some(Next::Record(Fence { slot: Slot::None, ..fence.clone() }, MoveReason::SlotGivenBack));
    }
    let effect = match turn.seen.ledger {
        // A later slot was taken by a process that did not live to record it: it is swept when the fence is gone.
        LedgerSeen::Present { grant } if grant > fence.grant => return None,
        LedgerSeen::Present { .. } => Effect::GiveSlotBack { grant: fence.grant },
        LedgerSeen::Unknown if fence.grant > 0 => Effect::ReadLedger,
        LedgerSeen::Absent | LedgerSeen::Unknown => return None,
    };
    Some(Next::Do(vec![effect], WaitReason::AwaitingSlot))
}

/// A machine that is kept off stays so until a person resumes it or its Node is gone.
fn held_off(turn: &Turn<'_>) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    let on = || go(fence, Phase::PoweringOn(fence.first_run()));
    if seen.admin.resume || seen.admin.stop {
        return Next::Record(on(), MoveReason::ResumeAsked);
    }
    let named = seen.pods.as_ref().is_none_or(|pods| !pods.is_empty());
    match &seen.node {
        NodeSeen::Gone if !named => {
            // Its machine stays off, as asked; there is nothing left that could be undone.
            Next::Record(go(fence, Phase::Final(End::NodeGone)), MoveReason::NodeGone)
        }
        NodeSeen::Gone if seen.pods.is_none() => Next::Do(vec![Effect::ListPods], WaitReason::AwaitingPods),
        NodeSeen::Gone | NodeSeen::There(_) => {
            Next::Wait(WaitReason::HeldForPerson, Some(turn.now + seen.release.look_again))
        }
    }
}
