//! Automaton / isolating: the isolation step, level by level.

use super::{Next, Turn, go, jobs};
use crate::fence::{Fence, IsolationKind, IsolationState, Phase, Run, SinceMark, StepWord};
use crate::isolate::{RunNext, enter, run_cut_off, vouched_for};
use crate::observe::{CallId, Memory, NodeSeen};
use crate::prove::{Class, LifeSigns, Proof, ReadPath, Verified, dumping, person_said};
use crate::reason::automaton::{FailReason, MoveReason};
use crate::recover::returned;
use crate::settings::{Method, Plan};

pub(super) fn isolating(turn: &Turn<'_>, memory: &mut Memory, run: Run) -> Next {
    let fence = turn.fence;
    if fence.stopped {
        return Next::Record(go(fence, Phase::Isolated { by: StepWord::Isolation }), MoveReason::StopAsked);
    }
    if let Some(next) = vouched(turn, StepWord::Isolation, fence) {
        return next;
    }
    let sent = memory.sent.is_some_and(|(call, _)| call.attempt == fence.attempt);
    // A healthy node is not shot, unless pods of it already run elsewhere on the word of a proof that was lost.
    if returned(turn.seen) && !fence.power_sent && !sent && !fence.released_any() {
        return Next::Record(go(fence, Phase::Returning), MoveReason::HealthyAgain);
    }
    let plan = &turn.seen.settings.isolation;
    cut_off(turn, memory, plan, run, StepWord::Isolation, Phase::Isolating)
}

/// Runs a step that cuts off, and says what its end means for the automaton.
pub(super) fn cut_off(
    turn: &Turn<'_>,
    memory: &mut Memory,
    plan: &Plan,
    run: Run,
    step: StepWord,
    phase: fn(Run) -> Phase,
) -> Next {
    let fence = turn.fence;
    if let Some(next) = before_another_try(turn, memory, run) {
        return next;
    }
    match run_cut_off(plan, run, fence, memory, turn.seen, turn.now) {
        RunNext::Do(effects, wait) => Next::Do(effects, wait),
        RunNext::Wait(wait) => Next::Wait(wait, Some(turn.now + turn.seen.settings.send_window)),
        RunNext::Advance(_, why) if tried_again(&why) && returned(turn.seen) && !fence.released_any() => {
            // The device did not do it, and the node came back meanwhile: nobody needs it off any more.
            let next = Fence { power_sent: power_sent(fence), ..go(fence, Phase::Returning) };
            Next::Record(next, MoveReason::HealthyAgain)
        }
        RunNext::Advance(next, why) => {
            let settled = settled(fence, plan, run, next);
            let isolations = enter(&settled, plan, next, turn.seen);
            Next::Record(Fence { phase: phase(next), isolations, ..settled }, why)
        }
        RunNext::IntendJob(call, why) => Next::Record(jobs::intended(turn, call), why),
        RunNext::Succeeded(proofs) => isolated(turn, memory, plan, run, step, proofs),
        RunNext::Exhausted(why) => {
            let failed = Phase::Failed { at: step, why: why.clone() };
            Next::Record(Fence { power_sent: power_sent(fence), ..go(fence, failed) }, MoveReason::Failed { why })
        }
    }
}

/// A try that follows one that failed: minutes may have passed, and the watches may have stood still. So the Node and its lease are
/// read once more before anything is sent, and a node that is well is not shot.
fn before_another_try(turn: &Turn<'_>, memory: &Memory, run: Run) -> Option<Next> {
    let fence = turn.fence;
    let again = run.tries > 0 || run.rounds > 0 || run.level > 0;
    // A try that another process wrote down and that nobody has begun is none yet.
    let begun = memory.sent.is_some_and(|(call, _)| call == CallId::of(fence.attempt, &run));
    let NodeSeen::There(node) = &turn.seen.node else { return None };
    if !again || begun || fence.released_any() {
        return None;
    }
    if returned(turn.seen) {
        let next = Fence { power_sent: power_sent(fence), ..go(fence, Phase::Returning) };
        return Some(Next::Record(next, MoveReason::HealthyAgain));
    }
    node.read.is_none_or(|read| read.id < memory.try_read).then_some(Next::Look)
}

/// Whether a method has failed, and the step goes on with another try.
fn tried_again(why: &MoveReason) -> bool {
    matches!(why, MoveReason::MethodRetried { .. } | MoveReason::NextLevel { .. } | MoveReason::StepRetried { .. })
}

/// A level succeeded: its isolations are in force, its proofs stand beside those of an earlier step.
fn isolated(turn: &Turn<'_>, memory: &Memory, plan: &Plan, run: Run, by: StepWord, proofs: Vec<Proof>) -> Next {
    let fence = turn.fence;
    let why = if proofs.is_empty() {
        MoveReason::IsolatedWithoutProof
    } else {
        MoveReason::Isolated { proofs: u32::try_from(proofs.len()).unwrap_or(u32::MAX) }
    };
    let mut next = go(fence, Phase::Isolated { by });
    let level = plan.levels.get(run.level as usize).map_or(&[][..], |level| &level.methods);
    for isolation in &mut next.isolations {
        if level.iter().any(|method| method.name == isolation.method && in_force(method)) {
            isolation.state = IsolationState::InForce;
        }
    }
    next.power_sent = power_sent(fence);
    let off = proofs.iter().any(|proof| proof.class() == Class::Power);
    if off && memory.last_read.as_ref().is_some_and(|(id, ..)| *id >= memory.marked_read) {
        next.since_mark = SinceMark::Off;
    }
    next.proofs.extend(proofs);
    Next::Record(next, why)
}

/// What is certain about the fence's isolations when it leaves `run` for `next`: a method that passed is in force.
fn settled(fence: &Fence, plan: &Plan, run: Run, next: Run) -> Fence {
    let mut fence = Fence { power_sent: power_sent(fence), ..fence.clone() };
    if next.level == run.level
        && next.method > run.method
        && let Some(method) = plan.method(run.level, run.method)
        && in_force(method)
    {
        for isolation in fence.isolations.iter_mut().filter(|isolation| isolation.method == method.name) {
            isolation.state = IsolationState::InForce;
        }
    }
    fence
}

/// Whether a method that has passed is in force: it was read back, or the policy vouches for it.
fn in_force(method: &Method) -> bool {
    method.path != ReadPath::Declared || vouched_for(method)
}

/// A power action counts as sent as soon as it is intended: a crash hides whether it went out.
fn power_sent(fence: &Fence) -> bool {
    fence.power_sent || fence.isolated_by(IsolationKind::Power)
}

/// A person's word, or a kernel dump that the policy lets count, stands in for a device. The proof belongs to `onward`: this
/// fence, or its next attempt where a step has already failed.
pub(super) fn vouched(turn: &Turn<'_>, by: StepWord, onward: &Fence) -> Option<Next> {
    let (fence, seen) = (turn.fence, turn.seen);
    let (target, NodeSeen::There(node)) = (fence.target.as_ref()?, &seen.node) else { return None };
    // A word that was belied by a sign of life is not taken up again for the same boot.
    let refuted = fence.refuted.as_ref() == Some(&target.boot);
    if fence.stopped || refuted || fence.proofs_in_force().any(|proof| proof.class().whole_node()) {
        return None;
    }
    let same = node.uid == target.uid && node.boot() == Some(&target.boot);
    let (verified, why): (Verified, MoveReason) = match &seen.admin.confirm {
        Some(said) if same && said.uid == target.uid && said.boot == target.boot => {
            (person_said(&said.by, true)?, MoveReason::Confirmed)
        }
        Some(_) | None => (dumping(seen.kdump_proves, same, node.lease_silent)?, MoveReason::DumpSeen),
    };
    if !turn.live(node) {
        return Some(Next::Look);
    }
    let id = onward.next_proof();
    let baseline: LifeSigns = node.life.clone();
    let mut next = go(onward, Phase::Isolated { by });
    next.proofs.push(Proof::state(id, target, onward, verified, baseline));
    Some(Next::Record(next, why))
}

/// The step failed.
pub(super) fn fail(fence: &Fence, at: StepWord, why: FailReason) -> Next {
    Next::Record(go(fence, Phase::Failed { at, why: why.clone() }), MoveReason::Failed { why })
}
