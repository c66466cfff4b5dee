//! What holds for one step, whatever was seen: the promises that can be said about the core alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail loudly
#![allow(missing_docs, unreachable_pub)] // read as a story, not as a library

#[path = "properties/walk.rs"]
mod walk;

use std::collections::BTreeMap;

use palisade_api::fence::NodeFenceStatus;
use palisade_core::automaton::TRANSITIONS;
use palisade_core::effect::{Effect, NodeChange};
use palisade_core::fence::{
    Detach, End, Fence, IsolationKind, IsolationState, Phase, ReleaseState, Run, Slot, StatusWord, StepWord,
};
use palisade_core::ident::{PodRef, Uid};
use palisade_core::observe::{
    Access, CallId, CallOutcome, Deletion, LedgerSeen, Mount, NodeSeen, Observations, ReadId,
};
use palisade_core::prove::{Class, Judged, Proof, Scope, judge_for};
use palisade_core::reason::automaton::{FailReason, MoveReason};
use palisade_core::settings::{Action, Method, Settings};
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::Span;
use palisade_core::{Decision, durable, step};
use proptest::prelude::*;
use walk::{Happens, Setup, Walk, happens, setup};

fn walks() -> impl Strategy<Value = (Setup, Vec<Happens>)> {
    (setup(), proptest::collection::vec(happens(), 20..160))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, max_shrink_iters: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// I4, I5: every effect acts on an intent that was on record before the step, and on the UIDs that were seen.
    #[test]
    fn no_effect_runs_ahead_of_its_record((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            let (before, decision) = walk.step();
            let records = decision.effects.iter().filter(|effect| matches!(effect, Effect::Record { .. })).count();
            prop_assert!(records == 0 || decision.effects.len() == 1, "a record comes alone: {:?}", decision.effects);
            for effect in &decision.effects {
                if let Err(why) = intended(&before.fence, effect, &walk.seen) {
                    prop_assert!(false, "{why}: {effect:?}\n{:#?}", before.fence);
                }
            }
        }
    }

    /// Whoever reads the table of moves knows them all.
    #[test]
    fn every_move_is_in_the_table((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            let (before, decision) = walk.step();
            for effect in &decision.effects {
                let Effect::Record { fence, why } = effect else { continue };
                let (from, to) = (before.fence.phase.name(), fence.phase.name());
                prop_assert!(from == to || TRANSITIONS.contains(&(from, to)), "{from} -> {to} for {why:?}");
            }
        }
    }

    /// I1, I2: no removal without a read-back that this process began after it saw the mark, and groups whole.
    #[test]
    fn nothing_is_removed_before_mark_and_verify((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        let mut first_read_after_mark: BTreeMap<Uid, usize> = BTreeMap::new();
        let mut newest_at_mark: BTreeMap<Uid, Option<ReadId>> = BTreeMap::new();
        for event in events {
            if matches!(event, Happens::Crash) {
                first_read_after_mark.clear();
                newest_at_mark.clear();
            }
            walk.happen(event);
            for pod in walk.seen.pods.iter().flatten().filter(|pod| pod.deletion != Deletion::No) {
                let known = walk.state.fence.releases.iter().any(|release| release.pod.uid == pod.pod.uid);
                if known {
                    first_read_after_mark.entry(pod.pod.uid.clone()).or_insert(walk.asked_reads.len());
                    newest_at_mark.entry(pod.pod.uid.clone()).or_insert(walk.newest_read);
                }
            }
            let (before, decision) = walk.step();
            for effect in &decision.effects {
                let Effect::RemovePod(remove) = effect else { continue };
                let fence = &before.fence;
                let release = fence.releases.iter().find(|release| release.pod == *remove.pod()).expect("an unknown pod is removed");
                prop_assert!(release.basis.stands(fence), "removed on proofs that no longer stand");
                let group: Vec<_> = fence.releases.iter().filter(|other| other.group == release.group).collect();
                prop_assert!(group.iter().all(|other| other.state >= ReleaseState::Marked), "half a group: {group:#?}");
                for other in group.iter().filter(|other| other.state == ReleaseState::Marked) {
                    let first = first_read_after_mark.get(&other.pod.uid).copied();
                    prop_assert!(first.is_some(), "removed before its mark was seen");
                    let classes: Vec<Class> = fence
                        .proofs
                        .iter()
                        .filter(|proof| release.basis.proofs().contains(&proof.id()))
                        .map(Proof::class)
                        .collect();
                    let by_pod = fence.proofs.iter().any(|proof| release.basis.proofs().contains(&proof.id()) && is_a_pods_word(proof));
                    let read = by_pod || classes.iter().any(|class| matches!(class, Class::Power | Class::Storage | Class::Network));
                    let class = if classes.contains(&Class::Power) { Class::Power } else { Class::Storage };
                    let class = if by_pod { Class::Confirmed } else { class };
                    let verified = walk.asked_reads.iter().skip(first.unwrap_or(usize::MAX)).any(|asked| {
                        walk.seen.reads.iter().any(|answer| answer.id == asked.id)
                            && asked.plugs.iter().all(|plug| {
                                judge_for(class, &walk.seen.reads[0].plugs, std::slice::from_ref(plug), Span::secs(2)) == Judged::Off
                            })
                    });
                    prop_assert!(!read || verified, "removed without a read-back after the mark");
                    let NodeSeen::There(node) = &walk.seen.node else { panic!("removed without a Node") };
                    let looked = node.read.map(|read| read.id) > newest_at_mark[&other.pod.uid];
                    prop_assert!(looked, "removed without a look at the Node after the mark");
                }
            }
        }
    }

    /// A step on the same observations settles: after its records it asks for the same thing again, or for nothing.
    #[test]
    fn a_step_is_idempotent_on_what_it_saw((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            walk.step();
            let (mut state, mut decision) = step(walk.state.clone(), &walk.seen, walk.now);
            let mut records = 0;
            let recording = |decision: &Decision| decision.effects.iter().any(|effect| matches!(effect, Effect::Record { .. }));
            loop {
                // A question that is asked once may be followed by a record: it settles when neither comes.
                let ahead = step(state.clone(), &walk.seen, walk.now);
                if !recording(&decision) && !recording(&ahead.1) {
                    break;
                }
                records += 1;
                prop_assert!(records < 60, "it never settles: {:?}\n{:#?}", decision.effects, state.fence);
                (state, decision) = ahead;
            }
            let (once, first) = step(state, &walk.seen, walk.now);
            let (twice, second) = step(once.clone(), &walk.seen, walk.now);
            let sends = |effects: &[Effect]| effects.iter().filter(|effect| matches!(effect, Effect::CallDevice(_) | Effect::ReadBack(_) | Effect::ReadNode(_))).count();
            prop_assert_eq!(sends(&second.effects), 0, "a call or a read is asked for twice");
            let others = |effects: Vec<Effect>| effects.into_iter().filter(|effect| !matches!(effect, Effect::CallDevice(_) | Effect::ReadBack(_) | Effect::ReadNode(_) | Effect::TouchNode(_))).collect::<Vec<_>>();
            prop_assert_eq!(others(first.effects), others(second.effects));
            prop_assert_eq!(once.fence, twice.fence);
        }
    }

    /// What is on record only moves forward: attempts, restarts, releases; and a proof changes in nothing but its end.
    #[test]
    fn the_record_never_goes_back((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            let (before, _) = walk.step();
            let (old, new) = (&before.fence, &walk.state.fence);
            prop_assert!(new.attempt >= old.attempt && new.restarts >= old.restarts && new.calls >= old.calls);
            for (was, is) in old.releases.iter().zip(&new.releases) {
                prop_assert!(was.pod == is.pod && is.state >= was.state, "{was:?} became {is:?}");
            }
            prop_assert!(new.releases.len() >= old.releases.len(), "a release was forgotten");
            if new.attempt == old.attempt {
                prop_assert_eq!(&new.target, &old.target);
                prop_assert!(new.proofs.len() >= old.proofs.len(), "a proof was forgotten");
                for (was, is) in old.proofs.iter().zip(&new.proofs) {
                    prop_assert!(was == is || (was.ended().is_none() && is.ended().is_some()), "{was:?} became {is:?}");
                    prop_assert!(was.id() == is.id() && was.class() == is.class() && was.scope() == is.scope());
                }
            }
            prop_assert!(new.attempt > old.attempt || new.step_word() >= old.step_word() || old.phase == Phase::Final(End::HeldOff), "a step goes back");
            prop_assert!(!matches!(new.status_word(), StatusWord::Done | StatusWord::Final) || new.step_word() == StepWord::Recovery);
            for was in old.isolations.iter().filter(|was| was.state != IsolationState::Lifting) {
                prop_assert!(new.isolations.iter().any(|is| is.kind == was.kind && is.method == was.method), "{was:?} is forgotten");
            }
            for proof in &new.proofs {
                prop_assert!(proof.attempt() == new.attempt && proof.fence() == &new.uid, "a proof of another attempt");
                prop_assert!(!old.proofs.is_empty() || new.target.is_some(), "a proof of nobody: {proof:?}");
            }
        }
    }

    /// I6: a proof of a device appears only in a step in which the newest series was off for every plug of its class.
    #[test]
    fn a_device_proof_is_made_from_a_steady_off((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            let (before, _) = walk.step();
            let new = &walk.state.fence;
            let made = new.proofs.iter().filter(|proof| !before.fence.proofs.contains(proof) && proof.ended().is_none());
            for proof in made.filter(|proof| matches!(proof.class(), Class::Power | Class::Storage | Class::Network)) {
                let answer = walk.seen.reads.first();
                let asked = walk.asked_reads.iter().find(|asked| Some(asked.id) == answer.map(|answer| answer.id));
                let off = asked.zip(answer).is_some_and(|(asked, answer)| {
                    judge_for(proof.class(), &answer.plugs, &asked.plugs, Span::secs(2)) == Judged::Off
                });
                prop_assert!(off, "made from {answer:?}: {proof:?}");
            }
        }
    }

    /// I6: a pod's word becomes a proof only in a step that sees the very life that is fenced, its lease silent, its kubelet listened
    /// for in vain, and the call that was asked for last accepted; and whoever asked for it has not died since.
    #[test]
    fn a_pods_word_is_taken_only_of_a_silent_node((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        let mut asked_by_us = false;
        for event in events {
            asked_by_us &= !matches!(event, Happens::Crash);
            walk.happen(event);
            let (before, decision) = walk.step();
            let asks = |effect: &Effect| matches!(effect, Effect::Record { why: MoveReason::JobIntended { .. }, .. });
            let calls = |effect: &Effect| matches!(effect, Effect::CallDevice(_));
            asked_by_us |= decision.effects.iter().any(|effect| asks(effect) || (!walk.setup.by_job && calls(effect)));
            let new = &walk.state.fence;
            let made = new.proofs.iter().filter(|proof| !before.fence.proofs.contains(proof) && proof.ended().is_none());
            for proof in made.filter(|proof| is_a_pods_word(proof)) {
                let NodeSeen::There(node) = &walk.seen.node else { return Err(TestCaseError::fail("of a Node that is gone")) };
                prop_assert!(asked_by_us, "the Job of somebody else: {proof:?}");
                prop_assert!(node.lease_silent && node.life == *proof.baseline(), "it lives: {proof:?}");
                prop_assert!(Some(&proof.target().boot) == node.boot() && proof.target().uid == node.uid, "another life: {proof:?}");
                prop_assert!(before.fence.refuted.as_ref() != Some(&proof.target().boot), "belied before: {proof:?}");
                let call = before.fence.phase.run().map(|run| CallId::of(before.fence.attempt, run));
                let accepted = walk.seen.calls.first().is_some_and(|answer| Some(answer.call) == call && answer.outcome == CallOutcome::Accepted);
                prop_assert!(accepted, "not this very call: {proof:?}");
                let silent = walk.seen.reads.first().is_some_and(|answer| answer.plugs.iter().flat_map(|plug| &plug.samples).all(|sample| sample.kubelet == WitnessWord::Silent));
                prop_assert!(silent, "its kubelet was heard, or nobody knows: {proof:?}");
            }
        }
    }

    /// A crash loses nothing: what was written to the status is read back as it was, at every point of every walk.
    #[test]
    fn a_fence_is_read_back_as_it_was_written((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        let mut status = NodeFenceStatus::default();
        for event in events {
            walk.happen(event);
            walk.step();
            let mut fence = walk.state.fence.clone();
            durable::write(&fence, &mut status);
            if let Phase::Failed { why, .. } = &mut fence.phase {
                // The sentence survives; nobody decides by more than that a step failed.
                *why = FailReason::Recorded { text: why.to_string() };
            }
            let read = durable::read(&fence.uid, &fence.node, &status);
            prop_assert_eq!(read, Ok(fence));
        }
    }

    /// I2: whatever is marked or removed, each volume that it could write to is out of the node's reach by a proof in force, or
    /// will be before its removal by a driver that fences.
    #[test]
    fn what_is_let_go_is_covered((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            let (before, decision) = walk.step();
            for effect in &decision.effects {
                let (pod, removes) = match effect {
                    Effect::MarkPod(mark) => (mark.pod(), false),
                    Effect::RemovePod(remove) => (remove.pod(), true),
                    _ => continue,
                };
                if let Some(open) = uncovered(&before.fence, pod, &walk.seen, removes) {
                    prop_assert!(false, "{open} of {pod} is within reach: {effect:?}\n{:#?}", before.fence);
                }
            }
        }
    }

    /// Whatever numbers a record holds, a step comes to an end.
    #[test]
    fn no_number_on_record_is_too_large((setup, events) in walks(), at in 0_usize..100, call in any::<u32>()) {
        let mut walk = Walk::new(setup);
        for (turn, event) in events.into_iter().enumerate() {
            if turn == at {
                for numbers in [u32::MAX, call] {
                    largest_numbers(&mut walk.state.fence, numbers);
                    walk.step();
                }
            }
            walk.happen(event);
            walk.step();
        }
    }

    /// And whatever numbers stand in a status, it is read or refused.
    #[test]
    fn no_number_in_a_status_is_too_large((setup, events) in walks(), number in any::<u32>(), time in any::<i64>()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            walk.step();
        }
        let fence = &walk.state.fence;
        let mut status = NodeFenceStatus::default();
        durable::write(fence, &mut status);
        (status.attempt, status.calls, status.restarts, status.grant) = (number, number, u32::MAX, number);
        status.waited_millis = time;
        if let Some(run) = &mut status.run {
            (run.level, run.method, run.tries, run.rounds, run.call) = (number, u32::MAX, number, number, u32::MAX);
        }
        if let Ok(read) = durable::read(&fence.uid, &fence.node, &status) {
            walk.state.fence = read;
            walk.step();
        }
    }

    /// I3: nothing is cut off, marked or removed by a fence that has no slot on record.
    #[test]
    fn nothing_is_done_without_a_slot((setup, events) in walks()) {
        let mut walk = Walk::new(setup);
        for event in events {
            walk.happen(event);
            let (before, decision) = walk.step();
            let acts = decision.effects.iter().any(|effect| match effect {
                Effect::CallDevice(call) => call.action != Action::Restore,
                Effect::MarkPod(_) | Effect::RemovePod(_) | Effect::DetachVolumes(_) | Effect::DeleteAttachment(_) | Effect::DeleteNode(_) => true,
                _ => false,
            });
            let fence = &before.fence;
            let held = fence.slot == Slot::Held && walk.seen.ledger == LedgerSeen::Present { grant: fence.grant };
            prop_assert!(!acts || held, "{:?}", decision.effects);
        }
    }
}

/// Not a person's: methods are called by their class here.
fn is_a_pods_word(proof: &Proof) -> bool {
    proof.class() == Class::Confirmed && proof.source().starts_with("confirmed")
}

/// A volume that the pod could write to and that the node can still reach.
fn uncovered(fence: &Fence, pod: &PodRef, seen: &Observations, removes: bool) -> Option<String> {
    let proofs: Vec<&Proof> = fence.proofs_in_force().collect();
    if proofs.iter().any(|proof| matches!(proof.class(), Class::Power | Class::Confirmed | Class::Kdump)) {
        return None;
    }
    let seen_pod = seen.pods.iter().flatten().find(|other| other.pod == *pod)?;
    let release = fence.releases.iter().find(|release| release.pod == *pod)?;
    for mount in &seen_pod.mounts {
        let Mount::Claim { volume: Some(name), read_only: false } = mount else { continue };
        let Some(volume) = seen.volumes.get(name) else { return Some(name.to_string()) };
        let fenced = proofs.iter().any(|proof| match (proof.class(), proof.scope()) {
            (Class::Storage, Scope::Provider(provider)) => volume.provider.as_ref() == Some(provider),
            (Class::Storage, Scope::Drivers(drivers)) => {
                volume.driver.as_ref().is_some_and(|driver| drivers.contains(driver))
            }
            (Class::Storage | Class::Driver, Scope::Volume(name)) => volume.name == *name,
            _ => false,
        });
        let to_come = !removes && release.basis.unpublish().contains(&volume.name);
        let guarded = release.basis.guard();
        if !fenced && !to_come && !guarded && volume.access != Access::ReadOnlyMany {
            return Some(volume.name.to_string());
        }
    }
    None
}

fn largest_numbers(fence: &mut Fence, number: u32) {
    (fence.attempt, fence.calls, fence.restarts, fence.grant) = (number, number, number, number);
    for release in &mut fence.releases {
        release.group = number;
    }
    let large = Run { level: number, method: number, tries: number, rounds: number, call: number, seen_running: false };
    match &mut fence.phase {
        Phase::Isolating(run) | Phase::PoweringOff(run) | Phase::PoweringOn(run) | Phase::Recovering(run) => {
            *run = large;
        }
        Phase::New | Phase::Isolated { .. } | Phase::Returning | Phase::Final(_) | Phase::Failed { .. } => {}
    }
}

/// Whether the record holds the intent of an effect, and the observations its target.
fn intended(fence: &Fence, effect: &Effect, seen: &Observations) -> Result<(), &'static str> {
    let node_uid = match &seen.node {
        NodeSeen::There(node) => Some(&node.uid),
        NodeSeen::Gone => None,
    };
    let pods = || seen.pods.iter().flatten();
    let ok = |yes: bool, why| if yes { Ok(()) } else { Err(why) };
    match effect {
        Effect::Record { .. }
        | Effect::ReadLedger
        | Effect::TakeSlot { .. }
        | Effect::GiveSlotBack { .. }
        | Effect::ReadNode(_)
        | Effect::ListPods => Ok(()),
        Effect::EndJobs(calls) | Effect::TellJobsToGo(calls) => {
            ok(calls.is_subset(&fence.jobs), "Jobs that the record does not name")
        }
        Effect::ReadBack(read) => ok(read.id >= ReadId(0) && !read.plugs.is_empty(), "a read of nothing"),
        Effect::CallDevice(call) => {
            let run = fence.phase.run().ok_or("a call in a phase that makes none")?;
            ok(call.call == CallId::of(fence.attempt, run), "a call that the record does not name")?;
            let of_call = |method: &&Method| method.name == call.method && method.in_job;
            let by_job = methods(&seen.settings).find(of_call).is_some();
            ok(!by_job || fence.jobs.contains(&call.call), "a Job that is not on record")?;
            let others = fence.jobs.iter().any(|job| *job != call.call);
            ok(call.action != Action::Restore || !others, "given back while a Job may still take away")?;
            let lifting = |state| matches!(state, IsolationState::Lifting);
            let known = fence.isolations.iter().any(|isolation| {
                isolation.method == call.method && (call.action != Action::Restore || lifting(isolation.state))
            });
            let power_on = call.action == Action::Restore
                && !fence.isolations.iter().any(|i| i.kind == IsolationKind::Power && !lifting(i.state))
                && matches!(fence.phase, Phase::PoweringOn(_));
            ok(known || power_on || call.action == Action::Run, "an isolation or its end is not on record")
        }
        Effect::PatchNode(patch) => {
            ok(Some(&patch.guard.uid) == node_uid, "another Node")?;
            let kind = match patch.change {
                NodeChange::Quarantine | NodeChange::LiftQuarantine => IsolationKind::Quarantine,
                NodeChange::OutOfService | NodeChange::LiftOutOfService => IsolationKind::OutOfService,
                NodeChange::Cordon | NodeChange::Uncordon => IsolationKind::Cordon,
            };
            ok(fence.isolated_by(kind), "a mark that is not on record")
        }
        Effect::MarkPod(mark) => {
            let release = fence.releases.iter().find(|release| release.pod == *mark.pod()).ok_or("no release")?;
            ok(
                release.state == ReleaseState::Intended && release.basis.stands(fence),
                "a mark that nothing stands behind",
            )?;
            ok(mark.grace_seconds() > 0, "grace zero is a removal")?;
            ok(fence.isolated_by(IsolationKind::Quarantine), "a mark before the quarantine")?;
            ok(
                pods().any(|pod| pod.pod == *mark.pod() && pod.resource_version == *mark.resource_version()),
                "another pod",
            )
        }
        Effect::Unpublish(call) => {
            let release = fence.releases.iter().find(|release| release.pod == *call.pod()).ok_or("no release")?;
            ok(release.state == ReleaseState::Marked && release.basis.unpublish().contains(call.volume()), "not marked")
        }
        Effect::RemovePod(remove) => {
            let release = fence.releases.iter().find(|release| release.pod == *remove.pod()).ok_or("no release")?;
            ok(release.state == ReleaseState::Marked, "a removal without a mark on record")?;
            ok(pods().any(|pod| pod.pod == *remove.pod() && pod.deletion == Deletion::Marked), "another pod")
        }
        Effect::DetachVolumes(detach) => {
            let Detach::Edits { adding, .. } = &fence.detach else { return Err("edits are forbidden") };
            ok(detach.volumes().is_subset(adding), "volumes that are not on record")?;
            ok(Some(&detach.node().uid) == node_uid, "another Node")?;
            ok(fence.target.as_ref().is_some_and(|target| target.boot == *detach.boot()), "another boot")
        }
        Effect::TouchNode(guard) => ok(Some(&guard.uid) == node_uid, "another Node"),
        Effect::DeleteAttachment(delete) => {
            let known = fence.releases.iter().any(|release| {
                release.state == ReleaseState::Removed
                    && release.attachments.contains(delete.attachment())
                    && release.basis.stands(fence)
            });
            ok(known, "an attachment that nobody released")
        }
        Effect::DeleteNode(delete) => {
            ok(fence.isolated_by(IsolationKind::NodeDeletion), "not on record")?;
            ok(fence.proofs_in_force().any(|proof| proof.class() == Class::Power), "no power proof")?;
            ok(Some(&delete.guard().uid) == node_uid, "another Node")
        }
        Effect::Close { fence: uid, .. } => {
            let over = matches!(fence.phase, Phase::Final(_)) && fence.slot == Slot::None;
            ok(over && *uid == fence.uid, "a fence that is not over")
        }
    }
}

/// Every method of a config, wherever it stands.
fn methods(settings: &Settings) -> impl Iterator<Item = &Method> {
    let plans = [&settings.isolation, &settings.power_off, &settings.power_on, &settings.recovery];
    let planned = plans.into_iter().flat_map(|plan| &plan.levels).flat_map(|level| &level.methods);
    planned.chain(settings.undo.values()).chain(settings.switch_on.values())
}
