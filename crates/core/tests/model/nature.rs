//! Model / nature: what machines, people and Kubernetes do by themselves, and what follows at once.

use crate::events::Explored;
use crate::shell::new_fence;
use crate::world::{
    Answer, Broken, Event, Home, Machine, Node, Operator, Outcome, Pod, Power, Request, World, process,
};

impl Explored {
    pub(crate) fn machine_does(&self, next: &mut World, event: Event) {
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

    /// A machine boots, or registers: what was read before is not recent, and what rests on it directly is not sent any more. A
    /// device call may be. (Nothing else moves the clocks: that only makes reads look more recent than they are.)
    pub(crate) fn time_passes(&self, next: &mut World) {
        for operator in &mut next.operators {
            if operator.queue.iter().any(|request| self.rests_on_a_read(*request)) {
                operator.queue.clear();
            }
        }
        next.late = next.late.filter(|request| !self.rests_on_a_read(*request));
        if self.setup.time_matters() {
            next.operators.iter_mut().for_each(|operator| operator.clock += 1);
        }
    }

    /// More time passes than anything may wait before it is sent: timers take longer than any deadline.
    pub(crate) fn deadlines_pass(&self, next: &mut World) {
        for operator in &mut next.operators {
            if operator.queue.iter().any(|request| self.rests_on_a_read(*request)) {
                operator.queue.clear();
            }
            if let Some(call) = operator.call.take() {
                let (fence_no, attempt) = (call.fence_no, call.attempt);
                operator.answer = Some(Answer { fence_no, attempt, count: call.count, outcome: Outcome::Unknown });
            }
        }
        next.late =
            next.late.filter(|request| !self.rests_on_a_read(*request) && !matches!(request, Request::Device(_)));
    }

    /// A late mark does no harm where nobody replaces a pod before it is gone; so there it may come at any time.
    fn rests_on_a_read(&self, request: Request) -> bool {
        match request {
            Request::DeleteAttachment { .. } => true,
            Request::Mark { .. } => self.setup.replaces(),
            Request::Quarantine { .. }
            | Request::LiftQuarantine { .. }
            | Request::OutOfService { .. }
            | Request::LiftOutOfService { .. }
            | Request::DeleteNode { .. }
            | Request::Remove { .. }
            | Request::Detach { .. }
            | Request::Touch { .. }
            | Request::Device(_)
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
            out_of_service: false,
            in_use,
            attached: next.api.attachment.is_some(),
        });
    }

    pub(crate) fn cluster_does(&self, next: &mut World, event: Event) {
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
            Event::Detached => {
                // Without the taint, Kubernetes' own patience would have ended; with it, it is our doing.
                if next.api.node.is_some_and(|node| node.out_of_service) && next.harms(&self.setup) {
                    next.breaks(Broken::I2);
                }
                next.detach();
            }
            Event::Collected(name) => next.collect(&self.setup, name),
            Event::FencedAgain => {
                next.left.more_fences -= 1;
                next.api.fence_no += 1;
                next.api.ledger = Some(1);
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
    pub(crate) fn settle(&self, next: &mut World) {
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
                *operator = Operator { call, queue, clock, ..self.blank() };
            }
        }
    }
}
