//! The automaton: `step` decides what one fence does next.
//!
//! One function per phase, one file per row of states. Each is a pure decision over the recorded fence, what this process
//! remembers, and what it saw. A decision either changes the record (then the write is the only effect) or acts on what
//! the record already says: so no effect can run ahead of its intent (I5), and a crash at any point loses nothing.

mod boots;
mod failed;
mod finish;
mod isolated;
mod isolating;
mod jobs;
mod new;
mod power;
mod returning;
mod table;
mod voiding;

pub use table::TRANSITIONS;

use crate::effect::{Effect, NodeGuard};
use crate::fence::{Fence, Phase, ReleaseState, Slot};
use crate::observe::{CallId, CallOutcome, LedgerSeen, Memory, NodeLive, NodeSeen, Observations, ReadId};
use crate::reason::automaton::{MoveReason, WaitReason};
use crate::time::{Span, Tick};

/// The state of one fence: what is on record, and what this process remembers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct State {
    /// On record.
    pub fence: Fence,
    /// In memory.
    pub memory: Memory,
}

/// What to do, and why nothing more is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// In this order. A [`Effect::Record`] is always alone.
    pub effects: Vec<Effect>,
    /// What the fence waits for; none while it records.
    pub waits: Option<WaitReason>,
    /// When to look again, if nothing happens before.
    pub look_again: Option<Tick>,
}

/// How a phase goes on.
#[allow(clippy::large_enum_variant)] // made and taken apart once per step; a box would only cost an allocation
pub(crate) enum Next {
    /// Write this down, for this reason.
    Record(Fence, MoveReason),
    /// Act on the record, and wait for this.
    Do(Vec<Effect>, WaitReason),
    /// Wait until this instant, or for a change.
    Wait(WaitReason, Option<Tick>),
    /// Read the Node live first.
    Look,
}

/// What a phase decides from.
pub(crate) struct Turn<'a> {
    pub(crate) fence: &'a Fence,
    pub(crate) seen: &'a Observations,
    pub(crate) now: Tick,
    /// Watched time in this phase, by all processes together.
    pub(crate) waited: Span,
    /// The first read that this process began in this phase.
    pub(crate) first_read: ReadId,
}

impl Turn<'_> {
    /// Whether the Node was read from the API server itself in this phase.
    pub(crate) fn live(&self, node: &NodeLive) -> bool {
        node.read.is_some_and(|read| read.id >= self.first_read)
    }
}

/// Decides what one fence does next.
///
/// Guarantees: never panics; the same arguments give the same answer; a [`Effect::Record`] comes alone; every other effect
/// acts on an intent that `state.fence` already holds.
/// Expects: `state.fence` as it was last read or written by compare-and-swap; the returned fence becomes the state only
/// when the write of the `Record` went through. A lost write means: read again, and step again.
pub fn step(state: State, seen: &Observations, now: Tick) -> (State, Decision) {
    let State { fence, mut memory } = state;
    absorb(&fence, &mut memory, seen, now);
    let waited = fence.waited + now.since(memory.since);
    let turn = Turn { fence: &fence, seen, now, waited, first_read: memory.phase_read };
    match decide(&turn, &mut memory) {
        Next::Record(next, why) => {
            let same_phase = next.phase.name() == fence.phase.name() && next.attempt == fence.attempt;
            let calls = next.phase.run().map_or(next.calls, |run| next.calls.max(run.call));
            let next = Fence { waited: if same_phase { waited } else { Span::ZERO }, calls, ..next };
            memory.since = now;
            enters(&mut memory, &next);
            let record = Effect::Record { fence: Box::new(next.clone()), why };
            (State { fence: next, memory }, Decision { effects: vec![record], waits: None, look_again: None })
        }
        Next::Do(effects, waits) => {
            (State { fence, memory }, Decision { effects, waits: Some(waits), look_again: None })
        }
        Next::Look => {
            let effects = memory.look(seen, now).into_iter().collect();
            let again = now + seen.settings.settle;
            let decision = Decision { effects, waits: Some(WaitReason::AwaitingNode), look_again: Some(again) };
            (State { fence, memory }, decision)
        }
        Next::Wait(waits, look_again) => {
            let checkpoint = memory.since + seen.settings.checkpoint;
            let timed = matches!(fence.phase, Phase::Isolated { .. } | Phase::Returning | Phase::Failed { .. });
            if timed && now >= checkpoint && seen.settings.checkpoint > Span::ZERO {
                // Watched time has to survive us; unwritten, a crash would start the wait anew.
                let next = Fence { waited, ..fence };
                memory.since = now;
                let record = Effect::Record { fence: Box::new(next.clone()), why: MoveReason::TimeKept { waited } };
                return (
                    State { fence: next, memory },
                    Decision { effects: vec![record], waits: None, look_again: None },
                );
            }
            let look_again =
                if timed { Some(look_again.map_or(checkpoint, |at| at.min(checkpoint))) } else { look_again };
            (State { fence, memory }, Decision { effects: Vec::new(), waits: Some(waits), look_again })
        }
    }
}

/// Notes where the fence stands; true if that is news. What is to be live has to be read anew in each phase.
fn enters(memory: &mut Memory, fence: &Fence) -> bool {
    let phase = Some((fence.attempt, fence.phase.name()));
    let news = memory.phase != phase;
    if news {
        memory.phase = phase;
        memory.phase_read = memory.next_read;
    }
    let stands_at = fence.phase.run().map(|run| CallId::of(fence.attempt, run));
    if memory.stands_at != stands_at {
        memory.stands_at = stands_at;
        memory.try_read = memory.next_read;
    }
    news
}

/// Takes in what was seen since the last step.
fn absorb(fence: &Fence, memory: &mut Memory, seen: &Observations, now: Tick) {
    memory.found = memory.found.filter(|at| fence.calls > 0 && now < *at + seen.settings.longest_window);
    if enters(memory, fence) {
        memory.since = now;
    }
    let answered = |id| match &seen.node {
        NodeSeen::There(node) => node.read.is_some_and(|read| read.id >= id),
        NodeSeen::Gone => true,
    };
    memory.looking = memory.looking.filter(|(id, _)| !answered(*id));
    if let Some((id, _)) = memory.reading
        && let Some(answer) = seen.reads.iter().find(|answer| answer.id == id)
    {
        memory.last_read = Some((id, answer.plugs.clone(), now));
        memory.reads_since_sent = true;
        memory.reading = None;
    }
    let marked = fence.releases.iter().filter(|release| release.state > ReleaseState::Intended).count();
    if marked > memory.marked {
        memory.marked = marked;
        memory.marked_read = memory.next_read;
    }
    for release in fence.releases.iter().filter(|release| release.mark_releases) {
        let first = memory.next_read;
        memory.intended.entry(release.pod.uid.clone()).or_insert(first);
    }
    for pod in seen.pods.iter().flatten() {
        let released = fence.releases.iter().any(|release| release.pod.uid == pod.pod.uid);
        if released && pod.deletion != crate::observe::Deletion::No {
            // A series that is on its way began before this mark was seen: only the next one counts.
            let first = memory.next_read;
            memory.marks.entry(pod.pod.uid.clone()).or_insert((first, now));
        }
    }
}

fn decide(turn: &Turn<'_>, memory: &mut Memory) -> Next {
    if let Some(next) = voiding::voided(turn, memory) {
        return next;
    }
    if let Some(next) = boots::watched(turn, memory) {
        return next;
    }
    if let Some(next) = admin(turn) {
        return next;
    }
    if let Some(next) = slot(turn) {
        return next;
    }
    if let Some(next) = replaced(turn) {
        return next;
    }
    match &turn.fence.phase {
        Phase::New => new::new(turn, memory),
        Phase::Isolating(run) => isolating::isolating(turn, memory, *run),
        Phase::Isolated { by } => isolated::isolated(turn, memory, *by),
        Phase::PoweringOff(run) => power::powering_off(turn, memory, *run),
        Phase::PoweringOn(run) => power::powering_on(turn, memory, *run),
        Phase::Returning => jobs::unwanted(turn, memory, returning::returning(turn)),
        Phase::Recovering(run) => returning::recovering(turn, memory, *run),
        Phase::Final(end) => finish::finish(turn, memory, *end),
        Phase::Failed { at, why } => jobs::unwanted(turn, memory, failed::failed(turn, *at, why)),
    }
}

/// The admin's word is on record before it is followed.
fn admin(turn: &Turn<'_>) -> Option<Next> {
    let fence = turn.fence;
    if matches!(fence.phase, Phase::Final(_)) || fence.stopped == turn.seen.admin.stop {
        return None;
    }
    let why = if turn.seen.admin.stop { MoveReason::StopAsked } else { MoveReason::ResumeAsked };
    Some(Next::Record(Fence { stopped: turn.seen.admin.stop, ..fence.clone() }, why))
}

/// I4: a Node of the same name that is another object is not the one that was to be fenced.
fn replaced(turn: &Turn<'_>) -> Option<Next> {
    let (Some(target), NodeSeen::There(node)) = (&turn.fence.target, &turn.seen.node) else { return None };
    let cuts = matches!(turn.fence.phase, Phase::Isolating(_) | Phase::Isolated { .. } | Phase::PoweringOff(_));
    (cuts && node.uid != target.uid).then(|| Next::Record(go(turn.fence, Phase::Returning), MoveReason::NodeReplaced))
}

/// I3: nothing is cut off or released without a slot, and the slot is on record before anything is done.
/// What only gives back (switch on, lift, let in) needs none: it must not wait for the budget of others (I9).
fn slot(turn: &Turn<'_>) -> Option<Next> {
    let fence = turn.fence;
    let acts = match fence.phase {
        Phase::Isolating(_) | Phase::Isolated { .. } | Phase::PoweringOff(_) => true,
        Phase::New
        | Phase::PoweringOn(_)
        | Phase::Returning
        | Phase::Recovering(_)
        | Phase::Final(_)
        | Phase::Failed { .. } => false,
    };
    if !acts {
        return None;
    }
    match fence.slot {
        Slot::None => Some(take_slot(turn, fence.grant.saturating_add(1))),
        Slot::Held => held_slot(turn),
    }
}

/// Whether the slot on record counts: the ledger was read after it was recorded, and shows it.
pub(crate) fn held_slot(turn: &Turn<'_>) -> Option<Next> {
    match turn.seen.ledger {
        LedgerSeen::Present { grant } if grant == turn.fence.grant => None,
        // The policy was made anew, and its ledger was rebuilt without us: our slot is worth nothing in it.
        LedgerSeen::Present { .. } | LedgerSeen::Absent | LedgerSeen::Unknown => {
            Some(take_slot(turn, turn.fence.grant))
        }
    }
}

/// Takes the slot of this number: first the ledger, then the record.
pub(crate) fn take_slot(turn: &Turn<'_>, wanted: u32) -> Next {
    match turn.seen.ledger {
        LedgerSeen::Present { grant } if grant == wanted => {
            let next = Fence { slot: Slot::Held, grant, ..turn.fence.clone() };
            Next::Record(next, MoveReason::SlotTaken)
        }
        // Somebody has gone further with this fence than the record that we see.
        LedgerSeen::Present { grant } if grant > wanted => {
            Next::Wait(WaitReason::AwaitingSlot, Some(turn.now + turn.seen.release.look_again))
        }
        LedgerSeen::Present { .. } | LedgerSeen::Absent => {
            Next::Do(vec![Effect::TakeSlot { grant: wanted }], WaitReason::AwaitingSlot)
        }
        LedgerSeen::Unknown => Next::Do(vec![Effect::ReadLedger], WaitReason::AwaitingSlot),
    }
}

/// Devices know no preconditions: what must not be overtaken by a call that is still to be sent waits until it cannot be sent any
/// more, be it one of another process or one of ours that nobody has answered for. `but`: the call that is waited for anyway.
pub(crate) fn crossing(turn: &Turn<'_>, memory: &Memory, but: Option<CallId>) -> Option<Next> {
    let (fence, seen) = (turn.fence, turn.seen);
    let over = |call: CallId| {
        let mut answers = seen.calls.iter().filter(|answer| answer.call == call && answer.fence == fence.uid);
        // The request for a Job that nobody answered may still be on its way.
        let unmade = fence.jobs.contains(&call) && !seen.jobs_over.contains(&call);
        answers.any(|answer| match answer.outcome {
            CallOutcome::Pending => false,
            CallOutcome::Unknown => !unmade,
            CallOutcome::Accepted | CallOutcome::Refused => true,
        })
    };
    let ours = memory.sent.filter(|(call, _)| Some(*call) != but && !over(*call)).map(|(_, at)| at);
    let until = memory.found.max(ours).map(|at| at + seen.settings.longest_window);
    if let Some(until) = until.filter(|until| turn.now < *until) {
        let left = until.since(turn.now);
        return Some(Next::Wait(WaitReason::AwaitingOldDeadline { left }, Some(until)));
    }
    // Only now: before, a Job could still have been made by whoever recorded it.
    jobs::over(turn, but)
}

/// The fence in another phase.
pub(crate) fn go(fence: &Fence, phase: Phase) -> Fence {
    Fence { phase, ..fence.clone() }
}

/// The Node in the version that was read.
pub(crate) fn guard(node: &NodeLive) -> NodeGuard {
    NodeGuard { uid: node.uid.clone(), resource_version: node.resource_version.clone() }
}
