//! Model / events: what can happen next, and what the world looks like afterwards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use palisade_core::observe::Memory;
use palisade_core::prove::Class;
use palisade_core::time::Tick;

use crate::api::hear;
use crate::setup::{Device, How, METHODS, Members, Mutation, Setup, Successor};
use crate::shell::{decide, new_fence};
use crate::tables::Tables;
use crate::world::{
    Answer, Api, Broken, Event, Home, Job, Kind, Machine, Node, NodeView, Operator, Outcome, Pod, Power, Ref, Request,
    Sample, State, World, process,
};

/// A world that can be explored.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) setup: Setup,
    pub(crate) tables: Arc<Tables>,
    /// Kinds of effects right after which an operator crashed.
    pub(crate) crashed_after: Arc<AtomicU32>,
    fresh: Ref,
}

impl Explored {
    pub(crate) fn new(setup: Setup) -> Self {
        let tables = Arc::new(Tables::new());
        let fresh = tables.number_memory(Memory::fresh(Tick::START));
        Self { setup, tables, crashed_after: Arc::default(), fresh }
    }

    /// The node has stopped answering: it may well run and write. Its NodeFence is new.
    pub(crate) fn beginning(&self) -> World {
        let pod = Pod { generation: 1, home: Home::Target, marked: false, cut_since_mark: false };
        let second = (self.setup.members == Members::Two).then_some(pod);
        let node = Node {
            uid: 1,
            boot: 1,
            stamp: 0,
            ready: false,
            taint: None,
            in_use: self.setup.attach,
            attached: self.setup.attach,
        };
        let fence = self.tables.number_fence(new_fence(1));
        let attachments = u8::from(self.setup.attach);
        let operator = Operator {
            fence: Some(fence),
            fence_current: true,
            node: NodeView { node: Some(node), live: false, current: true },
            ..self.blank()
        };
        World {
            api: Api {
                fence: Some(fence),
                fence_no: 1,
                ledger: true,
                node: Some(node),
                node_uid: 1,
                pods: [Some(pod), second],
                made: [1, u8::from(second.is_some())],
                attachment: self.setup.attach.then_some(1),
                attachments_made: attachments,
                jobs: Vec::new(),
            },
            machine: Machine {
                power: Power::Cut,
                boot: 1,
                running: process(0, 1) | if second.is_some() { process(1, 1) } else { 0 },
                refused: false,
                port_down: false,
                cut_in: [(0, 0); 3],
            },
            other: None,
            elsewhere: 0,
            operators: [operator.clone(), Operator { leads: true, ..operator }],
            late: None,
            left: self.setup.bounds,
            broken: None,
        }
    }

    /// Everything that can happen now.
    pub(crate) fn events(&self, world: &World, events: &mut Vec<Event>) {
        if world.broken.is_some() {
            return;
        }
        for at in 0..2 {
            self.operator_events(world, at, events);
        }
        if world.left.handovers > 0 {
            events.push(Event::TakesOver);
        }
        if world.late.is_some() {
            events.push(Event::Late);
        }
        for (at, _) in world.api.jobs.iter().enumerate().filter(|(_, job)| job.outcome == Outcome::Pending) {
            events.push(Event::JobRuns(at));
            if world.left.faults > 0 {
                events.extend([true, false].map(|acted| Event::JobUnknown { job: at, acted }));
            }
        }
        self.machine_events(world, events);
        self.cluster_events(world, events);
    }

    fn operator_events(&self, world: &World, at: usize, events: &mut Vec<Event>) {
        let operator = &world.operators[at];
        let faulty = world.left.faults > 0;
        if operator.queue.is_empty() {
            if operator.leads {
                events.extend([false, true].map(|overdue| Event::Decide { at, overdue }));
            }
        } else {
            events.push(Event::Send(at));
            if faulty {
                events.extend([Event::SendReplyLost(at), Event::SendLost(at)]);
            }
        }
        if operator.call.is_some() {
            events.push(Event::Call(at));
            if faulty {
                events.extend([Event::CallReplyLost(at), Event::CallLost(at), Event::CallRefused(at)]);
            }
        }
        if operator.reading.is_some_and(|reading| reading.got.is_none()) {
            events.push(Event::Read(at));
            if faulty {
                events.push(Event::ReadLost(at));
            }
        }
        if !operator.leads {
            return;
        }
        if operator.node.node != world.api.node || !operator.node.current {
            events.push(Event::SeeNode(at));
        }
        if operator.pods.is_some() && operator.pods != Some(world.list_pods()) {
            events.push(Event::SeePods(at));
        }
        if !operator.fence_current {
            events.push(Event::SeeFence(at));
        }
        if world.left.crashes > 0 {
            let sending = (!operator.queue.is_empty() || operator.call.is_some()) && world.late.is_none();
            let outdated = operator.node.node != world.api.node;
            for leaves_request in [false, true].into_iter().filter(|leaves| sending || !leaves) {
                for old_cache in [false, true].into_iter().filter(|old| outdated || !old) {
                    events.push(Event::Crash { operator: at, leaves_request, old_cache });
                }
            }
        }
    }

    fn machine_events(&self, world: &World, events: &mut Vec<Event>) {
        let (machine, left) = (world.machine, world.left);
        match machine.power {
            Power::Off if left.outside_ons > 0 => events.push(Event::OutsideOn),
            Power::Off => {}
            Power::Suspended => events.push(Event::Resume),
            Power::Booting if !machine.port_down => events.push(Event::KubeletUp),
            Power::Booting => {}
            Power::Up if left.cuts > 0 => events.push(Event::NetworkBreaks),
            Power::Up => {}
            Power::Cut if !machine.port_down && left.heals > 0 => events.push(Event::NetworkHeals),
            Power::Cut => {}
        }
        if matches!(machine.power, Power::Up | Power::Cut) && left.resets > 0 {
            events.push(if self.setup.how == How::PowerByJob { Event::Suspend } else { Event::Reset });
        }
        let poster = world.other.unwrap_or(machine);
        if poster.power == Power::Up && left.posts > 0 {
            events.push(Event::Post);
        }
        if world.machines().any(|machine| machine.power == Power::Up) {
            for name in 0..2 {
                for generation in 1..=world.api.made[usize::from(name)] {
                    let pod = world.api.pods[usize::from(name)].filter(|pod| pod.generation == generation);
                    let running = world
                        .machines()
                        .any(|machine| machine.power == Power::Up && machine.running & process(name, generation) != 0);
                    let ours = pod.is_some_and(|pod| pod.marked && pod.home == Home::Target);
                    if ours || (pod.is_none() && running) {
                        events.push(Event::Stops { name, generation });
                    }
                }
            }
        }
        if machine.refused && left.outside_lifts > 0 && world.elsewhere == 0 {
            events.push(Event::OutsideLift);
        }
    }

    fn cluster_events(&self, world: &World, events: &mut Vec<Event>) {
        let (api, left) = (&world.api, world.left);
        if api.node.is_some_and(|node| node.ready) {
            events.push(Event::GoesSilent);
        }
        if api.node.is_some() && left.node_deletions > 0 {
            events.push(Event::NodeDeleted);
        }
        if api.node.is_none() && world.other.is_none() && self.setup.successor == Successor::OtherMachine {
            events.push(Event::OtherMachineJoins);
        }
        let members = if self.setup.members == Members::One { 1 } else { 2 };
        for name in 0..members {
            let (slot, made) = (api.pods[usize::from(name)], api.made[usize::from(name)]);
            if slot.is_some_and(|pod| !pod.marked && pod.home == Home::Target) && left.evictions > 0 {
                events.push(Event::Evicts(name));
            }
            if slot.is_none() && made > 0 && made <= self.setup.bounds.generations && !self.setup.replaces() {
                events.push(Event::Replaced { name, home: Home::Healthy });
                let welcome = api.node.is_some_and(|node| node.ready && node.taint.is_none());
                if welcome && world.machine.power == Power::Up {
                    events.push(Event::Replaced { name, home: Home::Target });
                }
            }
        }
        if self.setup.replaces() && api.made[1] == 0 && api.pods[0].is_none_or(|pod| pod.marked) {
            events.push(Event::Replaced { name: 1, home: Home::Healthy });
        }
        if self.setup.members == Members::SecondJoins && api.made[1] == 0 {
            events.push(Event::SecondJoins);
        }
        let refers = api.pods.iter().flatten().any(|pod| pod.home == Home::Target);
        let free = api.node.is_none_or(|node| !node.in_use || !node.ready);
        if api.attachment.is_some() && !refers && free {
            events.push(Event::Detached);
        }
        if api.fence.is_none() && left.more_fences > 0 && api.node.is_some_and(|node| !node.ready) {
            events.push(Event::FencedAgain);
        }
    }

    /// The world after an event; `None` if nothing comes of it.
    pub(crate) fn after(&self, world: &World, event: Event) -> Option<World> {
        let mut next = world.clone();
        match event {
            Event::TakesOver => {
                next.left.handovers -= 1;
                next.operators.iter_mut().for_each(|operator| operator.leads = !operator.leads);
            }
            Event::Decide { at, overdue } => self.decides(&mut next, at, overdue)?,
            Event::Send(at) => self.sends(&mut next, at, true),
            Event::SendReplyLost(at) => {
                next.left.faults -= 1;
                self.sends(&mut next, at, false);
            }
            Event::SendLost(at) => {
                next.left.faults -= 1;
                next.operators[at].queue.clear();
            }
            Event::Call(at) => self.calls(&mut next, at, true, Outcome::Accepted),
            Event::CallReplyLost(at) => self.calls(&mut next, at, true, Outcome::Unknown),
            Event::CallLost(at) => self.calls(&mut next, at, false, Outcome::Unknown),
            Event::CallRefused(at) => self.calls(&mut next, at, false, Outcome::Refused),
            Event::Read(at) => self.reads(&mut next, at, true),
            Event::ReadLost(at) => self.reads(&mut next, at, false),
            Event::SeeNode(at) => next.operators[at].node = next.read_node(false),
            Event::SeePods(at) => next.operators[at].pods = Some(next.list_pods()),
            Event::SeeFence(at) => self.sees_fence(&mut next, at),
            Event::Crash { operator, leaves_request, old_cache } => {
                self.crashes(&mut next, operator, leaves_request, old_cache);
            }
            Event::Late => {
                let request = next.late.take()?;
                next.perform(&self.setup, request);
            }
            Event::JobRuns(job) => self.job_ends(&mut next, job, true, Outcome::Accepted),
            Event::JobUnknown { job, acted } => {
                next.left.faults -= 1;
                self.job_ends(&mut next, job, acted, Outcome::Unknown);
            }
            Event::OutsideOn
            | Event::Reset
            | Event::Suspend
            | Event::Resume
            | Event::NetworkBreaks
            | Event::NetworkHeals
            | Event::KubeletUp
            | Event::Post
            | Event::Stops { .. }
            | Event::OutsideLift => self.machine_does(&mut next, event),
            Event::GoesSilent
            | Event::Evicts(_)
            | Event::NodeDeleted
            | Event::OtherMachineJoins
            | Event::SecondJoins
            | Event::Replaced { .. }
            | Event::Detached
            | Event::FencedAgain => self.cluster_does(&mut next, event),
        }
        self.settle(&mut next);
        (next != *world).then_some(next)
    }

    fn decides(&self, next: &mut World, at: usize, overdue: bool) -> Option<()> {
        let operator = &next.operators[at];
        let decided = decide(&self.setup, &self.tables, next, operator, overdue)?;
        if overdue && decide(&self.setup, &self.tables, next, operator, false)? == decided {
            return None;
        }
        let heard = operator.reading.is_some_and(|reading| reading.got.is_some());
        if (decided.idle(operator.memory) && !heard) || (decided.call.is_some() && operator.call.is_some()) {
            return None;
        }
        let (node, pods) = (next.read_node(true), next.list_pods());
        if overdue {
            self.time_passes(next);
        }
        if decided.unintended {
            next.breaks(Broken::I5);
        }
        let operator = &mut next.operators[at];
        operator.did = None;
        operator.memory = decided.memory;
        if heard {
            operator.last = operator.reading.take().and_then(|reading| reading.got);
        }
        if decided.read_node {
            operator.node = node;
        }
        if decided.list_pods {
            operator.pods = Some(pods);
        }
        if let Some(mut reading) = decided.reading {
            if self.setup.mutation == Some(Mutation::ReadBackBeforeMark) {
                reading.got = operator.last;
            }
            operator.reading = Some(reading);
        }
        operator.queue = decided.requests.iter().map(|request| as_seen(*request, operator)).collect();
        if let Some(ledger) = decided.ledger {
            next.api.ledger = ledger;
        }
        if let Some(call) = decided.call {
            self.begins_call(next, at, call);
        }
        if let Some(record) = decided.record {
            self.records(next, at, record);
        }
        Some(())
    }

    fn begins_call(&self, next: &mut World, at: usize, call: crate::world::Call) {
        if self.setup.how != How::PowerByJob {
            next.operators[at].call = Some(call);
        } else if !next.api.jobs.iter().any(|job| job.call == call) {
            next.api.jobs.push(Job { call, outcome: Outcome::Pending });
        }
    }

    /// The compare-and-swap write of the record.
    fn records(&self, next: &mut World, at: usize, record: Ref) {
        if !next.operators[at].fence_current {
            self.sees_fence(next, at);
            return;
        }
        if !self.proofs_are_true(next, at, record) {
            next.breaks(Broken::I6);
        }
        next.api.fence = Some(record);
        for operator in &mut next.operators {
            operator.fence_current = false;
        }
        self.sees_fence(next, at);
        next.operators[at].did = Some(Kind::Record);
    }

    /// I6: a proof is recorded only after this attempt's own cut-off was carried out and read back.
    fn proofs_are_true(&self, next: &World, at: usize, record: Ref) -> bool {
        let operator = &next.operators[at];
        let (before, after) = (self.tables.fence(operator.fence.unwrap_or(record)), self.tables.fence(record));
        let mut made = after.proofs.iter().filter(|proof| {
            !before.proofs.iter().any(|known| known.id() == proof.id() && known.attempt() == proof.attempt())
        });
        made.all(|proof| {
            let device = match proof.class() {
                Class::Power => Device::Bmc,
                Class::Storage => Device::San,
                Class::Network => Device::Port,
                Class::Driver | Class::Confirmed | Class::Kdump => return false,
            } as usize;
            let read = operator.last.is_some_and(|sample| sample.answered && sample.devices[device] == State::Off);
            let cut = (next.api.fence_no, u8::try_from(proof.attempt()).unwrap());
            read && next.machine.cut_in[device] == cut
        })
    }

    /// An operator takes the record as it stands now.
    fn sees_fence(&self, next: &mut World, at: usize) {
        let record = next.api.fence;
        let operator = &mut next.operators[at];
        let place = |fence: Option<Ref>| {
            fence
                .map(|fence| self.tables.fence(fence))
                .map(|fence| (fence.uid.clone(), fence.attempt, fence.phase.name()))
        };
        let (before, after) = (place(operator.fence), place(record));
        if before != after {
            // What is to be live has to be read anew in each phase.
            operator.node.live = false;
            operator.pods = None;
        }
        if before.map(|(uid, ..)| uid) != after.map(|(uid, ..)| uid) {
            operator.memory = self.fresh;
            (operator.answer, operator.reading, operator.last) = (None, None, None);
        }
        operator.fence = record;
        operator.fence_current = true;
    }

    fn sends(&self, next: &mut World, at: usize, heard: bool) {
        let operator = &mut next.operators[at];
        let request = operator.queue.remove(0);
        let clock = operator.clock;
        if let Request::Mark { send_before, .. } | Request::DeleteAttachment { send_before, .. } = request
            && clock > send_before
        {
            operator.queue.clear();
            return;
        }
        let reply = next.perform(&self.setup, request);
        next.operators[at].did = Some(request.kind());
        if heard {
            hear(&self.setup, next, at, request, reply);
        } else {
            next.operators[at].queue.clear();
        }
    }

    fn calls(&self, next: &mut World, at: usize, acts: bool, outcome: Outcome) {
        let Some(call) = next.operators[at].call.take() else { return };
        if acts {
            next.act(call);
            next.operators[at].did = Some(call.kind());
        }
        if outcome != Outcome::Accepted {
            next.left.faults -= 1;
        }
        next.operators[at].answer =
            Some(Answer { fence_no: call.fence_no, attempt: call.attempt, call: call.call, outcome });
    }

    fn job_ends(&self, next: &mut World, job: usize, acts: bool, outcome: Outcome) {
        if acts {
            next.act(next.api.jobs[job].call);
        }
        next.api.jobs[job].outcome = outcome;
    }

    fn reads(&self, next: &mut World, at: usize, answered: bool) {
        let machine = next.machine;
        let off = |off| if off { State::Off } else { State::On };
        let mut devices = [off(!machine.on()), off(machine.refused), off(machine.port_down)];
        if !answered {
            next.left.faults -= 1;
            let silence =
                if self.setup.mutation == Some(Mutation::SilenceTakenForOff) { State::Off } else { State::Unknown };
            devices = [silence; 3];
        }
        let operator = &mut next.operators[at];
        if let Some(reading) = operator.reading.as_mut() {
            for (device, state) in devices.iter_mut().enumerate() {
                let wanted = METHODS
                    .iter()
                    .enumerate()
                    .any(|(index, method)| method.1 as usize == device && reading.wants & (1 << index) != 0);
                if !wanted {
                    *state = State::Unknown;
                }
            }
            reading.got = Some(Sample { devices, at: operator.clock, answered });
        }
    }

    fn crashes(&self, next: &mut World, at: usize, leaves_request: bool, old_cache: bool) {
        next.left.crashes -= 1;
        let (node, record) = (next.read_node(false), next.api.fence);
        let operator = &mut next.operators[at];
        if let Some(kind) = operator.did {
            self.crashed_after.fetch_or(1 << kind as u32, Ordering::Relaxed);
        }
        if leaves_request {
            next.late = operator.queue.first().copied().or(operator.call.map(Request::Device));
        }
        *operator = Operator {
            leads: operator.leads,
            fence: record,
            fence_current: true,
            node: if old_cache { NodeView { live: false, ..operator.node } } else { node },
            clock: operator.clock,
            ..self.blank()
        };
    }

    fn machine_does(&self, next: &mut World, event: Event) {
        match event {
            Event::OutsideOn => {
                next.left.outside_ons -= 1;
                next.machine.boots();
            }
            Event::Reset => {
                next.left.resets -= 1;
                next.machine.boots();
            }
            Event::Suspend => {
                next.left.resets -= 1;
                next.machine.power = Power::Suspended;
            }
            Event::Resume | Event::NetworkBreaks => {
                if event == Event::NetworkBreaks {
                    next.left.cuts -= 1;
                }
                next.machine.power = Power::Cut;
            }
            Event::NetworkHeals => {
                next.left.heals -= 1;
                next.machine.power = Power::Up;
            }
            Event::KubeletUp => {
                next.machine.power = Power::Up;
                self.time_passes(next);
            }
            Event::Post => self.posts(next),
            Event::Stops { name, generation } => {
                let bit = process(name, generation);
                for machine in std::iter::once(&mut next.machine).chain(&mut next.other) {
                    if machine.power == Power::Up {
                        machine.running &= !bit;
                    }
                }
                let there = next.api.pods[usize::from(name)].is_some_and(|pod| pod.generation == generation);
                if there {
                    next.api.pods[usize::from(name)] = None;
                    next.pod_written(name);
                }
            }
            Event::OutsideLift => {
                next.left.outside_lifts -= 1;
                next.machine.refused = false;
            }
            _ => unreachable!("not a machine's doing: {event:?}"),
        }
    }

    /// More time passes than a call may wait before it is sent: boots and timers take longer than any deadline.
    /// What was decided before and bears a deadline is not sent any more; what was read before is not recent.
    fn time_passes(&self, next: &mut World) {
        for operator in &mut next.operators {
            if operator.queue.iter().any(|request| self.bears_deadline(*request)) {
                operator.queue.clear();
            }
            if let Some(call) = operator.call.take() {
                let (fence_no, attempt) = (call.fence_no, call.attempt);
                operator.answer = Some(Answer { fence_no, attempt, call: call.call, outcome: Outcome::Unknown });
            }
            if self.setup.replaces() {
                operator.clock += 1;
            }
        }
        next.late = next.late.filter(|request| !self.bears_deadline(*request));
    }

    /// A late mark does no harm where nobody replaces a pod before it is gone; so there it may come at any time.
    fn bears_deadline(&self, request: Request) -> bool {
        match request {
            Request::Device(_) | Request::DeleteAttachment { .. } => true,
            Request::Mark { .. } => self.setup.replaces(),
            Request::Quarantine { .. }
            | Request::LiftQuarantine { .. }
            | Request::Remove { .. }
            | Request::Detach { .. }
            | Request::Touch { .. }
            | Request::Close { .. } => false,
        }
    }

    /// The kubelet posts its status, and registers its Node where there is none.
    fn posts(&self, next: &mut World) {
        next.left.posts -= 1;
        let machine = next.other.unwrap_or(next.machine);
        // What hangs in I/O after its pod is gone is not among what the kubelet reports.
        let known = (0_u8..).zip(next.api.pods).filter_map(|(name, pod)| Some(process(name, pod?.generation)));
        let in_use = machine.running & known.fold(0, |bits, bit| bits | bit) != 0 && self.setup.attach;
        if let Some(node) = next.api.node.as_mut() {
            (node.boot, node.stamp, node.ready, node.in_use) = (machine.boot, node.stamp + 1, true, in_use);
        } else {
            self.registers(next, machine, in_use);
        }
        next.node_written();
    }

    fn registers(&self, next: &mut World, machine: Machine, in_use: bool) {
        self.time_passes(next);
        next.api.node_uid += 1;
        next.api.node = Some(Node {
            uid: next.api.node_uid,
            boot: machine.boot,
            stamp: 0,
            ready: true,
            taint: None,
            in_use,
            attached: next.api.attachment.is_some(),
        });
    }

    fn cluster_does(&self, next: &mut World, event: Event) {
        match event {
            Event::GoesSilent => {
                if let Some(node) = next.api.node.as_mut() {
                    node.ready = false;
                    next.node_written();
                }
            }
            Event::Evicts(name) => {
                next.left.evictions -= 1;
                if let Some(pod) = next.api.pods[usize::from(name)].as_mut() {
                    pod.marked = true;
                    next.pod_written(name);
                }
            }
            Event::NodeDeleted => {
                next.left.node_deletions -= 1;
                next.api.node = None;
                next.node_written();
            }
            Event::OtherMachineJoins => {
                let other = Machine {
                    power: Power::Up,
                    boot: 7,
                    running: 0,
                    refused: false,
                    port_down: false,
                    cut_in: [(0, 0); 3],
                };
                next.other = Some(other);
                self.registers(next, other, false);
                next.node_written();
            }
            Event::SecondJoins => self.bind(next, 1, Home::Target),
            Event::Replaced { name, home } => self.bind(next, name, home),
            Event::Detached => next.detach(),
            Event::FencedAgain => {
                next.left.more_fences -= 1;
                next.api.fence_no += 1;
                next.api.ledger = true;
                next.api.fence = Some(self.tables.number_fence(new_fence(next.api.fence_no)));
                for operator in &mut next.operators {
                    operator.fence_current = false;
                }
            }
            _ => unreachable!("not the cluster's doing: {event:?}"),
        }
    }

    fn bind(&self, next: &mut World, name: u8, home: Home) {
        let made = &mut next.api.made[usize::from(name)];
        *made += 1;
        let pod = Pod { generation: *made, home, marked: false, cut_since_mark: false };
        next.api.pods[usize::from(name)] = Some(pod);
        next.pod_written(name);
    }

    /// What follows at once: kubelets start what they may, controllers attach, and the oracle looks.
    fn settle(&self, next: &mut World) {
        let attach = self.setup.attach;
        let wanted = |pod: &Pod, home| pod.home == home && !pod.marked;
        if attach && next.api.attachment.is_none() && next.elsewhere == 0 {
            let here = next.api.pods.iter().flatten().any(|pod| wanted(pod, Home::Target));
            let there = next.api.pods.iter().flatten().any(|pod| pod.home == Home::Healthy);
            if here && !there {
                next.api.attachments_made += 1;
                next.api.attachment = Some(next.api.attachments_made);
            }
        }
        let attached = next.api.attachment.is_some();
        if let Some(node) = next.api.node.as_mut().filter(|node| node.attached != attached) {
            node.attached = attached;
            next.node_written();
        }
        for (name, pod) in (0_u8..).zip(next.api.pods) {
            let Some(pod) = pod else { continue };
            let bit = process(name, pod.generation);
            if wanted(&pod, Home::Target) && (!attach || attached) {
                for machine in std::iter::once(&mut next.machine).chain(&mut next.other) {
                    if machine.power == Power::Up {
                        machine.running |= bit;
                    }
                }
            }
            if pod.home == Home::Healthy && !attached {
                next.elsewhere |= 1 << name;
            }
            let elsewhere_too = next.other.is_some_and(|other| other.running & bit != 0);
            if pod.marked && next.machine.cut_off() && !elsewhere_too {
                next.api.pods[usize::from(name)].as_mut().unwrap().cut_since_mark = true;
            }
        }
        if next.elsewhere != 0 && next.machines().any(Machine::writes) && !self.meddled(next) {
            next.breaks(Broken::I1);
        }
        self.forget(next);
        next.operators.sort_unstable();
    }

    /// Somebody else has lifted the storage fence: what writes then is their doing.
    pub(crate) fn meddled(&self, world: &World) -> bool {
        world.left.outside_lifts < self.setup.bounds.outside_lifts
    }

    /// What nobody will look at again does not tell worlds apart.
    fn forget(&self, next: &mut World) {
        let left = next.left;
        for operator in &mut next.operators {
            if left.crashes == 0 {
                operator.did = None;
            }
            if left.handovers == 0 && !operator.leads {
                let (queue, call, clock) = (std::mem::take(&mut operator.queue), operator.call, operator.clock);
                *operator = Operator { queue, call, clock, ..self.blank() };
            }
        }
    }

    /// An operator that knows nothing.
    fn blank(&self) -> Operator {
        Operator {
            leads: false,
            fence: None,
            fence_current: false,
            memory: self.fresh,
            node: NodeView { node: None, live: false, current: false },
            pods: None,
            answer: None,
            reading: None,
            last: None,
            call: None,
            queue: Vec::new(),
            did: None,
            clock: 0,
        }
    }
}

/// A request with the versions that its sender had seen.
fn as_seen(request: Request, operator: &Operator) -> Request {
    let node = operator.node.current;
    let pod = |name: u8| operator.pods.and_then(|view| view.pods[usize::from(name)]).is_some_and(|pod| pod.current);
    match request {
        Request::Quarantine { uid, fence_no, .. } => Request::Quarantine { uid, current: node, fence_no },
        Request::LiftQuarantine { uid, .. } => Request::LiftQuarantine { uid, current: node },
        Request::Detach { uid, .. } => Request::Detach { uid, current: node },
        Request::Touch { uid, .. } => Request::Touch { uid, current: node },
        Request::Mark { name, generation, send_before, .. } => {
            Request::Mark { name, generation, current: pod(name), send_before }
        }
        Request::Remove { .. } | Request::DeleteAttachment { .. } | Request::Close { .. } | Request::Device(_) => {
            request
        }
    }
}
