//! Random walks: a fence, and a world that answers in any way that the types allow.
//!
//! The walk does not try to be a likely world. It lies, forgets, contradicts itself and crashes the process, because the
//! promises about one step hold for whatever is seen.

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::effect::Effect;
use palisade_core::fence::{Fence, Slot};
use palisade_core::ident::{AttachmentRef, BootId, NodeName, PodRef, ResourceVersion, Uid, VolumeName};
use palisade_core::observe::{
    Access, Admin, AttachmentSeen, CallAnswer, CallOutcome, Confirmation, Deletion, LedgerSeen, Memory, Mount,
    NodeLive, NodeRead, NodeSeen, Observations, Owner, PodSeen, ReadAnswer, ReadId, TaintSeen, Vetted, VolumeSeen,
};
use palisade_core::policy::ReleasePolicy;
use palisade_core::prove::{Class, LifeSigns, PlugRead, ReadPath, Sample, Scope, Seen};
use palisade_core::settings::{Action, Level, Method, Plan, Settings};
use palisade_core::snapshot::{Ready, WitnessWord};
use palisade_core::time::{Span, Tick};
use palisade_core::{Decision, State, step};
use proptest::prelude::*;

/// What the ledger shows.
#[derive(Clone, Copy, Debug)]
pub enum Shows {
    Unread,
    Nothing,
    /// The slot that we hold or ask for.
    Ours,
    Older,
}

/// One thing that happens to the world between two steps.
#[derive(Clone, Copy, Debug)]
pub enum Happens {
    Answer(CallOutcome),
    Read(Seen, WitnessWord),
    Listed(bool),
    PodMarked(usize),
    PodForced(usize),
    PodGone(usize),
    PodNew(usize),
    Ready(Ready),
    LeaseMoves,
    LeaseSilent(bool),
    Boots,
    NodeGone,
    NodeReplaced,
    NodeLive(bool),
    VolumeBack(usize),
    AttachmentGone(usize),
    AttachmentDeleting(usize),
    Unpublished(usize, usize),
    Cleared(bool),
    Stop(bool),
    Resume(bool),
    Confirm,
    Ledger(Shows),
    Vetted(Vetted),
    Kdump(bool),
    JobsEnd,
    Crash,
    Time(u64),
    Taints(bool),
    Nothing,
}

pub fn happens() -> impl Strategy<Value = Happens> {
    use Happens as H;
    let outcome = prop_oneof![
        6 => Just(CallOutcome::Accepted),
        1 => Just(CallOutcome::Refused),
        1 => Just(CallOutcome::Unknown),
        1 => Just(CallOutcome::Pending)
    ];
    let seen = prop_oneof![6 => Just(Seen::Off), 2 => Just(Seen::On), 1 => Just(Seen::Unknown)];
    let kubelet =
        prop_oneof![6 => Just(WitnessWord::Silent), 1 => Just(WitnessWord::Alive), 1 => Just(WitnessWord::Unknown)];
    let ready = prop_oneof![Just(Ready::True), Just(Ready::False), Just(Ready::Unknown)];
    let ledger = prop_oneof![Just(Shows::Unread), Just(Shows::Nothing), Just(Shows::Ours), Just(Shows::Older)];
    let vetted = prop_oneof![Just(Vetted::Open), Just(Vetted::Closed), Just(Vetted::Refused)];
    let pod = 0..PODS;
    prop_oneof![
        8 => outcome.prop_map(H::Answer),
        8 => (seen, kubelet).prop_map(|(seen, kubelet)| H::Read(seen, kubelet)),
        2 => any::<bool>().prop_map(H::Listed),
        4 => pod.clone().prop_map(H::PodMarked),
        1 => pod.clone().prop_map(H::PodForced),
        2 => pod.clone().prop_map(H::PodGone),
        1 => pod.clone().prop_map(H::PodNew),
        1 => ready.prop_map(H::Ready),
        1 => Just(H::LeaseMoves),
        1 => any::<bool>().prop_map(H::LeaseSilent),
        1 => Just(H::Boots),
        1 => Just(H::NodeGone),
        1 => Just(H::NodeReplaced),
        2 => any::<bool>().prop_map(H::NodeLive),
        1 => (0..VOLUMES).prop_map(H::VolumeBack),
        1 => (0..VOLUMES).prop_map(H::AttachmentGone),
        1 => (0..VOLUMES).prop_map(H::AttachmentDeleting),
        1 => (pod, 0..VOLUMES).prop_map(|(pod, volume)| H::Unpublished(pod, volume)),
        1 => any::<bool>().prop_map(H::Cleared),
        1 => any::<bool>().prop_map(H::Stop),
        1 => any::<bool>().prop_map(H::Resume),
        1 => Just(H::Confirm),
        2 => ledger.prop_map(H::Ledger),
        1 => vetted.prop_map(H::Vetted),
        1 => any::<bool>().prop_map(H::Kdump),
        2 => Just(H::JobsEnd),
        1 => Just(H::Crash),
        3 => (0..600_000u64).prop_map(H::Time),
        1 => any::<bool>().prop_map(H::Taints),
        4 => Just(H::Nothing),
    ]
}

const PODS: usize = 4;
const VOLUMES: usize = 3;

/// How a walk is set up: which devices, which policy.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // switches of a random world, drawn one by one
pub struct Setup {
    pub first: Vec<Class>,
    pub second: Vec<Class>,
    pub power_step: bool,
    pub stay_off: bool,
    pub delete_node: bool,
    pub out_of_service: bool,
    pub driver: bool,
    pub guard: bool,
    pub tells_hibernation: bool,
    pub shared: bool,
    pub by_job: bool,
    pub owners: Vec<Owner>,
    pub retries: u32,
}

pub fn setup() -> impl Strategy<Value = Setup> {
    let class = prop_oneof![
        3 => Just(Class::Power),
        2 => Just(Class::Storage),
        1 => Just(Class::Network),
        2 => Just(Class::Confirmed)
    ];
    let owner = prop_oneof![
        4 => Just(Owner::StatefulSet),
        2 => Just(Owner::Replaces),
        1 => Just(Owner::DaemonSet),
        1 => Just(Owner::Nobody)
    ];
    let flags = proptest::array::uniform10(any::<bool>());
    (
        proptest::collection::vec(class.clone(), 0..3),
        proptest::collection::vec(class, 0..2),
        flags,
        proptest::collection::vec(owner, PODS),
        0..2u32,
    )
        .prop_map(|(first, second, flags, owners, retries)| {
            let [power_step, stay, delete, service, driver, guard, tells, shared, by_job, rare] = flags;
            Setup {
                first,
                second,
                power_step,
                stay_off: stay && rare,
                delete_node: delete && rare,
                out_of_service: service,
                driver,
                guard: guard && rare,
                tells_hibernation: tells,
                shared,
                by_job,
                owners,
                retries,
            }
        })
}

fn method(index: usize, class: Class, action: Action, setup: &Setup) -> Method {
    let scope = if class == Class::Storage { Scope::Provider("san".into()) } else { Scope::Node };
    Method {
        name: format!("{class}{index}").as_str().into(),
        action,
        proves: Some(class),
        scope,
        plugs: vec!["1".into()],
        // A pod for which the policy vouches.
        path: if class == Class::Confirmed { ReadPath::Declared } else { ReadPath::Independent },
        stable_off: Span::secs(2),
        retries: setup.retries,
        tells_hibernation: setup.tells_hibernation,
        in_job: setup.by_job,
        revokes_sessions: false,
    }
}

fn settings(setup: &Setup) -> Settings {
    let level = |classes: &[Class], from: usize, action| Level {
        methods: classes.iter().enumerate().map(|(i, class)| method(from + i, *class, action, setup)).collect(),
    };
    let mut isolation = Plan { levels: Vec::new(), retries: setup.retries };
    for (classes, from) in [(&setup.first, 0), (&setup.second, 10)] {
        if !classes.is_empty() {
            isolation.levels.push(level(classes, from, Action::CutOff));
        }
    }
    if setup.driver {
        let fences = Method { name: "driver".into(), ..method(0, Class::Driver, Action::FenceByDriver, setup) };
        isolation.levels.push(Level { methods: vec![fences] });
    }
    let power = |action, from| Plan { levels: vec![level(&[Class::Power], from, action)], retries: 0 };
    let undo = isolation
        .levels
        .iter()
        .flat_map(|level| &level.methods)
        .map(|method| (method.name.clone(), Method { action: Action::Restore, ..method.clone() }))
        .collect();
    Settings {
        isolation,
        power_off: if setup.power_step { power(Action::CutOff, 20) } else { Plan::default() },
        power_on: power(Action::Restore, 20),
        undo,
        stay_off: setup.stay_off,
        delete_node: setup.delete_node,
        ..Settings::default()
    }
}

fn pod(index: usize, generation: u32, setup: &Setup) -> PodSeen {
    let volume = if setup.shared { 0 } else { index % VOLUMES };
    PodSeen {
        pod: PodRef {
            namespace: "default".into(),
            name: format!("db-{index}").into(),
            uid: format!("pod-{index}-{generation}").as_str().into(),
        },
        resource_version: ResourceVersion::from("1"),
        owner: setup.owners[index],
        labels: BTreeMap::from([("palisade.dev/fenced".to_owned(), "true".to_owned())]),
        grace: 30,
        deletion: Deletion::No,
        finalizers: false,
        completed: false,
        after_taint: false,
        mounts: vec![Mount::Claim { volume: Some(format!("pv-{volume}").into()), read_only: false }],
        pdb_blocks: false,
    }
}

fn observations(setup: &Setup) -> Observations {
    let volume = |index: usize| VolumeSeen {
        name: VolumeName::new(format!("vol-{index}")),
        access: Access::Single,
        local: false,
        driver: Some("csi".into()),
        driver_fences: setup.driver,
        provider: Some("san".into()),
        healthy: Some(true),
    };
    let attachment = |index: usize| AttachmentSeen {
        attachment: AttachmentRef { name: format!("va-{index}").into(), uid: format!("va-{index}").as_str().into() },
        volume: VolumeName::new(format!("vol-{index}")),
        deleting: false,
        detach_error: None,
    };
    let driver_guard = if setup.guard { vec!["csi".into()] } else { Vec::new() };
    Observations {
        settings: settings(setup),
        unusable: None,
        release: ReleasePolicy { out_of_service: setup.out_of_service, driver_guard, ..ReleasePolicy::default() },
        vetted: Vetted::Open,
        ledger: LedgerSeen::Present { grant: 1 },
        node: NodeSeen::There(NodeLive {
            uid: Uid::from("node-1"),
            resource_version: ResourceVersion::from("1"),
            read: None,
            ready: Ready::Unknown,
            ready_for: None,
            life: LifeSigns {
                renewed: Some("r0".into()),
                heartbeat: Some("h0".into()),
                boot: Some(BootId::from("b0")),
            },
            lease_silent: true,
            lease_late: true,
            taints: BTreeSet::new(),
            cordoned: false,
            volumes_in_use: (0..VOLUMES).map(|i| VolumeName::new(format!("vol-{i}"))).collect(),
            volumes_attached: BTreeSet::new(),
        }),
        evidence_cleared: false,
        power_wanted: setup.power_step,
        admin: Admin::default(),
        pods: Some((0..PODS).map(|index| pod(index, 0, setup)).collect()),
        volumes: (0..VOLUMES).map(|index| (format!("pv-{index}").into(), volume(index))).collect(),
        attachments: Some((0..VOLUMES).map(attachment).collect()),
        calls: Vec::new(),
        reads: Vec::new(),
        unpublished: BTreeSet::new(),
        released_lately: 0,
        jobs_over: BTreeSet::new(),
        kdump_proves: false,
    }
}

/// A fence and its world.
pub struct Walk {
    pub setup: Setup,
    pub state: State,
    pub seen: Observations,
    pub now: Tick,
    pub generation: u32,
    pub asked_reads: Vec<palisade_core::effect::ReadRequest>,
    pub asked_calls: Vec<palisade_core::observe::CallId>,
    /// Jobs that were told to end.
    pub ended_jobs: BTreeSet<palisade_core::observe::CallId>,
    /// The newest read of any kind that was asked for.
    pub newest_read: Option<ReadId>,
    /// Reads of the Node are not answered.
    pub cached: bool,
}

impl Walk {
    pub fn new(setup: Setup) -> Self {
        let fence = Fence::new(Uid::from("fence-1"), NodeName::from("n1"));
        let state = State { fence, memory: Memory::fresh(Tick::START) };
        let seen = observations(&setup);
        Self {
            setup,
            state,
            seen,
            now: Tick::START,
            generation: 0,
            asked_reads: Vec::new(),
            asked_calls: Vec::new(),
            ended_jobs: BTreeSet::new(),
            newest_read: None,
            cached: false,
        }
    }

    /// Lets something happen to the world.
    pub fn happen(&mut self, what: Happens) {
        use Happens as H;
        match what {
            H::Answer(outcome) => self.answer(outcome),
            H::Read(seen, kubelet) => self.read(seen, kubelet),
            H::Listed(yes) => {
                let pods = (0..PODS).map(|index| pod(index, self.generation, &self.setup)).collect();
                self.seen.pods = yes.then_some(self.seen.pods.take().unwrap_or(pods));
            }
            H::PodMarked(index) => self.pod(index, |pod| pod.deletion = Deletion::Marked),
            H::PodForced(index) => self.pod(index, |pod| pod.deletion = Deletion::Forced),
            H::PodGone(index) => {
                let name: Box<str> = format!("db-{index}").into();
                self.seen.pods.iter_mut().for_each(|pods| pods.retain(|pod| pod.pod.name != name));
            }
            H::PodNew(index) => {
                self.generation += 1;
                let fresh = pod(index, self.generation, &self.setup);
                if let Some(pods) = &mut self.seen.pods {
                    pods.retain(|pod| pod.pod.name != fresh.pod.name);
                    pods.push(fresh.clone());
                }
            }
            H::Unpublished(index, volume) => {
                let uid = format!("pod-{index}-0");
                self.seen.unpublished.insert((uid.as_str().into(), VolumeName::new(format!("vol-{volume}"))));
            }
            H::VolumeBack(index) => self.node(|node| {
                node.volumes_in_use.insert(VolumeName::new(format!("vol-{index}")));
            }),
            H::AttachmentGone(index) => {
                let name: Box<str> = format!("va-{index}").into();
                self.seen.attachments.iter_mut().for_each(|all| all.retain(|seen| seen.attachment.name != name));
            }
            H::AttachmentDeleting(index) => {
                let name: Box<str> = format!("va-{index}").into();
                let all = self.seen.attachments.iter_mut().flatten();
                all.filter(|seen| seen.attachment.name == name).for_each(|seen| seen.deleting = true);
            }
            H::Crash => {
                self.state.memory = Memory::fresh(self.now);
                // Series are numbered by the process that asked for them; the next one knows none of these.
                self.asked_reads.clear();
                self.seen.reads.clear();
                self.newest_read = None;
                self.node(|node| node.read = None);
            }
            H::Time(millis) => self.now = self.now + Span::millis(millis),
            other => self.happen_to_node(other),
        }
    }

    fn happen_to_node(&mut self, what: Happens) {
        use Happens as H;
        let stamp = self.now.as_millis() + u64::from(self.generation) + 1;
        match what {
            H::Ready(ready) => self.node(|node| {
                node.ready = ready;
                node.ready_for = (ready == Ready::True).then_some(Span::mins(1));
            }),
            H::LeaseMoves => self.node(|node| node.life.renewed = Some(format!("r{stamp}").into())),
            H::LeaseSilent(yes) => self.node(|node| node.lease_silent = yes),
            H::Boots => self.node(|node| node.life.boot = Some(BootId::new(format!("b{stamp}")))),
            H::NodeGone => self.seen.node = NodeSeen::Gone,
            H::NodeReplaced => {
                self.seen.node = observations(&self.setup).node;
                self.node(|node| node.uid = Uid::new(format!("node-{stamp}")));
            }
            H::NodeLive(yes) => self.cached = !yes,
            H::Cleared(yes) => self.seen.evidence_cleared = yes,
            H::Stop(yes) => self.seen.admin.stop = yes,
            H::Resume(yes) => self.seen.admin.resume = yes,
            H::Confirm => {
                let (uid, boot) = (Uid::from("node-1"), BootId::from("b0"));
                self.seen.admin.confirm = Some(Confirmation { by: "jo".into(), uid, boot });
            }
            H::Ledger(shows) => {
                let fence = &self.state.fence;
                let grant = fence.grant + u32::from(fence.slot == Slot::None);
                self.seen.ledger = match shows {
                    Shows::Unread => LedgerSeen::Unknown,
                    Shows::Nothing => LedgerSeen::Absent,
                    Shows::Ours => LedgerSeen::Present { grant },
                    Shows::Older => LedgerSeen::Present { grant: grant - 1 },
                };
            }
            H::Vetted(vetted) => self.seen.vetted = vetted,
            H::Kdump(yes) => self.seen.kdump_proves = yes,
            H::JobsEnd => self.seen.jobs_over.append(&mut self.ended_jobs),
            H::Taints(yes) => {
                let taint = TaintSeen::Quarantine(self.state.fence.uid.clone());
                self.node(|node| {
                    if yes {
                        node.taints.insert(taint);
                    } else {
                        node.taints.clear();
                    }
                });
            }
            _ => {}
        }
    }

    fn node(&mut self, change: impl FnOnce(&mut NodeLive)) {
        if let NodeSeen::There(node) = &mut self.seen.node {
            change(node);
        }
    }

    fn pod(&mut self, index: usize, change: impl Fn(&mut PodSeen)) {
        let name: Box<str> = format!("db-{index}").into();
        self.seen.pods.iter_mut().flatten().filter(|pod| pod.pod.name == name).for_each(change);
    }

    fn answer(&mut self, outcome: CallOutcome) {
        if let Some(call) = self.asked_calls.last() {
            self.seen.calls = vec![CallAnswer { fence: self.state.fence.uid.clone(), call: *call, outcome }];
        }
    }

    fn read(&mut self, seen: Seen, kubelet: WitnessWord) {
        let Some(asked) = self.asked_reads.last() else { return };
        if self.seen.reads.iter().any(|answer| answer.id == asked.id) {
            return; // a series is answered once
        }
        let sample = |at: u64| Sample { began: Tick::at_millis(at), ended: Tick::at_millis(at + 1), seen, kubelet };
        let samples = vec![sample(0), sample(60_000)];
        let plug = |(method, plug): &(_, Box<str>)| PlugRead {
            method: Clone::clone(method),
            plug: plug.clone(),
            samples: samples.clone(),
        };
        self.seen.reads = vec![ReadAnswer { id: asked.id, plugs: asked.plugs.iter().map(plug).collect() }];
    }

    /// One step; what the shell would remember of it is remembered.
    pub fn step(&mut self) -> (State, Decision) {
        let before = self.state.clone();
        let (after, decision) = step(before.clone(), &self.seen, self.now);
        for effect in &decision.effects {
            match effect {
                Effect::ReadBack(read) => {
                    self.newest_read = self.newest_read.max(Some(read.id));
                    self.asked_reads.push(read.clone());
                }
                Effect::ReadNode(id) => {
                    self.newest_read = self.newest_read.max(Some(*id));
                    let (id, began) = (*id, self.now);
                    if !self.cached {
                        self.node(|node| node.read = Some(NodeRead { id, began }));
                    }
                }
                Effect::TakeSlot { grant } if !self.cached => self.seen.ledger = LedgerSeen::Present { grant: *grant },
                Effect::CallDevice(call) => self.asked_calls.push(call.call),
                Effect::EndJobs(calls) => self.ended_jobs.extend(calls),
                Effect::PatchNode(_) => self.happen(Happens::Taints(true)),
                _ => {}
            }
        }
        self.state = after;
        (before, decision)
    }
}
