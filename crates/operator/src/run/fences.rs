//! Run / fences: each live fence is asked what to do, and what it decided is carried out.

use std::sync::Arc;

use kube::ResourceExt;
use palisade_core::detect::Standing;
use palisade_core::detect::sight::Sight;
use palisade_core::effect::Effect;
use palisade_core::fence::Phase;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::isolate::{Placement, placement};
use palisade_core::observe::Vetted;
use palisade_core::policy::Policy;
use palisade_core::resolve::call::Call;
use palisade_core::snapshot::Snapshot;
use palisade_core::time::Tick;
use palisade_core::vet::{Verdict, entry_for, vet};

use super::{AT_LEAST, Operator};
use crate::effects::{Hand, Outcome};
use crate::events::{self, Tone};
use crate::executor::{Called, Executor};
use crate::fences::{Around, Live, Look, asked_by};
use crate::news::News;
use crate::plans::Plan;
use crate::requests;

/// What effects are carried out in.
#[derive(Clone, Copy)]
pub(super) struct Surroundings<'a> {
    snapshot: &'a Snapshot,
    policy: &'a Policy,
    /// Nothing has been heard of the node for too long.
    silent: bool,
}

impl Surroundings<'_> {
    /// Where a Job may run; nobody asks where no method needs one.
    fn placement(&self, node: &NodeName, plan: Option<&Plan>) -> Arc<Placement> {
        let in_job = |call: &Call| {
            let devices = [Some(&call.device), call.read_back.as_ref()];
            devices.into_iter().flatten().any(|device| device.mechanism.in_job())
        };
        if !plan.is_some_and(|plan| plan.calls.values().any(in_job)) {
            return Arc::default();
        }
        Arc::new(placement(node, self.snapshot, &domain_keys(self.policy)))
    }
}

/// The labels that say in which failure domains a node is.
pub(super) fn domain_keys(policy: &Policy) -> Vec<String> {
    policy.storm.domains.iter().map(|domain| domain.topology_key.clone()).collect()
}

impl Operator {
    /// Keeps a live fence for each NodeFence.
    pub(super) fn follow_fences(&mut self, now: Tick) {
        if !self.leads {
            return;
        }
        let (view, fences) = (&self.view, &mut self.fences);
        fences.retain(|node, live| {
            view.fences.get(node).is_some_and(|object| object.uid().as_deref() == Some(live.fence().uid.as_str()))
        });
        let mut unreadable = Vec::new();
        for (node, object) in &view.fences {
            let followed = match fences.get_mut(node) {
                Some(live) => live.see(object, now),
                None => Live::new(object.clone(), self.looks.next(), now).map(|live| {
                    fences.insert(node.clone(), live);
                }),
            };
            if let Err(why) = followed {
                tracing::error!(%node, %why, "the fence is held");
                fences.remove(node);
                unreadable.push((events::about(object), why.to_string()));
            }
        }
        for (about, why) in unreadable {
            self.tell(about, Tone::Warning, "NotUnderstood", &why);
        }
        self.context.metrics.fences(self.fences.values().map(|live| live.fence().phase.name()));
    }

    pub(super) fn done(&mut self, node: &NodeName, look: Look, outcomes: Vec<Outcome>, now: Tick) {
        for outcome in &outcomes {
            match outcome {
                Outcome::Node(_, Some(facts), lease) => {
                    self.view.read_node(node.clone(), (**facts).clone(), now);
                    if let Some(lease) = lease {
                        self.view.read_lease(node, lease.clone(), now);
                    }
                }
                Outcome::NodeWritten(facts) => self.view.read_node(node.clone(), (**facts).clone(), now),
                Outcome::Node(_, None, _) => {
                    self.view.lose_node(node);
                }
                Outcome::Recorded(object) => {
                    self.view.see_fence((**object).clone());
                    self.tell_record(object);
                }
                _ => {}
            }
        }
        let Some(live) = asked_by(&mut self.fences, node, look) else { return };
        match live.done(outcomes, now) {
            Ok(false) => {}
            Ok(true) => {
                self.fences.remove(node);
                self.view.lose_fence(node);
            }
            Err(why) => {
                tracing::error!(%node, %why, "the fence is held");
                self.fences.remove(node);
            }
        }
    }

    pub(super) fn turn_fences(&mut self, snapshot: &Snapshot, policy: &Policy, sight: Sight, now: Tick) -> Tick {
        let mut wake = now + AT_LEAST;
        let nodes: Vec<NodeName> = self.fences.keys().cloned().collect();
        for node in nodes {
            let plan = self.usable(&node);
            // Nobody else asks for a verdict, which is a look at every node.
            let begins = self.fences.get(&node).is_some_and(|live| matches!(live.fence().phase, Phase::New));
            let (vetted, closed) =
                if begins { self.vetted(&node, snapshot, policy, now) } else { (Vetted::Closed, None) };
            let cleared = self.evidence_cleared(&node);
            let Some(live) = self.fences.get_mut(&node) else { continue };
            if live.due(now) {
                let around = Around {
                    track: self.view.node(&node),
                    plan: plan.as_deref(),
                    unusable: self.unusable.get(&node).map(String::as_str),
                    release: &policy.release,
                    vetted,
                    closed: closed.as_deref(),
                    evidence_cleared: cleared,
                    sight,
                    now,
                };
                let decision = live.decide(&around);
                if let Some((reason, said)) = live.long_waited(now) {
                    let about = events::about(&*live.object);
                    self.tell(about, Tone::Normal, reason, &said);
                }
                let silent = self.view.node(&node).and_then(|track| track.live(&node, None, sight, now));
                let silent = silent.is_none_or(|node| node.lease_silent);
                self.act(&node, decision.effects, plan, Surroundings { snapshot, policy, silent });
            }
            if let Some(at) = self.fences.get(&node).and_then(Live::wake) {
                wake = wake.min(at);
            }
        }
        wake
    }

    /// Carries out what a fence decided: quick things in order, devices beside.
    pub(super) fn act(
        &mut self,
        node: &NodeName,
        effects: Vec<Effect>,
        plan: Option<Arc<Plan>>,
        around: Surroundings<'_>,
    ) {
        let Some(live) = self.fences.get_mut(node) else { return };
        let facts = self.view.node(node).and_then(|track| track.facts.as_ref());
        let (uid, look) = (live.fence().uid.clone(), live.look());
        let executor = Executor {
            context: self.context.clone(),
            hold: self.hold.clone(),
            node: node.clone(),
            fence: uid.clone(),
            system_uuid: facts.and_then(|facts| facts.system_uuid.clone()),
            kubelet: self.view.kubelet_of(node),
            node_uid: facts.map(|facts| facts.uid.clone()),
            silent: around.silent,
            placement: around.placement(node, plan.as_deref()),
            calls: plan.map(|plan| Arc::clone(&plan.calls)).unwrap_or_default(),
        };
        let mut quick = Vec::new();
        for effect in effects {
            let (executor, news, node) = (executor.clone(), self.news.clone(), node.clone());
            match effect {
                Effect::CallDevice(call) => {
                    self.beside.start(async move {
                        let Called { answer, told, job_over } = executor.call(&call).await;
                        let _ = news.send(News::Called { node, answer, told, job_over });
                    });
                }
                Effect::ReadBack(request) => {
                    self.beside.start(async move {
                        let answer = executor.read(&request).await;
                        let _ = news.send(News::Read { node, look, answer });
                    });
                }
                other => quick.push(other),
            }
        }
        if quick.is_empty() {
            return;
        }
        live.busy = true;
        let hand = Hand {
            context: self.context.clone(),
            hold: self.hold.clone(),
            node: node.clone(),
            fence: live.object.clone(),
            uid: uid.clone(),
            listing: live.listing.clone(),
            facts: facts.cloned().map(Box::new),
            entry: entry_for(node, 0, around.snapshot, around.policy),
            actions: live.actions.clone(),
        };
        let (news, node) = (self.news.clone(), node.clone());
        self.beside.start(async move {
            let outcomes = hand.perform(quick).await;
            let _ = news.send(News::Done { node, look, outcomes });
        });
    }

    /// How a node with a live fence is fenced; if its config makes no sense, people are told once why.
    pub(super) fn usable(&mut self, node: &NodeName) -> Option<Arc<Plan>> {
        match self.plans.of(node, &self.view) {
            Ok(plan) => {
                self.unusable.remove(node);
                Some(plan)
            }
            Err(why) => {
                if self.unusable.get(node) != Some(&why) {
                    tracing::error!(%node, why, "no usable FenceConfig; the fence is held");
                    if let Some(about) = self.view.fences.get(node).map(events::about) {
                        self.tell(about, Tone::Warning, "ConfigUnusable", &why);
                    }
                    self.unusable.insert(node.clone(), why);
                }
                None
            }
        }
    }

    /// What vetting says of a fence that has not begun; and which gate is closed, and why.
    pub(super) fn vetted(
        &self,
        node: &NodeName,
        snapshot: &Snapshot,
        policy: &Policy,
        now: Tick,
    ) -> (Vetted, Option<String>) {
        let Some(fence) = self.view.fences.get(node) else { return (Vetted::Closed, None) };
        let uid = Uid::new(fence.uid().unwrap_or_default());
        let named =
            fence.spec.requests.iter().filter_map(|named| self.view.requests.get(&Uid::from(named.uid.as_str())));
        let mut closed = (Vetted::Closed, None);
        for object in named {
            let Some(request) = self.requests.get(&Uid::new(object.uid().unwrap_or_default())) else { continue };
            match vet(&requests::claim(object, request, Some(uid.clone()), &self.detect), snapshot, policy, now) {
                Verdict::Admit => return (Vetted::Open, None),
                Verdict::Hold { gate, why, .. } => closed.1 = Some(format!("{gate}: {why}")),
                Verdict::Reject { .. } => closed.0 = Vetted::Refused,
            }
        }
        closed
    }

    /// The evidence of every request of a fence has cleared.
    pub(super) fn evidence_cleared(&self, node: &NodeName) -> bool {
        let Some(fence) = self.view.fences.get(node) else { return false };
        fence.spec.requests.iter().all(|named| {
            let object = self.view.requests.get(&Uid::from(named.uid.as_str()));
            object.is_none_or(|object| {
                requests::evidence(object, node, &self.view, &self.detect).standing() == Standing::Cleared
            })
        })
    }

    /// Tells people what was recorded.
    pub(super) fn tell_record(&mut self, fence: &palisade_api::NodeFence) {
        let Some(line) = fence.status.as_ref().and_then(|status| status.timeline.last()) else { return };
        let failed = fence.status.as_ref().is_some_and(|status| status.status == palisade_api::fence::Status::Error);
        let tone = if failed { Tone::Warning } else { Tone::Normal };
        self.tell(events::about(fence), tone, &line.reason, &line.message);
    }
}
