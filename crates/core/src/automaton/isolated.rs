//! Automaton / isolated: release what the proofs cover, then decide how the node comes back.

use super::isolating::{fail, vouched};
use super::voiding::lost;
use super::{Next, Turn, go, guard};
use crate::effect::{DeleteNode, Effect, NodeChange, NodePatch};
use crate::fence::{
    Fence, Isolation, IsolationKind, IsolationState, Phase, Release, ReleaseState, SinceMark, StepWord,
};
use crate::ident::MethodName;
use crate::isolate::enter;
use crate::observe::{Deletion, Memory, NodeLive, NodeSeen, TaintSeen};
use crate::planted::{self, Bug};
use crate::prove::{Class, Proof, Scope, unpublished};
use crate::reason::automaton::{FailReason, MoveReason, WaitReason};
use crate::reason::prove::{LifeSign, ProofEnd};
use crate::reason::release::KeepReason;
use crate::recover::returned;
use crate::release::{Detaching, OutOfService, Progress, caught_up, detach, out_of_service, plan, progress};
use crate::time::Tick;

pub(super) fn isolated(turn: &Turn<'_>, memory: &mut Memory, by: StepWord) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    let NodeSeen::There(node) = &seen.node else {
        return Next::Record(go(fence, Phase::Returning), MoveReason::NodeGone);
    };
    if let Some(next) = after_lost_proof(turn, node) {
        return next;
    }
    if let Some(next) = vouched(turn, by, fence) {
        return next;
    }
    let healthy = returned(seen) && !fence.power_sent;
    if !healthy
        && !fence.stopped
        && let Some(next) = quarantine(fence, node).or_else(|| start(turn))
    {
        return next;
    }
    if overdue(turn, healthy) {
        // A release that cannot get ready (a webhook that refuses every mark, say) must not hold up what comes next.
        return go_on(turn, node, healthy, None);
    }
    release(turn, memory, node, !healthy && !fence.stopped).unwrap_or_else(|wait| go_on(turn, node, healthy, wait))
}

/// A proof was lost. What that means depends on whether pods were released by it, and on what showed it.
fn after_lost_proof(turn: &Turn<'_>, node: &NodeLive) -> Option<Next> {
    let fence = turn.fence;
    let (class, end) = lost(fence)?;
    let released = fence.released_any();
    Some(match end {
        // Another boot or another Node: the processes of the old one are gone, whoever switched the machine on.
        ProofEnd::SignOfLife { sign: LifeSign::NewBoot } => {
            Next::Record(go(fence, Phase::Returning), MoveReason::BootedAnew)
        }
        ProofEnd::AnotherNode => Next::Record(go(fence, Phase::Returning), MoveReason::NodeReplaced),
        // The same boot lives, or the device says so: it never was off, or is not any more. Cut it off again, at once.
        ProofEnd::SignOfLife { sign: LifeSign::LeaseRenewed | LifeSign::Heartbeat }
        | ProofEnd::ReadOn
        | ProofEnd::ReadUnfenced
        | ProofEnd::PublishedAgain
            if released && !fence.stopped =>
        {
            if !turn.live(node) {
                return Some(Next::Look);
            }
            // A machine that boots renews its lease before it posts which boot it is.
            let other_boot = fence.target.as_ref().zip(node.boot()).is_some_and(|(target, boot)| target.boot != *boot);
            if other_boot && matches!(end, ProofEnd::SignOfLife { .. } | ProofEnd::ReadOn) {
                return Some(Next::Record(go(fence, Phase::Returning), MoveReason::BootedAnew));
            }
            isolate_again(turn, node)
        }
        ProofEnd::SignOfLife { .. }
        | ProofEnd::ReadOn
        | ProofEnd::ReadUnfenced
        | ProofEnd::PublishedAgain
        | ProofEnd::OnIntended
        | ProofEnd::LiftIntended => {
            if returned(turn.seen) || fence.stopped {
                Next::Record(go(fence, Phase::Returning), MoveReason::HealthyAgain)
            } else {
                fail(fence, fence.step_word(), FailReason::ProofLost { class })
            }
        }
    })
}

fn isolate_again(turn: &Turn<'_>, node: &NodeLive) -> Next {
    let fence = turn.fence;
    let Some(target) = &fence.target else { return fail(fence, fence.step_word(), FailReason::NoBoot) };
    let boot = node.boot().unwrap_or(&target.boot).clone();
    let target = crate::ident::Incarnation { node: fence.node.clone(), uid: node.uid.clone(), boot };
    match super::new::begin(fence, target, turn.seen) {
        Next::Record(next, _) => Next::Record(next, MoveReason::IsolateAgain),
        other => other,
    }
}

/// Step 0 of every release: our taint, intended and then seen.
fn quarantine(fence: &Fence, node: &NodeLive) -> Option<Next> {
    let known = fence.isolations.iter().find(|isolation| isolation.kind == IsolationKind::Quarantine);
    let tainted = node.taints.contains(&TaintSeen::Quarantine(fence.uid.clone()));
    match known.map(|isolation| isolation.state) {
        None => {
            let mut next = fence.clone();
            next.isolations.push(intended("quarantine", IsolationKind::Quarantine));
            Some(Next::Record(next, MoveReason::QuarantineIntended))
        }
        // Also when somebody took it off: no pod is marked on a node that could get a new one.
        Some(_) if !tainted => {
            let patch = NodePatch { guard: guard(node), change: NodeChange::Quarantine };
            Some(Next::Do(vec![Effect::PatchNode(patch)], WaitReason::AwaitingTaint))
        }
        Some(_) => None,
    }
}

fn intended(method: &str, kind: IsolationKind) -> Isolation {
    Isolation { method: MethodName::from(method), kind, state: IsolationState::Intended }
}

/// Records the next batch, if there is one.
fn start(turn: &Turn<'_>) -> Option<Next> {
    let (fence, seen) = (turn.fence, turn.seen);
    // Without the attachments the record would not know what the node has to let go of before it may return.
    let (pods, _) = seen.pods.as_ref().zip(seen.attachments.as_ref())?;
    let plan = plan(fence, pods, seen);
    if plan.start.is_empty() {
        return None;
    }
    if planted::is(Bug::ActsBeforeTheRecord) {
        return Some(Next::Do(marks(pods, &plan.start, turn), WaitReason::AwaitingMark));
    }
    let pods = u32::try_from(plan.start.len()).unwrap_or(u32::MAX);
    let mut next = fence.clone();
    next.releases.extend(plan.start);
    Some(Next::Record(next, MoveReason::ReleaseIntended { pods }))
}

/// A bug on purpose: marked before anybody wrote down that they would be.
fn marks(pods: &[crate::observe::PodSeen], start: &[Release], turn: &Turn<'_>) -> Vec<Effect> {
    let going = pods.iter().filter(|pod| start.iter().any(|release| release.pod.uid == pod.pod.uid));
    let mark = |pod: &crate::observe::PodSeen| {
        Effect::MarkPod(crate::effect::MarkPod {
            pod: pod.pod.clone(),
            resource_version: pod.resource_version.clone(),
            grace: pod.grace.max(1),
            send_before: turn.now + turn.seen.settings.send_window,
        })
    };
    going.map(mark).collect()
}

/// One step of what was started. `Err`: nothing to do now, for this reason if there is one.
fn release(turn: &Turn<'_>, memory: &mut Memory, node: &NodeLive, may_start: bool) -> Result<Next, Option<WaitReason>> {
    let (fence, seen) = (turn.fence, turn.seen);
    let unlisted = seen.pods.is_none() || seen.attachments.is_none();
    if unlisted && (may_start || !fence.releases.is_empty()) {
        return Ok(Next::Do(vec![Effect::ListPods], WaitReason::AwaitingPods));
    }
    // What is to be recorded comes first: an effect that was decided but not emitted would be remembered as sent.
    if let Some((releases, why)) = caught_up(fence, seen) {
        let further = |(old, new): (&Release, &Release)| old.state == ReleaseState::Intended && new.state > old.state;
        let marked = fence.releases.iter().zip(&releases).any(further);
        let since_mark = if marked { SinceMark::Unknown } else { fence.since_mark.clone() };
        return Ok(Next::Record(Fence { releases, since_mark, ..fence.clone() }, why));
    }
    if let Some(next) = driver_proofs(turn, node) {
        return Ok(next);
    }
    let (mut effects, mut waits) = match detach(fence, memory, seen, turn.now) {
        Detaching::Record(next, why) => return Ok(Next::Record(*next, why)),
        // A look at the Node is on its way: what was begun is not over, and nothing goes on without it.
        Detaching::Do(effects, WaitReason::AwaitingNode) if effects.is_empty() => {
            return Ok(Next::Wait(WaitReason::AwaitingNode, Some(turn.now + seen.settings.settle)));
        }
        Detaching::Do(effects, wait) => (effects, Some(wait)),
        Detaching::Settled => (Vec::new(), None),
    };
    match progress(fence, memory, seen, may_start, turn.now) {
        Progress::Do(more, wait) => {
            effects.extend(more);
            waits = Some(wait);
        }
        Progress::Wait(wait) => waits = Some(wait),
        Progress::Settled => {}
    }
    if effects.is_empty() {
        if let Some(next) = service(turn, node) {
            return Ok(next);
        }
        return Err(waits);
    }
    Ok(Next::Do(effects, waits.unwrap_or(WaitReason::AwaitingDetach)))
}

/// Our attacher's OK for a marked pod's volume is a proof about that volume, until it is published to the node again.
fn driver_proofs(turn: &Turn<'_>, node: &NodeLive) -> Option<Next> {
    let (fence, target) = (turn.fence, turn.fence.target.as_ref()?);
    for release in fence.releases.iter().filter(|release| release.state == ReleaseState::Marked) {
        for volume in release.basis.unpublish() {
            let ok = turn.seen.unpublished.contains(&(release.pod.uid.clone(), volume.clone()));
            let known = fence.proofs_in_force().any(|proof| *proof.scope() == Scope::Volume(volume.clone()));
            let Some(verified) = unpublished(volume, ok).filter(|_| !known) else { continue };
            let id = fence.next_proof();
            let mut next = fence.clone();
            next.proofs.push(Proof::state(id, target, fence, verified, node.life.clone()));
            return Some(Next::Record(next, MoveReason::Unpublished { volume: volume.to_string() }));
        }
    }
    None
}

/// The out-of-service taint, where the policy asks for it.
fn service(turn: &Turn<'_>, node: &NodeLive) -> Option<Next> {
    let fence = turn.fence;
    let patch = |change| {
        Some(Next::Do(vec![Effect::PatchNode(NodePatch { guard: guard(node), change })], WaitReason::AwaitingTaint))
    };
    match out_of_service(fence, node, turn.seen) {
        OutOfService::Set => {
            let mut next = fence.clone();
            next.isolations.push(intended("out-of-service", IsolationKind::OutOfService));
            Some(Next::Record(next, MoveReason::OutOfServiceIntended))
        }
        OutOfService::Lift => Some(lift_out_of_service(turn, node)),
        OutOfService::Leave => {
            let ours = fence.isolated_by(IsolationKind::OutOfService);
            if ours && !node.taints.contains(&TaintSeen::OutOfService) { patch(NodeChange::OutOfService) } else { None }
        }
    }
}

/// Takes the out-of-service taint off, and believes it only when a live read shows it gone.
pub(super) fn lift_out_of_service(turn: &Turn<'_>, node: &NodeLive) -> Next {
    let standing = |isolation: &&Isolation| {
        isolation.kind == IsolationKind::OutOfService && isolation.state != IsolationState::Lifting
    };
    if let Some(isolation) = turn.fence.isolations.iter().find(standing) {
        let method = isolation.method.clone();
        return Next::Record(super::returning::lifting(turn.fence, isolation), MoveReason::LiftIntended { method });
    }
    if !turn.live(node) {
        return Next::Look;
    }
    if node.taints.contains(&TaintSeen::OutOfService) {
        let patch = NodePatch { guard: guard(node), change: NodeChange::LiftOutOfService };
        return Next::Do(vec![Effect::PatchNode(patch)], WaitReason::AwaitingTaint);
    }
    let mut next = turn.fence.clone();
    next.isolations.retain(|isolation| isolation.kind != IsolationKind::OutOfService);
    Next::Record(next, MoveReason::OutOfServiceLifted)
}

/// Whether the time for releases is over: for `on` if the machine is off, for the power step if there is one to come.
fn overdue(turn: &Turn<'_>, healthy: bool) -> bool {
    let (fence, settings) = (turn.fence, &turn.seen.settings);
    if fence.in_force(IsolationKind::Power) {
        let on_follows = fence.stopped || turn.seen.admin.resume || !(settings.stay_off || settings.delete_node);
        return on_follows && turn.waited >= settings.release_timeout;
    }
    let may_go = power_follows(turn) || !finishing(fence);
    !healthy && !fence.stopped && may_go && turn.waited >= settings.power_after
}

fn power_follows(turn: &Turn<'_>) -> bool {
    turn.seen.power_wanted && !turn.seen.settings.power_off.levels.is_empty()
}

/// Everything that can be released now is, or waits. Where to next?
fn go_on(turn: &Turn<'_>, node: &NodeLive, healthy: bool, wait: Option<WaitReason>) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    let done = release_done(turn, node);
    if fence.in_force(IsolationKind::Power) {
        return after_power_off(turn, node, done, wait);
    }
    let finishing = finishing(fence);
    if (healthy || fence.stopped) && !finishing {
        return Next::Record(
            go(fence, Phase::Returning),
            if healthy { MoveReason::HealthyAgain } else { MoveReason::StopAsked },
        );
    }
    let look_again = look_again(turn, wait.as_ref());
    if fence.stopped || (finishing && !overdue(turn, healthy)) {
        return Next::Wait(wait.unwrap_or(WaitReason::AwaitingRemoval), Some(look_again));
    }
    let proven = fence.proofs_in_force().next().is_some() || fence.isolated_by(IsolationKind::Driver);
    let left = if proven { seen.settings.power_after - turn.waited } else { crate::time::Span::ZERO };
    if left > crate::time::Span::ZERO {
        let wait = wait.unwrap_or(WaitReason::AwaitingPowerAfter { left });
        return Next::Wait(wait, Some(look_again.min(turn.now + left)));
    }
    if power_follows(turn) {
        let run = fence.first_run();
        let isolations = enter(fence, &seen.settings.power_off, run, seen);
        let next = Fence { isolations, ..go(fence, Phase::PoweringOff(run)) };
        return Next::Record(next, MoveReason::PowerBegins { waited: turn.waited });
    }
    // No power step to come: the node has to come back by itself, or a person brings it.
    Next::Record(go(fence, Phase::Returning), MoveReason::NoPowerStep { waited: turn.waited })
}

/// The machine is off: keep it so, delete its Node, or switch it on again.
fn after_power_off(turn: &Turn<'_>, node: &NodeLive, done: bool, wait: Option<WaitReason>) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    let waiting = |wait: Option<WaitReason>| {
        let again = look_again(turn, wait.as_ref());
        Next::Wait(wait.unwrap_or(WaitReason::NothingToRelease), Some(again))
    };
    if seen.settings.stay_off && !fence.stopped && !seen.admin.resume {
        return if done { Next::Record(go(fence, Phase::Returning), MoveReason::HeldOff) } else { waiting(wait) };
    }
    if seen.settings.delete_node && !fence.stopped {
        return if done { delete_node(turn, node) } else { waiting(wait) };
    }
    let timed_out = turn.waited >= seen.settings.release_timeout;
    let stopped = fence.stopped && !finishing(fence);
    if done || timed_out || stopped {
        let why =
            if done || stopped { MoveReason::OnIntended } else { MoveReason::ReleaseTimedOut { waited: turn.waited } };
        return Next::Record(go(fence, Phase::PoweringOn(fence.first_run())), why);
    }
    let until = (turn.now + (seen.settings.release_timeout - turn.waited)).min(look_again(turn, wait.as_ref()));
    Next::Wait(wait.unwrap_or(WaitReason::NothingToRelease), Some(until))
}

/// When to look again: a volume that does not go is nudged, and later taken away by hand, as soon as its time has come.
fn look_again(turn: &Turn<'_>, wait: Option<&WaitReason>) -> Tick {
    let detaching = matches!(wait, Some(WaitReason::AwaitingDetach | WaitReason::DriverRefuses { .. }));
    let patience = if detaching { turn.seen.settings.detach_patience } else { turn.seen.release.look_again };
    turn.now + patience.min(turn.seen.release.look_again)
}

/// Whether a group is marked and may still be finished: a mark cannot be undone.
fn finishing(fence: &Fence) -> bool {
    fence.releases.iter().any(|release| release.state == ReleaseState::Marked && release.basis.stands(fence))
}

/// Whether a pod stays only for now: by pace or budget, not by its nature.
fn held_for_now(turn: &Turn<'_>) -> bool {
    let Some(pods) = &turn.seen.pods else { return true };
    plan(turn.fence, pods, turn.seen)
        .kept
        .iter()
        .any(|kept| matches!(kept.why, KeepReason::Paced { .. } | KeepReason::DisruptionBudget))
}

/// Every started group is removed (or left by a finalizer) and its volumes have left `volumesAttached`.
fn release_done(turn: &Turn<'_>, node: &NodeLive) -> bool {
    let (fence, seen) = (turn.fence, turn.seen);
    let settled = fence.releases.iter().all(|release| match release.state {
        ReleaseState::Intended => false,
        ReleaseState::Marked => seen
            .pods
            .iter()
            .flatten()
            .any(|pod| pod.pod.uid == release.pod.uid && pod.deletion == Deletion::Forced && pod.finalizers),
        ReleaseState::Removed => release.volumes.is_disjoint(&node.volumes_attached),
        ReleaseState::Detached => true,
    });
    settled && !held_for_now(turn)
}

/// Deleting the Node is a release: only under a power proof, and after every pod that has volumes is gone.
fn delete_node(turn: &Turn<'_>, node: &NodeLive) -> Next {
    let (fence, seen) = (turn.fence, turn.seen);
    let proven = fence.proofs_in_force().any(|proof| proof.class() == Class::Power);
    let volumes_left = seen.pods.iter().flatten().any(|pod| crate::release::volumes_of(pod, seen).next().is_some());
    if !proven || volumes_left {
        return Next::Wait(WaitReason::AwaitingRemoval, Some(turn.now + seen.release.look_again));
    }
    if !fence.isolated_by(IsolationKind::NodeDeletion) {
        let mut next = fence.clone();
        next.isolations.push(intended("delete-node", IsolationKind::NodeDeletion));
        return Next::Record(next, MoveReason::DeletionIntended);
    }
    if !turn.live(node) {
        return Next::Look;
    }
    Next::Do(vec![Effect::DeleteNode(DeleteNode { guard: guard(node) })], WaitReason::AwaitingNode)
}
