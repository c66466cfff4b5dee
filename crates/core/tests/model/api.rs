//! Model / api: requests are carried out, by the API server's and the devices' own rules; the oracle looks on.
//!
//! The oracle judges each destructive act by the machines' truth at the instant of the act, never by what an operator
//! believes. The mutations that send something else than they were told are here.

use crate::setup::{Device, METHODS, Members, Mutation, Setup};
use crate::world::{
    Broken, Call, Home, Kind, Machine, NodeView, Operator, PodView, PodsView, Power, Request, World, process,
};

/// What the API server says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Done,
    /// 409: a precondition does not hold.
    Conflict,
    /// 404.
    Gone,
}

impl World {
    /// The Node object was written: every version that was read before is old.
    pub(crate) fn node_written(&mut self) {
        for operator in &mut self.operators {
            operator.node.current = false;
            operator.queue.iter_mut().for_each(node_outdated);
        }
        self.late.iter_mut().for_each(node_outdated);
    }

    /// A pod object was written.
    pub(crate) fn pod_written(&mut self, name: u8) {
        for operator in &mut self.operators {
            if let Some(pod) = operator.pods.iter_mut().find_map(|view| view.pods[usize::from(name)].as_mut()) {
                pod.current = false;
            }
            operator.queue.iter_mut().for_each(|request| pod_outdated(request, name));
        }
        self.late.iter_mut().for_each(|request| pod_outdated(request, name));
    }

    pub(crate) fn breaks(&mut self, promise: Broken) {
        self.broken.get_or_insert(promise);
    }

    /// Nodes of the target's name on which this pod's processes run.
    fn runs(&self, bit: u8) -> bool {
        self.machines().any(|machine| machine.running & bit != 0 && machine.power != Power::Off)
    }

    pub(crate) fn machines(&self) -> impl Iterator<Item = Machine> {
        std::iter::once(self.machine).chain(self.other)
    }

    /// Whether something writes to the volume that is about to be detached, and nobody else is to blame.
    pub(crate) fn harms(&self, setup: &Setup) -> bool {
        self.machines().any(Machine::writes) && self.left.outside_lifts == setup.bounds.outside_lifts
    }

    /// Carries out one request.
    pub(crate) fn perform(&mut self, setup: &Setup, request: Request) -> Reply {
        let blind = setup.mutation == Some(Mutation::NoPrecondition);
        match request {
            Request::Quarantine { uid, current, fence_no } => {
                let early = setup.mutation == Some(Mutation::OutOfServiceTooEarly);
                self.patch(blind, uid, current, |node| {
                    node.taint = Some(fence_no);
                    node.out_of_service |= early;
                })
            }
            Request::OutOfService { uid, current } => {
                self.patch(blind, uid, current, |node| node.out_of_service = true)
            }
            Request::LiftOutOfService { uid, current } => {
                self.patch(blind, uid, current, |node| node.out_of_service = false)
            }
            Request::DeleteNode { uid, current } => self.delete_node(setup, uid, current),
            Request::LiftQuarantine { uid, current } => self.patch(blind, uid, current, |node| node.taint = None),
            Request::Touch { uid, current } => self.patch(blind, uid, current, |_| {}),
            Request::Detach { uid, current } => {
                // What a pod object of the node still refers to is not detached, whatever the list says.
                let bound = (0_u8..).zip(self.api.pods).filter_map(|(name, pod)| Some((name, pod?)));
                let bound = bound.filter(|(_, pod)| pod.home == Home::Target);
                let held = bound.fold(0, |bits, (name, pod)| bits | process(name, pod.generation));
                let left_alone = self.machines().all(|machine| machine.running & !held == 0);
                if self.harms(setup) && (current || blind) && !left_alone {
                    self.breaks(Broken::I2);
                }
                self.patch(blind, uid, current, |node| node.in_use = false)
            }
            Request::Mark { name, generation, current, .. } => self.mark(setup, name, generation, current),
            Request::Remove { name, generation } => self.remove(setup, name, generation),
            Request::DeleteAttachment { uid, .. } => match self.api.attachment {
                Some(there) if there == uid || blind => {
                    if there != uid {
                        self.breaks(Broken::I4);
                    }
                    if self.harms(setup) {
                        self.breaks(Broken::I2);
                    }
                    self.detach();
                    Reply::Done
                }
                Some(_) => Reply::Conflict,
                None => Reply::Gone,
            },
            Request::Close { fence_no } => {
                if self.api.fence.is_none() || self.api.fence_no != fence_no {
                    return Reply::Gone;
                }
                self.api.fence = None;
                for operator in &mut self.operators {
                    operator.fence_current = false;
                }
                Reply::Done
            }
            Request::Device(call) => {
                self.act(call);
                Reply::Done
            }
        }
    }

    fn patch(&mut self, blind: bool, uid: u8, current: bool, change: impl FnOnce(&mut crate::world::Node)) -> Reply {
        let Some(node) = self.api.node.as_mut() else { return Reply::Gone };
        if !blind && (node.uid != uid || !current) {
            return Reply::Conflict;
        }
        let (there, before) = (node.uid, *node);
        change(node);
        let changed = before != *node;
        if there != uid {
            self.breaks(Broken::I4);
        }
        if changed {
            self.node_written();
        }
        Reply::Done
    }

    /// The attachment goes; the Node's list follows.
    pub(crate) fn detach(&mut self) {
        self.api.attachment = None;
        if let Some(node) = self.api.node.as_mut().filter(|node| node.attached) {
            node.attached = false;
            self.node_written();
        }
    }

    fn mark(&mut self, setup: &Setup, name: u8, generation: u8, current: bool) -> Reply {
        let blind = setup.mutation == Some(Mutation::NoPrecondition);
        if setup.mutation == Some(Mutation::NoDeletionMark) {
            return Reply::Done;
        }
        let Some(pod) = self.api.pods[usize::from(name)] else { return Reply::Gone };
        if !blind && (pod.generation != generation || !current) {
            return Reply::Conflict;
        }
        if pod.generation != generation {
            self.breaks(Broken::I4);
        }
        if setup.mutation == Some(Mutation::GraceZero) {
            return self.remove(setup, name, pod.generation);
        }
        if pod.marked {
            return Reply::Done;
        }
        // For an owner that replaces what terminates, the mark is the release.
        let harmless = !self.runs(process(name, generation)) || self.machine.refused;
        if setup.replaces() && !harmless {
            self.breaks(Broken::I2);
        }
        self.api.pods[usize::from(name)].as_mut().unwrap().marked = true;
        self.pod_written(name);
        Reply::Done
    }

    fn remove(&mut self, setup: &Setup, name: u8, generation: u8) -> Reply {
        let blind = setup.mutation == Some(Mutation::NoPrecondition);
        let Some(pod) = self.api.pods[usize::from(name)] else { return Reply::Gone };
        if pod.generation != generation && !blind {
            return Reply::Conflict;
        }
        if pod.generation != generation {
            self.breaks(Broken::I4);
        }
        self.collect(setup, name);
        Reply::Done
    }

    /// A pod object goes without a word of its kubelet.
    pub(crate) fn collect(&mut self, setup: &Setup, name: u8) {
        // I2 and the groups of I1: each pod of the node that shares the claim was marked, and then its node was cut off.
        // One that was bound to the node after the decision keeps the attachment there, and so the replacement waits.
        let joined = |at: u8| at != name && setup.members == Members::SecondJoins;
        let bound = (0_u8..).zip(self.api.pods).filter_map(|(at, pod)| pod.filter(|_| !joined(at)));
        if bound.filter(|pod| pod.home == Home::Target).any(|pod| !pod.cut_since_mark) {
            self.breaks(Broken::I2);
        }
        self.api.pods[usize::from(name)] = None;
        self.pod_written(name);
    }

    /// Whoever deletes a Node releases every pod that is bound to it.
    fn delete_node(&mut self, setup: &Setup, uid: u8, current: bool) -> Reply {
        let blind = setup.mutation == Some(Mutation::NoPrecondition);
        let Some(node) = self.api.node else { return Reply::Gone };
        if !blind && (node.uid != uid || !current) {
            return Reply::Conflict;
        }
        if node.uid != uid {
            self.breaks(Broken::I4);
        }
        let mut bound = self.api.pods.iter().flatten().filter(|pod| pod.home == Home::Target);
        if bound.any(|pod| !pod.cut_since_mark) {
            self.breaks(Broken::I2);
        }
        self.api.node = None;
        self.node_written();
        Reply::Done
    }

    /// A device does what it is told.
    pub(crate) fn act(&mut self, call: Call) {
        let device = METHODS[usize::from(call.method)].1;
        let cut = call.kind() == Kind::CutOff;
        match (device, cut) {
            (Device::Bmc, true) => {
                self.machine.power = Power::Off;
                self.machine.running = 0;
            }
            (Device::Bmc, false) if self.machine.power == Power::Off => self.machine.boots(),
            (Device::Bmc, false) => {}
            (Device::San, refused) => self.machine.refused = refused,
            (Device::Port, down) => {
                self.machine.port_down = down;
                if down && self.machine.power == Power::Up {
                    self.machine.power = Power::Cut;
                }
            }
        }
        if cut {
            let known = &mut self.machine.cut_in[device as usize];
            *known = (*known).max((call.fence_no, call.attempt));
        }
    }

    /// What the API server shows of pods and attachments of the node.
    pub(crate) fn list_pods(&self) -> PodsView {
        let shown = |pod: crate::world::Pod| PodView { generation: pod.generation, marked: pod.marked, current: true };
        PodsView {
            pods: self.api.pods.map(|pod| pod.filter(|pod| pod.home == Home::Target).map(shown)),
            attachment: self.api.attachment,
        }
    }

    /// The Node as it is now, for somebody whose newest GET of it was this one.
    pub(crate) fn see_node(&self, read: Option<(u8, u8)>) -> NodeView {
        NodeView { node: self.api.node, read, current: true }
    }
}

/// What an operator takes from a reply.
pub(crate) fn hear(setup: &Setup, world: &mut World, at: usize, request: Request, reply: Reply) {
    let (node, mut pods) = (world.see_node(world.operators[at].node.read), world.list_pods());
    if setup.mutation == Some(Mutation::NoDeletionMark) && matches!(request, Request::Mark { .. }) {
        pods.pods.iter_mut().flatten().for_each(|pod| pod.marked = true);
    }
    let operator: &mut Operator = &mut world.operators[at];
    match request {
        Request::Quarantine { .. }
        | Request::LiftQuarantine { .. }
        | Request::OutOfService { .. }
        | Request::LiftOutOfService { .. }
        | Request::DeleteNode { .. }
        | Request::Touch { .. }
        | Request::Detach { .. } => {
            // A patch answers with the object; a 409 makes the sender look.
            operator.node = node;
        }
        Request::Mark { name, .. } | Request::Remove { name, .. } => {
            if let Some(view) = operator.pods.as_mut() {
                view.pods[usize::from(name)] = pods.pods[usize::from(name)];
            }
        }
        Request::DeleteAttachment { .. } => {
            if let Some(view) = operator.pods.as_mut() {
                view.attachment = pods.attachment;
            }
        }
        Request::Close { .. } | Request::Device(_) => {}
    }
    if reply != Reply::Done {
        // Look and decide again; never send the rest of an old decision.
        operator.queue.clear();
    }
}

fn node_outdated(request: &mut Request) {
    match request {
        Request::Quarantine { current, .. }
        | Request::LiftQuarantine { current, .. }
        | Request::OutOfService { current, .. }
        | Request::LiftOutOfService { current, .. }
        | Request::DeleteNode { current, .. }
        | Request::Detach { current, .. }
        | Request::Touch { current, .. } => *current = false,
        Request::Mark { .. }
        | Request::Remove { .. }
        | Request::DeleteAttachment { .. }
        | Request::Close { .. }
        | Request::Device(_) => {}
    }
}

fn pod_outdated(request: &mut Request, written: u8) {
    if let Request::Mark { name, current, .. } = request
        && *name == written
    {
        *current = false;
    }
}
