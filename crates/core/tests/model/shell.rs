//! Model / shell: from what an operator has seen to a decision of the real `step`, and from its effects to requests.
//!
//! The shell has no opinion: it shows what it saw, and sends what it is told. The mutations that lie to `core` are here,
//! those that send something else are in `api`.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::effect::{Effect, NodeChange};
use palisade_core::fence::{Fence, Phase, ReleaseState};
use palisade_core::ident::{AttachmentRef, BootId, NodeName, PodRef, ResourceVersion, Uid, VolumeName};
use palisade_core::observe::{
    Admin, AttachmentSeen, CallAnswer, CallId, CallOutcome, Deletion, LedgerSeen, Mount, NodeLive, NodeRead, NodeSeen,
    Observations, PodSeen, ReadAnswer, ReadId, TaintSeen, Vetted, VolumeSeen,
};
use palisade_core::prove::{LifeSigns, PlugRead, Sample as Read, Seen};
use palisade_core::snapshot::{Ready, WitnessWord};
use palisade_core::time::{Span, Tick};
use palisade_core::{State as Subject, step};

use crate::setup::{METHODS, Members, Mutation, PLUG, Setup, VOLUME, method_index};
use crate::tables::Tables;
use crate::world::{Answer, Call, Node, NodeView, Operator, Outcome, PodsView, Reading, Ref, Request, State, World};

/// The name of the node that is fenced.
const NODE: &str = "n1";

/// Everything that a decision depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Asked {
    fence: Ref,
    memory: Ref,
    ledger: Option<u8>,
    node: NodeView,
    pods: Option<PodsView>,
    answers: Vec<Answer>,
    read: Option<Reading>,
    clock: u8,
    overdue: bool,
}

/// What becomes of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writes {
    Nothing,
    /// The slot of this number.
    Slot(u8),
    NoSlot,
}

/// What was decided, in the model's words. Requests carry `current: true`; the operator's view says whether it is so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decided {
    pub(crate) memory: Ref,
    pub(crate) record: Option<Ref>,
    /// A read of the Node, by its number.
    pub(crate) read_node: Option<u8>,
    pub(crate) list_pods: bool,
    pub(crate) ledger: Writes,
    pub(crate) reading: Option<Reading>,
    pub(crate) call: Option<Call>,
    pub(crate) requests: Vec<Request>,
    /// An effect had no intent on record (I5).
    pub(crate) unintended: bool,
}

impl Decided {
    /// Whether nothing happens but that time passes.
    pub(crate) fn idle(&self, memory: Ref) -> bool {
        self.record.is_none()
            && self.memory == memory
            && self.read_node.is_none()
            && !self.list_pods
            && self.ledger == Writes::Nothing
            && self.reading.is_none()
            && self.call.is_none()
            && self.requests.is_empty()
    }
}

/// Asks `step` what this operator does next.
pub(crate) fn decide(
    setup: &Setup,
    tables: &Tables,
    world: &World,
    operator: &Operator,
    overdue: bool,
) -> Option<std::sync::Arc<Decided>> {
    let fence = operator.fence?;
    let asked = Asked {
        fence,
        memory: operator.memory,
        ledger: world.api.ledger,
        node: NodeView { current: true, ..operator.node },
        pods: operator.pods.map(forget_versions),
        answers: answers(world, operator),
        read: operator.reading.filter(|reading| reading.got.is_some()),
        clock: operator.clock,
        overdue,
    };
    Some(tables.decided(asked, |asked| ask(setup, tables, asked)))
}

fn forget_versions(mut view: PodsView) -> PodsView {
    for pod in view.pods.iter_mut().flatten() {
        pod.current = true;
    }
    view
}

/// Answers to inline calls are the caller's own; Jobs tell everybody.
fn answers(world: &World, operator: &Operator) -> Vec<Answer> {
    let jobs = world.api.jobs.iter().map(|job| Answer {
        fence_no: job.call.fence_no,
        attempt: job.call.attempt,
        count: job.call.count,
        outcome: job.outcome,
    });
    operator.answer.into_iter().chain(jobs).collect()
}

fn ask(setup: &Setup, tables: &Tables, asked: &Asked) -> Decided {
    let fence = tables.fence(asked.fence);
    let seen = observations(setup, &fence, asked);
    let subject = Subject { fence: (*fence).clone(), memory: (*tables.memory(asked.memory)).clone() };
    let (next, decision) = step(subject, &seen, Tick::at_millis(asked.clock.into()));
    let mut decided = Decided {
        memory: tables.number_memory(next.memory),
        record: None,
        read_node: None,
        list_pods: false,
        ledger: Writes::Nothing,
        reading: None,
        call: None,
        requests: Vec::new(),
        unintended: false,
    };
    let alone = decision.effects.len() == 1;
    for effect in decision.effects {
        decided.unintended |= !intended(&fence, &effect) || (matches!(effect, Effect::Record { .. }) && !alone);
        translate(effect, &fence, tables, &mut decided);
    }
    decided
}

/// I5: the record that this decision was made from holds the intent of the effect.
fn intended(fence: &Fence, effect: &Effect) -> bool {
    use palisade_core::fence::{Detach, IsolationKind, IsolationState};
    use palisade_core::settings::Action;
    let isolation = |kind| fence.isolations.iter().find(|isolation| isolation.kind == kind);
    let release = |pod: &PodRef| fence.releases.iter().find(|release| release.pod == *pod);
    match effect {
        Effect::Record { .. }
        | Effect::ReadNode(_)
        | Effect::ReadLedger
        | Effect::ListPods
        | Effect::ReadBack(_)
        | Effect::EndJobs(_)
        | Effect::TellJobsToGo(_)
        | Effect::TouchNode(_)
        | Effect::TakeSlot { .. } => true,
        Effect::GiveSlotBack { .. } => fence.slot == palisade_core::fence::Slot::None,
        Effect::CallDevice(call) if call.action == Action::CutOff => {
            fence.isolations.iter().any(|isolation| isolation.method == call.method)
        }
        Effect::CallDevice(call) => {
            let kind = match METHODS[method_index(&call.method)].1 {
                crate::setup::Device::Bmc => IsolationKind::Power,
                crate::setup::Device::San => IsolationKind::Storage,
                crate::setup::Device::Port => IsolationKind::Network,
            };
            let lifting = isolation(kind).is_none_or(|isolation| isolation.state == IsolationState::Lifting);
            lifting && !fence.proofs_in_force().any(|proof| proof.class().whole_node())
        }
        Effect::PatchNode(patch) => match patch.change {
            NodeChange::Quarantine => isolation(IsolationKind::Quarantine).is_some(),
            NodeChange::LiftQuarantine => matches!(fence.phase, Phase::Recovering(_)),
            NodeChange::OutOfService | NodeChange::LiftOutOfService => isolation(IsolationKind::OutOfService).is_some(),
            NodeChange::Cordon | NodeChange::Uncordon => isolation(IsolationKind::Cordon).is_some(),
        },
        Effect::MarkPod(mark) => release(mark.pod()).is_some(),
        Effect::Unpublish(call) => release(call.pod()).is_some_and(|release| release.state == ReleaseState::Marked),
        Effect::RemovePod(remove) => release(remove.pod()).is_some_and(|release| release.state == ReleaseState::Marked),
        Effect::DetachVolumes(detach) => match &fence.detach {
            Detach::Edits { adding, .. } => detach.volumes().is_subset(adding),
            Detach::Forbidden => false,
        },
        Effect::DeleteAttachment(delete) => {
            fence.releases.iter().any(|release| release.attachments.contains(delete.attachment()))
        }
        Effect::DeleteNode(_) => isolation(IsolationKind::NodeDeletion).is_some(),
        Effect::Close { fence: uid, .. } => matches!(fence.phase, Phase::Final(_)) && *uid == fence.uid,
    }
}

fn translate(effect: Effect, fence: &Fence, tables: &Tables, decided: &mut Decided) {
    let millis = |tick: Tick| u8::try_from(tick.as_millis()).unwrap();
    let request = match effect {
        Effect::Record { fence, .. } => {
            decided.record = Some(tables.number_fence(*fence));
            return;
        }
        Effect::TakeSlot { grant } => {
            decided.ledger = Writes::Slot(u8::try_from(grant).unwrap());
            return;
        }
        Effect::GiveSlotBack { .. } => {
            decided.ledger = Writes::NoSlot;
            return;
        }
        // No method of these worlds runs in a Job.
        Effect::ReadLedger | Effect::EndJobs(_) | Effect::TellJobsToGo(_) => return,
        Effect::ReadNode(id) => {
            decided.read_node = Some(u8::try_from(id.0).unwrap());
            return;
        }
        Effect::ListPods => {
            decided.list_pods = true;
            return;
        }
        Effect::ReadBack(read) => {
            let wants = read.plugs.iter().fold(0, |bits, (method, _)| bits | 1 << method_index(method));
            decided.reading = Some(Reading { id: read.id.0, wants, got: None });
            return;
        }
        Effect::CallDevice(call) => {
            decided.call = Some(Call {
                method: u8::try_from(method_index(&call.method)).unwrap(),
                fence_no: number(&fence.uid),
                attempt: u8::try_from(call.call.attempt).unwrap(),
                count: u8::try_from(call.call.call).unwrap(),
            });
            return;
        }
        Effect::PatchNode(patch) => {
            let uid = number(&patch.guard.uid);
            match patch.change {
                NodeChange::Quarantine => Request::Quarantine { uid, current: true, fence_no: number(&fence.uid) },
                NodeChange::LiftQuarantine => Request::LiftQuarantine { uid, current: true },
                NodeChange::OutOfService => Request::OutOfService { uid, current: true },
                NodeChange::LiftOutOfService => Request::LiftOutOfService { uid, current: true },
                NodeChange::Cordon | NodeChange::Uncordon => unreachable!("no world asks for this"),
            }
        }
        Effect::MarkPod(mark) => {
            let (name, generation) = pod_of(mark.pod());
            Request::Mark { name, generation, current: true, send_before: millis(mark.send_before()) }
        }
        Effect::RemovePod(remove) => {
            let (name, generation) = pod_of(remove.pod());
            Request::Remove { name, generation }
        }
        Effect::DetachVolumes(detach) => Request::Detach { uid: number(&detach.node().uid), current: true },
        Effect::TouchNode(guard) => Request::Touch { uid: number(&guard.uid), current: true },
        Effect::DeleteAttachment(delete) => Request::DeleteAttachment {
            uid: number(&delete.attachment().uid),
            send_before: millis(delete.send_before()),
        },
        Effect::Close { fence, .. } => Request::Close { fence_no: number(&fence) },
        Effect::DeleteNode(delete) => Request::DeleteNode { uid: number(&delete.guard().uid), current: true },
        Effect::Unpublish(_) => unreachable!("no world asks for this"),
    };
    decided.requests.push(request);
}

/// UIDs are a letter and a number.
pub(crate) fn uid(letter: char, number: u8) -> Uid {
    Uid::new(format!("{letter}{number}"))
}

fn number(uid: &Uid) -> u8 {
    uid.as_str()[1..].parse().unwrap()
}

fn pod_ref(name: u8, generation: u8) -> PodRef {
    PodRef {
        namespace: Box::from("ns"),
        name: Box::from(format!("db-{name}")),
        uid: Uid::new(format!("p{name}.{generation}")),
    }
}

fn pod_of(pod: &PodRef) -> (u8, u8) {
    let (name, generation) = pod.uid.as_str()[1..].split_once('.').unwrap();
    (name.parse().unwrap(), generation.parse().unwrap())
}

/// What the shell shows to `step`.
fn observations(setup: &Setup, fence: &Fence, asked: &Asked) -> Observations {
    Observations {
        settings: setup.settings(asked.overdue),
        unusable: None,
        release: setup.release(),
        vetted: Vetted::Open,
        ledger: asked.ledger.map_or(LedgerSeen::Absent, |grant| LedgerSeen::Present { grant: grant.into() }),
        node: asked
            .node
            .node
            .map_or(NodeSeen::Gone, |node| NodeSeen::There(node_seen(setup, fence, &node, asked.node.read))),
        evidence_cleared: true,
        power_wanted: false,
        admin: Admin::default(),
        pods: asked.pods.map(|view| pods_seen(setup, fence, &view)),
        volumes: volumes_seen(setup),
        attachments: asked.pods.map(|view| attachments_seen(&view)),
        calls: asked.answers.iter().map(|answer| answer_seen(setup, fence, answer)).collect(),
        reads: asked.read.iter().map(read_seen).collect(),
        unpublished: BTreeSet::new(),
        released_lately: 0,
        jobs_over: BTreeSet::new(),
        kdump_proves: false,
    }
}

fn node_seen(setup: &Setup, fence: &Fence, node: &Node, read: Option<(u8, u8)>) -> NodeLive {
    let mut boot = format!("b{}", node.boot);
    if setup.mutation == Some(Mutation::OldBootCalledNew)
        && matches!(fence.phase, Phase::Returning | Phase::Recovering(_))
    {
        boot.push_str("-new");
    }
    let volumes = |there: bool| if there { BTreeSet::from([VolumeName::from(VOLUME)]) } else { BTreeSet::new() };
    NodeLive {
        uid: uid('n', node.uid),
        resource_version: ResourceVersion::from("as read"),
        read: read.map(|(id, began)| NodeRead { id: ReadId(id.into()), began: Tick::at_millis(began.into()) }),
        ready: if node.ready { Ready::True } else { Ready::Unknown },
        ready_for: node.ready.then_some(Span::ZERO),
        life: LifeSigns {
            renewed: Some(Box::from(node.stamp.to_string())),
            heartbeat: Some(Box::from(node.stamp.to_string())),
            boot: Some(BootId::new(boot)),
        },
        lease_silent: !node.ready,
        lease_late: !node.ready,
        taints: {
            let ours = node.taint.map(|fence_no| TaintSeen::Quarantine(uid('f', fence_no)));
            ours.into_iter().chain(node.out_of_service.then_some(TaintSeen::OutOfService)).collect()
        },
        cordoned: false,
        volumes_in_use: volumes(node.in_use),
        volumes_attached: volumes(node.attached),
    }
}

fn pods_seen(setup: &Setup, fence: &Fence, view: &PodsView) -> Vec<PodSeen> {
    let mut seen = Vec::new();
    if setup.mutation == Some(Mutation::PodsHidden) {
        return seen;
    }
    for (name, pod) in (0_u8..).zip(&view.pods) {
        let Some(pod) = pod else { continue };
        let which = pod_ref(name, pod.generation);
        let believed = setup.mutation == Some(Mutation::NoDeletionMark)
            && fence.releases.iter().any(|release| release.pod == which && release.state == ReleaseState::Marked);
        let hidden = setup.mutation == Some(Mutation::SharedClaimHidden) && name == 1;
        seen.push(PodSeen {
            pod: which,
            resource_version: ResourceVersion::from("as read"),
            owner: setup.owner,
            labels: BTreeMap::from([("palisade.dev/fenced".to_owned(), "true".to_owned())]),
            grace: 30,
            deletion: if pod.marked || believed { Deletion::Marked } else { Deletion::No },
            finalizers: false,
            completed: false,
            after_taint: false,
            mounts: vec![Mount::Claim {
                volume: Some(Box::from(if hidden { "pv-1" } else { "pv" })),
                read_only: false,
            }],
            pdb_blocks: false,
        });
    }
    seen
}

fn volumes_seen(setup: &Setup) -> BTreeMap<Box<str>, VolumeSeen> {
    let mut volumes = Setup::volumes();
    if setup.mutation == Some(Mutation::SharedClaimHidden) && setup.members != Members::One {
        let shown =
            VolumeSeen { name: VolumeName::from("vol-1"), healthy: None, provider: None, ..volumes["pv"].clone() };
        volumes.insert(Box::from("pv-1"), shown);
    }
    volumes
}

fn attachments_seen(view: &PodsView) -> Vec<AttachmentSeen> {
    let seen = view.attachment.map(|number| AttachmentSeen {
        attachment: AttachmentRef { name: Box::from("va"), uid: uid('v', number) },
        volume: VolumeName::from(VOLUME),
        deleting: false,
        detach_error: None,
    });
    seen.into_iter().collect()
}

fn answer_seen(setup: &Setup, fence: &Fence, answer: &Answer) -> CallAnswer {
    let outcome = match answer.outcome {
        Outcome::Pending => CallOutcome::Pending,
        Outcome::Accepted => CallOutcome::Accepted,
        Outcome::Refused => CallOutcome::Refused,
        Outcome::Unknown => CallOutcome::Unknown,
    };
    let theirs = CallId { attempt: answer.attempt.into(), call: answer.count.into() };
    match (&fence.phase, setup.mutation) {
        (Phase::Isolating(run), Some(Mutation::OldJobAdopted)) => {
            CallAnswer { fence: fence.uid.clone(), call: CallId::of(fence.attempt, run), outcome }
        }
        _ => CallAnswer { fence: uid('f', answer.fence_no), call: theirs, outcome },
    }
}

fn read_seen(reading: &Reading) -> ReadAnswer {
    let sample = reading.got.unwrap();
    let at = Tick::at_millis(sample.at.into());
    let wanted = METHODS.iter().enumerate().filter(|(index, _)| reading.wants & (1 << index) != 0);
    let plugs = wanted.map(|(_, (method, device))| {
        let seen = match sample.devices[*device as usize] {
            State::Unknown => Seen::Unknown,
            State::Off => Seen::Off,
            State::On => Seen::On,
        };
        // Nobody can look at the kubelet: then only the device speaks, which allows more.
        let read = Read { began: at, ended: at, seen, kubelet: WitnessWord::Unknown };
        PlugRead { method: (*method).into(), plug: Box::from(PLUG), samples: vec![read, read] }
    });
    ReadAnswer { id: ReadId(reading.id), plugs: plugs.collect() }
}

/// A NodeFence as it is created, with its slot.
pub(crate) fn new_fence(fence_no: u8) -> Fence {
    Fence { slot: palisade_core::fence::Slot::Held, grant: 1, ..Fence::new(uid('f', fence_no), NodeName::from(NODE)) }
}
