//! Model / operators: two processes decide, send, hear, read and crash; neither knows what the other one does.

use std::sync::atomic::Ordering;

use palisade_core::prove::Class;

use crate::api::hear;
use crate::events::Explored;
use crate::setup::{Device, How, METHODS, Mutation};
use crate::shell::{Writes, decide};
use crate::world::{Answer, Broken, Call, Job, Kind, NodeView, Operator, Outcome, Ref, Request, Sample, State, World};

impl Explored {
    pub(crate) fn decides(&self, next: &mut World, at: usize, overdue: bool) -> Option<()> {
        let operator = &next.operators[at];
        let decided = decide(&self.setup, &self.tables, next, operator, overdue)?;
        if overdue && decide(&self.setup, &self.tables, next, operator, false)? == decided {
            return None;
        }
        let heard = operator.reading.is_some_and(|reading| reading.got.is_some());
        if (decided.idle(operator.memory) && !heard) || (decided.call.is_some() && operator.call.is_some()) {
            return None;
        }
        let pods = next.list_pods();
        let node = decided.read_node.map(|id| next.see_node(Some((id, next.operators[at].clock))));
        if overdue {
            self.deadlines_pass(next);
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
        if let Some(node) = node {
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
        match decided.ledger {
            Writes::Nothing => {}
            Writes::Slot(number) => next.api.ledger = Some(number),
            Writes::NoSlot => next.api.ledger = None,
        }
        if let Some(call) = decided.call {
            self.begins_call(next, at, call);
        }
        if let Some(record) = decided.record {
            self.records(next, at, record);
        }
        Some(())
    }

    fn begins_call(&self, next: &mut World, at: usize, call: Call) {
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
    pub(crate) fn sees_fence(&self, next: &mut World, at: usize) {
        let record = next.api.fence;
        let operator = &mut next.operators[at];
        let place = |fence: Option<Ref>| {
            fence
                .map(|fence| self.tables.fence(fence))
                .map(|fence| (fence.uid.clone(), fence.attempt, fence.phase.name()))
        };
        let (before, after) = (place(operator.fence), place(record));
        if before != after {
            // Lists have to be made anew in each phase.
            operator.pods = None;
        }
        if before.map(|(uid, ..)| uid) != after.map(|(uid, ..)| uid) {
            operator.memory = self.fresh;
            operator.node.read = None;
            (operator.answer, operator.reading, operator.last) = (None, None, None);
        }
        operator.fence = record;
        operator.fence_current = true;
    }

    pub(crate) fn sends(&self, next: &mut World, at: usize, heard: bool) {
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

    pub(crate) fn calls(&self, next: &mut World, at: usize, acts: bool, outcome: Outcome) {
        let Some(call) = next.operators[at].call.take() else { return };
        if acts {
            next.act(call);
            next.operators[at].did = Some(call.kind());
        }
        if outcome != Outcome::Accepted {
            next.left.faults -= 1;
        }
        next.operators[at].answer =
            Some(Answer { fence_no: call.fence_no, attempt: call.attempt, count: call.count, outcome });
    }

    pub(crate) fn job_ends(&self, next: &mut World, job: usize, acts: bool, outcome: Outcome) {
        if acts {
            next.act(next.api.jobs[job].call);
        }
        next.api.jobs[job].outcome = outcome;
    }

    pub(crate) fn reads(&self, next: &mut World, at: usize, answered: bool) {
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

    pub(crate) fn crashes(&self, next: &mut World, at: usize, leaves_request: bool, old_cache: bool) {
        next.left.crashes -= 1;
        let (node, record) = (next.see_node(None), next.api.fence);
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
            node: if old_cache { NodeView { read: None, ..operator.node } } else { node },
            clock: operator.clock,
            ..self.blank()
        };
    }
}

/// A request with the versions that its sender had seen.
fn as_seen(request: Request, operator: &Operator) -> Request {
    let node = operator.node.current;
    let pod = |name: u8| operator.pods.and_then(|view| view.pods[usize::from(name)]).is_some_and(|pod| pod.current);
    match request {
        Request::Quarantine { uid, fence_no, .. } => Request::Quarantine { uid, current: node, fence_no },
        Request::LiftQuarantine { uid, .. } => Request::LiftQuarantine { uid, current: node },
        Request::OutOfService { uid, .. } => Request::OutOfService { uid, current: node },
        Request::LiftOutOfService { uid, .. } => Request::LiftOutOfService { uid, current: node },
        Request::DeleteNode { uid, .. } => Request::DeleteNode { uid, current: node },
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
