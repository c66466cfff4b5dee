//! How long a decision takes: vetting, one step of the automaton, a release plan. See docs/performance.md.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)] // a benchmark may fail loudly

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use palisade_core::effect::Effect;
use palisade_core::fence::{Fence, Phase};
use palisade_core::ident::{AttachmentRef, BootId, NodeName, PodRef, ResourceVersion, Uid, VolumeName};
use palisade_core::ledger::Ledger;
use palisade_core::observe::{
    Access, Admin, AttachmentSeen, CallAnswer, CallOutcome, Deletion, LedgerSeen, Memory, Mount, NodeLive, NodeRead,
    NodeSeen, Observations, Owner, PodSeen, ReadAnswer, ReadId, TaintSeen, Vetted, VolumeSeen,
};
use palisade_core::policy::{DomainBrake, Policy, ReleasePolicy, Share, WholeDomain};
use palisade_core::prove::{Class, LifeSigns, PlugRead, ReadPath, Sample, Scope, Seen};
use palisade_core::release::plan;
use palisade_core::settings::{Action, Level, Method, Plan, Settings};
use palisade_core::snapshot::{
    NodeView, ObserverView, Ready, Snapshot, WitnessKind, WitnessView, WitnessWord, WorkloadView,
};
use palisade_core::time::{Span, Tick};
use palisade_core::vet::{Claim, Source, Verdict, vet};
use palisade_core::{State, step};

const NODES: usize = 5_000;
const PODS: usize = 250;

fn vetting(bench: &mut Criterion) {
    let now = Tick::START + Span::mins(60);
    let policy = policy();
    let view = cluster(&policy, now);
    let claim = Claim {
        namespace: "palisade-system".to_owned(),
        target: NodeName::from("node-0042"),
        uid: None,
        source: Source::Lease,
        observed_for: Span::secs(30),
        grace: None,
        approved: false,
        fence: None,
    };
    // All gates open: a closed one would be the shorter way.
    assert_eq!(vet(&claim, &view, &policy, now), Verdict::Admit);
    bench.bench_function("vet one claim against 5,000 nodes", |b| {
        b.iter(|| vet(black_box(&claim), black_box(&view), black_box(&policy), now));
    });
}

fn policy() -> Policy {
    let mut policy = Policy { uid: Uid::from("policy"), ..Policy::default() };
    for key in ["topology.kubernetes.io/zone", "example.com/rack"] {
        let limit = Share::Percent(40);
        policy.storm.domains.push(DomainBrake { topology_key: key.to_owned(), limit, whole_domain: WholeDomain::Hold });
    }
    policy
}

fn cluster(policy: &Policy, now: Tick) -> Snapshot {
    let ago = |secs| Tick::at_millis(now.as_millis() - Span::secs(secs).as_millis());
    let mut view = Snapshot {
        observer: ObserverView { api_last_answered: Some(ago(1)), ..ObserverView::default() },
        ledger: Some(Ledger { policy_uid: policy.uid.clone(), ..Ledger::default() }),
        ..Snapshot::default()
    };
    for index in 0..NODES {
        let mut labels = BTreeMap::new();
        labels.insert("kubernetes.io/hostname".to_owned(), format!("node-{index:04}"));
        labels.insert("topology.kubernetes.io/zone".to_owned(), format!("zone-{}", index % 3));
        labels.insert("example.com/rack".to_owned(), format!("rack-{}", index % 125));
        let down = index == 42;
        let node = NodeView {
            uid: Uid::new(format!("uid-{index}")),
            boot: Some(BootId::new(format!("boot-{index}"))),
            labels,
            ready: if down { Ready::Unknown } else { Ready::True },
            lease_silent: down,
            last_renewal: Some(ago(if down { 30 } else { 5 })),
            back_since: None,
            workload: Some(WorkloadView { statefulset_pods: 3, single_writer_pods: 1 }),
            witnesses: vec![WitnessView {
                kind: WitnessKind::KubeletPort,
                says: if down { WitnessWord::Silent } else { WitnessWord::Alive },
                last_alive: Some(ago(35)),
                asked: ago(1),
            }],
            ..NodeView::default()
        };
        view.nodes.insert(NodeName::new(format!("node-{index:04}")), node);
    }
    view
}

fn releasing(bench: &mut Criterion) {
    let seen = observations(PODS);
    let fence = isolated(&seen);
    let pods = seen.pods.as_ref().expect("pods were listed");
    assert_eq!(plan(&fence, pods, &seen).start.len(), PODS);
    bench.bench_function("plan the release of 250 pods", |b| {
        b.iter(|| plan(black_box(&fence), black_box(pods), black_box(&seen)));
    });
}

fn stepping(bench: &mut Criterion) {
    let few = observations(10);
    let state = State { fence: isolated(&few), memory: Memory::fresh(Tick::START) };
    bench.bench_function("one step: plan a batch of 10 pods", |b| {
        b.iter_batched(
            || state.clone(),
            |state| step(state, black_box(&few), Tick::START),
            criterion::BatchSize::SmallInput,
        );
    });
    let fresh = Fence::new(Uid::from("fence"), NodeName::from("n1"));
    let new = State { fence: fresh, memory: Memory::fresh(Tick::START) };
    bench.bench_function("one step: leave New", |b| {
        b.iter_batched(
            || new.clone(),
            |state| step(state, black_box(&few), Tick::START),
            criterion::BatchSize::SmallInput,
        );
    });
    let releasing = settle(state, &few);
    bench.bench_function("one step: mark 10 pods", |b| {
        b.iter_batched(
            || releasing.clone(),
            |state| step(state, black_box(&few), Tick::START),
            criterion::BatchSize::SmallInput,
        );
    });
}

/// Steps until nothing is recorded any more.
fn settle(mut state: State, seen: &Observations) -> State {
    loop {
        let (next, decision) = step(state, seen, Tick::START);
        state = next;
        if !decision.effects.iter().any(|effect| matches!(effect, Effect::Record { .. })) {
            return state;
        }
    }
}

/// A fence whose machine was read off, quarantined, with nothing released yet.
fn isolated(seen: &Observations) -> Fence {
    let mut seen = Observations { pods: None, ..seen.clone() };
    let mut state =
        State { fence: Fence::new(Uid::from("fence"), NodeName::from("n1")), memory: Memory::fresh(Tick::START) };
    for _ in 0..32 {
        let (next, decision) = step(state, &seen, Tick::START);
        state = next;
        for effect in decision.effects {
            match effect {
                Effect::CallDevice(call) => {
                    let answer =
                        CallAnswer { fence: Uid::from("fence"), call: call.call, outcome: CallOutcome::Accepted };
                    seen.calls = vec![answer];
                }
                Effect::ReadBack(read) => {
                    let sample = |at| {
                        let at = Tick::at_millis(at);
                        Sample { began: at, ended: at, seen: Seen::Off, kubelet: WitnessWord::Silent }
                    };
                    let plug = |(method, plug)| PlugRead { method, plug, samples: vec![sample(0), sample(9_000)] };
                    seen.reads = vec![ReadAnswer { id: read.id, plugs: read.plugs.into_iter().map(plug).collect() }];
                }
                _ => {}
            }
        }
    }
    assert!(matches!(state.fence.phase, Phase::Isolated { .. }), "{:?}", state.fence.phase);
    state.fence
}

fn observations(pods: usize) -> Observations {
    let off = Method {
        name: "bmc".into(),
        action: Action::CutOff,
        proves: Some(Class::Power),
        scope: Scope::Node,
        plugs: vec!["1".into()],
        path: ReadPath::SameDriver,
        stable_off: Span::secs(2),
        retries: 0,
        tells_hibernation: true,
        in_job: false,
        revokes_sessions: false,
    };
    let one = |method: &Method| Plan { levels: vec![Level { methods: vec![method.clone()] }], retries: 0 };
    let on = Method { action: Action::Restore, ..off.clone() };
    let volume = |index: usize| VolumeSeen {
        name: VolumeName::new(format!("kubernetes.io/csi/example^volume-{index}")),
        access: Access::Single,
        local: false,
        driver: Some("csi.example.com".into()),
        driver_fences: false,
        provider: None,
        healthy: None,
    };
    let attachment = |index: usize| AttachmentSeen {
        attachment: AttachmentRef { name: format!("csi-{index}").into(), uid: Uid::new(format!("va-{index}")) },
        volume: volume(index).name,
        deleting: false,
        detach_error: None,
    };
    Observations {
        settings: Settings { isolation: one(&off), power_on: one(&on), ..Settings::default() },
        unusable: None,
        release: ReleasePolicy::default(),
        vetted: Vetted::Open,
        ledger: LedgerSeen::Present { grant: 1 },
        node: NodeSeen::There(NodeLive {
            uid: Uid::from("node"),
            resource_version: ResourceVersion::from("7"),
            read: Some(NodeRead { id: ReadId(u32::MAX), began: Tick::START }),
            ready: Ready::Unknown,
            ready_for: None,
            life: LifeSigns { renewed: Some("r".into()), heartbeat: Some("h".into()), boot: Some("b".into()) },
            lease_silent: true,
            lease_late: true,
            taints: BTreeSet::from([TaintSeen::Quarantine(Uid::from("fence"))]),
            cordoned: false,
            volumes_in_use: (0..pods).map(|index| volume(index).name).collect(),
            volumes_attached: BTreeSet::new(),
        }),
        evidence_cleared: false,
        power_wanted: true,
        admin: Admin::default(),
        pods: Some((0..pods).map(pod).collect()),
        volumes: (0..pods).map(|index| (format!("pv-{index}").into(), volume(index))).collect(),
        attachments: Some((0..pods).map(attachment).collect()),
        calls: Vec::new(),
        reads: Vec::new(),
        unpublished: BTreeSet::new(),
        released_lately: 0,
        jobs_over: BTreeSet::new(),
        kdump_proves: false,
    }
}

fn pod(index: usize) -> PodSeen {
    PodSeen {
        pod: PodRef {
            namespace: "prod".into(),
            name: format!("db-{index}").into(),
            uid: Uid::new(format!("pod-{index}")),
        },
        resource_version: ResourceVersion::from("9"),
        owner: Owner::StatefulSet,
        labels: BTreeMap::from([("app".to_owned(), "db".to_owned())]),
        grace: 30,
        deletion: Deletion::No,
        finalizers: false,
        completed: false,
        after_taint: false,
        mounts: vec![Mount::Claim { volume: Some(format!("pv-{index}").into()), read_only: false }, Mount::Private],
        pdb_blocks: false,
    }
}

criterion_group!(decisions, vetting, stepping, releasing);
criterion_main!(decisions);
