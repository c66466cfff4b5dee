//! View: what the operator has seen of the cluster, kept in order and without a client.
//!
//! Promise: a view is never evidence of liveness and authorises nothing; each act carries its own precondition. It is
//! changed by [`Seen`] alone, so a test can feed it by hand.

mod gone;
mod lean;
mod node;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use palisade_api::{FenceConfig, FencePolicy, FenceTemplate, NodeFence, NodeFencingRequest, NodeRemedy};
use palisade_core::detect::lease::SeenLease;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::time::Tick;

pub(crate) use lean::{LeanLease, LeanNode};
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
    Lease(Change<(NodeName, ShownLease)>),
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

/// A lease, and how new it is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ShownLease {
    pub(crate) seen: SeenLease,
    pub(crate) version: u64,
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// Nodes, with what this process remembers of them.
    nodes: BTreeMap<NodeName, NodeTrack>,
    /// Nodes of which something was seen since somebody took note of it.
    touched: BTreeSet<NodeName>,
    /// Nodes that have neither object nor lease.
    leaving: BTreeSet<NodeName>,
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
    /// Remedies were seen since somebody took note of it.
    remedies_touched: bool,
    gone: gone::Gone,
    /// Kinds that have been listed once; nothing is decided before all of them have.
    listed: u8,
}

impl View {
    /// Whether every kind has been listed.
    pub(crate) fn complete(&self) -> bool {
        self.listed == u8::MAX
    }

    /// All nodes.
    pub(crate) fn nodes(&self) -> &BTreeMap<NodeName, NodeTrack> {
        &self.nodes
    }

    /// A node.
    pub(crate) fn node(&self, name: &NodeName) -> Option<&NodeTrack> {
        self.nodes.get(name)
    }

    /// Where a node's kubelet listens, as far as its Node says.
    pub(crate) fn kubelet_of(&self, name: &NodeName) -> Option<SocketAddr> {
        self.nodes.get(name)?.facts.as_ref()?.kubelet.as_deref().copied()
    }

    /// FenceTemplates whose pods the policy vouches for; without a policy none.
    pub(crate) fn declared_power(&self) -> &[String] {
        self.policy.as_ref().map_or(&[], |policy| &policy.spec.declared_power)
    }

    /// A node, to note something down that was seen of it.
    pub(crate) fn track(&mut self, name: &NodeName) -> Option<&mut NodeTrack> {
        let track = self.nodes.get_mut(name)?;
        self.touched.insert(name.clone());
        Some(track)
    }

    /// A silence ends a time of health; that is a conclusion, and no news of the node.
    pub(crate) fn note_silence(&mut self, name: &NodeName) {
        if let Some(track) = self.nodes.get_mut(name) {
            track.note_silence();
        }
    }

    /// Nodes of which something was seen since this was last taken.
    pub(crate) fn take_touched(&mut self) -> BTreeSet<NodeName> {
        std::mem::take(&mut self.touched)
    }

    /// The same, left for the next.
    pub(crate) fn touched(&self) -> &BTreeSet<NodeName> {
        &self.touched
    }

    /// Whether remedies were seen since this was last taken.
    pub(crate) fn take_remedies_touched(&mut self) -> bool {
        std::mem::take(&mut self.remedies_touched)
    }

    /// Takes in what a watch shows.
    pub(crate) fn take(&mut self, seen: Seen, now: Tick) {
        match seen {
            Seen::Node(change) => self.take_node(change, now),
            Seen::Lease(change) => self.take_lease(change, now),
            Seen::Request(change) => {
                self.listed |= listed(&change, 2);
                self.note_gone(&change, |view| view.requests.keys().cloned().collect());
                keep(&mut self.requests, change, |object| Uid::new(uid(&object.metadata)));
            }
            Seen::Fence(change) => {
                self.listed |= listed(&change, 3);
                self.note_gone(&change, |view| {
                    view.fences.values().map(|fence| Uid::new(uid(&fence.metadata))).collect()
                });
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
                self.remedies_touched = true;
                keep(&mut self.remedies, change, |object| name(&object.metadata));
            }
        }
    }

    fn take_node(&mut self, change: Change<(NodeName, NodeFacts)>, now: Tick) {
        self.listed |= listed(&change, 0);
        match change {
            Change::All(all) => {
                let there: BTreeSet<_> = all.iter().map(|(name, _)| name).collect();
                let lost: Vec<_> = self.nodes.keys().filter(|name| !there.contains(name)).cloned().collect();
                for name in &lost {
                    self.lose_node(name);
                }
                for (name, facts) in all {
                    self.gone.shown(&facts.uid);
                    self.entry(name).see_node(facts, now);
                }
            }
            Change::Set((name, facts)) => {
                self.gone.shown(&facts.uid);
                self.see_node(name, facts, now);
            }
            Change::Gone((name, facts)) => {
                self.gone.note(facts.uid);
                self.lose_node(&name);
            }
        }
        self.forget_nodes();
    }

    /// Notes who is no longer there, and who is.
    fn note_gone<T: kube::Resource<DynamicType = ()>>(
        &mut self,
        change: &Change<Box<T>>,
        known: impl FnOnce(&Self) -> Vec<Uid>,
    ) {
        let uid_of = |object: &T| Uid::new(uid(object.meta()));
        match change {
            Change::All(all) => {
                for uid in known(self) {
                    self.gone.note(uid);
                }
                for object in all {
                    self.gone.shown(&uid_of(object));
                }
            }
            Change::Set(object) => self.gone.shown(&uid_of(object)),
            Change::Gone(object) => self.gone.note(uid_of(object)),
        }
    }

    /// A Node was read or written by us.
    pub(crate) fn read_node(&mut self, name: NodeName, facts: NodeFacts, now: Tick) {
        if !self.gone.has(&facts.uid) {
            self.see_node(name, facts, now);
        }
    }

    /// A Node was seen. An older version than the one that is known tells nothing.
    fn see_node(&mut self, name: NodeName, facts: NodeFacts, now: Tick) {
        let track = self.entry(name);
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
        if self.gone.has(&key) {
            return;
        }
        if self.requests.get(&key).is_none_or(|known| !older(&object.metadata, &known.metadata)) {
            self.requests.insert(key, object);
        }
    }

    /// The same for a fence.
    pub(crate) fn see_fence(&mut self, object: NodeFence) {
        let key = NodeName::new(name(&object.metadata));
        if self.gone.has(&Uid::new(uid(&object.metadata))) {
            return;
        }
        if self.fences.get(&key).is_none_or(|known| !older(&object.metadata, &known.metadata)) {
            self.fences.insert(key, object);
        }
    }

    /// A fence is gone, by an answer to us.
    pub(crate) fn lose_fence(&mut self, node: &NodeName) {
        if let Some(fence) = self.fences.remove(node) {
            self.gone.note(Uid::new(uid(&fence.metadata)));
        }
    }

    /// A request is gone, by an answer to us.
    pub(crate) fn lose_request(&mut self, uid: &Uid) {
        self.requests.remove(uid);
        self.gone.note(uid.clone());
    }

    /// A Node is gone.
    pub(crate) fn lose_node(&mut self, name: &NodeName) {
        let known = self.nodes.get(name).and_then(|track| track.facts.as_ref()).map(|facts| facts.uid.clone());
        if let Some(uid) = known {
            self.gone.note(uid);
        }
        if let Some(track) = self.track(name) {
            track.lose_node();
            self.leaves(name);
        }
    }

    fn take_lease(&mut self, change: Change<(NodeName, ShownLease)>, now: Tick) {
        self.listed |= listed(&change, 1);
        match change {
            Change::All(all) => {
                let mut all: BTreeMap<_, _> = all.into_iter().collect();
                let known: Vec<_> = self.nodes.keys().cloned().collect();
                for name in known {
                    let lease = all.remove(&name);
                    self.see_lease(&name, lease, now);
                }
                for (name, lease) in all {
                    self.see_lease(&name, Some(lease), now);
                }
            }
            Change::Set((name, lease)) => self.read_lease(&name, lease, now),
            Change::Gone((name, _)) => {
                if self.nodes.contains_key(&name) {
                    self.see_lease(&name, None, now);
                }
            }
        }
        self.forget_nodes();
    }

    fn see_lease(&mut self, name: &NodeName, lease: Option<ShownLease>, now: Tick) {
        self.entry(name.clone()).see_lease(lease, now);
        self.leaves(name);
    }

    /// A lease was shown by a watch, or read by us. An older version than the one that is known tells nothing: it is no renewal. A
    /// list is believed whatever its versions are, as they begin anew where a cluster was restored.
    pub(crate) fn read_lease(&mut self, name: &NodeName, lease: ShownLease, now: Tick) {
        if self.nodes.get(name).is_none_or(|track| track.lease_version() <= lease.version) {
            self.see_lease(name, Some(lease), now);
        }
    }

    /// A node of which something is seen, perhaps for the first time.
    fn entry(&mut self, name: NodeName) -> &mut NodeTrack {
        self.touched.insert(name.clone());
        self.nodes.entry(name).or_default()
    }

    /// Notes whether a node is still there.
    fn leaves(&mut self, name: &NodeName) {
        if self.nodes.get(name).is_some_and(|track| track.facts.is_none() && track.lease.is_none()) {
            self.leaving.insert(name.clone());
        }
    }

    /// A node that has neither object nor lease nor fence is forgotten.
    fn forget_nodes(&mut self) {
        let Self { nodes, leaving, fences, .. } = self;
        leaving.retain(|name| {
            let gone = nodes.get(name).is_none_or(|track| track.facts.is_none() && track.lease.is_none());
            let forgotten = gone && !fences.contains_key(name);
            if forgotten {
                nodes.remove(name);
            }
            gone && !forgotten
        });
    }
}

/// A lease, reduced.
pub(crate) fn seen_lease(lease: LeanLease) -> (NodeName, ShownLease) {
    let version = version(lease.metadata.resource_version.as_deref().unwrap_or_default());
    let spec = lease.spec.unwrap_or_default();
    let seen =
        SeenLease { holder: spec.holder_identity, seconds: spec.lease_duration_seconds, renewed: spec.renew_time };
    (NodeName::new(lease.metadata.name.unwrap_or_default()), ShownLease { seen, version })
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

#[cfg(test)]
mod tests {
    use palisade_core::detect::sight::Sight;
    use palisade_core::snapshot::Ready;

    use super::*;

    fn facts(version: &str) -> NodeFacts {
        let (uid, resource_version) = (Uid::from("u"), palisade_core::ident::ResourceVersion::from(version));
        NodeFacts { uid, resource_version, ready: Ready::True, ..NodeFacts::default() }
    }

    fn node(name: &str) -> (NodeName, NodeFacts) {
        (NodeName::from(name), facts("1"))
    }

    fn lease(name: &str) -> (NodeName, ShownLease) {
        renewed(name, "now", 1)
    }

    fn renewed(name: &str, at: &str, version: u64) -> (NodeName, ShownLease) {
        let seen = SeenLease { holder: Some(name.into()), seconds: Some(40), renewed: Some(at.into()) };
        (NodeName::from(name), ShownLease { seen, version })
    }

    fn fence(name: &str) -> NodeFence {
        let spec = serde_json::json!({ "nodeName": name, "nodeUID": "u" });
        NodeFence::new(name, serde_json::from_value(spec).unwrap())
    }

    fn names(view: &View) -> Vec<&str> {
        view.nodes().keys().map(NodeName::as_str).collect()
    }

    fn touched(view: &mut View) -> Vec<String> {
        view.take_touched().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn whatever_is_seen_of_a_node_is_news_of_it_once() {
        let (mut view, now) = (View::default(), Tick::START);
        view.take(Seen::Node(Change::All(vec![node("n1"), node("n2")])), now);
        assert_eq!(touched(&mut view), ["n1", "n2"]);
        view.take(Seen::Lease(Change::Set(lease("n2"))), now);
        assert_eq!(touched(&mut view), ["n2"]);
        view.take(Seen::Node(Change::All(vec![node("n2")])), now);
        assert_eq!(touched(&mut view), ["n1", "n2"], "that n1 is gone is news too");
        assert_eq!(touched(&mut view), Vec::<String>::new());
    }

    #[test]
    fn a_node_is_forgotten_when_object_lease_and_fence_are_gone() {
        let (mut view, now) = (View::default(), Tick::START);
        view.take(Seen::Node(Change::All(vec![node("n1"), node("n2")])), now);
        view.take(Seen::Lease(Change::All(vec![lease("n1"), lease("n2")])), now);
        view.fences.insert(NodeName::from("n1"), fence("n1"));
        view.take(Seen::Node(Change::Gone(node("n1"))), now);
        view.take(Seen::Lease(Change::Gone(lease("n1"))), now);
        assert_eq!(names(&view), ["n1", "n2"], "its fence lives");
        view.fences.clear();
        view.take(Seen::Lease(Change::Set(lease("n2"))), now);
        assert_eq!(names(&view), ["n2"]);
    }

    #[test]
    fn a_dead_nodes_lease_counts_though_it_was_listed_before_the_node() {
        let (mut view, now) = (View::default(), Tick::START);
        view.take(Seen::Lease(Change::All(vec![lease("n1")])), now);
        view.take(Seen::Node(Change::All(vec![node("n1")])), now);
        let (later, clear) = (Tick::at_millis(21_000), Sight::Clear { since: Tick::START });
        let name = NodeName::from("n1");
        assert!(view.node(&name).unwrap().lease_silent(&name, clear, later));
    }

    #[test]
    fn an_answer_that_comes_late_does_not_put_an_old_version_back() {
        let mut view = View::default();
        let version = |version: &str| {
            let mut fence = fence("n1");
            fence.metadata.uid = Some("f".to_owned());
            fence.metadata.resource_version = Some(version.to_owned());
            fence
        };
        view.take(Seen::Fence(Change::Set(Box::new(version("12")))), Tick::START);
        view.see_fence(version("9"));
        assert_eq!(view.fences[&NodeName::from("n1")].metadata.resource_version.as_deref(), Some("12"));
        view.see_fence(version("13"));
        assert_eq!(view.fences[&NodeName::from("n1")].metadata.resource_version.as_deref(), Some("13"));
    }

    #[test]
    fn an_answer_that_comes_after_its_object_went_does_not_bring_it_back() {
        let (mut view, now) = (View::default(), Tick::START);
        let mut ours = fence("n1");
        ours.metadata.uid = Some("f".to_owned());
        view.take(Seen::Fence(Change::Set(Box::new(ours.clone()))), now);
        view.take(Seen::Fence(Change::Gone(Box::new(ours.clone()))), now);
        view.see_fence(ours.clone());
        assert!(view.fences.is_empty(), "the answer to a record came late");
        view.take(Seen::Fence(Change::Set(Box::new(ours))), now);
        assert_eq!(view.fences.len(), 1, "the watch knows better than a list that lagged behind");

        view.take(Seen::Node(Change::Set(node("n2"))), now);
        view.take(Seen::Node(Change::Gone(node("n2"))), now);
        view.read_node(NodeName::from("n2"), facts("2"), now);
        assert!(view.node(&NodeName::from("n2")).is_none_or(|track| track.facts.is_none()), "a read came late");
    }

    #[test]
    fn a_renewal_that_a_watch_brings_late_is_none() {
        let (mut view, clear) = (View::default(), Sight::Clear { since: Tick::START });
        let name = NodeName::from("n1");
        let at = |seconds: u64| Tick::at_millis(seconds * 1_000);
        view.take(Seen::Node(Change::All(vec![node("n1")])), at(0));
        view.take(Seen::Lease(Change::All(vec![renewed("n1", "first", 5)])), at(0));
        let (_, read) = renewed("n1", "third", 7);
        view.read_lease(&name, read, at(1));
        view.take(Seen::Lease(Change::Set(renewed("n1", "second", 6))), at(20));
        assert!(view.node(&name).unwrap().lease_silent(&name, clear, at(24)));
        view.take(Seen::Lease(Change::Set(renewed("n1", "fourth", 8))), at(25));
        assert!(!view.node(&name).unwrap().lease_silent(&name, clear, at(26)));
        view.take(Seen::Lease(Change::All(vec![renewed("n1", "restored", 2)])), at(60));
        assert!(!view.node(&name).unwrap().lease_silent(&name, clear, at(61)), "a list is believed");
    }

    #[test]
    fn a_node_that_comes_back_is_not_forgotten() {
        let (mut view, now) = (View::default(), Tick::START);
        view.fences.insert(NodeName::from("n1"), fence("n1"));
        view.take(Seen::Node(Change::Set(node("n1"))), now);
        view.take(Seen::Node(Change::Gone(node("n1"))), now);
        view.take(Seen::Node(Change::Set(node("n1"))), now);
        view.fences.clear();
        view.take(Seen::Lease(Change::Set(lease("n2"))), now);
        assert_eq!(names(&view), ["n1", "n2"]);
    }
}
