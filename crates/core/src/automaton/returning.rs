//! Automaton / returning: wait until the node is healthy and clean; then recover it and undo what was done.

use super::boots;
use super::finish::give_slot_back;
use super::isolated::lift_out_of_service;
use super::isolating::fail;
use super::{Next, Turn, crossing, go, guard, jobs};
use crate::effect::{Effect, NodeChange, NodePatch};
use crate::fence::{End, Fence, Isolation, IsolationKind, IsolationState, Phase, Run, SinceMark, StepWord};
use crate::isolate::{RunNext, run_restore, unplanned};
use crate::observe::{CallId, Memory, NodeSeen, TaintSeen};
use crate::planted::{self, Bug};
use crate::prove::Class;
use crate::reason::automaton::{FailReason, MoveReason, WaitReason};
use crate::reason::prove::ProofEnd;
use crate::recover::{next_lift, not_lifting_yet, return_checks, returned};
use crate::settings::{Level, Plan};
use crate::time::Span;

pub(super) fn returning(turn: &Turn<'_>) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if let NodeSeen::There(node) = &seen.node
        && fence.isolated_by(IsolationKind::OutOfService)
    {
        // Gone at the first sign of life, and before a machine is kept off: a Ready node with it can lose volumes in use.
        return lift_out_of_service(turn, node);
    }
    if seen.settings.stay_off && fence.isolated_by(IsolationKind::Power) && !fence.stopped && !seen.admin.resume {
        return Next::Record(go(fence, Phase::Final(End::HeldOff)), MoveReason::HeldOff);
    }
    if matches!(seen.node, NodeSeen::Gone) {
        return node_gone(turn);
    }
    if boots::asked(fence) && fence.since_mark == SinceMark::Unknown {
        // Before the node posts anything: its first status from here on tells which boot is the old one.
        return Next::Look;
    }
    if fence.isolated_by(IsolationKind::Power) && (!returned(seen) || several_feeds(fence)) {
        // Stopped, or somebody else's doing: a machine is never left off without a word, nor on one feed of two.
        return switch_on(fence);
    }
    if fence.isolated_by(IsolationKind::Network) && !returned(seen) && seen.admin.resume {
        // Cut off from the network it cannot come back; a person says that it may be lifted now.
        return switch_on(fence);
    }
    if !returned(seen) {
        return not_healthy(turn);
    }
    let against = return_checks(fence, seen);
    match against.first() {
        None => match heard_too_short(turn) {
            Some(left) => Next::Wait(WaitReason::HeardTooShort { left }, Some(turn.now + left)),
            None => Next::Record(go(fence, Phase::Recovering(fence.first_run())), MoveReason::NodeReturned),
        },
        Some(_) if seen.pods.is_none() || seen.attachments.is_none() => {
            Next::Do(vec![Effect::ListPods], WaitReason::AwaitingPods)
        }
        Some(why) => Next::Wait(WaitReason::AwaitingReturn { why: why.to_string() }, Some(turn.now + Span::secs(5))),
    }
}

/// Whether more than one device was to cut the machine's power: it may run, and one of its feeds may be off.
fn several_feeds(fence: &Fence) -> bool {
    fence.isolations.iter().filter(|isolation| isolation.kind == IsolationKind::Power).count() > 1
}

/// How much longer a machine that we switched off has to be seen well before that is believed. What shows it well now may be from
/// before the off: its Ready is as old as its last status, and a renewal may have been seen late. While we wait, its lease
/// moves or falls silent.
fn heard_too_short(turn: &Turn<'_>) -> Option<Span> {
    let left = turn.seen.settings.return_hold - turn.waited;
    (turn.fence.isolated_by(IsolationKind::Power) && left > Span::ZERO).then_some(left)
}

fn not_healthy(turn: &Turn<'_>) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if fence.stopped {
        // It may wait for days: the budget of others must not wait with it.
        let wait = Next::Wait(WaitReason::Stopped, Some(turn.now + seen.release.look_again));
        return give_slot_back(turn).unwrap_or(wait);
    }
    let left = seen.settings.recovery_timeout - turn.waited;
    if left == Span::ZERO {
        return fail(fence, StepWord::Recovery, FailReason::NotHealthyInTime { waited: turn.waited });
    }
    Next::Wait(WaitReason::AwaitingHealth { left }, Some(turn.now + left))
}

/// The Node object is gone. Without a successor nothing is released; the machine goes on when nothing names it any more.
fn node_gone(turn: &Turn<'_>) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    let Some(pods) = &seen.pods else {
        return Next::Do(vec![Effect::ListPods], WaitReason::AwaitingPods);
    };
    if !pods.is_empty() {
        return Next::Wait(WaitReason::PodsNameTheNode, Some(turn.now + seen.release.look_again));
    }
    let deleted_by_us = fence.isolated_by(IsolationKind::NodeDeletion);
    if fence.isolated_by(IsolationKind::Power) && !deleted_by_us && !planted::is(Bug::ForgetsTheMachine) {
        return switch_on(fence);
    }
    if beyond_the_node(fence).is_some() {
        if deleted_by_us || seen.admin.resume {
            return Next::Record(go(fence, Phase::Recovering(fence.first_run())), MoveReason::LiftWithoutNode);
        }
        return Next::Wait(WaitReason::HeldForPerson, Some(turn.now + seen.release.look_again));
    }
    forget_with_node(fence)
}

/// What cuts the machine off by itself, whether it has a Node or not: it is lifted by its own provider, never forgotten.
fn beyond_the_node(fence: &Fence) -> Option<&Isolation> {
    let beyond = |isolation: &&Isolation| matches!(isolation.kind, IsolationKind::Network | IsolationKind::Storage);
    fence.isolations.iter().find(beyond)
}

/// What was done to the object went with it.
fn forget_with_node(fence: &Fence) -> Next {
    if let Some(standing) = fence.isolations.iter().find(|isolation| isolation.state != IsolationState::Lifting) {
        let why = MoveReason::LiftIntended { method: standing.method.clone() };
        let all = fence.isolations.iter().fold(fence.clone(), |next, isolation| lifting(&next, isolation));
        return Next::Record(all, why);
    }
    let next = Fence { isolations: Vec::new(), ..go(fence, Phase::Final(End::NodeGone)) };
    Next::Record(next, MoveReason::NodeGone)
}

/// The node does not come back: a person said so, or we deleted it while its machine was proven off.
fn recovering_without_node(turn: &Turn<'_>, memory: &mut Memory, run: Run) -> Next {
    let fence = turn.fence;
    if let Some(wait) = jobs_are_out(turn, memory, run) {
        return wait;
    }
    let allowed = turn.seen.admin.resume || fence.isolated_by(IsolationKind::NodeDeletion);
    match beyond_the_node(fence) {
        Some(isolation) if allowed || isolation.state == IsolationState::Lifting => {
            lift(turn, memory, run, &isolation.clone(), Phase::Recovering)
        }
        Some(_) | None => Next::Record(go(fence, Phase::Returning), MoveReason::NodeGone),
    }
}

/// From recovery back to the power step: an attempt of its own, as every way back is.
fn switch_on(fence: &Fence) -> Next {
    let run = fence.first_run();
    Next::Record(Fence { phase: Phase::PoweringOn(run), ..fence.next_attempt() }, MoveReason::OnIntended)
}

/// The intent to lift: from here on the isolation protects nothing, and no proof stands on it.
pub(super) fn lifting(fence: &Fence, isolation: &Isolation) -> Fence {
    let mut next = fence.clone();
    for other in next.isolations.iter_mut().filter(|other| *other == isolation) {
        other.state = IsolationState::Lifting;
    }
    let behind = |class: Class| match isolation.kind {
        IsolationKind::Network => class == Class::Network,
        IsolationKind::Storage => class == Class::Storage,
        IsolationKind::Driver => class == Class::Driver,
        IsolationKind::Power => class.whole_node(),
        IsolationKind::Cordon
        | IsolationKind::OutOfService
        | IsolationKind::Quarantine
        | IsolationKind::NodeDeletion => false,
    };
    for proof in next.proofs.iter_mut().filter(|proof| behind(proof.class())) {
        proof.end(ProofEnd::LiftIntended);
    }
    next
}

pub(super) fn recovering(turn: &Turn<'_>, memory: &mut Memory, run: Run) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if matches!(seen.node, NodeSeen::Gone) {
        return recovering_without_node(turn, memory, run);
    }
    if seen.pods.is_none() || seen.attachments.is_none() {
        return Next::Do(vec![Effect::ListPods], WaitReason::AwaitingPods);
    }
    if !return_checks(fence, seen).is_empty() {
        return Next::Record(go(fence, Phase::Returning), MoveReason::Failed { why: not_clean(fence, seen) });
    }
    // Before the recovery step, too: a method of it (fc-on) may lift what keeps stale writes away from a released volume.
    let next = match next_lift(fence, seen) {
        Ok(next) => next,
        Err(why) => {
            let wait = WaitReason::AwaitingReturn { why: why.to_string() };
            return Next::Wait(wait, Some(turn.now + seen.release.look_again));
        }
    };
    if let Some(isolation) = not_lifting_yet(fence) {
        return Next::Record(lifting(fence, isolation), MoveReason::LiftIntended { method: isolation.method.clone() });
    }
    // A Job that still cuts off would undo what is given back here.
    if let Some(wait) = jobs_are_out(turn, memory, run) {
        return wait;
    }
    let plan = &seen.settings.recovery;
    let done = u32::try_from(plan.levels.len()).unwrap_or(u32::MAX);
    if run.level < done {
        return match run_restore(plan, run, fence, memory, seen, turn.now) {
            RunNext::Do(effects, wait) => Next::Do(effects, wait),
            RunNext::Wait(wait) => Next::Wait(wait, Some(turn.now + seen.settings.send_window)),
            RunNext::Advance(next, why) => Next::Record(go(fence, Phase::Recovering(next)), why),
            RunNext::IntendJob(call, why) => Next::Record(jobs::intended(turn, call), why),
            RunNext::Succeeded(_) => {
                let next = Run { level: done, method: 0, tries: 0, call: run.call.saturating_add(1), ..run };
                Next::Record(go(fence, Phase::Recovering(next)), MoveReason::NextMethod { level: done, method: 0 })
            }
            RunNext::Exhausted(why) => fail(fence, StepWord::Recovery, why),
        };
    }
    if let Some(isolation) = next {
        return lift(turn, memory, run, &isolation, Phase::Recovering);
    }
    let end = if fence.stopped { End::Stopped } else { End::Recovered };
    Next::Record(go(fence, Phase::Final(end)), MoveReason::Recovered)
}

/// What a Job could still do, or the request for one. Whoever called none has nothing to wait for.
fn jobs_are_out(turn: &Turn<'_>, memory: &Memory, run: Run) -> Option<Next> {
    if turn.fence.jobs.is_empty() {
        return None;
    }
    crossing(turn, memory, Some(CallId::of(turn.fence.attempt, &run)))
}

fn not_clean(fence: &Fence, seen: &crate::observe::Observations) -> FailReason {
    let why = return_checks(fence, seen).first().map(ToString::to_string).unwrap_or_default();
    FailReason::NotClean { why }
}

/// Lifts one isolation: the intent, the act, and the read that shows it lifted. Only then does it leave the record.
pub(super) fn lift(
    turn: &Turn<'_>,
    memory: &mut Memory,
    run: Run,
    isolation: &Isolation,
    phase: fn(Run) -> Phase,
) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if isolation.state != IsolationState::Lifting {
        return Next::Record(lifting(fence, isolation), MoveReason::LiftIntended { method: isolation.method.clone() });
    }
    match isolation.kind {
        IsolationKind::Network | IsolationKind::Storage => {}
        // Driver: our attacher reads the record, and refuses nothing that is not in it. Power: the node is healthy, so
        // the machine is on, whoever switched it on. Deletion: the Node is there again.
        IsolationKind::Driver | IsolationKind::Power | IsolationKind::NodeDeletion => {
            return lifted(fence, isolation, fence.phase.clone());
        }
        IsolationKind::Cordon | IsolationKind::OutOfService | IsolationKind::Quarantine => {
            return unmark(turn, isolation);
        }
    }
    let Some(method) = seen.settings.undo.get(&isolation.method) else {
        let lost = FailReason::RestoreFailed { method: isolation.method.clone() };
        return fail(fence, StepWord::Recovery, unplanned(seen, lost));
    };
    let plan = Plan { levels: vec![Level { methods: vec![method.clone()] }], retries: 0 };
    let at_start = Run { level: 0, method: 0, ..run };
    match run_restore(&plan, at_start, fence, memory, seen, turn.now) {
        RunNext::Do(effects, wait) => Next::Do(effects, wait),
        RunNext::Wait(wait) => Next::Wait(wait, Some(turn.now + seen.settings.send_window)),
        RunNext::Advance(next, why) => {
            Next::Record(go(fence, phase(Run { level: run.level, method: run.method, ..next })), why)
        }
        RunNext::IntendJob(call, why) => Next::Record(jobs::intended(turn, call), why),
        RunNext::Succeeded(_) => {
            lifted(fence, isolation, phase(Run { call: run.call.saturating_add(1), tries: 0, ..run }))
        }
        RunNext::Exhausted(why) => fail(fence, StepWord::Recovery, why),
    }
}

fn lifted(fence: &Fence, isolation: &Isolation, phase: Phase) -> Next {
    let mut next = go(fence, phase);
    next.isolations.retain(|other| other != isolation);
    Next::Record(next, MoveReason::Lifted { method: isolation.method.clone() })
}

/// Our marks on the Node: patched off, and believed gone when they are seen gone.
fn unmark(turn: &Turn<'_>, isolation: &Isolation) -> Next {
    let fence = turn.fence;
    let NodeSeen::There(node) = &turn.seen.node else {
        return lifted(fence, isolation, fence.phase.clone());
    };
    let (marked, change) = match isolation.kind {
        IsolationKind::Cordon => (node.cordoned, NodeChange::Uncordon),
        IsolationKind::OutOfService => (node.taints.contains(&TaintSeen::OutOfService), NodeChange::LiftOutOfService),
        IsolationKind::Quarantine => {
            (node.taints.contains(&TaintSeen::Quarantine(fence.uid.clone())), NodeChange::LiftQuarantine)
        }
        IsolationKind::Network
        | IsolationKind::Power
        | IsolationKind::Storage
        | IsolationKind::Driver
        | IsolationKind::NodeDeletion => return lifted(fence, isolation, fence.phase.clone()),
    };
    if marked {
        let patch = NodePatch { guard: guard(node), change };
        return Next::Do(vec![Effect::PatchNode(patch)], WaitReason::AwaitingTaint);
    }
    if !turn.live(node) {
        return Next::Look;
    }
    lifted(fence, isolation, fence.phase.clone())
}
