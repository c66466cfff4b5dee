//! Model / ledger: two nodes fail, two operators, a budget of one. Who holds a slot, and can two act at once?
//!
//! The fences are real ones, driven by the real `step` (their configuration has no levels, so each attempt fails at once
//! and gives its slot back: that is all this world is about). The ledger is written by `take`, `give_back`, `sweep` and
//! `rebuild` of `core`, each by compare-and-swap. The promise is I3: no more fences act than the budget allows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use palisade_core::effect::Effect;
use palisade_core::fence::{Fence, Phase, Slot};
use palisade_core::ident::{BootId, NodeName, ResourceVersion, Uid};
use palisade_core::ledger::{
    Entry, Found, GiveBack, Ledger, LiveFence, LiveGet, ReadNumber, Take, give_back, rebuild, sweep, take,
};
use palisade_core::observe::{Admin, LedgerSeen, Memory, NodeLive, NodeRead, NodeSeen, Observations, ReadId, Vetted};
use palisade_core::policy::{Budget, ReleasePolicy};
use palisade_core::prove::LifeSigns;
use palisade_core::settings::Settings;
use palisade_core::snapshot::Ready;
use palisade_core::time::{Span, Tick};
use palisade_core::{State as Subject, step};
use stateright::{Model, Property};

use crate::check::{self, check};
use crate::tables::Tables;
use crate::world::Ref;

/// How far this world may go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// Operators that do anything at all.
    pub(crate) operators: usize,
    pub(crate) crashes: u8,
    pub(crate) faults: u8,
    /// Times that the FencePolicy is deleted and applied again, with an empty status.
    pub(crate) policies: u8,
    /// Nodes that get well again.
    pub(crate) recoveries: u8,
    /// NodeFences per node.
    pub(crate) fences: u8,
    /// The largest attempt of a fence.
    pub(crate) attempts: u32,
}

/// A world of two fences.
#[derive(Debug)]
pub(crate) struct LedgerWorld {
    pub(crate) bounds: Bounds,
    /// The shell believes a GET that began before it had read the ledger.
    pub(crate) takes_live_for_garbage: bool,
    tables: Arc<Tables>,
    decisions: Mutex<BTreeMap<Asked, (Ref, Does)>>,
    fresh: Ref,
}

/// Everything that a decision depends on here: fence, memory, ledger, and whether the node is well.
type Asked = (Ref, Ref, LedgerSeen, bool);

/// What `step` wants done.
#[derive(Clone, Copy, Debug)]
enum Does {
    Nothing,
    Record(Ref),
    ReadLedger,
    TakeSlot(u32),
    GiveSlotBack(u32),
    Close,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct LedgerState {
    policy: u8,
    ledger: Ledger,
    fences: [Option<Ref>; 2],
    made: [u8; 2],
    well: [bool; 2],
    operators: [Clerk; 2],
    /// A write of a process that crashed.
    late: Option<Write>,
    left: [u8; 4],
}

/// An operator, as far as this world looks at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Clerk {
    fences: [View; 2],
    ledger: Option<Read>,
    /// What a live GET of each NodeFence found, and whether it began after the ledger was read.
    gets: [Option<(Option<u8>, bool)>; 2],
    write: Option<Write>,
}

/// The ledger as an operator read it, with the policy that it came in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Read {
    ledger: Ledger,
    policy: u8,
    current: bool,
}

/// A fence as an operator knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct View {
    fence: Option<Ref>,
    current: bool,
    memory: Ref,
    /// The ledger was read since the fence's slot was seen as it is.
    ledger_read: bool,
}

/// A write of the ledger, with the version that it was made from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Write {
    ledger: Ledger,
    current: bool,
}

/// What can happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LedgerEvent {
    Decide { operator: usize, node: usize },
    ReadLedger(usize),
    ReadFence { operator: usize, node: usize },
    Get { operator: usize, node: usize },
    Sweep(usize),
    Rebuild(usize),
    Send(usize),
    SendReplyLost(usize),
    Crash { operator: usize, leaves_write: bool },
    Late,
    Fails(usize),
    GetsWell(usize),
    PolicyAgain,
}

impl LedgerWorld {
    pub(crate) fn new(bounds: Bounds, takes_live_for_garbage: bool) -> Self {
        let tables = Arc::new(Tables::new());
        let fresh = tables.number_memory(Memory::fresh(Tick::START));
        Self { bounds, takes_live_for_garbage, tables, decisions: Mutex::default(), fresh }
    }

    fn fence(&self, number: Ref) -> Arc<Fence> {
        self.tables.fence(number)
    }

    /// A fence that may act: it holds a slot, and stands where it would cut off or release.
    fn acts(&self, fence: Option<Ref>) -> bool {
        fence.map(|fence| self.fence(fence)).is_some_and(|fence| {
            fence.slot == Slot::Held
                && matches!(fence.phase, Phase::Isolating(_) | Phase::Isolated { .. } | Phase::PoweringOff(_))
        })
    }

    /// Explores this world and prints what it came to.
    pub(crate) fn explore(self, name: &str) -> check::Found {
        let bounds = format!("{:?}", self.bounds);
        check(self, name, &bounds, |model, path| {
            let line = |(state, event)| format!("  {}  {event:?}", model.told(&state));
            path.into_iter().map(line).collect()
        })
    }

    fn told(&self, state: &LedgerState) -> String {
        let fences = state.fences.map(|fence| {
            fence.map_or("none".to_owned(), |fence| {
                let fence = self.fence(fence);
                format!("{} {} attempt {} slot {:?}", fence.uid, fence.phase.name(), fence.attempt, fence.slot)
            })
        });
        let entries: Vec<_> = state.ledger.entries.keys().map(ToString::to_string).collect();
        format!("{fences:?} ledger {entries:?} of policy {}", state.ledger.policy_uid)
    }

    fn decide(&self, next: &mut LedgerState, operator: usize, node: usize) -> Option<()> {
        let view = next.operators[operator].fences[node];
        let number = view.fence?;
        let asked = (number, view.memory, self.ledger_seen(next, operator, node, number), next.well[node]);
        let known = self.decisions.lock().unwrap().get(&asked).copied();
        let (memory, does) = known.unwrap_or_else(|| {
            let made = self.ask(asked);
            self.decisions.lock().unwrap().insert(asked, made);
            made
        });
        let fence = self.fence(number);
        let clerk = &mut next.operators[operator];
        clerk.fences[node].memory = memory;
        match does {
            Does::Nothing => (memory != view.memory).then_some(()),
            Does::Record(record) => {
                self.record(next, operator, node, record);
                Some(())
            }
            Does::ReadLedger => {
                self.reads_ledger(next, operator);
                Some(())
            }
            Does::TakeSlot(grant) => {
                let Read { ledger, policy, current } = clerk.ledger.clone()?;
                match take(Some(&ledger), &policy_uid(policy), &fence.uid, entry(node, grant), &budget()) {
                    Take::Write(ledger) => clerk.write = Some(Write { ledger, current }),
                    Take::Already | Take::Full(_) | Take::Missing => return None,
                }
                Some(())
            }
            Does::GiveSlotBack(grant) => {
                let Read { ledger, current, .. } = clerk.ledger.clone()?;
                match give_back(&ledger, &fence.uid, grant) {
                    GiveBack::Write(ledger) => clerk.write = Some(Write { ledger, current }),
                    GiveBack::NotThere => return None,
                }
                Some(())
            }
            Does::Close => {
                let there = next.fences[node].map(|there| self.fence(there).uid.clone());
                if there.as_ref() == Some(&fence.uid) {
                    next.fences[node] = None;
                    for clerk in &mut next.operators {
                        clerk.fences[node].current = false;
                    }
                }
                self.see_fence(next, operator, node);
                Some(())
            }
        }
    }

    /// Asks the real `step`.
    fn ask(&self, (fence, memory, ledger, well): Asked) -> (Ref, Does) {
        let subject = Subject { fence: (*self.fence(fence)).clone(), memory: (*self.tables.memory(memory)).clone() };
        let (after, decision) = step(subject, &observations(ledger, well), Tick::START);
        let does = decision.effects.into_iter().find_map(|effect| match effect {
            Effect::Record { fence, .. } => Some(Does::Record(self.tables.number_fence(*fence))),
            Effect::ReadLedger => Some(Does::ReadLedger),
            Effect::TakeSlot { grant } => Some(Does::TakeSlot(grant)),
            Effect::GiveSlotBack { grant } => Some(Does::GiveSlotBack(grant)),
            Effect::Close { .. } => Some(Does::Close),
            _ => None,
        });
        (self.tables.number_memory(after.memory), does.unwrap_or(Does::Nothing))
    }

    /// The compare-and-swap write of a fence's record.
    fn record(&self, next: &mut LedgerState, operator: usize, node: usize, record: Ref) {
        if next.operators[operator].fences[node].current {
            next.fences[node] = Some(record);
            for clerk in &mut next.operators {
                clerk.fences[node].current = false;
            }
        }
        self.see_fence(next, operator, node);
    }

    fn see_fence(&self, next: &mut LedgerState, operator: usize, node: usize) {
        let there = next.fences[node];
        let view = &mut next.operators[operator].fences[node];
        let same = match (view.fence, there) {
            (Some(known), Some(there)) => self.fence(known).uid == self.fence(there).uid,
            (None, _) | (_, None) => false,
        };
        let memory = if same { view.memory } else { self.fresh };
        let slot = |fence: Option<Ref>| {
            fence.map(|fence| self.fence(fence)).map(|fence| (fence.uid.clone(), fence.slot, fence.grant))
        };
        // What was read of the ledger before the slot was seen as it is now counts for nothing.
        let ledger_read = view.ledger_read && slot(view.fence) == slot(there);
        *view = View { fence: there, current: true, memory, ledger_read };
    }

    fn reads_ledger(&self, next: &mut LedgerState, operator: usize) {
        let read = (next.ledger.clone(), next.policy);
        self.knows_ledger(&mut next.operators[operator], Some(read));
    }

    fn send(&self, next: &mut LedgerState, write: Write) -> bool {
        if !write.current {
            return false;
        }
        next.ledger = write.ledger;
        ledger_written(next);
        true
    }

    fn ledger_seen(&self, state: &LedgerState, operator: usize, node: usize, fence: Ref) -> LedgerSeen {
        let clerk = &state.operators[operator];
        let Some(read) = clerk.ledger.as_ref().filter(|_| clerk.fences[node].ledger_read) else {
            return LedgerSeen::Unknown;
        };
        let known = read.ledger.is_for(&policy_uid(read.policy));
        let entry = read.ledger.entries.get(&self.fence(fence).uid).filter(|_| known);
        entry.map_or(LedgerSeen::Absent, |entry| LedgerSeen::Present { grant: entry.grant })
    }

    /// An operator has read the ledger, or knows that it has to. What it looked for before that began too early.
    fn knows_ledger(&self, clerk: &mut Clerk, ledger: Option<(Ledger, u8)>) {
        let read = ledger.is_some();
        clerk.fences.iter_mut().for_each(|view| view.ledger_read = read);
        clerk.ledger = ledger.map(|(ledger, policy)| Read { ledger, policy, current: true });
        for get in &mut clerk.gets {
            *get = get.map(|(found, _)| (found, false)).filter(|_| self.takes_live_for_garbage);
        }
    }

    /// A sweep by what this operator has read.
    fn swept(&self, clerk: &Clerk) -> Option<Write> {
        let Read { ledger, current, .. } = clerk.ledger.clone()?;
        let gets: Vec<_> = (0..2)
            .filter_map(|node| {
                let (found, after) = clerk.gets[node]?;
                let begun = ReadNumber(if after || self.takes_live_for_garbage { 2 } else { 0 });
                let found = found.map_or(Found::Gone, |made| Found::Fence(fence_uid(node, made)));
                Some(LiveGet { node: node_name(node), begun, found })
            })
            .collect();
        sweep(&ledger, ReadNumber(1), &gets).map(|ledger| Write { ledger, current })
    }

    fn rebuilt(&self, state: &LedgerState) -> Ledger {
        let live: Vec<_> = (0..2)
            .filter_map(|node| {
                let fence = self.fence(state.fences[node]?);
                Some(LiveFence {
                    fence: fence.uid.clone(),
                    entry: entry(node, fence.grant),
                    slot: fence.slot == Slot::Held,
                })
            })
            .collect();
        let built = rebuild(&policy_uid(state.policy), &live);
        // When slots were granted plays no part here: there is no spacing and no rate.
        Ledger { grants: Vec::new(), ..built }
    }
}

/// What the shell shows of a node that nothing runs on.
fn observations(ledger: LedgerSeen, well: bool) -> Observations {
    Observations {
        settings: Settings {
            backoff: Span::ZERO,
            slowest: Span::ZERO,
            checkpoint: Span::ZERO,
            return_hold: Span::ZERO,
            longest_window: Span::ZERO,
            ..Settings::default()
        },
        unusable: None,
        release: ReleasePolicy::default(),
        vetted: Vetted::Open,
        ledger,
        node: NodeSeen::There(NodeLive {
            uid: Uid::from("node"),
            resource_version: ResourceVersion::from("1"),
            read: Some(NodeRead { id: ReadId(u32::MAX), began: Tick::START }),
            ready: if well { Ready::True } else { Ready::Unknown },
            ready_for: Some(Span::ZERO),
            life: LifeSigns { renewed: None, heartbeat: None, boot: Some(BootId::from("b1")) },
            lease_silent: !well,
            lease_late: !well,
            taints: BTreeSet::new(),
            cordoned: false,
            volumes_in_use: BTreeSet::new(),
            volumes_attached: BTreeSet::new(),
        }),
        evidence_cleared: true,
        power_wanted: false,
        admin: Admin::default(),
        pods: Some(Vec::new()),
        volumes: BTreeMap::new(),
        attachments: Some(Vec::new()),
        calls: Vec::new(),
        reads: Vec::new(),
        unpublished: BTreeSet::new(),
        released_lately: 0,
        jobs_over: BTreeSet::new(),
        kdump_proves: false,
    }
}

/// The ledger was written: whatever was read before is old.
fn ledger_written(next: &mut LedgerState) {
    for clerk in &mut next.operators {
        if let Some(read) = clerk.ledger.as_mut() {
            read.current = false;
        }
        if let Some(write) = clerk.write.as_mut() {
            write.current = false;
        }
    }
    if let Some(write) = next.late.as_mut() {
        write.current = false;
    }
}

fn budget() -> Budget {
    Budget { max_concurrent: 1, spacing: Span::ZERO, rate: None }
}

fn policy_uid(policy: u8) -> Uid {
    Uid::new(format!("policy{policy}"))
}

fn node_name(node: usize) -> NodeName {
    NodeName::new(format!("n{node}"))
}

fn fence_uid(node: usize, made: u8) -> Uid {
    Uid::new(format!("f{node}.{made}"))
}

fn entry(node: usize, grant: u32) -> Entry {
    Entry { node: node_name(node), control_plane: false, grant }
}

impl Model for LedgerWorld {
    type State = LedgerState;
    type Action = LedgerEvent;

    fn init_states(&self) -> Vec<LedgerState> {
        let view = View { fence: None, current: true, memory: self.fresh, ledger_read: false };
        let clerk = Clerk { fences: [view; 2], ledger: None, gets: [None; 2], write: None };
        let Bounds { crashes, faults, policies, recoveries, .. } = self.bounds;
        vec![LedgerState {
            policy: 1,
            ledger: Ledger { policy_uid: policy_uid(1), ..Ledger::default() },
            fences: [None; 2],
            made: [0; 2],
            well: [false; 2],
            operators: [clerk.clone(), clerk],
            late: None,
            left: [crashes, faults, policies, recoveries],
        }]
    }

    fn actions(&self, state: &LedgerState, events: &mut Vec<LedgerEvent>) {
        if state.fences.iter().filter(|fence| self.acts(**fence)).count() > 1 {
            return;
        }
        for operator in 2 - self.bounds.operators..2 {
            let clerk = &state.operators[operator];
            if clerk.write.is_some() {
                events.push(LedgerEvent::Send(operator));
                if state.left[1] > 0 {
                    events.push(LedgerEvent::SendReplyLost(operator));
                }
            } else {
                events.extend([LedgerEvent::Sweep(operator), LedgerEvent::Rebuild(operator)]);
                if clerk.ledger.as_ref().is_none_or(|read| !read.current) {
                    events.push(LedgerEvent::ReadLedger(operator));
                }
                for node in 0..2 {
                    events.push(LedgerEvent::Decide { operator, node });
                    if !clerk.fences[node].current {
                        events.push(LedgerEvent::ReadFence { operator, node });
                    }
                    let named = clerk.ledger.iter().flat_map(|read| read.ledger.entries.values());
                    if named.into_iter().any(|entry| entry.node == node_name(node)) || self.takes_live_for_garbage {
                        events.push(LedgerEvent::Get { operator, node });
                    }
                }
            }
            if state.left[0] > 0 {
                events.push(LedgerEvent::Crash { operator, leaves_write: false });
                if clerk.write.is_some() && state.late.is_none() {
                    events.push(LedgerEvent::Crash { operator, leaves_write: true });
                }
            }
        }
        if state.late.is_some() {
            events.push(LedgerEvent::Late);
        }
        if state.left[2] > 0 {
            events.push(LedgerEvent::PolicyAgain);
        }
        for node in 0..2 {
            if state.fences[node].is_none() && state.made[node] < self.bounds.fences {
                events.push(LedgerEvent::Fails(node));
            }
            if !state.well[node] && state.fences[node].is_some() && state.left[3] > 0 {
                events.push(LedgerEvent::GetsWell(node));
            }
        }
    }

    fn next_state(&self, state: &LedgerState, event: LedgerEvent) -> Option<LedgerState> {
        let mut next = state.clone();
        match event {
            LedgerEvent::Decide { operator, node } => self.decide(&mut next, operator, node)?,
            LedgerEvent::ReadLedger(operator) => self.reads_ledger(&mut next, operator),
            LedgerEvent::ReadFence { operator, node } => self.see_fence(&mut next, operator, node),
            LedgerEvent::Get { operator, node } => {
                let found = next.fences[node].map(|_| next.made[node]);
                let clerk = &mut next.operators[operator];
                clerk.gets[node] = Some((found, clerk.ledger.is_some()));
            }
            LedgerEvent::Sweep(operator) => {
                let write = self.swept(&next.operators[operator])?;
                let clerk = &mut next.operators[operator];
                clerk.write = Some(write);
                clerk.gets = [None; 2];
            }
            LedgerEvent::Rebuild(operator) => {
                let Read { ledger, policy, current } = next.operators[operator].ledger.clone()?;
                if ledger.is_for(&policy_uid(policy)) {
                    return None;
                }
                let ledger = self.rebuilt(&next);
                next.operators[operator].write = Some(Write { ledger, current });
            }
            LedgerEvent::Send(operator) | LedgerEvent::SendReplyLost(operator) => {
                let write = next.operators[operator].write.take()?;
                let written = write.ledger.clone();
                let done = self.send(&mut next, write);
                let heard = event == LedgerEvent::Send(operator);
                if !heard {
                    next.left[1] -= 1;
                }
                let read = (done && heard).then_some((written, next.policy));
                self.knows_ledger(&mut next.operators[operator], read);
            }
            LedgerEvent::Crash { operator, leaves_write } => {
                next.left[0] -= 1;
                let fences = next.fences;
                let clerk = &mut next.operators[operator];
                if leaves_write {
                    next.late = clerk.write.take();
                }
                let view =
                    |node: usize| View { fence: fences[node], current: true, memory: self.fresh, ledger_read: false };
                *clerk = Clerk { fences: [view(0), view(1)], ledger: None, gets: [None; 2], write: None };
            }
            LedgerEvent::Late => {
                let write = next.late.take()?;
                self.send(&mut next, write);
            }
            LedgerEvent::Fails(node) => {
                next.made[node] += 1;
                next.well[node] = false;
                let fence = Fence::new(fence_uid(node, next.made[node]), node_name(node));
                next.fences[node] = Some(self.tables.number_fence(fence));
                for clerk in &mut next.operators {
                    clerk.fences[node].current = false;
                }
            }
            LedgerEvent::GetsWell(node) => {
                next.left[3] -= 1;
                next.well[node] = true;
            }
            LedgerEvent::PolicyAgain => {
                next.left[2] -= 1;
                next.policy += 1;
                next.ledger = Ledger::default();
                ledger_written(&mut next);
            }
        }
        if self.bounds.operators == 2 {
            next.operators.sort_unstable();
        }
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("I3 budget", |model: &Self, state: &LedgerState| {
                state.fences.iter().filter(|fence| model.acts(**fence)).count() <= 1
            }),
            Property::sometimes("a fence acts", |model: &Self, state: &LedgerState| {
                state.fences.iter().any(|fence| model.acts(*fence))
            }),
            Property::sometimes("the other one had a turn", |model: &Self, state: &LedgerState| {
                model.acts(state.fences[1]) && state.fences[0].is_some_and(|fence| model.fence(fence).attempt > 0)
            }),
            Property::sometimes("an entry without a fence", |_, state: &LedgerState| {
                !state.ledger.entries.is_empty() && state.fences == [None; 2]
            }),
        ]
    }

    fn within_boundary(&self, state: &LedgerState) -> bool {
        state.fences.iter().flatten().all(|fence| self.fence(*fence).attempt <= self.bounds.attempts)
    }
}
