//! Durable: how a fence is written into `NodeFence.status`, and read back by the next process.
//!
//! Promise (I5): what was written is read back as it was; a status that cannot be read is an error that names the field,
//! never a guess. A fence that cannot be read is held: nothing is done on half a record.

mod ledger;

use std::collections::BTreeSet;
use std::fmt;

pub use ledger::{read_ledger, write_ledger};

use palisade_api::fence as api;
use palisade_api::names::call_of_job;

use crate::fence::{
    Detach, End, Fence, Isolation, IsolationKind, IsolationState, Phase, Release, ReleaseState, Run, SinceMark, Slot,
    StatusWord, StepWord,
};
use crate::ident::{AttachmentRef, BootId, DriverName, Incarnation, NodeName, PodRef, ProviderName, Uid, VolumeName};
use crate::observe::CallId;
use crate::prove::{Basis, Class, LifeSigns, Proof, ProofId, ReadPath, RecordedProof, Scope};
use crate::reason::automaton::FailReason;
use crate::reason::prove::{LifeSign, ProofEnd};
use crate::time::Span;

/// The schema's bound of a message. The sentence is for people: its end may go, the write must not fail.
const LONGEST: usize = 1024;

/// A part of a status that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The field.
    pub field: &'static str,
    /// What stands there.
    pub value: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "status.{} is {}, which this version does not understand; nothing is done on it: \
             finish with the version that wrote it, or put the field right",
            self.field, self.value
        )
    }
}

impl std::error::Error for Unreadable {}

fn unreadable<T>(field: &'static str, value: impl fmt::Debug) -> Result<T, Unreadable> {
    Err(Unreadable { field, value: format!("{value:?}") })
}

/// Writes the fence into a status. Conditions, timeline and actions are the shell's, and stay as they are.
pub fn write(fence: &Fence, status: &mut api::NodeFenceStatus) {
    status.step = match fence.step_word() {
        StepWord::Isolation => api::Step::Isolation,
        StepWord::PowerManagement => api::Step::PowerManagement,
        StepWord::Recovery => api::Step::Recovery,
    };
    status.status = match fence.status_word() {
        StatusWord::New => api::Status::New,
        StatusWord::Running => api::Status::Running,
        StatusWord::Done => api::Status::Done,
        StatusWord::Final => api::Status::Final,
        StatusWord::Error => api::Status::Error,
    };
    write_phase(fence, status);
    status.attempt = fence.attempt;
    status.calls = fence.calls;
    status.jobs = fence.jobs.iter().map(|call| job_name(&fence.uid, *call)).collect();
    status.restarts = fence.restarts;
    status.waited_millis = i64::try_from(fence.waited.as_millis()).unwrap_or(i64::MAX);
    status.slot = match fence.slot {
        Slot::None => api::Slot::None,
        Slot::Held => api::Slot::Held,
    };
    status.grant = fence.grant;
    status.since_mark = write_since_mark(&fence.since_mark);
    status.incarnation = fence.target.as_ref().map(write_incarnation);
    status.isolations = fence.isolations.iter().map(write_isolation).collect();
    status.proofs = fence.proofs.iter().map(write_proof).collect();
    status.releases = fence.releases.iter().map(write_release).collect();
    status.detach = match &fence.detach {
        Detach::Edits { done, adding } => {
            api::DetachRecord { done: texts(done), adding: texts(adding), forbidden: false }
        }
        Detach::Forbidden => api::DetachRecord { forbidden: true, ..api::DetachRecord::default() },
    };
    status.refuted_boot = fence.refuted.as_ref().map(ToString::to_string);
    status.power_sent = fence.power_sent;
    status.stopped = fence.stopped;
}

fn write_phase(fence: &Fence, status: &mut api::NodeFenceStatus) {
    status.end = None;
    status.run = fence.phase.run().map(|run| api::RunRecord {
        level: run.level,
        method: run.method,
        tries: run.tries,
        rounds: run.rounds,
        call: run.call,
        seen_running: run.seen_running,
    });
    status.phase = match &fence.phase {
        Phase::New => api::FencePhase::New,
        Phase::Isolating(_) => api::FencePhase::Isolating,
        Phase::Isolated { .. } => api::FencePhase::Isolated,
        Phase::PoweringOff(_) => api::FencePhase::PoweringOff,
        Phase::PoweringOn(_) => api::FencePhase::PoweringOn,
        Phase::Returning => api::FencePhase::Returning,
        Phase::Recovering(_) => api::FencePhase::Recovering,
        Phase::Final(end) => {
            status.end = Some(write_end(*end));
            api::FencePhase::Final
        }
        Phase::Failed { why, .. } => {
            // A cause that was read back is on record already, under its own name.
            if !matches!(why, FailReason::Recorded { .. }) || status.reason.is_none() {
                status.reason = Some(why.name().to_owned());
                status.message = why.to_string().chars().take(LONGEST).collect();
            }
            api::FencePhase::Failed
        }
    };
}

const fn write_end(end: End) -> api::End {
    match end {
        End::Recovered => api::End::Recovered,
        End::NeverNeeded => api::End::NeverNeeded,
        End::Refused => api::End::Refused,
        End::HeldOff => api::End::HeldOff,
        End::NodeGone => api::End::NodeGone,
        End::Stopped => api::End::Stopped,
    }
}

fn write_since_mark(since: &SinceMark) -> api::SinceMark {
    let record = |state| api::SinceMark { state, ..api::SinceMark::default() };
    match since {
        SinceMark::Unknown => record(api::SinceMarkState::Unknown),
        SinceMark::Baseline { heartbeat, boot } => api::SinceMark {
            state: api::SinceMarkState::Baseline,
            heartbeat: heartbeat.as_deref().map(str::to_owned),
            boot_id: boot.as_ref().map(ToString::to_string),
        },
        SinceMark::FirstBoot(boot) => {
            api::SinceMark { boot_id: Some(boot.to_string()), ..record(api::SinceMarkState::FirstBoot) }
        }
        SinceMark::Off => record(api::SinceMarkState::Off),
    }
}

fn write_incarnation(target: &Incarnation) -> api::Incarnation {
    api::Incarnation { node_uid: target.uid.to_string(), boot_id: target.boot.to_string() }
}

fn write_isolation(isolation: &Isolation) -> api::Isolation {
    let kind = match isolation.kind {
        IsolationKind::Network => api::IsolationKind::Network,
        IsolationKind::Power => api::IsolationKind::Power,
        IsolationKind::Storage => api::IsolationKind::Storage,
        IsolationKind::Driver => api::IsolationKind::Driver,
        IsolationKind::Cordon => api::IsolationKind::Cordon,
        IsolationKind::OutOfService => api::IsolationKind::OutOfService,
        IsolationKind::Quarantine => api::IsolationKind::Quarantine,
        IsolationKind::NodeDeletion => api::IsolationKind::NodeDeletion,
    };
    let state = match isolation.state {
        IsolationState::Intended => api::IsolationState::Intended,
        IsolationState::InForce => api::IsolationState::InForce,
        IsolationState::Lifting => api::IsolationState::Undoing,
    };
    api::Isolation { kind, method: isolation.method.to_string(), level: None, state }
}

fn write_proof(proof: &Proof) -> api::Proof {
    let class = match proof.class() {
        Class::Power => api::ProofClass::Power,
        Class::Storage => api::ProofClass::Storage,
        Class::Driver => api::ProofClass::Driver,
        Class::Network => api::ProofClass::Network,
        Class::Confirmed => api::ProofClass::Confirmed,
        Class::Kdump => api::ProofClass::Kdump,
    };
    let (kind, names) = match proof.scope() {
        // A network proof is about the node's link; its class says so.
        Scope::Node | Scope::Network => (api::ScopeKind::Node, Vec::new()),
        Scope::Provider(name) => (api::ScopeKind::Providers, vec![name.to_string()]),
        Scope::Drivers(names) => (api::ScopeKind::Drivers, names.iter().map(ToString::to_string).collect()),
        Scope::Volume(name) => (api::ScopeKind::Volumes, vec![name.to_string()]),
    };
    let text = |value: &Option<Box<str>>| value.as_deref().unwrap_or_default().to_owned();
    let baseline = proof.baseline();
    api::Proof {
        id: proof.id().to_string(),
        class,
        scope: api::Scope { kind, names },
        source: proof.source().to_owned(),
        evidence: proof.evidence().to_owned(),
        attempt: proof.attempt(),
        fence_uid: proof.fence().to_string(),
        incarnation: write_incarnation(proof.target()),
        baseline: api::Baseline {
            lease_renew_time: text(&baseline.renewed),
            heartbeat: text(&baseline.heartbeat),
            boot_id: baseline.boot.as_ref().map(ToString::to_string).unwrap_or_default(),
        },
        read_path: match proof.path() {
            ReadPath::Independent => api::ReadPath::Independent,
            ReadPath::SameDriver => api::ReadPath::SameDevice,
            ReadPath::SameAgent => api::ReadPath::SameAgent,
            ReadPath::Declared => api::ReadPath::Declared,
        },
        ended: proof.ended().map(|end| api::Ended { reason: end_word(end).to_owned(), time: None }),
    }
}

const fn end_word(end: &ProofEnd) -> &'static str {
    match end {
        ProofEnd::SignOfLife { sign: LifeSign::NewBoot } => "NewBoot",
        ProofEnd::SignOfLife { sign: LifeSign::LeaseRenewed } => "LeaseRenewed",
        ProofEnd::SignOfLife { sign: LifeSign::Heartbeat } => "Heartbeat",
        ProofEnd::ReadOn => "ReadOn",
        ProofEnd::ReadUnfenced => "ReadUnfenced",
        ProofEnd::PublishedAgain => "PublishedAgain",
        ProofEnd::OnIntended => "OnIntended",
        ProofEnd::LiftIntended => "LiftIntended",
        ProofEnd::AnotherNode => "AnotherNode",
    }
}

fn write_release(release: &Release) -> api::ReleaseRecord {
    api::ReleaseRecord {
        pod_namespace: release.pod.namespace.to_string(),
        pod_name: release.pod.name.to_string(),
        pod_uid: release.pod.uid.to_string(),
        group: release.group.to_string(),
        mark_releases: release.mark_releases,
        volumes: texts(&release.volumes),
        attachments: release
            .attachments
            .iter()
            .map(|seen| api::Attachment { name: seen.name.to_string(), uid: seen.uid.to_string() })
            .collect(),
        proofs: release.basis.proofs().iter().map(ToString::to_string).collect(),
        unpublish: texts(release.basis.unpublish()),
        driver_guard: release.basis.guard(),
        state: match release.state {
            ReleaseState::Intended => api::ReleaseState::Intended,
            ReleaseState::Marked => api::ReleaseState::Marked,
            ReleaseState::Removed => api::ReleaseState::Removed,
            ReleaseState::Detached => api::ReleaseState::Detached,
        },
    }
}

fn texts(names: &BTreeSet<VolumeName>) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

/// Reads a fence back. A NodeFence that has no status yet is [`Fence::new`].
pub fn read(uid: &Uid, node: &NodeName, status: &api::NodeFenceStatus) -> Result<Fence, Unreadable> {
    let waited = u64::try_from(status.waited_millis).or_else(|_| unreadable("waitedMillis", status.waited_millis))?;
    let target = status.incarnation.as_ref().map(|seen| read_incarnation(node, seen));
    Ok(Fence {
        uid: uid.clone(),
        node: node.clone(),
        phase: read_phase(status)?,
        attempt: status.attempt,
        calls: status.calls,
        jobs: status.jobs.iter().map(|name| read_job(uid, name)).collect::<Result<_, _>>()?,
        restarts: status.restarts,
        waited: Span::millis(waited),
        slot: match status.slot {
            api::Slot::None => Slot::None,
            api::Slot::Held => Slot::Held,
        },
        grant: status.grant,
        target,
        isolations: status.isolations.iter().map(read_isolation).collect(),
        proofs: status.proofs.iter().map(|proof| read_proof(node, proof)).collect::<Result<_, _>>()?,
        releases: status.releases.iter().map(read_release).collect::<Result<_, _>>()?,
        detach: if status.detach.forbidden {
            Detach::Forbidden
        } else {
            Detach::Edits { done: names(&status.detach.done), adding: names(&status.detach.adding) }
        },
        since_mark: read_since_mark(&status.since_mark)?,
        refuted: status.refuted_boot.as_deref().map(BootId::from),
        power_sent: status.power_sent,
        stopped: status.stopped,
    })
}

fn read_job(uid: &Uid, name: &str) -> Result<CallId, Unreadable> {
    let read = call_of_job(uid.as_str(), name).map(|(attempt, call)| CallId { attempt, call });
    read.map_or_else(|| unreadable("jobs", name), Ok)
}

/// The name of the Job that makes this call.
pub fn job_name(uid: &Uid, call: CallId) -> String {
    palisade_api::names::job_name(uid.as_str(), call.attempt, call.call)
}

fn read_phase(status: &api::NodeFenceStatus) -> Result<Phase, Unreadable> {
    let run = || match &status.run {
        Some(run) => Ok(Run {
            level: run.level,
            method: run.method,
            tries: run.tries,
            rounds: run.rounds,
            call: run.call,
            seen_running: run.seen_running,
        }),
        None => unreadable("run", "missing"),
    };
    let step = match status.step {
        api::Step::Isolation => StepWord::Isolation,
        api::Step::PowerManagement => StepWord::PowerManagement,
        api::Step::Recovery => StepWord::Recovery,
    };
    Ok(match status.phase {
        api::FencePhase::New => Phase::New,
        api::FencePhase::Isolating => Phase::Isolating(run()?),
        api::FencePhase::Isolated => Phase::Isolated { by: step },
        api::FencePhase::PoweringOff => Phase::PoweringOff(run()?),
        api::FencePhase::PoweringOn => Phase::PoweringOn(run()?),
        api::FencePhase::Returning => Phase::Returning,
        api::FencePhase::Recovering => Phase::Recovering(run()?),
        api::FencePhase::Final => Phase::Final(match status.end {
            Some(api::End::Recovered) => End::Recovered,
            Some(api::End::NeverNeeded) => End::NeverNeeded,
            Some(api::End::Refused) => End::Refused,
            Some(api::End::HeldOff) => End::HeldOff,
            Some(api::End::NodeGone) => End::NodeGone,
            Some(api::End::Stopped) => End::Stopped,
            None => return unreadable("end", "missing"),
        }),
        api::FencePhase::Failed => {
            Phase::Failed { at: step, why: FailReason::Recorded { text: status.message.clone() } }
        }
    })
}

fn read_since_mark(seen: &api::SinceMark) -> Result<SinceMark, Unreadable> {
    let boot = seen.boot_id.as_deref().map(BootId::from);
    Ok(match (seen.state, boot) {
        (api::SinceMarkState::Unknown, _) => SinceMark::Unknown,
        (api::SinceMarkState::Baseline, boot) => {
            SinceMark::Baseline { heartbeat: seen.heartbeat.as_deref().map(Box::from), boot }
        }
        (api::SinceMarkState::FirstBoot, Some(boot)) => SinceMark::FirstBoot(boot),
        (api::SinceMarkState::FirstBoot, None) => return unreadable("sinceMark.bootID", "missing"),
        (api::SinceMarkState::Off, _) => SinceMark::Off,
    })
}

fn read_incarnation(node: &NodeName, seen: &api::Incarnation) -> Incarnation {
    Incarnation {
        node: node.clone(),
        uid: Uid::from(seen.node_uid.as_str()),
        boot: BootId::from(seen.boot_id.as_str()),
    }
}

fn read_isolation(seen: &api::Isolation) -> Isolation {
    let kind = match seen.kind {
        api::IsolationKind::Network => IsolationKind::Network,
        api::IsolationKind::Power => IsolationKind::Power,
        api::IsolationKind::Storage => IsolationKind::Storage,
        api::IsolationKind::Driver => IsolationKind::Driver,
        api::IsolationKind::Cordon => IsolationKind::Cordon,
        api::IsolationKind::OutOfService => IsolationKind::OutOfService,
        api::IsolationKind::Quarantine => IsolationKind::Quarantine,
        api::IsolationKind::NodeDeletion => IsolationKind::NodeDeletion,
    };
    let state = match seen.state {
        api::IsolationState::Intended => IsolationState::Intended,
        api::IsolationState::InForce => IsolationState::InForce,
        api::IsolationState::Undoing => IsolationState::Lifting,
    };
    Isolation { method: seen.method.as_str().into(), kind, state }
}

fn read_proof(node: &NodeName, seen: &api::Proof) -> Result<Proof, Unreadable> {
    let class = match seen.class {
        api::ProofClass::Power => Class::Power,
        api::ProofClass::Storage => Class::Storage,
        api::ProofClass::Driver => Class::Driver,
        api::ProofClass::Network => Class::Network,
        api::ProofClass::Confirmed => Class::Confirmed,
        api::ProofClass::Kdump => Class::Kdump,
    };
    let scope = match (seen.scope.kind, class, seen.scope.names.as_slice()) {
        (api::ScopeKind::Node, Class::Network, _) => Scope::Network,
        (api::ScopeKind::Node, _, _) => Scope::Node,
        (api::ScopeKind::Providers, _, [name]) => Scope::Provider(ProviderName::from(name.as_str())),
        (api::ScopeKind::Volumes, _, [name]) => Scope::Volume(VolumeName::from(name.as_str())),
        (api::ScopeKind::Drivers, _, names @ [_, ..]) => {
            Scope::Drivers(names.iter().map(|name| DriverName::from(name.as_str())).collect())
        }
        (api::ScopeKind::Providers | api::ScopeKind::Volumes | api::ScopeKind::Drivers, _, names) => {
            return unreadable("proofs.scope", names);
        }
    };
    let text = |value: &str| (!value.is_empty()).then(|| value.into());
    Ok(Proof::recorded(RecordedProof {
        id: read_id(&seen.id)?,
        class,
        scope,
        target: read_incarnation(node, &seen.incarnation),
        fence: Uid::from(seen.fence_uid.as_str()),
        attempt: seen.attempt,
        path: match seen.read_path {
            api::ReadPath::Independent => ReadPath::Independent,
            api::ReadPath::SameDevice => ReadPath::SameDriver,
            api::ReadPath::SameAgent => ReadPath::SameAgent,
            api::ReadPath::Declared => ReadPath::Declared,
        },
        source: seen.source.as_str().into(),
        evidence: seen.evidence.as_str().into(),
        baseline: LifeSigns {
            renewed: text(&seen.baseline.lease_renew_time),
            heartbeat: text(&seen.baseline.heartbeat),
            boot: text(&seen.baseline.boot_id).map(|boot: Box<str>| BootId::new(boot)),
        },
        ended: seen.ended.as_ref().map(|ended| read_proof_end(&ended.reason)).transpose()?,
    }))
}

fn read_id(text: &str) -> Result<ProofId, Unreadable> {
    let parts = text.strip_prefix('a').and_then(|rest| rest.split_once('-'));
    let id = parts
        .and_then(|(attempt, number)| Some(ProofId { attempt: attempt.parse().ok()?, number: number.parse().ok()? }));
    id.map_or_else(|| unreadable("proofs.id", text), Ok)
}

fn read_proof_end(word: &str) -> Result<ProofEnd, Unreadable> {
    let signs = [LifeSign::NewBoot, LifeSign::LeaseRenewed, LifeSign::Heartbeat];
    let others = [
        ProofEnd::ReadOn,
        ProofEnd::ReadUnfenced,
        ProofEnd::PublishedAgain,
        ProofEnd::OnIntended,
        ProofEnd::LiftIntended,
        ProofEnd::AnotherNode,
    ];
    let mut ends = signs.into_iter().map(|sign| ProofEnd::SignOfLife { sign }).chain(others);
    ends.find(|end| end_word(end) == word).map_or_else(|| unreadable("proofs.ended.reason", word), Ok)
}

fn read_release(seen: &api::ReleaseRecord) -> Result<Release, Unreadable> {
    let proofs = seen.proofs.iter().map(|id| read_id(id)).collect::<Result<_, _>>()?;
    let group = seen.group.parse().or_else(|_| unreadable("releases.group", &seen.group))?;
    Ok(Release {
        pod: PodRef {
            namespace: seen.pod_namespace.as_str().into(),
            name: seen.pod_name.as_str().into(),
            uid: Uid::from(seen.pod_uid.as_str()),
        },
        group,
        basis: Basis::recorded(proofs, names(&seen.unpublish), seen.driver_guard),
        mark_releases: seen.mark_releases,
        volumes: names(&seen.volumes),
        attachments: seen
            .attachments
            .iter()
            .map(|seen| AttachmentRef { name: seen.name.as_str().into(), uid: Uid::from(seen.uid.as_str()) })
            .collect(),
        state: match seen.state {
            api::ReleaseState::Intended => ReleaseState::Intended,
            api::ReleaseState::Marked => ReleaseState::Marked,
            api::ReleaseState::Removed => ReleaseState::Removed,
            api::ReleaseState::Detached => ReleaseState::Detached,
        },
    })
}

fn names(texts: &[String]) -> BTreeSet<VolumeName> {
    texts.iter().map(|name| VolumeName::from(name.as_str())).collect()
}
