//! Isolate / levels: which method is next, when a level has succeeded, when a step has failed.
//!
//! Promise (I6): a method has succeeded only when its device took the command *and* was then read off, steady; refused,
//! unknown, time-out and partial are failures. A level's last read covers all its methods together. (The one exception is the
//! user's own pod that the policy vouches for: `declared`.)
//! Promise (I5): the isolation that a method is about to make is on record before its call is emitted.
//! Never: sends on a status that already says off without an off of our own; counts the answer of another attempt.

use super::declared::{self, Word, vouched_for};
use crate::effect::{DeviceCall, Effect, ReadRequest};
use crate::fence::{Fence, Isolation, IsolationKind, IsolationState, Run};
use crate::ident::MethodName;
use crate::observe::{CallId, CallOutcome, Memory, NodeSeen, Observations, ReadId};
use crate::planted::{self, Bug};
use crate::prove::{Class, Judged, PlugRead, Proof, ReadPath, Scope, judge, judge_for, read_off};
use crate::reason::automaton::{FailReason, MoveReason, WaitReason};
use crate::settings::{Action, Method, Plan, Settings};
use crate::time::{Span, Tick};

/// How a step goes on.
pub(crate) enum RunNext {
    /// Do this.
    Do(Vec<Effect>, WaitReason),
    /// Wait.
    Wait(WaitReason),
    /// Write down the run, and with it the isolation that it is about to make.
    Advance(Run, MoveReason),
    /// Write down that this call is made by a Job: it can outlive us, so whoever comes next has to know of it.
    IntendJob(CallId, MoveReason),
    /// The level has succeeded; these are the proofs that it made.
    Succeeded(Vec<Proof>),
    /// No level is left.
    Exhausted(FailReason),
}

pub(super) type Plug = (MethodName, Box<str>);

/// So many Jobs may be unfinished at once; the record has room for 32.
const MOST_JOBS: usize = 24;

/// The fence with `run` entered: the intent of its method is among the isolations.
pub(crate) fn enter(fence: &Fence, plan: &Plan, run: Run, seen: &Observations) -> Vec<Isolation> {
    let mut isolations = fence.isolations.clone();
    if let Some(method) = plan.method(run.level, run.method)
        && let Some(kind) = kind_of(method)
        && !(kind == IsolationKind::Cordon && cordoned_by_others(fence, seen))
    {
        let known = isolations.iter_mut().find(|isolation| isolation.method == method.name && isolation.kind == kind);
        match known {
            // Cut off again: until it is read back anew it protects nothing.
            Some(isolation) => isolation.state = IsolationState::Intended,
            None => {
                isolations.push(Isolation { method: method.name.clone(), kind, state: IsolationState::Intended });
            }
        }
    }
    isolations
}

/// The node is cordoned, and not by us: recovery must leave it so.
fn cordoned_by_others(fence: &Fence, seen: &Observations) -> bool {
    let cordoned = matches!(&seen.node, NodeSeen::There(node) if node.cordoned);
    cordoned && !fence.isolated_by(IsolationKind::Cordon)
}

/// What a method leaves behind that has to be undone.
fn kind_of(method: &Method) -> Option<IsolationKind> {
    match (method.action, method.proves) {
        (Action::CutOff, Some(Class::Power | Class::Confirmed | Class::Kdump)) => Some(IsolationKind::Power),
        (Action::CutOff, Some(Class::Storage)) => Some(IsolationKind::Storage),
        (Action::CutOff, Some(Class::Network)) => Some(IsolationKind::Network),
        (Action::CutOff, Some(Class::Driver)) | (Action::FenceByDriver, _) => Some(IsolationKind::Driver),
        (Action::Cordon, _) => Some(IsolationKind::Cordon),
        (Action::CutOff, None) | (Action::Restore | Action::Uncordon | Action::Run, _) => None,
    }
}

/// Why there is no method to call: the config cannot be used, or else as `otherwise` says.
pub(crate) fn unplanned(seen: &Observations, otherwise: FailReason) -> FailReason {
    seen.unusable.as_deref().map_or(otherwise, |why| FailReason::ConfigUnusable { why: why.to_owned() })
}

/// One step of isolation or power-off.
pub(crate) fn run_cut_off(
    plan: &Plan,
    run: Run,
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    now: Tick,
) -> RunNext {
    if plan.levels.is_empty() {
        return RunNext::Exhausted(unplanned(seen, FailReason::NoLevels));
    }
    let Some(method) = plan.method(run.level, run.method) else {
        return RunNext::Exhausted(unplanned(seen, FailReason::ConfigChanged));
    };
    let others_cordon = method.action == Action::Cordon && cordoned_by_others(fence, seen);
    if kind_of(method).is_some_and(|kind| !intended(fence, &method.name, kind)) && !others_cordon {
        // The config changed under a running step: the intent comes first, whatever was planned before.
        return RunNext::Advance(run, MoveReason::NextMethod { level: run.level, method: run.method });
    }
    match method.action {
        Action::CutOff => cut_off(plan, run, method, fence, memory, seen, now),
        Action::FenceByDriver => passed(plan, run, fence, memory, seen, now),
        Action::Cordon | Action::Uncordon | Action::Run | Action::Restore => {
            match send(run, method, fence, memory, seen, now) {
                Sent::Next(next) => next,
                Sent::Accepted => passed(plan, run, fence, memory, seen, now),
                Sent::Failed(why) => failed(plan, run, method, why),
            }
        }
    }
}

fn intended(fence: &Fence, method: &MethodName, kind: IsolationKind) -> bool {
    fence.isolations.iter().any(|isolation| isolation.method == *method && isolation.kind == kind)
}

fn cut_off(
    plan: &Plan,
    run: Run,
    method: &Method,
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    now: Tick,
) -> RunNext {
    let power = method.proves == Some(Class::Power);
    if power
        && !method.tells_hibernation
        && !run.seen_running
        && !sent(run, fence, memory)
        && let Some(next) = look_before_off(run, method, memory, seen, now)
    {
        return next;
    }
    match send(run, method, fence, memory, seen, now) {
        Sent::Next(next) => next,
        Sent::Failed(why) => failed(plan, run, method, why),
        Sent::Accepted => await_off(plan, run, method, fence, memory, seen, now),
    }
}

/// A device that cannot tell off from hibernated proves nothing unless the machine was seen running before our own off.
fn look_before_off(run: Run, method: &Method, memory: &mut Memory, seen: &Observations, now: Tick) -> Option<RunNext> {
    let plugs = plugs_of(method);
    // I6: what an earlier attempt read says nothing of now; the machine may have gone to sleep since.
    let of_now = |read: ReadId| read >= memory.phase_read;
    let looked = memory
        .last_read
        .as_ref()
        .filter(|(id, reads, _)| of_now(*id) && reads.iter().any(|read| read.method == method.name));
    match looked.map(|(_, reads, _)| judge(reads, &plugs, method.stable_off)) {
        Some(Judged::On) => {
            let seen_running = Run { seen_running: true, ..run };
            Some(RunNext::Advance(seen_running, MoveReason::SeenRunning { method: method.name.clone() }))
        }
        // It was looked at and was not seen running: switch it off all the same; only the proof is missing.
        Some(Judged::Off | Judged::NotSteady { .. } | Judged::Contradicted | Judged::Unknown) => None,
        None => Some(read(memory, seen, plugs, Span::ZERO, now)),
    }
}

/// The command was taken. From here on only the device's own state speaks.
fn await_off(
    plan: &Plan,
    run: Run,
    method: &Method,
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    now: Tick,
) -> RunNext {
    if vouched_for(method) {
        return match declared::heard(plan, run, method, fence, memory, seen, now) {
            Word::Counts => passed(plan, run, fence, memory, seen, now),
            Word::Open(next) => next,
            Word::Belied(why) => failed(plan, run, method, why),
        };
    }
    if method.path == ReadPath::Declared {
        // Nothing can be read back: the level goes on, without a proof from this method.
        return passed(plan, run, fence, memory, seen, now);
    }
    let (plugs, stable_off) = plugs_up_to(plan, run);
    let accepted = memory.sent.map_or(now, |(_, at)| at);
    let judged = match &memory.last_read {
        Some((_, reads, _)) if memory.reads_since_sent => judge_level(plan, run, reads),
        _ => return read(memory, seen, plugs, stable_off, now),
    };
    // The last read covers the whole level: whoever is not off is named, even if its own turn is long over.
    let reads = memory.last_read.as_ref().map_or(&[][..], |(_, reads, _)| reads);
    let not_off = plugs.iter().find(|plug| judge(reads, std::slice::from_ref(plug), stable_off) != Judged::Off);
    let culprit = not_off.map_or_else(|| method.name.clone(), |(method, _)| method.clone());
    let name = || culprit.clone();
    match judged {
        Judged::Off
            if method.proves == Some(Class::Power)
                && !method.tells_hibernation
                && !run.seen_running
                && !planted::is(Bug::HibernatedIsOff) =>
        {
            failed(plan, run, method, FailReason::CannotTellHibernated { method: name() })
        }
        Judged::Off => passed(plan, run, fence, memory, seen, now),
        Judged::NotSteady { .. } | Judged::Contradicted | Judged::On | Judged::Unknown
            if now < accepted + seen.settings.settle =>
        {
            read(memory, seen, plugs, stable_off, now)
        }
        Judged::NotSteady { .. } => failed(plan, run, method, FailReason::NotSteady { method: name() }),
        Judged::Contradicted => failed(plan, run, method, FailReason::KubeletAnswers { method: method.name.clone() }),
        Judged::On => failed(plan, run, method, FailReason::StillOn { method: name() }),
        Judged::Unknown => failed(plan, run, method, FailReason::PowerUnknown { method: name() }),
    }
}

/// The method has succeeded: the next one, or the level's proofs.
fn passed(plan: &Plan, run: Run, fence: &Fence, memory: &mut Memory, seen: &Observations, now: Tick) -> RunNext {
    if plan.method(run.level, run.method.saturating_add(1)).is_some() {
        let next = Run {
            method: run.method.saturating_add(1),
            tries: 0,
            call: run.call.saturating_add(1),
            seen_running: false,
            ..run
        };
        return RunNext::Advance(next, MoveReason::NextMethod { level: next.level, method: next.method });
    }
    let (plugs, stable_off) = plugs_up_to(plan, run);
    let reads = memory.last_read.as_ref().map_or(&[][..], |(_, reads, _)| reads);
    if !plugs.is_empty() && judge_level(plan, run, reads) != Judged::Off {
        // The level ends with a method that is not read, or another process read the others: nothing is in force unread.
        return read(memory, seen, plugs, stable_off, now);
    }
    RunNext::Succeeded(proofs(plan, run, fence, memory, seen))
}

/// The proofs of a level, from its last read: every method that proves something, read off together.
fn proofs(plan: &Plan, run: Run, fence: &Fence, memory: &Memory, seen: &Observations) -> Vec<Proof> {
    let Some(target) = &fence.target else { return Vec::new() };
    let methods = plan.levels.get(run.level as usize).map_or(&[][..], |level| &level.methods);
    let reads = memory.last_read.as_ref().map_or(&[][..], |(_, reads, _)| reads);
    let mut next_id = fence.next_proof();
    let mut made: Vec<Proof> = Vec::new();
    for method in methods.iter().filter(|method| method.action == Action::CutOff && method.path != ReadPath::Declared) {
        let Some(class) = method.proves else { continue };
        let judged = judge_for(class, reads, &plugs_of(method), method.stable_off);
        let Some(verified) =
            read_off(&judged, class, &scope_of(class, &method.scope), method.path, method.name.as_str())
        else {
            continue;
        };
        let known = made.iter().any(|proof| proof.class() == class && *proof.scope() == scope_of(class, &method.scope));
        if !known {
            let baseline = memory.baseline.clone().unwrap_or_else(|| life(seen));
            made.push(Proof::state(next_id, target, fence, verified, baseline));
            next_id.number += 1;
        }
    }
    // A pod's word is about the call that the run stands at, and stands in for a device only where none of the level has its own.
    let vouched = plan.method(run.level, run.method).filter(|method| vouched_for(method));
    if let Some(method) = vouched
        && !made.iter().any(|proof| proof.class().whole_node())
        && let Some((verified, life)) = declared::stands(run, method, fence, memory, seen)
    {
        made.push(Proof::state(next_id, target, fence, verified, life));
    }
    made
}

/// A power proof always speaks of the whole node, and a network proof of the network, whatever the config says.
fn scope_of(class: Class, configured: &Scope) -> Scope {
    match class {
        Class::Power | Class::Confirmed | Class::Kdump => Scope::Node,
        Class::Network => Scope::Network,
        Class::Storage | Class::Driver => configured.clone(),
    }
}

/// The method has failed: again, the next level, the whole step again, or no more.
fn failed(plan: &Plan, run: Run, method: &Method, why: FailReason) -> RunNext {
    let call = run.call.saturating_add(1);
    if run.tries < method.retries {
        let next = Run { tries: run.tries.saturating_add(1), call, ..run };
        return RunNext::Advance(next, MoveReason::MethodRetried { method: method.name.clone(), tries: next.tries });
    }
    let level = run.level.saturating_add(1);
    if plan.method(level, 0).is_some() {
        let next = Run { level, method: 0, tries: 0, call, seen_running: false, ..run };
        return RunNext::Advance(next, MoveReason::NextLevel { level, failed: why });
    }
    if run.rounds < plan.retries {
        let rounds = run.rounds.saturating_add(1);
        let next = Run { level: 0, method: 0, tries: 0, call, rounds, seen_running: false };
        return RunNext::Advance(next, MoveReason::StepRetried { rounds, failed: why });
    }
    RunNext::Exhausted(why)
}

/// One step of switching on, lifting or recovering: every method in series, each read on where it was cut off.
pub(crate) fn run_restore(
    plan: &Plan,
    run: Run,
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    now: Tick,
) -> RunNext {
    let Some(method) = plan.method(run.level, run.method) else {
        return if plan.levels.is_empty() {
            RunNext::Succeeded(Vec::new())
        } else {
            RunNext::Exhausted(unplanned(seen, FailReason::ConfigChanged))
        };
    };
    match send(run, method, fence, memory, seen, now) {
        Sent::Next(next) => next,
        Sent::Failed(why) => failed(plan, run, method, why),
        Sent::Accepted if method.action == Action::Restore && method.path != ReadPath::Declared => {
            await_on(plan, run, method, fence, memory, seen, now)
        }
        Sent::Accepted => passed(plan, run, fence, memory, seen, now),
    }
}

fn await_on(
    plan: &Plan,
    run: Run,
    method: &Method,
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    now: Tick,
) -> RunNext {
    let plugs = plugs_of(method);
    let accepted = memory.sent.map_or(now, |(_, at)| at);
    let on = match &memory.last_read {
        Some((_, reads, _)) if memory.reads_since_sent => {
            plugs.iter().all(|plug| judge(reads, std::slice::from_ref(plug), Span::ZERO) == Judged::On)
        }
        _ => return read(memory, seen, plugs, Span::ZERO, now),
    };
    if on {
        passed(plan, run, fence, memory, seen, now)
    } else if now < accepted + seen.settings.settle {
        read(memory, seen, plugs, Span::ZERO, now)
    } else {
        failed(plan, run, method, FailReason::RestoreFailed { method: method.name.clone() })
    }
}

enum Sent {
    Next(RunNext),
    Accepted,
    Failed(FailReason),
}

fn sent(run: Run, fence: &Fence, memory: &Memory) -> bool {
    memory.sent.is_some_and(|(call, _)| call == CallId::of(fence.attempt, &run))
}

/// Sends the run's call once, and says what became of it.
fn send(run: Run, method: &Method, fence: &Fence, memory: &mut Memory, seen: &Observations, now: Tick) -> Sent {
    let call = CallId::of(fence.attempt, &run);
    // An answer counts only for this fence, this attempt and this call: late replies and old Jobs are others.
    let answer = seen.calls.iter().find(|answer| answer.call == call && answer.fence == fence.uid);
    let waiting = WaitReason::AwaitingCall { method: method.name.clone() };
    match answer.map(|answer| answer.outcome) {
        Some(CallOutcome::Accepted) => {
            if !sent(run, fence, memory) {
                memory.note_sent(call, now);
            }
            Sent::Accepted
        }
        Some(CallOutcome::Refused) => Sent::Failed(FailReason::CallRefused { method: method.name.clone() }),
        Some(CallOutcome::Unknown) => Sent::Failed(FailReason::CallUnknown { method: method.name.clone() }),
        Some(CallOutcome::Pending) if !sent(run, fence, memory) => {
            // A Job of an earlier process: it gets the whole time, from when we found it.
            memory.note_sent(call, now);
            Sent::Next(RunNext::Wait(waiting))
        }
        Some(CallOutcome::Pending) | None if sent(run, fence, memory) => {
            let lost = memory.sent.is_some_and(|(_, at)| now > at + seen.settings.send_window + seen.settings.settle);
            if lost {
                // Nobody answers for it any more: that is Unknown, not a no.
                Sent::Failed(FailReason::CallUnknown { method: method.name.clone() })
            } else {
                Sent::Next(RunNext::Wait(waiting))
            }
        }
        Some(CallOutcome::Pending) | None if method.in_job && !fence.jobs.contains(&call) => {
            let unfinished = fence.jobs.difference(&seen.jobs_over).count();
            if unfinished >= MOST_JOBS {
                let jobs = u32::try_from(unfinished).unwrap_or(u32::MAX);
                return Sent::Failed(FailReason::JobsUnfinished { method: method.name.clone(), jobs });
            }
            declared::note_asked(method, call, memory);
            let why = MoveReason::JobIntended { method: method.name.clone() };
            Sent::Next(RunNext::IntendJob(call, why))
        }
        Some(CallOutcome::Pending) | None => {
            memory.note_sent(call, now);
            if !method.in_job {
                // A Job that is on record may have been made, and may have succeeded, long before this process made it its own.
                declared::note_asked(method, call, memory);
            }
            let call = DeviceCall {
                call,
                method: method.name.clone(),
                plugs: method.plugs.clone(),
                action: method.action,
                send_before: now + seen.settings.send_window,
                only_if_on: run.seen_running,
            };
            Sent::Next(RunNext::Do(vec![Effect::CallDevice(call)], waiting))
        }
    }
}

/// Starts a series of reads, unless one is on its way.
pub(super) fn read(memory: &mut Memory, seen: &Observations, plugs: Vec<Plug>, over: Span, now: Tick) -> RunNext {
    if memory.awaits_read(seen, now) {
        return RunNext::Wait(WaitReason::AwaitingReadBack);
    }
    let request = begin_read(memory, seen, plugs, over, now);
    RunNext::Do(vec![request], WaitReason::AwaitingReadBack)
}

fn begin_read(memory: &mut Memory, seen: &Observations, plugs: Vec<Plug>, over: Span, now: Tick) -> Effect {
    let id = memory.next_read();
    memory.reading = Some((id, now));
    memory.baseline = Some(life(seen));
    Effect::ReadBack(ReadRequest { id, plugs, over })
}

fn life(seen: &Observations) -> crate::prove::LifeSigns {
    match &seen.node {
        NodeSeen::There(node) => node.life.clone(),
        NodeSeen::Gone => crate::prove::LifeSigns::default(),
    }
}

/// The series that verifies proofs of these classes after a mark; `None` if one is on its way or nothing can be read.
pub(crate) fn read_for(
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    classes: &[Class],
    now: Tick,
) -> Option<Effect> {
    if memory.awaits_read(seen, now) {
        return None;
    }
    let mut plugs = Vec::new();
    let mut over = Span::ZERO;
    for class in classes {
        let Some((more, stable_off)) = plugs_behind(fence, &seen.settings, *class) else { continue };
        plugs.extend(more);
        over = over.max(stable_off);
    }
    (!plugs.is_empty()).then(|| begin_read(memory, seen, plugs, over, now))
}

/// The plugs that have to read off for a proof of this class to stand; `None` if the config no longer knows one of them. Behind a
/// pod's word there is a kubelet to be listened for, and devices that must not say on; behind a person's nothing.
pub(crate) fn plugs_behind(fence: &Fence, settings: &Settings, class: Class) -> Option<(Vec<Plug>, Span)> {
    let kind = match class {
        Class::Power => IsolationKind::Power,
        Class::Storage => IsolationKind::Storage,
        Class::Network => IsolationKind::Network,
        Class::Confirmed => {
            let method = declared::still_vouched_for(fence, settings)?;
            return Some((declared::listened_to(method, settings), method.stable_off));
        }
        Class::Driver | Class::Kdump => return None,
    };
    let mut plugs = Vec::new();
    let mut over = Span::ZERO;
    let behind = fence
        .isolations
        .iter()
        .filter(|isolation| isolation.kind == kind && isolation.state == IsolationState::InForce);
    for isolation in behind {
        let plans = [&settings.isolation, &settings.power_off];
        let mut methods = plans.into_iter().flat_map(|plan| &plan.levels).flat_map(|level| &level.methods);
        let method = methods.find(|method| method.name == isolation.method)?;
        if vouched_for(method) {
            continue;
        }
        plugs.extend(plugs_of(method));
        over = over.max(method.stable_off);
    }
    (!plugs.is_empty()).then_some((plugs, over))
}

pub(super) fn plugs_of(method: &Method) -> Vec<Plug> {
    method.plugs.iter().map(|plug| (method.name.clone(), plug.clone())).collect()
}

/// What the reads of a level amount to so far. Once every method is done that switches the machine off, it has to be off as a
/// whole: before that, one of its power supplies may feed it.
fn judge_level(plan: &Plan, run: Run, reads: &[PlugRead]) -> Judged {
    let (plugs, stable_off) = plugs_up_to(plan, run);
    let judged = judge(reads, &plugs, stable_off);
    let methods = plan.levels.get(run.level as usize).map_or(&[][..], |level| &level.methods);
    let of_power = |method: &&Method| method.action == Action::CutOff && method.proves == Some(Class::Power);
    let (done, to_come) = methods.split_at(methods.len().min((run.method as usize).saturating_add(1)));
    let machine: Vec<Plug> =
        done.iter().filter(|method| of_power(method) && method.path != ReadPath::Declared).flat_map(plugs_of).collect();
    if machine.is_empty() || to_come.iter().any(|method| of_power(&method)) {
        return judged;
    }
    judged.max(judge_for(Class::Power, reads, &machine, stable_off))
}

/// The plugs of all methods of the level up to this one, that can be read, and the longest of their times.
pub(super) fn plugs_up_to(plan: &Plan, run: Run) -> (Vec<Plug>, Span) {
    let methods = plan.levels.get(run.level as usize).map_or(&[][..], |level| &level.methods);
    let done = methods.iter().take((run.method as usize).saturating_add(1));
    let read: Vec<&Method> =
        done.filter(|method| method.action == Action::CutOff && method.path != ReadPath::Declared).collect();
    let over = read.iter().map(|method| method.stable_off).max().unwrap_or_default();
    (read.into_iter().flat_map(plugs_of).collect(), over)
}
