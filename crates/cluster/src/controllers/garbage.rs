//! Garbage collection: what nobody owns any more goes.
//!
//! Promise: an object goes when every owner that it names is gone; foreground deletion waits for the dependents that
//! block it; orphans keep their life and lose the reference.

use std::{collections::BTreeSet, time::Duration};

use serde_json::Value;

use crate::{
    api::{Change, DeleteOptions, Key, Propagation, metadata},
    nature::{Actor, Ctx, Hears, fetch},
    objects::{flag, items, list_at, text},
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The controller.
#[derive(Default)]
pub(crate) struct Garbage {
    started: bool,
    /// Objects that may have lost their last owner.
    suspects: BTreeSet<Key>,
    /// UIDs of owners that are gone.
    lost: BTreeSet<String>,
    /// Owners that wait for their dependents.
    waiting: BTreeSet<Key>,
}

impl Garbage {
    pub(crate) const HEARS: Hears = Hears::Everything;
}

impl Actor for Garbage {
    fn notice(&mut self, change: &Change) -> bool {
        let Some(new) = &change.new else {
            if let Some(old) = &change.old {
                self.lost.insert(metadata::uid(old).to_owned());
            }
            return true;
        };
        let held =
            metadata::is_deleting(new) && metadata::finalizers(new).any(|name| name == ORPHAN || name == FOREGROUND);
        if held {
            self.waiting.insert(change.key.clone());
        }
        let adopted = change.old.is_none() && items(new, "/metadata/ownerReferences").next().is_some();
        if adopted {
            self.suspects.insert(change.key.clone());
        }
        held || adopted
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        if !std::mem::replace(&mut self.started, true) {
            self.look_at_everything(ctx);
        }
        for uid in std::mem::take(&mut self.lost) {
            self.suspects.extend(ctx.index.dependents(&uid).iter().cloned());
        }
        for (key, object) in fetch(ctx.api, &std::mem::take(&mut self.suspects)) {
            collect(&key, &object, ctx);
        }
        for (key, owner) in fetch(ctx.api, &self.waiting.clone()) {
            if settle(&key, &owner, ctx) {
                self.waiting.remove(&key);
            }
        }
        self.waiting.retain(|key| ctx.api.get(key).is_some());
        None
    }
}

impl Garbage {
    fn look_at_everything(&mut self, ctx: &Ctx<'_>) {
        ctx.api.read(|store| {
            for definition in store.registry().all() {
                for (key, object) in store.list(definition.kind) {
                    if items(object, "/metadata/ownerReferences").next().is_some() {
                        self.suspects.insert(key.clone());
                    }
                    if metadata::is_deleting(object) && metadata::finalizers(object).next().is_some() {
                        self.waiting.insert(key.clone());
                    }
                }
            }
        });
    }
}

/// Deletes an object whose owners are all gone; of one with others left, forgets those that are.
fn collect(key: &Key, object: &Value, ctx: &Ctx<'_>) {
    let mut owners = items(object, "/metadata/ownerReferences").peekable();
    let some = owners.peek().is_some();
    let (left, lost): (Vec<&Value>, Vec<&Value>) =
        owners.partition(|owner| ctx.index.with_uid(text(owner, "/uid")).is_some());
    if metadata::is_deleting(object) {
        return;
    }
    if some && left.is_empty() {
        delete(key, object, ctx);
    } else if !lost.is_empty() {
        // It stays for the sake of the others, and no longer speaks of those that are gone.
        drop(ctx.api.update(key, |object| {
            if let Some(owners) = list_at(object, &["metadata", "ownerReferences"]) {
                owners.retain(|owner| !lost.iter().any(|lost| lost["uid"] == owner["uid"]));
            }
        }));
    }
}

fn delete(key: &Key, object: &Value, ctx: &Ctx<'_>) {
    let options = DeleteOptions {
        uid: Some(metadata::uid(object).to_owned()),
        propagation: Some(Propagation::Background),
        ..DeleteOptions::default()
    };
    // Gone, or another by now: then it is not ours to take.
    drop(ctx.api.delete(key, &options));
}

/// Does for an owner what its deletion asked for; says whether that is finished.
fn settle(key: &Key, owner: &Value, ctx: &Ctx<'_>) -> bool {
    let uid = metadata::uid(owner);
    let dependents = fetch(ctx.api, ctx.index.dependents(uid));
    let has = |finalizer: &str| metadata::finalizers(owner).any(|name| name == finalizer);
    if has(ORPHAN) {
        for (key, _) in &dependents {
            drop(ctx.api.update(key, |object| {
                if let Some(owners) = list_at(object, &["metadata", "ownerReferences"]) {
                    owners.retain(|owner| owner["uid"] != uid);
                }
            }));
        }
        release(key, ORPHAN, ctx);
        return true;
    }
    if !has(FOREGROUND) {
        return true;
    }
    for (key, object) in dependents.iter().filter(|(_, object)| !metadata::is_deleting(object)) {
        delete(key, object, ctx);
    }
    let blocks = |object: &Value| {
        items(object, "/metadata/ownerReferences")
            .any(|owner| owner["uid"] == uid && flag(owner, "/blockOwnerDeletion"))
    };
    // Read again: what was deleted without grace is gone by now.
    let left = fetch(ctx.api, dependents.iter().map(|(key, _)| key));
    if left.iter().any(|(_, object)| blocks(object)) {
        return false;
    }
    release(key, FOREGROUND, ctx);
    true
}

fn release(key: &Key, finalizer: &str, ctx: &Ctx<'_>) {
    drop(ctx.api.update(key, |object| {
        if let Some(finalizers) = list_at(object, &["metadata", "finalizers"]) {
            finalizers.retain(|name| name != finalizer);
        }
    }));
}
