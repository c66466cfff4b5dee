//! Requests: the life of each NodeFencingRequest, by the decisions of `core`; and the requests that our detectors make.

use std::collections::{BTreeMap, BTreeSet};

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams, Preconditions};
use palisade_api::fence::{End, FencePhase, NodeFenceSpec, ReleaseRecord, ReleaseState, RequestRef};
use palisade_api::request::{NodeFencingRequestSpec, Operation};
use palisade_api::{NodeFence, NodeFencingRequest, names};
use palisade_core::detect::Evidence;
use palisade_core::detect::sight::Sight;
use palisade_core::ident::{NodeName, ResourceVersion, Uid};
use palisade_core::pace::pause;
use palisade_core::planted::{self, Bug};
use palisade_core::policy::Policy;
use palisade_core::reason::vet::RejectReason;
use palisade_core::request::record::{self, Identity, rule_of};
use palisade_core::request::{
    FenceFacts, FenceResult, FenceSeen, How, Life, NodeSeen, Request, RequestEffect, RequestStatus, Seen, VetWord,
};
use palisade_core::snapshot::Snapshot;
use palisade_core::time::Tick;
use palisade_core::vet::{Claim, GateName, Source, Verdict, vet};
use serde_json::json;

use crate::context::Context;
use crate::decided;
use crate::detect::{Detect, ToFile};
use crate::effects::gone;
use crate::leader::Hold;
use crate::plans::config_of;
use crate::said::brief;
use crate::view::View;

/// What came of what was decided for a request.
#[derive(Debug, Default)]
pub(crate) struct RequestOutcome {
    /// The request that is free again, and the version that was decided on.
    pub(crate) request: Option<(Uid, String)>,
    /// It was written.
    pub(crate) written: Option<Box<NodeFencingRequest>>,
    /// A fence was made or written.
    pub(crate) fence: Option<Box<NodeFence>>,
    /// The fence of a node was read live: there, or not.
    pub(crate) read: Option<(NodeName, Option<Box<NodeFence>>)>,
    /// A claim was filed.
    pub(crate) filed: Option<(NodeName, Box<str>, Box<NodeFencingRequest>)>,
    /// Something went another way; looked at again.
    pub(crate) failed: Option<String>,
    /// It is not there any more.
    pub(crate) gone: Option<Uid>,
}

/// What is decided for one request.
pub(crate) struct Decided {
    pub(crate) object: Box<NodeFencingRequest>,
    pub(crate) effects: Vec<RequestEffect>,
    /// The fence of its node, as it is known.
    pub(crate) fence: Option<Box<NodeFence>>,
    /// The FenceConfig that counts for its node.
    pub(crate) config: Option<String>,
}

/// Something went another way.
#[derive(Debug)]
struct Again {
    /// The version that was decided on.
    version: String,
    times: u32,
    /// When it is tried again if nothing changes.
    at: Tick,
}

/// All requests, as far as this process follows them.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    lives: BTreeMap<Uid, Request>,
    busy: BTreeSet<Uid>,
    /// Requests for which something went another way.
    again: BTreeMap<Uid, Again>,
    /// Fences that were read live because the cache did not show them.
    live_reads: BTreeMap<NodeName, Option<Box<NodeFence>>>,
}

impl Requests {
    /// Follows what is seen of every request; one that cannot be read is left alone, and said so.
    pub(crate) fn follow(&mut self, view: &View) {
        self.lives.retain(|uid, _| view.requests.contains_key(uid));
        self.again.retain(|uid, _| view.requests.contains_key(uid));
        for (uid, object) in &view.requests {
            let version = object.metadata.resource_version.as_deref().unwrap_or_default();
            if self.lives.get(uid).is_some_and(|known| known.resource_version.as_str() == version) {
                continue;
            }
            match request(object) {
                Ok(read) => {
                    let known = self.lives.remove(uid);
                    let next = match known {
                        // Time that was watched since the last write is in memory only.
                        Some(known) if known.life == read.life => {
                            let waited = known.waited.met_by(read.waited);
                            Request { waited, ended_for: known.ended_for.met_by(read.ended_for), ..read }
                        }
                        Some(_) | None => read,
                    };
                    self.lives.insert(uid.clone(), next);
                }
                Err(why) => {
                    self.lives.remove(uid);
                    tracing::error!(request = %object.name_any(), %why, "left alone");
                }
            }
        }
    }

    /// Every request, in the words of `core`.
    pub(crate) fn all(&self) -> Vec<Request> {
        self.lives.values().cloned().collect()
    }

    /// A request may be decided on again.
    pub(crate) fn done(&mut self, outcome: &mut RequestOutcome, now: Tick) {
        if let Some((uid, version)) = &outcome.request {
            self.busy.remove(uid);
            if outcome.failed.is_some() {
                let times = self.again.get(uid).map_or(1, |known| known.times.saturating_add(1));
                let at = now + pause(times.saturating_add(1));
                self.again.insert(uid.clone(), Again { version: version.clone(), times, at });
            } else {
                self.again.remove(uid);
            }
        }
        if let Some((node, read)) = outcome.read.take() {
            self.live_reads.insert(node, read);
        }
    }

    /// One of them.
    pub(crate) fn get(&self, uid: &Uid) -> Option<&Request> {
        self.lives.get(uid)
    }

    /// Whether any request is not over yet.
    pub(crate) fn any_open(&self) -> bool {
        self.lives.values().any(|request| !matches!(request.life, Life::Ended(_)))
    }

    /// Requests that wait for a verdict.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Request> {
        self.lives.values().filter(|request| matches!(request.life, Life::Pending))
    }

    /// One step of every request that nobody is busy with.
    pub(crate) fn step(
        &mut self,
        view: &View,
        snapshot: &Snapshot,
        policy: &Policy,
        detect: &Detect,
        sight: Sight,
        now: Tick,
    ) -> (Vec<Decided>, Option<Tick>) {
        let (mut decided, mut look_again) = (Vec::new(), None);
        for (uid, request) in &mut self.lives {
            let Some(object) = view.requests.get(uid).filter(|_| !self.busy.contains(uid)) else { continue };
            if planted::is(Bug::HoldsForEver)
                && object.status.as_ref().is_some_and(|status| status.phase == palisade_api::request::Phase::Held)
            {
                continue;
            }
            // What was refused once is refused again until somebody sees a newer version, or a moment has passed.
            if let Some(Again { version, at, .. }) = self.again.get(uid)
                && now < *at
                && object.resource_version().as_deref() == Some(version)
            {
                look_again = Some(look_again.map_or(*at, |known: Tick| known.min(*at)));
                continue;
            }
            let node = request.node.clone();
            let live = self.live_reads.remove(&node);
            let (fence, how) = match &live {
                Some(read) => (read.as_deref(), How::Live),
                None => (view.fences.get(&node), How::Cached),
            };
            let seen = Seen {
                node: match view.node(&node).and_then(|track| track.facts.as_ref()) {
                    Some(facts) => NodeSeen::Present(facts.uid.clone()),
                    None => NodeSeen::Gone,
                },
                evidence: evidence(object, &node, view, detect),
                fence: FenceSeen::Read { how, found: fence.map(|fence| facts_of(fence, view)) },
                vet: match request.life {
                    Life::Pending => word(&claim(object, request, None, detect), snapshot, policy, now),
                    Life::Attached { .. } | Life::Ended(_) => unasked(now),
                },
            };
            let step = request.clone().step(&seen, sight, now);
            decided::request(&step);
            // What is remembered is what is on record, and the time that was watched since: a step counts when it is written.
            if step.request.life == request.life {
                (request.waited, request.ended_for) = (step.request.waited, step.request.ended_for);
            }
            if let Some(at) = step.look_again {
                look_again = Some(look_again.map_or(at, |known: Tick| known.min(at)));
            }
            if !step.effects.is_empty() {
                self.busy.insert(uid.clone());
                let fence = fence.cloned().map(Box::new);
                let config = config_of(&node, view);
                decided.push(Decided { object: Box::new(object.clone()), effects: step.effects, fence, config });
            }
        }
        (decided, look_again)
    }
}

fn request(object: &NodeFencingRequest) -> Result<Request, record::Unreadable> {
    let node = object.spec.node_name.clone().unwrap_or_else(|| object.name_any());
    let identity = Identity {
        uid: Uid::new(object.uid().unwrap_or_default()),
        resource_version: ResourceVersion::new(object.resource_version().unwrap_or_default()),
        node: NodeName::new(node),
    };
    record::read(identity, &object.spec, &object.status.clone().unwrap_or_default())
}

/// What a request rests on: what its rule finds now, or that somebody asked.
pub(crate) fn evidence(object: &NodeFencingRequest, node: &NodeName, view: &View, detect: &Detect) -> Evidence {
    if let Some(trigger) = &object.spec.trigger {
        return Evidence::Found(detect.finding(node, &rule_of(trigger)));
    }
    // What another one's fence does is not what this one asked for.
    let uid = object.uid();
    let names = |fence: &&NodeFence| fence.spec.requests.iter().any(|named| Some(&named.uid) == uid.as_ref());
    Evidence::Asked { done: step_done(view.fences.get(node).filter(names)) }
}

/// What was asked for has been done once the fence is past cutting off; where the power step was asked for, once it was taken. (A
/// config may have none: then the fence goes on without it, and so does this.)
fn step_done(fence: Option<&NodeFence>) -> bool {
    let Some((fence, status)) = fence.and_then(|fence| Some((fence, fence.status.as_ref()?))) else { return false };
    match status.phase {
        FencePhase::New | FencePhase::Isolating | FencePhase::PoweringOff | FencePhase::Failed => false,
        FencePhase::Isolated => status.power_sent || !fence.spec.power_step,
        FencePhase::PoweringOn | FencePhase::Returning | FencePhase::Recovering | FencePhase::Final => true,
    }
}

/// Only a request that waits is vetted, which is a look at every node; the others never ask.
fn unasked(recheck: Tick) -> VetWord {
    VetWord::Hold { gate: "none".into(), why: "NotAsked".into(), numbers: "".into(), recheck }
}

/// Vets a request, in the words of its status.
fn word(claim: &Claim, view: &Snapshot, policy: &Policy, now: Tick) -> VetWord {
    decided::gates(claim, view, policy, now);
    match vet(claim, view, policy, now) {
        Verdict::Admit => VetWord::Admit,
        Verdict::Hold { gate: GateName::DryRun, look_again, .. } => {
            VetWord::DryRun { verdict: "Admit".into(), recheck: look_again }
        }
        Verdict::Hold { gate, why, look_again } => VetWord::Hold {
            gate: gate.to_string().into(),
            why: why.name().into(),
            numbers: why.brief().into(),
            recheck: look_again,
        },
        Verdict::Reject { why: RejectReason::NodeUnknown { .. } | RejectReason::NodeReplaced { .. }, .. } => {
            VetWord::NoTarget
        }
        Verdict::Reject { gate, why } => {
            VetWord::Reject { gate: gate.to_string().into(), why: why.name().into(), numbers: why.brief().into() }
        }
    }
}

/// The request as vetting sees it; `fence`: the one that was already made for it.
pub(crate) fn claim(object: &NodeFencingRequest, request: &Request, fence: Option<Uid>, detect: &Detect) -> Claim {
    let trigger = object.spec.trigger.as_ref();
    let source = trigger.map_or(Source::Admin, |trigger| detect.source(&rule_of(trigger)));
    Claim {
        namespace: object.namespace().unwrap_or_default(),
        target: request.node.clone(),
        uid: request.node_uid.clone(),
        source,
        observed_for: request.waited.total(),
        grace: object.spec.grace.map(|grace| palisade_core::time::Span::millis(grace.as_millis())),
        approved: false,
        fence,
    }
}

fn facts_of(fence: &NodeFence, view: &View) -> FenceFacts {
    let status = fence.status.clone().unwrap_or_default();
    let node = NodeName::from(fence.spec.node_name.as_str());
    let known = view.node(&node).and_then(|track| track.facts.as_ref()).map(|facts| facts.uid.clone());
    let node_uid = status.incarnation.as_ref().map(|seen| Uid::from(seen.node_uid.as_str())).or(known);
    let result = status.end.filter(|_| status.phase == FencePhase::Final).map(|end| match end {
        End::NeverNeeded => FenceResult::Untouched,
        End::Refused => FenceResult::Failed { cause: status.message.as_str().into() },
        End::Recovered => FenceResult::Returned,
        End::HeldOff => FenceResult::HeldOff,
        End::NodeGone => FenceResult::NodeDeleted,
        End::Stopped => FenceResult::Stopped,
    });
    FenceFacts {
        uid: Uid::new(fence.uid().unwrap_or_default()),
        node_uid: node_uid.unwrap_or_default(),
        requests: fence.spec.requests.iter().map(|request| Uid::from(request.uid.as_str())).collect(),
        does: record::does(&fence.spec),
        result,
    }
}

/// Carries out what was decided for one request; stops at the first thing that goes another way.
pub(crate) async fn perform(context: Context, hold: Hold, decided: Decided) -> RequestOutcome {
    let uid = Uid::new(decided.object.uid().unwrap_or_default());
    let version = decided.object.resource_version().unwrap_or_default();
    let mut outcome = RequestOutcome { request: Some((uid.clone(), version)), ..RequestOutcome::default() };
    for effect in &decided.effects {
        let done = match hold.check() {
            Ok(()) => one(&context, &decided, effect, &mut outcome).await,
            Err(late) => {
                outcome.failed = Some(late.0);
                break;
            }
        };
        if let Err(why) = done {
            let about_itself = matches!(effect, RequestEffect::WriteStatus(_) | RequestEffect::Delete { .. });
            outcome.gone = (about_itself && gone(&why)).then(|| uid.clone());
            outcome.failed = Some(brief(&why));
            break;
        }
    }
    outcome
}

async fn one(
    context: &Context,
    decided: &Decided,
    effect: &RequestEffect,
    out: &mut RequestOutcome,
) -> kube::Result<()> {
    let object = &decided.object;
    let fences: Api<NodeFence> = Api::all(context.client.clone());
    let requests: Api<NodeFencingRequest> =
        Api::namespaced(context.client.clone(), &object.namespace().unwrap_or_default());
    match effect {
        RequestEffect::CreateFence { node, .. } => {
            let fence = new_fence(node, object, decided.config.clone());
            out.fence = Some(Box::new(fences.create(&PostParams::default(), &fence).await?));
        }
        RequestEffect::AttachTo(uid) => {
            let Some(fence) = &decided.fence else { return Ok(()) };
            let mut refs = fence.spec.requests.clone();
            refs.push(reference(object));
            let patch = json!({
                "metadata": { "uid": uid.as_str(), "resourceVersion": fence.resource_version() },
                "spec": { "requests": refs },
            });
            let patched = fences.patch(&fence.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await?;
            out.fence = Some(Box::new(patched));
        }
        RequestEffect::ReadFence(_) => {
            let node = object.spec.node_name.clone().unwrap_or_else(|| object.name_any());
            let found = fences.get_opt(&node).await?;
            out.read = Some((NodeName::new(node), found.map(Box::new)));
        }
        RequestEffect::WriteStatus(said) => {
            let written = write_status(&requests, decided, said, context).await?;
            out.written = Some(Box::new(written));
        }
        RequestEffect::Delete { uid, resource_version } => {
            let params = DeleteParams {
                preconditions: Some(Preconditions {
                    uid: Some(uid.to_string()),
                    resource_version: Some(resource_version.to_string()),
                }),
                ..DeleteParams::default()
            };
            requests.delete(&object.name_any(), &params).await?;
        }
    }
    Ok(())
}

async fn write_status(
    requests: &Api<NodeFencingRequest>,
    decided: &Decided,
    said: &RequestStatus,
    context: &Context,
) -> kube::Result<NodeFencingRequest> {
    let object = &decided.object;
    let mut next = object.clone();
    next.metadata.resource_version = Some(said.resource_version.to_string());
    let mut status = next.status.take().unwrap_or_default();
    record::write(said, &mut status);
    if status.result.is_some() && status.completed_at.is_none() {
        status.completed_at = Some(context.clock.wall());
        // The fence goes; what it did stays with whoever asked.
        if let Some(fence) = decided.fence.as_ref().and_then(|fence| fence.status.as_ref()) {
            status.actions.clone_from(&fence.actions);
            let gone = |release: &&ReleaseRecord| release.state >= ReleaseState::Removed;
            status.released_pods = u32::try_from(fence.releases.iter().filter(gone).count()).unwrap_or(u32::MAX);
        }
    }
    next.status = Some(status);
    requests.replace_status(&object.name_any(), &PostParams::default(), &next).await
}

fn new_fence(node: &NodeName, request: &NodeFencingRequest, config: Option<String>) -> NodeFence {
    let operation = request.spec.operation;
    let spec = NodeFenceSpec {
        node_name: node.to_string(),
        requests: vec![reference(request)],
        config,
        power_step: operation != Operation::Fence,
        stay_off: operation == Operation::PowerOff,
        admin: palisade_api::fence::Admin::default(),
    };
    let mut fence = NodeFence::new(node.as_str(), spec);
    fence.metadata.finalizers = Some(vec![names::finalizers::RECOVER_FIRST.to_owned()]);
    fence
}

fn reference(request: &NodeFencingRequest) -> RequestRef {
    RequestRef {
        namespace: request.namespace().unwrap_or_default(),
        name: request.name_any(),
        uid: request.uid().unwrap_or_default(),
    }
}

/// Makes a request from a claim.
pub(crate) async fn file(context: Context, hold: Hold, claim: ToFile, node_uid: Uid) -> RequestOutcome {
    let mut outcome = RequestOutcome::default();
    if let Err(late) = hold.check() {
        outcome.failed = Some(late.0);
        return outcome;
    }
    let request = NodeFencingRequest {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}-", claim.node)),
            namespace: Some(context.namespace.clone()),
            ..ObjectMeta::default()
        },
        spec: NodeFencingRequestSpec {
            node_name: Some(claim.node.to_string()),
            node_uid: Some(node_uid.to_string()),
            reason: claim.reason.to_owned(),
            message: claim.message.chars().take(1024).collect(),
            source: Some("palisade".to_owned()),
            trigger: Some(claim.rule.trigger.clone()),
            operation: claim.rule.operation.unwrap_or(Operation::Fence),
            ..NodeFencingRequestSpec::default()
        },
        status: None,
    };
    let requests: Api<NodeFencingRequest> = Api::namespaced(context.client.clone(), &context.namespace);
    match requests.create(&PostParams::default(), &request).await {
        Ok(made) => outcome.filed = Some((claim.node, claim.rule.name, Box::new(made))),
        Err(why) => outcome.failed = Some(brief(&why)),
    }
    outcome
}
