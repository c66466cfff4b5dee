//! The built-in controllers, one file each, with upstream's defaults as constants.
//!
//! Each is as small as it can be while it does to the objects what upstream does, at the time at which upstream does it.
//! What is left out is left out of the file's own doc, too: nobody here does rolling updates, quotas or preemption.

mod attach_detach;
mod csi_attacher;
mod garbage;
mod job;
mod node_lifecycle;
mod node_zones;
mod pod_gc;
mod pv_binder;
mod replicaset;
mod scheduler;
mod statefulset;
mod taint_eviction;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::{
    api::{Change, Key, Kind, Object, metadata},
    clock::{micros, seconds},
    nature::{Ctx, Nature, fetch},
    objects::{at, controller, owner_reference, set_condition, text, workload_kind},
    truth::Daemon,
};

/// Gives every controller its seat.
pub(crate) fn seat_all(nature: &mut Nature) {
    use Daemon::{ControllerManager, Csi, Scheduler};
    macro_rules! seat {
        ($($name:literal $daemon:ident $actor:ty;)*) => {
            $(nature.seat($name, Some($daemon), &<$actor>::HEARS, Box::new(|| Box::<$actor>::default()));)*
        };
    }
    seat! {
        "node-controller" ControllerManager node_lifecycle::NodeLifecycle;
        "taint-eviction-controller" ControllerManager taint_eviction::TaintEviction;
        "pod-garbage-collector" ControllerManager pod_gc::PodGc;
        "attachdetach-controller" ControllerManager attach_detach::AttachDetach;
        "statefulset-controller" ControllerManager statefulset::StatefulSets;
        "replicaset-controller" ControllerManager replicaset::ReplicaSets;
        "job-controller" ControllerManager job::Jobs;
        "generic-garbage-collector" ControllerManager garbage::Garbage;
        "kube-scheduler" Scheduler scheduler::Scheduler;
        "csi-provisioner" Csi pv_binder::PvBinder;
        "csi-attacher" Csi csi_attacher::CsiAttacher;
    }
}

/// What a controller has to look at: single objects, or everything after a start.
#[derive(Debug)]
pub(crate) struct WorkQueue {
    everything: bool,
    keys: BTreeSet<Key>,
}

impl Default for WorkQueue {
    fn default() -> Self {
        Self { everything: true, keys: BTreeSet::new() }
    }
}

impl WorkQueue {
    fn add(&mut self, key: Key) -> bool {
        self.keys.insert(key);
        true
    }

    /// Takes everything out; after a start, every object of the kind.
    fn take(&mut self, kind: Kind, ctx: &Ctx<'_>) -> BTreeSet<Key> {
        if std::mem::take(&mut self.everything) {
            self.keys.extend(ctx.api.read(|store| store.list(kind).map(|(key, _)| key.clone()).collect::<Vec<_>>()));
        }
        std::mem::take(&mut self.keys)
    }

    /// A change of a workload, or of a pod that belongs to one: look at the workload.
    fn notice_workload(&mut self, kind: Kind, change: &Change) -> bool {
        if change.key.kind == kind {
            return self.add(change.key.clone());
        }
        let owner = |pod: &Object| {
            let owner = controller(pod).filter(|owner| workload_kind(owner) == Some(kind))?;
            Some(Key::new(kind, &change.key.namespace, text(owner, "/name")))
        };
        let owners: Vec<Key> = [&change.old, &change.new].into_iter().flatten().filter_map(owner).collect();
        owners.into_iter().fold(false, |_, key| self.add(key))
    }
}

/// Whether a write changed that part of an object, or the object came or went with it.
fn differs(change: &Change, pointer: &str) -> bool {
    let before = change.old.as_ref().and_then(|old| at(old, pointer));
    let after = change.new.as_ref().and_then(|new| at(new, pointer));
    before != after
}

/// The pods of a workload.
fn pods_of(owner: &Value, ctx: &Ctx<'_>) -> Vec<(Key, Object)> {
    let keys = ctx.index.dependents(metadata::uid(owner)).iter().filter(|key| key.kind == Kind::POD);
    fetch(ctx.api, keys)
}

/// A pod as a workload's template has it.
fn pod_from(owner: &Value) -> Value {
    let template = owner.pointer("/spec/template").cloned().unwrap_or_default();
    let mut pod = json!({"metadata": template["metadata"], "spec": template["spec"]});
    if !pod["metadata"].is_object() {
        pod["metadata"] = json!({});
    }
    pod["metadata"]["namespace"] = metadata::namespace(owner).into();
    pod["metadata"]["ownerReferences"] = json!([owner_reference(owner)]);
    pod
}

/// Says in a pod's status why somebody is about to delete it.
fn mark_disrupted(ctx: &Ctx<'_>, key: &Key, reason: &str, message: &str, fail: bool) {
    let now = ctx.api.now();
    // A pod that is gone meanwhile needs no word.
    drop(ctx.api.update(key, |pod| {
        let said = [("type", "DisruptionTarget"), ("status", "True"), ("reason", reason), ("message", message)];
        set_condition(pod, now, &said);
        if fail && !crate::objects::is_finished(pod) {
            pod["status"]["phase"] = "Failed".into();
        }
    }));
}

/// Tells people what happened to an object.
fn tell(ctx: &Ctx<'_>, about: &Value, warning: bool, reason: &str, message: &str) {
    let namespace = match metadata::namespace(about) {
        "" => "default",
        named => named,
    };
    let now = ctx.api.now();
    let component = ctx.api.actor().name();
    let event = json!({
        "metadata": {"generateName": format!("{}.", metadata::name(about)), "namespace": namespace},
        "involvedObject": {
            "apiVersion": about["apiVersion"], "kind": about["kind"], "name": metadata::name(about),
            "namespace": metadata::namespace(about), "uid": metadata::uid(about),
        },
        "type": if warning { "Warning" } else { "Normal" }, "reason": reason, "message": message, "count": 1,
        "firstTimestamp": seconds(now), "lastTimestamp": seconds(now), "eventTime": micros(now),
        "source": {"component": component}, "reportingComponent": component, "reportingInstance": component,
    });
    // An Event that cannot be written changes nothing.
    drop(ctx.api.create(Kind::EVENT, event));
}
