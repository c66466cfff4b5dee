//! View: what the operator has seen of the cluster, kept in order and without a client.
//!
//! Promise: a view is never evidence of liveness and authorises nothing; each act carries its own precondition. It is
//! changed by [`Seen`] alone, so a test can feed it by hand.

mod node;

use std::collections::BTreeMap;

use k8s_openapi::api::coordination::v1::Lease;
use palisade_api::{FenceConfig, FencePolicy, FenceTemplate, NodeFence, NodeFencingRequest, NodeRemedy};
use palisade_core::detect::lease::SeenLease;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::time::Tick;

pub(crate) use node::{NodeFacts, NodeTrack};

/// What a watch shows of one kind.
#[derive(Clone, Debug)]
pub(crate) enum Change<T> {
    /// These are all there are.
    All(Vec<T>),
    /// This one is there.
    Set(T),
    /// This one is gone.
    Gone(T),
}

/// What a watch shows.
#[derive(Clone, Debug)]
pub(crate) enum Seen {
    /// Nodes.
    Node(Change<(NodeName, NodeFacts)>),
    /// Leases of nodes.
    Lease(Change<(NodeName, SeenLease)>),
    /// Requests.
    Request(Change<Box<NodeFencingRequest>>),
    /// Fences.
    Fence(Change<Box<NodeFence>>),
    /// The policy.
    Policy(Change<Box<FencePolicy>>),
    /// Configs.
    Config(Change<Box<FenceConfig>>),
    /// Templates.
    Template(Change<Box<FenceTemplate>>),
    /// Remedies.
    Remedy(Change<Box<NodeRemedy>>),
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Nodes, with what this process remembers of them.
    pub(crate) nodes: BTreeMap<NodeName, NodeTrack>,
    /// Requests, by UID.
    pub(crate) requests: BTreeMap<Uid, NodeFencingRequest>,
    /// Fences, by node.
    pub(crate) fences: BTreeMap<NodeName, NodeFence>,
    /// The one policy.
    pub(crate) policy: Option<FencePolicy>,
    /// Configs, by name.
    pub(crate) configs: BTreeMap<String, FenceConfig>,
    /// Templates, by name.
    pub(crate) templates: BTreeMap<String, FenceTemplate>,
    /// Remedies, by name.
    pub(crate) remedies: BTreeMap<String, NodeRemedy>,
    /// Kinds that have been listed once; nothing is decided before all of them have.
    listed: u8,
}

impl View {
    /// Whether every kind has been listed.
    pub(crate) fn complete(&self) -> bool {
        self.listed == u8::MAX
    }

    /// Takes in what a watch shows.
    pub(crate) fn take(&mut self, seen: Seen, now: Tick) {
        match seen {
            Seen::Node(change) => self.take_node(change, now),
            Seen::Lease(change) => self.take_lease(change, now),
            Seen::Request(change) => {
                self.listed |= listed(&change, 2);
                keep(&mut self.requests, change, |object| Uid::new(uid(&object.metadata)));
            }
            Seen::Fence(change) => {
                self.listed |= listed(&change, 3);
                keep(&mut self.fences, change, |object| NodeName::new(name(&object.metadata)));
            }
            Seen::Policy(change) => {
                self.listed |= listed(&change, 4);
                match change {
                    Change::All(all) => self.policy = all.into_iter().map(|policy| *policy).next(),
                    Change::Set(policy) => self.policy = Some(*policy),
                    Change::Gone(_) => self.policy = None,
                }
            }
            Seen::Config(change) => {
                self.listed |= listed(&change, 5);
                keep(&mut self.configs, change, |object| name(&object.metadata));
            }
            Seen::Template(change) => {
                self.listed |= listed(&change, 6);
                keep(&mut self.templates, change, |object| name(&object.metadata));
            }
            Seen::Remedy(change) => {
                self.listed |= listed(&change, 7);
                keep(&mut self.remedies, change, |object| name(&object.metadata));
            }
        }
    }

    fn take_node(&mut self, change: Change<(NodeName, NodeFacts)>, now: Tick) {
        self.listed |= listed(&change, 0);
        match change {
            Change::All(all) => {
                let there: Vec<_> = all.iter().map(|(name, _)| name.clone()).collect();
                for (name, track) in &mut self.nodes {
                    if !there.contains(name) {
                        track.lose_node();
                    }
                }
                for (name, facts) in all {
                    self.nodes.entry(name).or_default().see_node(facts, now);
                }
            }
            Change::Set((name, facts)) => self.see_node(name, facts, now),
            Change::Gone((name, _)) => {
                if let Some(track) = self.nodes.get_mut(&name) {
                    track.lose_node();
                }
            }
        }
        self.forget_nodes();
    }

    /// A Node was seen, by a watch or by a read of our own. An older version than the one that is known tells nothing.
    pub(crate) fn see_node(&mut self, name: NodeName, facts: NodeFacts, now: Tick) {
        let track = self.nodes.entry(name).or_default();
        let known = track.facts.as_ref().filter(|known| known.uid == facts.uid);
        if known
            .is_none_or(|known| version(known.resource_version.as_str()) <= version(facts.resource_version.as_str()))
        {
            track.see_node(facts, now);
        }
    }

    /// A request was written or read by us. An answer may come later than the watch's word of a newer version.
    pub(crate) fn see_request(&mut self, object: NodeFencingRequest) {
        let key = Uid::new(uid(&object.metadata));
        if self.requests.get(&key).is_none_or(|known| !older(&object.metadata, &known.metadata)) {
            self.requests.insert(key, object);
        }
    }

    /// The same for a fence.
    pub(crate) fn see_fence(&mut self, object: NodeFence) {
        let key = NodeName::new(name(&object.metadata));
        if self.fences.get(&key).is_none_or(|known| !older(&object.metadata, &known.metadata)) {
            self.fences.insert(key, object);
        }
    }

    fn take_lease(&mut self, change: Change<(NodeName, SeenLease)>, now: Tick) {
        self.listed |= listed(&change, 1);
        match change {
            Change::All(all) => {
                let mut all: BTreeMap<_, _> = all.into_iter().collect();
                for (name, track) in &mut self.nodes {
                    track.see_lease(all.remove(name), now);
                }
                for (name, lease) in all {
                    self.nodes.entry(name).or_default().see_lease(Some(lease), now);
                }
            }
            Change::Set((name, lease)) => self.nodes.entry(name).or_default().see_lease(Some(lease), now),
            Change::Gone((name, _)) => {
                if let Some(track) = self.nodes.get_mut(&name) {
                    track.see_lease(None, now);
                }
            }
        }
        self.forget_nodes();
    }

    /// A node that has neither object nor lease nor fence is forgotten.
    fn forget_nodes(&mut self) {
        let fences = &self.fences;
        self.nodes.retain(|name, track| track.facts.is_some() || track.lease.is_some() || fences.contains_key(name));
    }
}

/// A lease, reduced.
pub(crate) fn seen_lease(lease: &Lease) -> SeenLease {
    let spec = lease.spec.as_ref();
    SeenLease {
        holder: spec.and_then(|spec| spec.holder_identity.as_deref()).map(Into::into),
        seconds: spec.and_then(|spec| spec.lease_duration_seconds).map(i64::from),
        renewed: spec.and_then(|spec| spec.renew_time.as_ref()).map(|at| at.0.to_string().into()),
    }
}

/// A version as a number, where it is one: versions of one kind are compared only to tell an echo from news.
pub(crate) fn version(text: &str) -> u64 {
    text.parse().unwrap_or(u64::MAX)
}

/// Whether one is an older version of the other.
fn older(one: &kube::api::ObjectMeta, other: &kube::api::ObjectMeta) -> bool {
    let number = |meta: &kube::api::ObjectMeta| version(meta.resource_version.as_deref().unwrap_or_default());
    one.uid == other.uid && number(one) < number(other)
}

fn listed<T>(change: &Change<T>, bit: u8) -> u8 {
    match change {
        Change::All(_) => 1 << bit,
        Change::Set(_) | Change::Gone(_) => 0,
    }
}

fn keep<K: Ord, T>(known: &mut BTreeMap<K, T>, change: Change<Box<T>>, key: impl Fn(&T) -> K) {
    match change {
        Change::All(all) => *known = all.into_iter().map(|one| (key(&one), *one)).collect(),
        Change::Set(one) => {
            known.insert(key(&one), *one);
        }
        Change::Gone(one) => {
            known.remove(&key(&one));
        }
    }
}

fn name(meta: &kube::api::ObjectMeta) -> String {
    meta.name.clone().unwrap_or_default()
}

fn uid(meta: &kube::api::ObjectMeta) -> String {
    meta.uid.clone().unwrap_or_default()
}
