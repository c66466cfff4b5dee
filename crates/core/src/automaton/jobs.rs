//! Automaton / jobs: a Job can outlive whoever made it, so it is on record before it is made, and until it is over.
//!
//! Promise (I5): nothing that a late Job could undo or cross is sent before that Job is over: gone with every pod of it, or ended
//! and reported so by its kubelet. A pod on a node that does not answer is not over, however long it is silent.
//! Never: takes a Job that is not found for one that will never be made, while whoever recorded it may still make it (`crossing`).

use std::collections::BTreeSet;

use super::{Next, Turn};
use crate::effect::Effect;
use crate::fence::Fence;
use crate::observe::CallId;
use crate::planted::{self, Bug};
use crate::reason::automaton::{MoveReason, WaitReason};

/// The fence with one more Job that may act; those that are over leave the record with the same write.
pub(super) fn intended(turn: &Turn<'_>, call: CallId) -> Fence {
    let mut next = turn.fence.clone();
    next.jobs.retain(|known| !turn.seen.jobs_over.contains(known));
    next.jobs.insert(call);
    next
}

/// What is to be done before nothing is left that a Job could do, other than the one of the call `but`; nothing: go on.
pub(super) fn over(turn: &Turn<'_>, but: Option<CallId>) -> Option<Next> {
    let (fence, seen) = (turn.fence, turn.seen);
    let waited_for: BTreeSet<CallId> = fence.jobs.iter().copied().filter(|call| Some(*call) != but).collect();
    if waited_for.is_empty() || planted::is(Bug::ForgetsItsJobs) {
        return None;
    }
    let live: BTreeSet<CallId> = waited_for.difference(&seen.jobs_over).copied().collect();
    if live.is_empty() {
        let mut next = fence.clone();
        next.jobs.retain(|call| !waited_for.contains(call));
        return Some(Next::Record(next, MoveReason::JobsOver { jobs: count(&waited_for) }));
    }
    let wait = WaitReason::AwaitingJobs { jobs: count(&live) };
    Some(Next::Do(vec![Effect::EndJobs(live)], wait))
}

/// The same for whoever is in the middle of a call of its own.
pub(super) fn over_but(turn: &Turn<'_>, own: CallId) -> Option<Next> {
    over(turn, Some(own))
}

fn count(calls: &BTreeSet<CallId>) -> u32 {
    u32::try_from(calls.len()).unwrap_or(u32::MAX)
}
