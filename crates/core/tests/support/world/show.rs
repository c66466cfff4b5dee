//! Prints decisions, one line each, in the words of status, events and `explain`.

use std::fmt::Write as _;

use palisade_core::Decision;
use palisade_core::effect::Effect;
use palisade_core::fence::{Detach, Fence, IsolationKind, IsolationState, Phase, Release, SinceMark};
use palisade_core::observe::Observations;
use palisade_core::prove::{Basis, Proof};
use palisade_core::reason::automaton::{MoveReason, WaitReason};
use palisade_core::reason::prove::ProofEnd;
use palisade_core::reason::recover::ReturnReason;
use palisade_core::recover::return_checks;
use palisade_core::time::Tick;

use super::fence_facts::{ISOLATION_STATES, KINDS};

/// The whole decision: what is recorded and what changes by it, what is done, what is waited for.
pub fn decision(before: &Fence, after: &Fence, made: &Decision, seen: &Observations, now: Tick) -> Vec<String> {
    let mut lines = Vec::new();
    for made in &made.effects {
        lines.push(effect(before, made, now));
        if let Effect::Record { fence, .. } = made {
            lines.extend(changes(before, fence));
        }
    }
    if let Some(waits) = &made.waits {
        let mut line = format!("wait {}", wait(waits, after, seen));
        if let Some(at) = made.look_again {
            let _ = write!(line, ", again in {}", at.since(now));
        }
        lines.push(line);
    }
    lines
}

/// Phases, reasons and effects only.
pub fn moves(before: &Fence, made: &Decision, now: Tick) -> Vec<String> {
    made.effects.iter().map(|made| effect(before, made, now)).collect()
}

/// What a fence waits for.
pub fn wait(why: &WaitReason, fence: &Fence, seen: &Observations) -> String {
    match why {
        WaitReason::AwaitingReturn { why } => format!("AwaitingReturn: {}", return_reason(why, fence, seen)),
        other => other.brief(),
    }
}

/// The name behind the sentence that says why a node is not let back in.
fn return_reason(sentence: &str, fence: &Fence, seen: &Observations) -> String {
    let old_boots = fence.isolations.iter().map(|known| ReturnReason::OldBoot { method: known.method.to_string() });
    let mut all = return_checks(fence, seen).into_iter().chain(old_boots);
    all.find(|reason| reason.to_string() == sentence).map_or_else(|| sentence.to_owned(), |reason| reason.brief())
}

fn effect(before: &Fence, effect: &Effect, now: Tick) -> String {
    let said = match effect {
        Effect::Record { fence, why } => return record(before, fence, why),
        Effect::TakeSlot { grant } | Effect::GiveSlotBack { grant } => format!(" {grant}"),
        Effect::ReadLedger | Effect::ReadNode(_) | Effect::ListPods => String::new(),
        Effect::EndJobs(calls) | Effect::TellJobsToGo(calls) => {
            let calls: Vec<_> = calls.iter().map(|call| format!("{}.{}", call.attempt, call.call)).collect();
            format!(" {}", calls.join(","))
        }
        Effect::CallDevice(call) => format!(
            " {} {:?} plugs={} call={}.{} within={}{}",
            call.method,
            call.action,
            call.plugs.join(","),
            call.call.attempt,
            call.call.call,
            call.send_before.since(now),
            if call.only_if_on { " only-if-on" } else { "" },
        ),
        Effect::ReadBack(read) => {
            let plugs: Vec<_> = read.plugs.iter().map(|(method, plug)| format!("{method}:{plug}")).collect();
            format!(" {} over={}", plugs.join(","), read.over)
        }
        Effect::PatchNode(patch) => {
            format!(" {:?} uid={} rv={}", patch.change, patch.guard.uid, patch.guard.resource_version)
        }
        Effect::MarkPod(mark) => format!(
            " {} uid={} rv={} grace={} within={}",
            mark.pod(),
            mark.pod().uid,
            mark.resource_version(),
            mark.grace_seconds(),
            mark.send_before().since(now),
        ),
        Effect::Unpublish(call) => format!(" {} for {}", call.volume(), call.pod()),
        Effect::RemovePod(remove) => format!(" {} uid={}", remove.pod(), remove.pod().uid),
        Effect::DetachVolumes(edit) => format!(
            " {} uid={} rv={} boot={}",
            join(edit.volumes()),
            edit.node().uid,
            edit.node().resource_version,
            edit.boot()
        ),
        Effect::TouchNode(guard) => format!(" uid={}", guard.uid),
        Effect::DeleteAttachment(delete) => format!(
            " {} uid={} within={}",
            delete.attachment(),
            delete.attachment().uid,
            delete.send_before().since(now)
        ),
        Effect::DeleteNode(delete) => {
            format!(" uid={} rv={}", delete.guard().uid, delete.guard().resource_version)
        }
        Effect::Close { end, .. } => format!(" {end:?}"),
    };
    format!("do {}{said}", effect.name())
}

/// `Isolating -> Isolated: Isolated proofs=1 (Isolation Running)`; the two words of 003 where they change.
fn record(before: &Fence, after: &Fence, why: &MoveReason) -> String {
    let (from, to) = (phase(&before.phase), phase(&after.phase));
    let mut line = if from == to { to } else { format!("{from} -> {to}") };
    let _ = write!(line, ": {}", reason(why));
    let words = |fence: &Fence| (fence.step_word(), fence.status_word());
    if words(before) != words(after) {
        let (step, status) = words(after);
        let _ = write!(line, " ({step:?} {status:?})");
    }
    line
}

fn phase(phase: &Phase) -> String {
    match phase {
        Phase::Final(end) => format!("Final/{end:?}"),
        other => other.name().to_owned(),
    }
}

fn reason(why: &MoveReason) -> String {
    match why {
        MoveReason::NextLevel { level, failed } => format!("NextLevel level={level} after {}", failed.brief()),
        MoveReason::StepRetried { rounds, failed } => format!("StepRetried rounds={rounds} after {}", failed.brief()),
        MoveReason::Failed { why } => why.brief(),
        MoveReason::ProofVoided { class, why } => format!("ProofVoided class={class} {}", ended(why)),
        other => other.brief(),
    }
}

fn ended(why: &ProofEnd) -> String {
    match why {
        ProofEnd::SignOfLife { sign } => format!("ended=SignOfLife sign={}", sign.name()),
        other => format!("ended={}", other.name()),
    }
}

/// What the record says now and did not say before.
fn changes(before: &Fence, after: &Fence) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(target) = after.target.as_ref().filter(|_| before.target != after.target) {
        lines.push(format!("and target uid={} boot={}", target.uid, target.boot));
    }
    if after.power_sent && !before.power_sent {
        lines.push("and power-sent".to_owned());
    }
    lines.extend(isolation_changes(before, after));
    lines.extend(proof_changes(before, after));
    lines.extend(release_changes(before, after));
    if before.since_mark != after.since_mark {
        lines.push(match &after.since_mark {
            SinceMark::Unknown => "and since-mark unknown".to_owned(),
            SinceMark::Baseline { .. } => "and since-mark read".to_owned(),
            SinceMark::FirstBoot(boot) => format!("and since-mark boot={boot}"),
            SinceMark::Off => "and since-mark off".to_owned(),
        });
    }
    if before.detach != after.detach {
        lines.push(match &after.detach {
            Detach::Forbidden => "and detach forbidden".to_owned(),
            Detach::Edits { done, adding } => format!("and detach done={} adding={}", join(done), join(adding)),
        });
    }
    lines
}

fn isolation_changes(before: &Fence, after: &Fence) -> Vec<String> {
    let kind = |kind: IsolationKind| KINDS.iter().find(|(_, known)| *known == kind).map_or("", |(name, _)| *name);
    let state = |state: IsolationState| {
        ISOLATION_STATES.iter().find(|(_, known)| *known == state).map_or("", |(name, _)| *name)
    };
    let mut lines = Vec::new();
    for now in after.isolations.iter().filter(|now| !before.isolations.contains(now)) {
        lines.push(format!("and isolation {} {} {}", now.method, kind(now.kind), state(now.state)));
    }
    for was in &before.isolations {
        if !after.isolations.iter().any(|now| now.method == was.method && now.kind == was.kind) {
            lines.push(format!("and isolation {} {} undone", was.method, kind(was.kind)));
        }
    }
    lines
}

fn proof_changes(before: &Fence, after: &Fence) -> Vec<String> {
    let mut lines = Vec::new();
    for now in after.proofs.iter().filter(|now| !before.proofs.contains(now)) {
        lines.push(match now.ended() {
            Some(why) => format!("and proof {} {} {}", now.id(), now.class(), ended(why)),
            None => proof(now),
        });
    }
    for was in before.proofs.iter().filter(|was| after.proofs.iter().all(|now| now.id() != was.id())) {
        lines.push(format!("and proof {} {} dropped", was.id(), was.class()));
    }
    lines
}

fn proof(proof: &Proof) -> String {
    format!("and proof {} {} of {} read {}", proof.id(), proof.class(), proof.scope(), proof.path())
}

fn release_changes(before: &Fence, after: &Fence) -> Vec<String> {
    let mut lines = Vec::new();
    for now in &after.releases {
        match before.releases.iter().find(|was| was.pod.uid == now.pod.uid) {
            None => lines.push(format!("and release {}", release(now))),
            Some(was) if was.state != now.state => lines.push(format!("and release {} {:?}", now.pod, now.state)),
            Some(was) if was.basis != now.basis => {
                lines.push(format!("and release {} on {}", now.pod, basis(&now.basis)));
            }
            Some(_) => {}
        }
    }
    lines
}

/// A release as it is written down first.
pub fn release(release: &Release) -> String {
    let mut line = format!("{} group={} on {}", release.pod, release.group, basis(&release.basis));
    if !release.volumes.is_empty() {
        let _ = write!(line, " volumes={}", join(&release.volumes));
    }
    if !release.attachments.is_empty() {
        let _ = write!(line, " attachments={}", join(&release.attachments));
    }
    if release.mark_releases {
        line.push_str(" mark-releases");
    }
    line
}

/// What a release stands on.
pub fn basis(basis: &Basis) -> String {
    let mut parts: Vec<String> = basis.proofs().iter().map(ToString::to_string).collect();
    parts.extend(basis.unpublish().iter().map(|volume| format!("unpublish:{volume}")));
    if basis.guard() {
        parts.push("driver-guard".to_owned());
    }
    if parts.is_empty() { "nothing".to_owned() } else { parts.join("+") }
}

fn join<T: ToString>(all: impl IntoIterator<Item = T>) -> String {
    all.into_iter().map(|one| one.to_string()).collect::<Vec<_>>().join(",")
}
