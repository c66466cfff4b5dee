//! Automaton / power: off and verified, then, when everything is released, on again.
//!
//! Promise (I1): `on` ends every power proof in the very record that intends it, before it is sent; the out-of-service taint
//! is seen gone before; a network isolation is lifted before, while the machine reads off.
//! Promise (I5): nothing is sent that could cross an `off` of an earlier process, or one of ours that nobody has answered for.

use super::boots::{self, power_since_mark};
use super::isolated::lift_out_of_service;
use super::isolating::{cut_off, fail};
use super::returning::lift;
use super::{Next, Turn, crossing, go, jobs};
use crate::fence::{Fence, Isolation, IsolationKind, IsolationState, Phase, Run, SinceMark, StepWord};
use crate::isolate::{RunNext, plugs_behind, read_for, run_restore, unplanned};
use crate::observe::{CallId, Memory, NodeSeen};
use crate::planted::{self, Bug};
use crate::prove::{Class, Judged};
use crate::reason::automaton::{FailReason, MoveReason, WaitReason};
use crate::reason::prove::ProofEnd;
use crate::recover::returned;
use crate::settings::{Level, Method, Plan};

pub(super) fn powering_off(turn: &Turn<'_>, memory: &mut Memory, run: Run) -> Next {
    let fence = turn.fence;
    if fence.stopped {
        return Next::Record(go(fence, Phase::Isolated { by: StepWord::PowerManagement }), MoveReason::StopAsked);
    }
    let sent = memory.sent.is_some_and(|(call, _)| call == CallId::of(fence.attempt, &run));
    if returned(turn.seen) && !fence.power_sent && !sent {
        return Next::Record(go(fence, Phase::Returning), MoveReason::HealthyAgain);
    }
    let plan = &turn.seen.settings.power_off;
    cut_off(turn, memory, plan, run, StepWord::PowerManagement, Phase::PoweringOff)
}

pub(super) fn powering_on(turn: &Turn<'_>, memory: &mut Memory, run: Run) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if let Some(wait) = crossing(turn, memory, Some(CallId::of(fence.attempt, &run))) {
        return wait;
    }
    if let Some(next) = before_on(turn, memory, run) {
        return next;
    }
    if !fence.isolated_by(IsolationKind::Power) {
        return Next::Record(go(fence, Phase::Returning), MoveReason::PoweredOn);
    }
    match run_restore(&way_on(turn), run, fence, memory, seen, turn.now) {
        RunNext::Do(effects, wait) => Next::Do(effects, wait),
        RunNext::Wait(wait) => Next::Wait(wait, Some(turn.now + seen.settings.send_window)),
        RunNext::Advance(next, why) => Next::Record(go(fence, Phase::PoweringOn(next)), why),
        RunNext::IntendJob(call, why) => Next::Record(jobs::intended(turn, call), why),
        RunNext::Succeeded(_) => {
            let mut next = go(fence, Phase::Returning);
            next.isolations.retain(|isolation| isolation.kind != IsolationKind::Power);
            Next::Record(next, MoveReason::PoweredOn)
        }
        RunNext::Exhausted(why) => fail(fence, StepWord::PowerManagement, why),
    }
}

/// The ways on, the first that succeeds is enough: every device that is on record as having switched the machine off, all of
/// them; each of them alone, since one that was tried and did not answer may be dead; and what the config names besides.
fn way_on(turn: &Turn<'_>) -> Plan {
    let (fence, settings) = (turn.fence, &turn.seen.settings);
    let cut = fence.isolations.iter().filter(|isolation| isolation.kind == IsolationKind::Power);
    let back: Vec<Method> = cut.filter_map(|isolation| settings.switch_on.get(&isolation.method).cloned()).collect();
    let alone = if back.len() > 1 { back.as_slice() } else { &[] };
    let alone = alone.iter().map(|method| Level { methods: vec![method.clone()] });
    let all = (!back.is_empty()).then(|| Level { methods: back.clone() });
    let levels = all.into_iter().chain(alone).chain(settings.power_on.levels.iter().cloned()).collect();
    Plan { levels, retries: settings.power_on.retries }
}

/// What has to be true before the machine may be switched on.
fn before_on(turn: &Turn<'_>, memory: &mut Memory, run: Run) -> Option<Next> {
    let (fence, seen) = (turn.fence, turn.seen);
    if fence.isolated_by(IsolationKind::Power) && way_on(turn).levels.is_empty() {
        return Some(fail(fence, StepWord::PowerManagement, unplanned(seen, FailReason::NoLevels)));
    }
    match &seen.node {
        NodeSeen::There(node)
            if fence.isolated_by(IsolationKind::OutOfService) && !planted::is(Bug::OnWhileOutOfService) =>
        {
            return Some(lift_out_of_service(turn, node));
        }
        NodeSeen::There(_) => {}
        // A Node that comes back under this name would make its kubelet start whatever still names it.
        NodeSeen::Gone => match seen.pods.as_deref() {
            None => return Some(Next::Do(vec![crate::effect::Effect::ListPods], WaitReason::AwaitingPods)),
            Some([]) => {}
            Some(_) => return Some(Next::Wait(WaitReason::PodsNameTheNode, Some(turn.now + seen.release.look_again))),
        },
    }
    // One that was never read back (its switch is dead, say) must not keep the machine off: it is lifted when the node is back.
    let network = |isolation: &&Isolation| {
        isolation.kind == IsolationKind::Network && (isolation.state != IsolationState::Intended || seen.admin.resume)
    };
    if let Some(network) = fence.isolations.iter().find(network) {
        return Some(lift_network(turn, memory, run, network));
    }
    if boots::asked(fence) && fence.in_force(IsolationKind::Power) && power_since_mark(turn, memory).is_none() {
        // Read once more, so that whatever comes up is known to be new. A device that does not answer holds nobody up.
        if let Some(read) = read_for(fence, memory, seen, &[Class::Power], turn.now) {
            return Some(Next::Do(vec![read], WaitReason::AwaitingReadBack));
        }
        if memory.awaits_read(seen, turn.now) {
            return Some(Next::Wait(WaitReason::AwaitingReadBack, Some(turn.now + seen.settings.settle)));
        }
    }
    let still_standing = fence.proofs_in_force().any(|proof| proof.class().whole_node());
    let power_intended =
        |isolation: &Isolation| isolation.kind == IsolationKind::Power && isolation.state != IsolationState::Lifting;
    if still_standing || fence.isolations.iter().any(power_intended) {
        let off = power_since_mark(turn, memory) == Some(Judged::Off);
        return Some(Next::Record(intend_on(fence, off), MoveReason::OnIntended));
    }
    None
}

/// The record that ends every power proof: from here on the machine may be on at any moment.
fn intend_on(fence: &Fence, off_since_mark: bool) -> Fence {
    let mut next = Fence { power_sent: true, ..fence.clone() };
    if off_since_mark {
        next.since_mark = SinceMark::Off;
    }
    for isolation in next.isolations.iter_mut().filter(|isolation| isolation.kind == IsolationKind::Power) {
        isolation.state = IsolationState::Lifting;
    }
    for proof in next.proofs.iter_mut().filter(|proof| proof.class().whole_node()) {
        proof.end(ProofEnd::OnIntended);
    }
    next
}

/// Network isolation is lifted while the machine reads off after the last mark, or on a person's word.
fn lift_network(turn: &Turn<'_>, memory: &mut Memory, run: Run, network: &Isolation) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    if network.state != IsolationState::Lifting && !seen.admin.resume {
        if plugs_behind(fence, &seen.settings, Class::Power).is_none() {
            return fail(fence, StepWord::PowerManagement, FailReason::NetworkNeedsPerson);
        }
        if power_since_mark(turn, memory) != Some(Judged::Off) {
            return match read_for(fence, memory, seen, &[Class::Power], turn.now) {
                Some(read) => Next::Do(vec![read], WaitReason::AwaitingReadBack),
                None => Next::Wait(WaitReason::AwaitingReadBack, Some(turn.now + seen.settings.settle)),
            };
        }
    }
    lift(turn, memory, run, network, Phase::PoweringOn)
}
