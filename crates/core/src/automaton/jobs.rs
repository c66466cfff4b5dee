//! Automaton / jobs: a Job can outlive whoever made it, so it is on record before it is made, and until it is over.
//!
//! Promise (I5): nothing that a late Job could undo or cross is sent before that Job is over: gone with every pod of it, or ended
//! and reported so by its kubelet. A pod on a node that does not answer is not over, however long it is silent.
//! Never: takes a Job that is not found for one that will never be made, while whoever recorded it may still make it (`crossing`).

use std::collections::BTreeSet;

use super::finish::give_slot_back;
use super::{Next, Turn};
use crate::effect::Effect;
use crate::fence::{Fence, ReleaseState};
use crate::observe::{CallId, Memory};
use crate::planted::{self, Bug};
use crate::reason::automaton::{MoveReason, WaitReason};
use crate::time::Span;

/// How soon Jobs that nobody wants are told to go again.
const AGAIN: Span = Span::secs(10);

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
    // It may take until a person has looked after a dead node: the budget of others must not wait with it, or that node could never
    // be fenced, and its pods never end.
    let outstanding = fence.releases.iter().any(|release| release.state == ReleaseState::Marked);
    if !outstanding && let Some(next) = give_slot_back(turn) {
        return Some(next);
    }
    let wait = WaitReason::AwaitingJobs { jobs: count(&live) };
    Some(Next::Do(vec![Effect::EndJobs(live)], wait))
}

/// Where a fence only waits, nobody wants anything any more of the Jobs that are on record: they are told to go now and then. Whether
/// they went is seen when it matters, for whoever recorded one may still make it.
pub(super) fn unwanted(turn: &Turn<'_>, memory: &mut Memory, next: Next) -> Next {
    let Next::Wait(wait, at) = next else { return next };
    let live: BTreeSet<CallId> = turn.fence.jobs.difference(&turn.seen.jobs_over).copied().collect();
    if live.is_empty() || memory.told_jobs.is_some_and(|told| turn.now < told + AGAIN) {
        let again = memory.told_jobs.filter(|_| !live.is_empty()).map(|told| told + AGAIN);
        let at = [at, again].into_iter().flatten().min();
        return Next::Wait(wait, at);
    }
    memory.told_jobs = Some(turn.now);
    Next::Do(vec![Effect::TellJobsToGo(live)], wait)
}

fn count(calls: &BTreeSet<CallId>) -> u32 {
    u32::try_from(calls.len()).unwrap_or(u32::MAX)
}
