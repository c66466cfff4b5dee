//! Model / events: what can happen next, and what the world looks like afterwards.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use palisade_core::observe::Memory;
use palisade_core::time::Tick;

use crate::setup::{Besides, How, Members, Setup, Successor};
use crate::shell::new_fence;
use crate::tables::Tables;
use crate::world::{Api, Event, Home, Machine, Node, NodeView, Operator, Outcome, Pod, Power, Ref, World, process};

/// A world that can be explored.
#[derive(Debug)]
pub(crate) struct Explored {
    pub(crate) setup: Setup,
    pub(crate) tables: Arc<Tables>,
    /// Kinds of effects right after which an operator crashed.
    pub(crate) crashed_after: Arc<AtomicU32>,
    /// The memory of a process that has just begun.
    pub(crate) fresh: Ref,
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
            out_of_service: false,
            in_use: self.setup.attach,
            attached: self.setup.attach,
        };
        let fence = self.tables.number_fence(new_fence(1));
        let attachments = u8::from(self.setup.attach);
        let operator = Operator {
            fence: Some(fence),
            fence_current: true,
            node: NodeView { node: Some(node), read: None, current: true },
            ..self.blank()
        };
        World {
            api: Api {
                fence: Some(fence),
                fence_no: 1,
                ledger: Some(1),
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
        // A fence that begins on another machine's Node is refused by the device itself, which knows whose it is.
        let begun = self.setup.successor == Successor::SameMachine
            || api.fence.is_some_and(|fence| self.tables.fence(fence).target.is_some());
        if api.node.is_some() && left.node_deletions > 0 && begun {
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
        let free = api.node.is_none_or(|node| !node.in_use || !node.ready || node.out_of_service);
        if api.attachment.is_some() && !refers && free {
            events.push(Event::Detached);
        }
        let collects = match api.node {
            Some(node) => node.out_of_service && !node.ready,
            None => self.setup.besides == Besides::DeleteNode,
        };
        for (name, pod) in (0_u8..).zip(api.pods).filter(|_| collects) {
            let terminates = |pod: crate::world::Pod| pod.home == Home::Target && (pod.marked || api.node.is_none());
            if pod.is_some_and(terminates) {
                events.push(Event::Collected(name));
            }
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
            Event::SeeNode(at) => next.operators[at].node = next.see_node(next.operators[at].node.read),
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
            | Event::Collected(_)
            | Event::FencedAgain => self.cluster_does(&mut next, event),
        }
        self.settle(&mut next);
        (next != *world).then_some(next)
    }

    /// An operator that knows nothing.
    pub(crate) fn blank(&self) -> Operator {
        Operator {
            leads: false,
            fence: None,
            fence_current: false,
            memory: self.fresh,
            node: NodeView { node: None, read: None, current: false },
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
