//! What etcd would hold: every object, a revision that only rises, and a bounded memory of how it came to be.
//!
//! Promise: a write is one revision, and everybody who looks on sees it: first the observers, then whoever waits.
//! Never here: what a write has to satisfy (`create.rs`, `update.rs`, `deletion.rs`), who asks and over which wire.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::Arc,
};

use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::Notify;

use super::{
    kinds::{Definition, Kind, Registry},
    metadata,
    status::Status,
};
use crate::clock::Clock;

/// An object as it stands in the store; whoever holds it holds a moment.
pub type Object = Arc<Value>;

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// What it is.
    pub kind: Kind,
    /// Its namespace; empty for objects of the cluster.
    pub namespace: Box<str>,
    /// Its name.
    pub name: Box<str>,
}

impl Key {
    /// The place of an object in a namespace.
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self { kind, namespace: namespace.into(), name: name.into() }
    }

    /// The place of an object of the cluster.
    pub fn cluster(kind: Kind, name: &str) -> Self {
        Self::new(kind, "", name)
    }

    /// The place of an object that says itself where it is.
    pub fn of(kind: Kind, object: &Value) -> Self {
        Self::new(kind, metadata::namespace(object), metadata::name(object))
    }
}

/// Who does something: a controller, a kubelet, the operator, a person at a terminal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Actor(Arc<str>);

impl Actor {
    /// Somebody with a name.
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One committed write.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision that it made.
    pub revision: u64,
    /// When, by the cluster's clock.
    pub at: Timestamp,
    /// By whom.
    pub by: Actor,
    /// Where.
    pub key: Key,
    /// What was there before; nothing if it is new.
    pub old: Option<Object>,
    /// What is there now; nothing if it was removed.
    pub new: Option<Object>,
}

/// Looks on at every write, inside it: it sees the store as the write left it, and must not call the API.
pub type Observer = Box<dyn FnMut(&Store, &Change) + Send>;

/// The last write to a kind, and who wants to know.
#[derive(Debug, Default)]
struct Signal {
    revision: u64,
    notify: Arc<Notify>,
}

/// The truth. Reached through [`Api`](super::Api), which locks it.
pub struct Store {
    pub(crate) clock: Clock,
    pub(crate) registry: Registry,
    objects: BTreeMap<Key, Object>,
    revision: u64,
    /// The newest revision whose successor is no longer in the log.
    compacted: u64,
    log: VecDeque<Arc<Change>>,
    log_length: usize,
    observers: Vec<Observer>,
    /// Who waits for writes to one kind: a watch of nodes need not wake for every event.
    signals: BTreeMap<Kind, Signal>,
    /// What the caller of the write that is going on should hear, though it goes well.
    pub(crate) warnings: Vec<String>,
    /// How many UIDs and names were given out, so that the next differs.
    given_out: u64,
    seed: u64,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store")
            .field("revision", &self.revision)
            .field("objects", &self.objects.len())
            .finish_non_exhaustive()
    }
}

impl Store {
    pub(crate) fn new(clock: Clock, seed: u64, log_length: usize) -> Self {
        Self {
            clock,
            registry: Registry::new(),
            objects: BTreeMap::new(),
            // Clients take 0 for "any revision", so an empty store is at 1.
            revision: 1,
            compacted: 1,
            log: VecDeque::new(),
            log_length,
            observers: Vec::new(),
            signals: BTreeMap::new(),
            warnings: Vec::new(),
            given_out: 0,
            seed,
        }
    }

    /// The kinds that there are.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The number of the last write.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// What is there.
    pub fn get(&self, key: &Key) -> Option<&Object> {
        self.objects.get(key)
    }

    /// All objects of a kind, by namespace and name.
    pub fn list(&self, kind: Kind) -> impl Iterator<Item = (&Key, &Object)> {
        self.objects.range(Key::cluster(kind, "")..).take_while(move |(key, _)| key.kind == kind)
    }

    /// All objects of a kind in a namespace, by name.
    pub fn list_in<'a>(&'a self, kind: Kind, namespace: &'a str) -> impl Iterator<Item = (&'a Key, &'a Object)> {
        self.objects
            .range(Key::new(kind, namespace, "")..)
            .take_while(move |(key, _)| key.kind == kind && *key.namespace == *namespace)
    }

    /// What was there after the write with that number.
    pub fn get_at(&self, key: &Key, revision: u64) -> Result<Option<Object>, Status> {
        let first_later = self.log_after(revision)?.find(|change| change.key == *key);
        Ok(first_later.map_or_else(|| self.get(key).cloned(), |change| change.old.clone()))
    }

    /// All objects of a kind after the write with that number, by namespace and name.
    pub fn list_at(&self, kind: Kind, revision: u64) -> Result<Vec<Object>, Status> {
        let later = self.log_after(revision)?;
        let mut objects: BTreeMap<&Key, &Object> = self.list(kind).collect();
        for change in later.rev().filter(|change| change.key.kind == kind) {
            match &change.old {
                Some(old) => drop(objects.insert(&change.key, old)),
                None => drop(objects.remove(&change.key)),
            }
        }
        Ok(objects.into_values().cloned().collect())
    }

    /// The writes after the one with that number, oldest first.
    pub fn log_after(&self, revision: u64) -> Result<impl DoubleEndedIterator<Item = &Arc<Change>>, Status> {
        if revision < self.compacted {
            return Err(Status::expired(revision, self.compacted));
        }
        // Every write is one revision, so the place in the log is a difference.
        let skip = usize::try_from(revision - self.compacted).unwrap_or(usize::MAX).min(self.log.len());
        Ok(self.log.range(skip..))
    }

    /// Forgets how things came to be up to a revision, as etcd does every few minutes.
    pub(crate) fn compact(&mut self, revision: u64) {
        while self.compacted < revision && self.log.pop_front().is_some() {
            self.compacted += 1;
        }
    }

    /// Wakes whoever waits for writes to a kind.
    pub(crate) fn signal(&mut self, kind: Kind) -> Arc<Notify> {
        Arc::clone(&self.signals.entry(kind).or_default().notify)
    }

    /// The number of the last write to a kind that somebody waited for.
    pub(crate) fn revision_of(&self, kind: Kind) -> u64 {
        self.signals.get(&kind).map_or(0, |signal| signal.revision)
    }

    pub(crate) fn observe(&mut self, observer: Observer) {
        self.observers.push(observer);
    }

    /// What is known about a kind.
    pub(crate) fn definition(&self, kind: Kind) -> Result<Arc<Definition>, Status> {
        self.registry.get(kind).cloned().ok_or_else(Status::no_such_page)
    }

    /// What is there, or upstream's 404.
    pub(crate) fn existing(&self, key: &Key) -> Result<(Arc<Definition>, Object), Status> {
        let definition = self.definition(key.kind)?;
        match self.objects.get(key) {
            Some(object) => Ok((definition, Arc::clone(object))),
            None => Err(Status::not_found(&definition, &key.name)),
        }
    }

    /// A UID that nothing had before and nothing will have again.
    pub(crate) fn new_uid(&mut self) -> String {
        self.given_out += 1;
        format!("{:08x}-0000-4000-8000-{:012x}", self.seed & 0xffff_ffff, self.given_out)
    }

    /// Five letters as `generateName` appends them; the same in each run with the same seed.
    pub(crate) fn new_suffix(&mut self) -> String {
        // Without vowels, as upstream's, so that no word appears by chance.
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        self.given_out += 1;
        let mut bits = mix(self.seed ^ mix(self.given_out));
        let mut letter = || {
            let index = usize::try_from(bits % LETTERS.len() as u64).unwrap_or_default();
            bits /= LETTERS.len() as u64;
            char::from(LETTERS[index])
        };
        (0..5).map(|_| letter()).collect()
    }

    /// Puts an object in its place. Everything that has to be checked has been checked.
    pub(crate) fn put(&mut self, by: &Actor, key: Key, mut object: Value) -> Object {
        metadata::set(&mut object, "resourceVersion", (self.revision + 1).to_string());
        let object = Arc::new(object);
        let old = self.objects.insert(key.clone(), Arc::clone(&object));
        self.commit(by, key, old, Some(Arc::clone(&object)));
        object
    }

    /// Takes an object away.
    pub(crate) fn take(&mut self, by: &Actor, key: &Key) {
        if let Some(old) = self.objects.remove(key) {
            self.commit(by, key.clone(), Some(old), None);
        }
    }

    fn commit(&mut self, by: &Actor, key: Key, old: Option<Object>, new: Option<Object>) {
        self.revision += 1;
        let change = Arc::new(Change { revision: self.revision, at: self.clock.now(), by: by.clone(), key, old, new });
        self.log.push_back(Arc::clone(&change));
        if self.log.len() > self.log_length {
            self.compact(self.compacted + 1);
        }
        // Taken out for the call, so that each may look at the whole store.
        let mut observers = std::mem::take(&mut self.observers);
        for observer in &mut observers {
            observer(self, &change);
        }
        self.observers = observers;
        if let Some(signal) = self.signals.get_mut(&change.key.kind) {
            signal.revision = change.revision;
            signal.notify.notify_waiters();
        }
    }
}

/// Spreads the bits of a number (splitmix64).
fn mix(number: u64) -> u64 {
    let z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn store() -> Store {
        Store::new(Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap()), 7, 4)
    }

    fn put(store: &mut Store, name: &str, value: u64) -> u64 {
        let object = json!({"metadata": {"name": name}, "value": value});
        store.put(&Actor::new("test"), Key::cluster(Kind::NODE, name), object);
        store.revision()
    }

    fn names(objects: &[Object]) -> Vec<&str> {
        objects.iter().map(|object| metadata::name(object)).collect()
    }

    #[tokio::test]
    async fn the_past_can_be_read_until_it_is_forgotten() {
        let mut store = store();
        let first = put(&mut store, "a", 1);
        let second = put(&mut store, "b", 1);
        store.take(&Actor::new("test"), &Key::cluster(Kind::NODE, "a"));
        put(&mut store, "b", 2);

        assert_eq!(names(&store.list_at(Kind::NODE, first).unwrap()), ["a"]);
        assert_eq!(names(&store.list_at(Kind::NODE, second).unwrap()), ["a", "b"]);
        assert_eq!(names(&store.list_at(Kind::NODE, store.revision()).unwrap()), ["b"]);
        assert_eq!(store.get_at(&Key::cluster(Kind::NODE, "b"), second).unwrap().unwrap()["value"], 1);
        assert!(store.get_at(&Key::cluster(Kind::NODE, "b"), first).unwrap().is_none());

        put(&mut store, "c", 1);
        put(&mut store, "d", 1);
        assert_eq!(store.list_at(Kind::NODE, first).unwrap_err().code, 410);
        assert_eq!(names(&store.list_at(Kind::NODE, second + 1).unwrap()), ["b"]);
    }

    #[tokio::test]
    async fn names_and_uids_are_the_same_in_each_run_and_never_twice() {
        let (mut one, mut two) = (store(), store());
        let given: Vec<String> = (0..50).map(|_| one.new_suffix()).collect();
        assert_eq!(given, (0..50).map(|_| two.new_suffix()).collect::<Vec<_>>());
        assert_ne!(one.new_uid(), one.new_uid());
        assert!(given.iter().all(|suffix| suffix.len() == 5));
    }

    #[tokio::test]
    async fn observers_see_the_store_as_the_write_left_it() {
        let mut store = store();
        let (tell, told) = std::sync::mpsc::channel();
        store.observe(Box::new(move |store, change| {
            assert_eq!(store.get(&change.key), change.new.as_ref());
            tell.send((change.revision, change.old.is_some(), change.new.is_some())).unwrap();
        }));
        put(&mut store, "a", 1);
        put(&mut store, "a", 2);
        store.take(&Actor::new("test"), &Key::cluster(Kind::NODE, "a"));
        assert_eq!(told.try_iter().collect::<Vec<_>>(), [(2, false, true), (3, true, true), (4, true, false)]);
    }
}
