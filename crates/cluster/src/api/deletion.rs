//! DELETE: at once, with grace, or when the finalizers are gone.
//!
//! Promise: pods go as upstream lets them go. A grace period is given once and can only be shortened; a pod that no
//! kubelet has to stop (not scheduled, or finished) needs none.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{
    kinds::{Definition, Kind},
    metadata,
    status::Status,
    store::{Actor, Key, Object, Store},
};
use crate::clock::seconds;

/// How a deletion is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteOptions {
    /// Seconds that a pod gets; nothing means its own.
    pub grace: Option<i64>,
    /// Only the object with this UID.
    pub uid: Option<String>,
    /// Only the object in this version.
    pub resource_version: Option<String>,
    /// What becomes of its dependents.
    pub propagation: Option<Propagation>,
    /// Everything but the deletion itself.
    pub dry_run: bool,
}

/// What becomes of the dependents of a deleted object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Propagation {
    /// They stay, without an owner.
    Orphan,
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
}

/// What a deletion did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Deleted {
    /// The object is gone; this was it.
    Gone(Object),
    /// The object has a deletionTimestamp and waits for its kubelet or its finalizers.
    Marked(Object),
}

impl Deleted {
    /// The object, gone or not.
    pub fn object(&self) -> &Object {
        match self {
            Self::Gone(object) | Self::Marked(object) => object,
        }
    }

    /// Whether it is gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone(_))
    }
}

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

impl Store {
    pub(crate) fn delete(&mut self, by: &Actor, key: &Key, options: &DeleteOptions) -> Result<Deleted, Status> {
        let (definition, old) = self.existing(key)?;
        meant(&definition, &old, options)?;

        let mut new = Value::clone(&old);
        let now = self.clock.now();
        let step = match key.kind {
            Kind::POD => with_grace(&mut new, options, now),
            Kind::NAMESPACE => close_namespace(&mut new, now),
            _ => Step::Ungraceful,
        };
        if step == Step::Pending {
            return Ok(Deleted::Marked(old));
        }
        let held = hold_for_dependents(&mut new, options.propagation.or_else(|| by_default(key.kind, &old)));
        if held && step == Step::Ungraceful {
            mark(&mut new, now);
        }
        let stays = held || matches!(step, Step::Grace(1..) | Step::Content);
        if options.dry_run {
            return Ok(if stays { Deleted::Marked(new.into()) } else { Deleted::Gone(new.into()) });
        }
        // Upstream writes the mark even when the object goes with the next write: watchers see both.
        let marked = if new == *old { old } else { self.put(by, key.clone(), new) };
        if stays {
            return Ok(Deleted::Marked(marked));
        }
        if key.kind == Kind::CUSTOM_RESOURCE_DEFINITION {
            self.drop_kind(by, &marked);
        }
        self.take(by, key);
        Ok(Deleted::Gone(marked))
    }

    /// A definition takes its objects with it.
    fn drop_kind(&mut self, by: &Actor, definition: &Value) {
        let text = |pointer| definition.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let Some(kind) = self.registry.named(text("/spec/group"), text("/spec/names/kind")).map(|found| found.kind)
        else {
            return;
        };
        let keys: Vec<Key> = self.list(kind).map(|(key, _)| key.clone()).collect();
        for key in keys {
            self.take(by, &key);
        }
        self.registry.forget(kind);
    }
}

/// Whether the caller means the object that is there.
fn meant(definition: &Definition, object: &Value, options: &DeleteOptions) -> Result<(), Status> {
    let refuse = |field: &str, expected: &str, found: &str, hint: &str| {
        let why = format!(
            "the {field} in the precondition ({expected}) does not match the {field} in record ({found}). \
             The object might have been {hint}"
        );
        // Upstream names the kind here, not the plural as in other conflicts.
        Err(Status::conflict_on(&definition.name, definition, metadata::name(object), &why))
    };
    let uid = metadata::uid(object);
    if let Some(expected) = options.uid.as_deref().filter(|expected| *expected != uid) {
        return refuse("UID", expected, uid, "deleted and then recreated");
    }
    let version = metadata::text(object, "resourceVersion");
    if let Some(expected) = options.resource_version.as_deref().filter(|expected| *expected != version) {
        return refuse("ResourceVersion", expected, version, "modified");
    }
    Ok(())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// This kind knows no grace.
    Ungraceful,
    /// The object is marked with this grace now.
    Grace(i64),
    /// It was marked before, and this request changes nothing.
    Pending,
    /// It goes when its content is gone.
    Content,
}

/// Marks a pod; upstream's `rest.BeforeDelete` and the pod strategy's `CheckGracefulDelete`.
fn with_grace(pod: &mut Value, options: &DeleteOptions, now: Timestamp) -> Step {
    if metadata::is_deleting(pod) {
        return shorten(pod, options.grace);
    }
    let own = pod.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let grace = if needs_no_grace(pod) { 0 } else { options.grace.or(own).unwrap_or(0) };
    let grace = if grace < 0 { 1 } else { grace };
    set_deadline(pod, now, grace);
    let generation = metadata::generation(pod);
    if generation > 0 {
        metadata::set(pod, "generation", generation + 1);
    }
    Step::Grace(grace)
}

/// No kubelet has it, or its kubelet is done with it.
fn needs_no_grace(pod: &Value) -> bool {
    let text = |pointer| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    text("/spec/nodeName").is_empty() || matches!(text("/status/phase"), "Failed" | "Succeeded")
}

fn shorten(pod: &mut Value, asked: Option<i64>) -> Step {
    let given = metadata::grace(pod).unwrap_or_default();
    if given == 0 {
        return Step::Ungraceful;
    }
    match asked.map(|asked| if asked < 0 { 1 } else { asked }) {
        Some(asked) if asked < given => {
            let deadline = metadata::text(pod, "deletionTimestamp").parse::<Timestamp>().unwrap_or_default();
            let began = deadline.checked_sub(SignedDuration::from_secs(given)).unwrap_or(deadline);
            set_deadline(pod, began, asked);
            Step::Grace(asked)
        }
        _ => Step::Pending,
    }
}

fn set_deadline(object: &mut Value, began: Timestamp, grace: i64) {
    let deadline = began.checked_add(SignedDuration::from_secs(grace)).unwrap_or(Timestamp::MAX);
    metadata::set(object, "deletionTimestamp", seconds(deadline));
    metadata::set(object, "deletionGracePeriodSeconds", grace);
}

/// A namespace that still may hold something is emptied by its controller first.
fn close_namespace(namespace: &mut Value, now: Timestamp) -> Step {
    let holds = namespace.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    if !holds {
        return Step::Ungraceful;
    }
    if metadata::is_deleting(namespace) {
        return Step::Pending;
    }
    metadata::set(namespace, "deletionTimestamp", seconds(now));
    namespace["status"]["phase"] = "Terminating".into();
    Step::Content
}

/// Whoever deletes a Job over `batch/v1` and says nothing about its pods leaves them behind; kubectl does say something.
fn by_default(kind: Kind, object: &Value) -> Option<Propagation> {
    let said = metadata::finalizers(object).any(|name| name == ORPHAN || name == FOREGROUND);
    (kind == Kind::JOB && !said).then_some(Propagation::Orphan)
}

/// Writes the garbage collector's finalizers as the options say; tells whether any finalizer is there.
fn hold_for_dependents(object: &mut Value, propagation: Option<Propagation>) -> bool {
    let mut names: Vec<String> = metadata::finalizers(object).map(str::to_owned).collect();
    if let Some(propagation) = propagation {
        names.retain(|name| name != ORPHAN && name != FOREGROUND);
        match propagation {
            Propagation::Orphan => names.push(ORPHAN.to_owned()),
            Propagation::Foreground => names.push(FOREGROUND.to_owned()),
            Propagation::Background => {}
        }
    }
    let held = !names.is_empty();
    if held {
        metadata::set(object, "finalizers", names);
    } else {
        metadata::remove(object, "finalizers");
    }
    held
}

/// Marks an object of a kind that knows no grace; upstream's `markAsDeleting`.
fn mark(object: &mut Value, now: Timestamp) {
    let generation = metadata::generation(object);
    if !metadata::is_deleting(object) {
        if generation > 0 {
            metadata::set(object, "generation", generation + 1);
        }
        metadata::set(object, "deletionTimestamp", seconds(now));
    }
    metadata::set(object, "deletionGracePeriodSeconds", 0);
}
