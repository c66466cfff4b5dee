//! Isolate / declared: when the success of a pod that nobody can read back counts, because the policy names its template.
//!
//! Promise (I6): it counts as a person's word and as no more. This very process had the pod called and saw it succeed; and since
//! then the node was silent in every way that it could speak: its lease for as long as makes it silent, its status and its boot up
//! to a live read, and its kubelet's port for as long as a device would be read. What cannot be told is not silence. And no other
//! device of the machine's power says that it is on, of those that answer without a Job.
//! Never: takes up the success of a call that another process made, since nobody watched the node meanwhile; believes a pod
//! again for a boot that belied one; keeps waiting without an end.

use super::levels::{Plug, RunNext, plugs_of, plugs_up_to, read};
use crate::fence::{Fence, IsolationKind, Run};
use crate::ident::MethodName;
use crate::observe::{Answered, CallId, Memory, NodeLive, NodeSeen, Observations, Vouching};
use crate::prove::{Class, Judged, LifeSigns, PlugRead, ReadPath, Seen, Verified, judge_for, pod_said, sign_of_life};
use crate::reason::automaton::{FailReason, WaitReason};
use crate::settings::{Action, Method, Plan, Settings};
use crate::time::Tick;

/// Whether the policy vouches for this method: nobody reads it back, and its success is to count all the same.
pub(crate) fn vouched_for(method: &Method) -> bool {
    method.action == Action::CutOff && method.path == ReadPath::Declared && method.proves == Some(Class::Confirmed)
}

/// The method whose word a confirmed proof in force is; none: it is a person's.
pub(crate) fn method_behind(fence: &Fence) -> Option<&MethodName> {
    let confirmed = |source: &str| {
        fence.proofs_in_force().any(|proof| proof.class() == Class::Confirmed && proof.source() == source)
    };
    let cut = fence.isolations.iter().filter(|isolation| isolation.kind == IsolationKind::Power);
    cut.map(|isolation| &isolation.method).find(|method| confirmed(method.as_str()))
}

/// That method as the config has it now; none if the policy does not vouch for it any more.
pub(super) fn still_vouched_for<'a>(fence: &Fence, settings: &'a Settings) -> Option<&'a Method> {
    let name = method_behind(fence)?;
    let plans = [&settings.isolation, &settings.power_off];
    let mut methods = plans.into_iter().flat_map(|plan| &plan.levels).flat_map(|level| &level.methods);
    methods.find(|method| method.name == *name && vouched_for(method))
}

/// What is listened to once such a pod has succeeded: the node's kubelet, by its own plugs; and every other device of the machine's
/// power, whatever step or level it is for. One that is silent says nothing; a look by a Job would take too long.
pub(super) fn listened_to(method: &Method, settings: &Settings) -> Vec<Plug> {
    let plans = [&settings.isolation, &settings.power_off];
    let methods = plans.into_iter().flat_map(|plan| &plan.levels).flat_map(|level| &level.methods);
    let tells = |other: &&Method| {
        let answers = matches!(other.path, ReadPath::SameDriver | ReadPath::Independent);
        other.action == Action::CutOff && other.proves == Some(Class::Power) && answers
    };
    with(plugs_of(method), methods.filter(tells).flat_map(plugs_of))
}

/// These plugs, and those of the others that are not among them.
fn with(mut plugs: Vec<Plug>, others: impl IntoIterator<Item = Plug>) -> Vec<Plug> {
    for plug in others {
        if !plugs.contains(&plug) {
            plugs.push(plug);
        }
    }
    plugs
}

/// It is this process that asks for such a pod: from here on it watches the node.
pub(super) fn note_asked(method: &Method, call: CallId, memory: &mut Memory) {
    memory.vouching = vouched_for(method).then_some(Vouching { call, answered: None });
}

/// What a pod's success comes to.
pub(super) enum Word {
    /// It counts.
    Counts,
    /// It may, when this was done or waited for.
    Open(RunNext),
    /// It does not.
    Belied(FailReason),
}

/// The pod of this run has succeeded: does that count?
pub(super) fn heard(
    plan: &Plan,
    run: Run,
    method: &Method,
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    now: Tick,
) -> Word {
    let name = || method.name.clone();
    let Some(answered) = answered(CallId::of(fence.attempt, &run), memory, seen, now) else {
        return Word::Belied(FailReason::CalledByAnother { method: name() });
    };
    if let Err(why) = silent_node(method, fence, &answered, seen) {
        return Word::Belied(why);
    }
    match heard_of(method, &answered, memory, seen) {
        Some(Judged::Contradicted) => return Word::Belied(FailReason::KubeletAnswers { method: name() }),
        Some(Judged::Off) if stands(run, method, fence, memory, seen).is_some() => return Word::Counts,
        Some(Judged::Off | Judged::NotSteady { .. } | Judged::On | Judged::Unknown) | None => {}
    }
    if now >= answered.at + seen.settings.settle {
        return Word::Belied(match says_on(memory) {
            Some(device) => FailReason::DeviceSaysOn { method: name(), device },
            None => FailReason::NotSilent { method: name() },
        });
    }
    Word::Open(look_on(plan, run, method, &answered, memory, seen, now))
}

/// What is still to be seen: first that the lease is silent, then that the kubelet is, and last the Node itself.
fn look_on(
    plan: &Plan,
    run: Run,
    method: &Method,
    answered: &Answered,
    memory: &mut Memory,
    seen: &Observations,
    now: Tick,
) -> RunNext {
    let quiet = matches!(&seen.node, NodeSeen::There(node) if node.lease_silent);
    if !quiet {
        return RunNext::Wait(WaitReason::AwaitingSilence { method: method.name.clone() });
    }
    if heard_of(method, answered, memory, seen) == Some(Judged::Off) {
        return match memory.look(seen, now) {
            Some(look) => RunNext::Do(vec![look], WaitReason::AwaitingNode),
            None => RunNext::Wait(WaitReason::AwaitingNode),
        };
    }
    let (plugs, over) = plugs_up_to(plan, run);
    let plugs = with(plugs, listened_to(method, &seen.settings));
    read(memory, seen, plugs, over.max(method.stable_off), now)
}

/// The evidence, and the signs of life that the node is watched against, if nothing is missing: the one gate to such a proof.
pub(super) fn stands(
    run: Run,
    method: &Method,
    fence: &Fence,
    memory: &Memory,
    seen: &Observations,
) -> Option<(Verified, LifeSigns)> {
    let call = CallId::of(fence.attempt, &run);
    let answered = memory.vouching.as_ref().filter(|vouching| vouching.call == call)?.answered.as_ref()?;
    let node = silent_node(method, fence, answered, seen).ok()?;
    let (series, ..) = memory.last_read.as_ref()?;
    let looked_last = node.read.is_some_and(|read| read.id > *series);
    let heard = heard_of(method, answered, memory, seen)?;
    let verified = pod_said(method.name.as_str(), looked_last, node.lease_silent, &heard)?;
    Some((verified, answered.life.clone()))
}

/// The answer to a call that this process made, with the node as it was when the answer was first seen.
fn answered(call: CallId, memory: &mut Memory, seen: &Observations, now: Tick) -> Option<Answered> {
    let first_read = memory.next_read;
    let vouching = memory.vouching.as_mut().filter(|vouching| vouching.call == call)?;
    let life = match &seen.node {
        NodeSeen::There(node) => node.life.clone(),
        NodeSeen::Gone => LifeSigns::default(),
    };
    Some(vouching.answered.get_or_insert(Answered { at: now, first_read, life }).clone())
}

/// The Node, if it is the life that the fence is about and has not moved since the pod succeeded.
fn silent_node<'a>(
    method: &Method,
    fence: &Fence,
    answered: &Answered,
    seen: &'a Observations,
) -> Result<&'a NodeLive, FailReason> {
    let method = method.name.clone();
    let (Some(target), NodeSeen::There(node)) = (&fence.target, &seen.node) else {
        return Err(FailReason::NotSilent { method });
    };
    if fence.refuted.as_ref() == Some(&target.boot) {
        return Err(FailReason::BeliedBefore { method });
    }
    let same = node.uid == target.uid && node.boot() == Some(&target.boot);
    if !same || sign_of_life(&answered.life, &node.life).is_some() {
        return Err(FailReason::ShowsLife { method });
    }
    Ok(node)
}

/// What the newest series heard of the machine; none if there was none since the pod succeeded.
fn heard_of(method: &Method, answered: &Answered, memory: &Memory, seen: &Observations) -> Option<Judged> {
    let (id, reads, _) = memory.last_read.as_ref()?;
    let ours = *id >= answered.first_read && reads.iter().any(|read| read.method == method.name);
    ours.then(|| judge_for(Class::Confirmed, reads, &listened_to(method, &seen.settings), method.stable_off))
}

/// The device that said on last.
fn says_on(memory: &Memory) -> Option<MethodName> {
    let (_, reads, _) = memory.last_read.as_ref()?;
    let on = |read: &&PlugRead| read.samples.last().is_some_and(|sample| sample.seen == Seen::On);
    reads.iter().find(on).map(|read| read.method.clone())
}
