//! The store as everybody in the cluster holds it: a handle that can be cloned and knows who uses it.
//!
//! Promise: each call is one short critical section, and nothing waits inside.
//! A panic inside the store, such as that of an observer that saw a broken promise, ends everybody who calls later:
//! a simulation must not go on over a broken truth.

use std::{
    panic,
    sync::{Arc, Mutex, MutexGuard},
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use super::{
    create::Options,
    deletion::{DeleteOptions, Deleted},
    kinds::{Definition, Kind},
    patch::Patch,
    status::Status,
    store::{Actor, Change, Key, Object, Observer, Store},
    update::Part,
};
use crate::clock::Clock;

/// How a cluster starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Makes generated names and UIDs differ from run to run, and only those.
    pub seed: u64,
    /// How many writes are remembered. Who asks for more gets 410 Expired.
    pub history: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { seed: 1, history: 20_000 }
    }
}

/// The API of the cluster, in the hands of one actor.
#[derive(Clone, Debug)]
pub struct Api {
    store: Arc<Mutex<Store>>,
    changed: Arc<Notify>,
    clock: Clock,
    actor: Actor,
}

impl Api {
    /// An empty cluster: four namespaces and nothing else.
    pub fn new(clock: Clock, settings: &Settings) -> Self {
        let mut store = Store::new(clock.clone(), settings.seed, settings.history);
        let actor = Actor::new("kube-apiserver");
        store.make_first_namespaces(&actor);
        Self { store: Arc::new(Mutex::new(store)), changed: Arc::default(), clock, actor }
    }

    /// The same cluster in the hands of somebody else: its writes carry that name.
    #[must_use]
    pub fn acting_as(&self, name: &str) -> Self {
        self.in_hands_of(Actor::new(name))
    }

    pub(crate) fn in_hands_of(&self, actor: Actor) -> Self {
        Self { actor, ..self.clone() }
    }

    /// Who holds this handle.
    pub fn actor(&self) -> &Actor {
        &self.actor
    }

    /// The cluster's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// What time it is in the cluster.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// The kind of a group with a name such as `NodeFence`.
    pub fn kind(&self, group: &str, name: &str) -> Option<Kind> {
        self.read(|store| store.registry().named(group, name).map(|definition| definition.kind))
    }

    /// What is known about a kind.
    pub fn definition(&self, kind: Kind) -> Option<Arc<Definition>> {
        self.read(|store| store.registry().get(kind).cloned())
    }

    /// What is there.
    pub fn get(&self, key: &Key) -> Option<Object> {
        self.read(|store| store.get(key).cloned())
    }

    /// All objects of a kind, by namespace and name.
    pub fn list(&self, kind: Kind) -> Vec<Object> {
        self.read(|store| store.list(kind).map(|(_, object)| Arc::clone(object)).collect())
    }

    /// All objects of a kind in a namespace, by name.
    pub fn list_in(&self, kind: Kind, namespace: &str) -> Vec<Object> {
        self.read(|store| store.list_in(kind, namespace).map(|(_, object)| Arc::clone(object)).collect())
    }

    /// What was there after the write with that number; 410 if that is forgotten.
    pub fn get_at(&self, key: &Key, revision: u64) -> Result<Option<Object>, Status> {
        self.read(|store| store.get_at(key, revision))
    }

    /// All objects of a kind after the write with that number; 410 if that is forgotten.
    pub fn list_at(&self, kind: Kind, revision: u64) -> Result<Vec<Object>, Status> {
        self.read(|store| store.list_at(kind, revision))
    }

    /// The number of the last write.
    pub fn revision(&self) -> u64 {
        self.read(Store::revision)
    }

    /// The writes after the one with that number, oldest first; 410 if some are forgotten.
    pub fn changes_since(&self, revision: u64) -> Result<Vec<Arc<Change>>, Status> {
        self.read(|store| Ok(store.log_after(revision)?.cloned().collect()))
    }

    /// The same for one kind.
    pub fn changes_of(&self, kind: Kind, revision: u64) -> Result<Vec<Arc<Change>>, Status> {
        self.read(|store| Ok(store.log_after(revision)?.filter(|change| change.key.kind == kind).cloned().collect()))
    }

    /// Waits for writes, from now on.
    pub fn subscribe(&self) -> Subscription {
        Subscription { seen: self.revision(), notify: Arc::clone(&self.changed), kind: None, api: self.clone() }
    }

    /// Waits for writes to objects of one kind, from now on.
    pub fn subscribe_to(&self, kind: Kind) -> Subscription {
        let notify = self.lock().signal(kind);
        Subscription { seen: self.revision(), notify, kind: Some(kind), api: self.clone() }
    }

    /// Calls the observer inside every write from now on.
    pub fn on_write(&self, observer: Observer) {
        self.lock().observe(observer);
    }

    /// Forgets the history up to a revision: whoever is still there gets 410.
    pub fn compact(&self, revision: u64) {
        self.lock().compact(revision);
    }

    /// Several reads of one moment.
    pub fn read<T>(&self, look: impl FnOnce(&Store) -> T) -> T {
        look(&self.lock())
    }

    /// Makes an object, in the namespace that it names (or `default`).
    pub fn create(&self, kind: Kind, object: Value) -> Result<Object, Status> {
        self.write(|store, by| {
            let namespaced = store.definition(kind)?.namespaced;
            let namespace = match super::metadata::namespace(&object) {
                "" if namespaced => "default",
                named => named,
            };
            let namespace = namespace.to_owned();
            store.create(by, kind, &namespace, object, Options::default())
        })
    }

    /// Reads, changes and writes an object, spec and status alike, in one step that nobody can come between.
    /// A change that changes nothing writes nothing.
    pub fn update(&self, key: &Key, change: impl FnOnce(&mut Value)) -> Result<Object, Status> {
        self.write(|store, by| {
            let (_, old) = store.existing(key)?;
            let mut new = Value::clone(&old);
            change(&mut new);
            store.update(by, key, Part::Whole, new, Options::default())
        })
    }

    /// Writes an object as PUT does: 409 if its resourceVersion is not the current one.
    pub fn replace(&self, key: &Key, part: Part, object: Value) -> Result<Object, Status> {
        self.write(|store, by| store.update(by, key, part, object, Options::default()))
    }

    /// Patches an object as PATCH does.
    pub fn patch(&self, key: &Key, part: Part, patch: &Patch) -> Result<Object, Status> {
        self.write(|store, by| store.patch(by, key, part, patch, Options::default()))
    }

    /// Deletes an object as DELETE does: at once, with grace, or when its finalizers are gone.
    pub fn delete(&self, key: &Key, options: &DeleteOptions) -> Result<Deleted, Status> {
        self.write(|store, by| store.delete(by, key, options))
    }

    /// A write, and word of it to everybody who waits.
    pub(crate) fn write<T>(&self, act: impl FnOnce(&mut Store, &Actor) -> T) -> T {
        let mut store = self.lock();
        let before = store.revision();
        store.warnings.clear();
        let outcome = act(&mut store, &self.actor);
        if store.revision() != before {
            self.changed.notify_waiters();
        }
        outcome
    }

    fn lock(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(|_| panic::resume_unwind(Box::new("the store was left by a panic; see above")))
    }
}

/// Somebody who waits for writes.
///
/// Wakes in the order in which the waiting began, which tokio's `watch` channel does not promise.
#[derive(Clone, Debug)]
pub struct Subscription {
    api: Api,
    kind: Option<Kind>,
    notify: Arc<Notify>,
    seen: u64,
}

impl Subscription {
    /// Waits until there is a write that this subscription has not told of, and gives the last one's number.
    /// Loses nothing if it is dropped while it waits.
    pub async fn changed(&mut self) -> u64 {
        loop {
            // Enabled before the look, so that a write between look and wait is not missed.
            let mut notified = std::pin::pin!(self.notify.notified());
            notified.as_mut().enable();
            let revision = self.api.read(|store| match self.kind {
                Some(kind) => store.revision_of(kind),
                None => store.revision(),
            });
            if revision > self.seen {
                self.seen = revision;
                return revision;
            }
            notified.await;
        }
    }
}
