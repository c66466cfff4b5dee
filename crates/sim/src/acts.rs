//! Acts: what the operators did, counted: each write, and each command that reached a BMC.
//!
//! A fault that is to strike "right after the n-th act" is hung on this: the operator has not heard of the answer yet.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palisade_api::names;
use palisade_cluster::Cluster;
use palisade_cluster::api::{Change, Kind, metadata};
use palisade_cluster::machines::machine::Switch;
use palisade_cluster::truth::What;

/// A kind of act around which much can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// A NodeFence was written: an intent, a proof, a release.
    Record,
    /// A NodeFence was written that lets its node in.
    LetIn,
    /// The ledger was written.
    Ledger,
    /// A Node was written.
    Node,
    /// A pod was marked.
    Mark,
    /// A pod was removed.
    Remove,
    /// A BMC was told off.
    Off,
    /// A BMC was told on.
    On,
    /// A Job was made that calls a device.
    Job,
}

impl Act {
    /// All but the Jobs, which only some seeds have.
    pub(crate) const ALL: [Self; 8] =
        [Self::Record, Self::LetIn, Self::Ledger, Self::Node, Self::Mark, Self::Remove, Self::Off, Self::On];

    fn of(change: &Change, fences: Option<Kind>, policies: Option<Kind>) -> Option<Self> {
        match change.key.kind {
            Kind::NODE => Some(Self::Node),
            Kind::JOB => change.old.is_none().then_some(Self::Job),
            Kind::POD if change.new.is_none() => Some(Self::Remove),
            Kind::POD => change.new.as_ref().is_some_and(|pod| metadata::is_deleting(pod)).then_some(Self::Mark),
            kind if Some(kind) == fences => {
                let lets_in = |fence: &Option<_>| phase(fence.as_deref()) == Some("Recovering");
                let begins = lets_in(&change.new) && !lets_in(&change.old);
                Some(if begins { Self::LetIn } else { Self::Record })
            }
            kind if Some(kind) == policies => Some(Self::Ledger),
            _ => None,
        }
    }
}

fn phase(fence: Option<&serde_json::Value>) -> Option<&str> {
    fence?.pointer("/status/phase")?.as_str()
}

/// The acts of all operators.
#[derive(Clone, Default)]
pub(crate) struct Acts(Arc<Mutex<Done>>);

#[derive(Default)]
struct Done {
    count: u64,
    kinds: BTreeMap<Act, u64>,
    last_by: String,
    last: String,
}

impl Done {
    fn add(&mut self, kind: Option<Act>, what: String) {
        self.count += 1;
        if let Some(kind) = kind {
            *self.kinds.entry(kind).or_default() += 1;
        }
        self.last = what;
    }
}

impl Acts {
    /// Counts from now on.
    pub(crate) fn count(cluster: &Cluster) -> Self {
        let acts = Self::default();
        let (by_write, by_event) = (acts.clone(), acts.clone());
        let kind = |name: &str| cluster.api().kind(names::GROUP, name);
        let (fences, policies) = (kind("NodeFence"), kind("FencePolicy"));
        cluster.api().on_write(Box::new(move |store, change| {
            // The leader's lease is renewed all the time and means nothing here.
            if change.key.kind != Kind::LEASE && change.by.name().starts_with("palisade") {
                let kind = store.registry().get(change.key.kind).map_or("?", |known| &*known.name);
                let verb = match (&change.old, &change.new) {
                    (None, _) => "create",
                    (Some(_), Some(_)) => "write",
                    (Some(_), None) => "remove",
                };
                let mut done = by_write.lock();
                change.by.name().clone_into(&mut done.last_by);
                done.add(Act::of(change, fences, policies), format!("{verb} {kind} {}", change.key.name));
            }
        }));
        cluster.truth().on_event(Box::new(move |_, event| {
            if let What::Told { node, command } = &event.what {
                let kind = if command.switch == Switch::ForceOff { Act::Off } else { Act::On };
                by_event.lock().add(Some(kind), format!("tell the BMC of {node} {:?}", command.switch));
            }
        }));
        acts
    }

    /// How many there were.
    pub(crate) fn so_far(&self) -> u64 {
        self.lock().count
    }

    /// How many there were of one kind.
    pub(crate) fn of(&self, kind: Act) -> u64 {
        self.lock().kinds.get(&kind).copied().unwrap_or_default()
    }

    /// Who wrote last.
    pub(crate) fn last_by(&self) -> String {
        self.lock().last_by.clone()
    }

    /// The last one, in words.
    pub(crate) fn last(&self) -> String {
        self.lock().last.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Done> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
