//! What every informer would keep beside its cache: who is where, who belongs to whom.
//!
//! Promise: as new as the last write that the clockwork has heard of, and it hears of all before each actor acts.
//! It costs one look per write, never one per object.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::{
    api::{Api, Change, Key, Kind, Object, metadata},
    objects::{items, text},
};

type Keys = BTreeSet<Key>;

/// The shared index.
#[derive(Debug, Default)]
pub(crate) struct Index {
    pods_by_node: BTreeMap<Box<str>, Keys>,
    pods_by_claim: BTreeMap<(Box<str>, Box<str>), Keys>,
    dependents: BTreeMap<Box<str>, Keys>,
    by_uid: BTreeMap<Box<str>, Key>,
    none: Keys,
}

impl Index {
    pub(crate) fn build(api: &Api) -> Self {
        let mut index = Self::default();
        api.read(|store| {
            for definition in store.registry().all() {
                for (key, object) in store.list(definition.kind) {
                    index.put(key, object, true);
                }
            }
        });
        index
    }

    pub(crate) fn take_in(&mut self, change: &Change) {
        if let Some(old) = &change.old {
            self.put(&change.key, old, false);
        }
        if let Some(new) = &change.new {
            self.put(&change.key, new, true);
        }
    }

    /// Pods that are bound to a node, or to none if the name is empty.
    pub(crate) fn pods_on(&self, node: &str) -> &Keys {
        self.pods_by_node.get(node).unwrap_or(&self.none)
    }

    /// The names of all nodes that pods are bound to; the empty name stands for none.
    pub(crate) fn nodes_with_pods(&self) -> impl Iterator<Item = &str> {
        self.pods_by_node.keys().map(AsRef::as_ref)
    }

    /// Pods that use a claim.
    pub(crate) fn pods_with_claim(&self, namespace: &str, claim: &str) -> &Keys {
        self.pods_by_claim.get(&(namespace.into(), claim.into())).unwrap_or(&self.none)
    }

    /// Objects that name an owner with this UID.
    pub(crate) fn dependents(&self, uid: &str) -> &Keys {
        self.dependents.get(uid).unwrap_or(&self.none)
    }

    /// The object with this UID.
    pub(crate) fn with_uid(&self, uid: &str) -> Option<&Key> {
        self.by_uid.get(uid)
    }

    fn put(&mut self, key: &Key, object: &Value, there: bool) {
        let uid = metadata::uid(object);
        if there {
            self.by_uid.insert(uid.into(), key.clone());
        } else {
            self.by_uid.remove(uid);
        }
        for owner in items(object, "/metadata/ownerReferences") {
            file(&mut self.dependents, text(owner, "/uid").into(), key, there);
        }
        if key.kind == Kind::POD {
            file(&mut self.pods_by_node, text(object, "/spec/nodeName").into(), key, there);
            for claim in claims(object) {
                file(&mut self.pods_by_claim, (key.namespace.clone(), claim.into()), key, there);
            }
        }
    }
}

fn file<K: Ord>(drawer: &mut BTreeMap<K, Keys>, label: K, key: &Key, there: bool) {
    if there {
        drawer.entry(label).or_default().insert(key.clone());
    } else if let Some(keys) = drawer.get_mut(&label) {
        keys.remove(key);
        if keys.is_empty() {
            drawer.remove(&label);
        }
    }
}

/// The names of the claims that a pod uses.
pub(crate) fn claims(pod: &Value) -> impl Iterator<Item = &str> {
    items(pod, "/spec/volumes")
        .map(|volume| text(volume, "/persistentVolumeClaim/claimName"))
        .filter(|name| !name.is_empty())
}

/// The objects at these places that are still there.
pub(crate) fn fetch<'a>(api: &Api, keys: impl IntoIterator<Item = &'a Key>) -> Vec<(Key, Object)> {
    api.read(|store| keys.into_iter().filter_map(|key| Some((key.clone(), store.get(key)?.clone()))).collect())
}
