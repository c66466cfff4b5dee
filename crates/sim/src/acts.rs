//! Acts: what the operators did, counted: each write, and each command that reached a BMC.
//!
//! A fault that is to strike "right after the n-th act" is hung on this: the operator has not heard of the answer yet.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palisade_cluster::Cluster;
use palisade_cluster::api::Kind;
use palisade_cluster::truth::What;

/// The acts of all operators.
#[derive(Clone, Default)]
pub(crate) struct Acts(Arc<Mutex<Done>>);

#[derive(Default)]
struct Done {
    count: u64,
    last_by: String,
    last: String,
}

impl Acts {
    /// Counts from now on.
    pub(crate) fn count(cluster: &Cluster) -> Self {
        let acts = Self::default();
        let (by_write, by_event) = (acts.clone(), acts.clone());
        cluster.api().on_write(Box::new(move |store, change| {
            // The leader's lease is renewed all the time and means nothing here.
            if change.key.kind != Kind::LEASE && change.by.name().starts_with("palisade") {
                let mut done = by_write.lock();
                done.count += 1;
                change.by.name().clone_into(&mut done.last_by);
                let kind = store.registry().get(change.key.kind).map_or("?", |known| &*known.name);
                let verb = match (&change.old, &change.new) {
                    (None, _) => "create",
                    (Some(_), Some(_)) => "write",
                    (Some(_), None) => "remove",
                };
                done.last = format!("{verb} {kind} {}", change.key.name);
            }
        }));
        cluster.truth().on_event(Box::new(move |_, event| {
            if let What::Told { node, command } = &event.what {
                let mut done = by_event.lock();
                done.count += 1;
                done.last = format!("tell the BMC of {node} {:?}", command.switch);
            }
        }));
        acts
    }

    /// How many there were.
    pub(crate) fn so_far(&self) -> u64 {
        self.lock().count
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
