//! Attach/detach: brings volumes to the nodes whose pods need them, and takes them away again.
//!
//! Promise: it acts on its own memory of what is attached, not on the attachments in the API: one that somebody deletes
//! by hand is missed only by the sync, once a minute. A volume is taken from a node when no pod there wants it and
//! - the node's last status does not list it in `volumesInUse`, or
//! - the node is not ready and six minutes have passed, or
//! - the node bears the out-of-service taint.
//!
//! Upstream looks every 100 ms; here a look follows every change that could matter, and the timers.

mod desired;
mod memory;

use std::{collections::BTreeSet, time::Duration};

use self::{
    desired::Desired,
    memory::{Attached, Op, Place},
};
use super::{WorkQueue, pod_gc::OUT_OF_SERVICE, tell};
use crate::{
    api::{Change, DeleteOptions, Key, Kind, metadata},
    nature::{Actor, Ctx, Hears, fetch},
    objects::{flag, has_taint, is_ready, items, list_at, text},
    truth::Name,
    volumes::PodVolume,
};

/// `ReconcilerMaxWaitForUnmountDuration`: hard-coded upstream.
const MAX_WAIT_FOR_UNMOUNT: Duration = Duration::from_mins(6);
/// `--attach-detach-reconcile-sync-period`.
const SYNC: Duration = Duration::from_mins(1);
/// Waits after a failure: doubled each time (upstream's `exponentialbackoff`).
const BACKOFF: Duration = Duration::from_millis(500);
const BACKOFF_LIMIT: Duration = Duration::from_secs(122);

/// The controller.
#[derive(Default)]
pub(crate) struct AttachDetach {
    started: bool,
    desired: Desired,
    attached: std::collections::BTreeMap<Place, Attached>,
    nodes: WorkQueue,
    /// Nodes whose `volumesAttached` has to be written.
    unreported: BTreeSet<Name>,
    sync_at: Duration,
    /// Places for which the Multi-Attach error was told.
    told: BTreeSet<Place>,
}

impl AttachDetach {
    pub(crate) const HEARS: Hears =
        Hears::Kinds(&[Kind::POD, Kind::NODE, Kind::VOLUME_ATTACHMENT, Kind::PERSISTENT_VOLUME_CLAIM]);
}

impl Actor for AttachDetach {
    fn notice(&mut self, change: &Change) -> bool {
        match change.key.kind {
            // Every event of a Node counts, whoever wrote it and whatever changed: that is what makes it look again.
            Kind::NODE => {
                if change.old.is_none() {
                    // A Node that is made anew knows nothing of what is attached: upstream writes it down again.
                    self.unreported.insert(Name::from(&*change.key.name));
                }
                self.nodes.add(change.key.clone())
            }
            Kind::POD => self.desired.notice_pod(change),
            Kind::PERSISTENT_VOLUME_CLAIM => self.desired.has_open_ends(),
            _ => true,
        }
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        if !std::mem::replace(&mut self.started, true) {
            self.attached = memory::rebuild(ctx);
            self.sync_at = ctx.now + SYNC;
        }
        self.desired.refresh(ctx);
        self.read_volumes_in_use(ctx);
        self.follow_operations(ctx);
        if self.sync_at <= ctx.now {
            self.sync(ctx);
            self.sync_at = ctx.now + SYNC;
        }
        // Detach first, so that a volume that moves is free.
        let places: Vec<Place> = self.attached.keys().cloned().collect();
        for place in places {
            if self.desired.wants(&place) {
                self.keep(&place);
            } else {
                self.detach(&place, ctx);
            }
        }
        for (place, volume) in self.desired.all() {
            self.attach(&place, &volume, ctx);
        }
        self.report(ctx);
        let retries = self.attached.iter().filter_map(|(place, attached)| self.due(place, attached, ctx.now));
        retries.chain([self.sync_at]).min().map(|due| due.saturating_sub(ctx.now))
    }
}

impl AttachDetach {
    /// Takes over what nodes say about the volumes that they have mounted.
    fn read_volumes_in_use(&mut self, ctx: &Ctx<'_>) {
        for (_, node) in fetch(ctx.api, &self.nodes.take(Kind::NODE, ctx)) {
            let in_use: BTreeSet<&str> =
                items(&node, "/status/volumesInUse").filter_map(serde_json::Value::as_str).collect();
            let here = self.attached.iter_mut().filter(|((_, at), _)| **at == *metadata::name(&node));
            for ((volume, _), attached) in here {
                attached.mounted = in_use.contains(volume.as_str());
            }
        }
    }

    /// Looks what became of the attachments that are on their way.
    fn follow_operations(&mut self, ctx: &Ctx<'_>) {
        let mut gone = Vec::new();
        for (place, attached) in &mut self.attached {
            let attachment = ctx.api.get(&attached.attachment);
            let error = |pointer: &str| attachment.as_ref().is_some_and(|object| object.pointer(pointer).is_some());
            match attached.op {
                Op::Attaching if attachment.as_ref().is_some_and(|object| flag(object, "/status/attached")) => {
                    attached.succeeded();
                    self.unreported.insert(Name::clone(&place.1));
                }
                Op::Attaching if attachment.is_none() || error("/status/attachError") => attached.failed(ctx.now),
                Op::Detaching if attachment.is_none() => gone.push(place.clone()),
                Op::Detaching if error("/status/detachError") => {
                    attached.failed(ctx.now);
                    attached.reported = attached.confirmed;
                    self.unreported.insert(Name::clone(&place.1));
                }
                Op::Idle | Op::Attaching | Op::Detaching => {}
            }
        }
        for place in gone {
            self.forget(&place);
        }
    }

    fn forget(&mut self, place: &Place) {
        self.attached.remove(place);
        self.unreported.insert(Name::clone(&place.1));
        self.told.retain(|(volume, _)| *volume != place.0);
    }

    /// Forgets what is no longer attached by the API's word, though nobody here detached it.
    fn sync(&mut self, ctx: &Ctx<'_>) {
        let lost = |attached: &Attached| {
            let attachment = ctx.api.get(&attached.attachment);
            attached.op == Op::Idle && !attachment.is_some_and(|object| flag(&object, "/status/attached"))
        };
        let lost: Vec<Place> =
            self.attached.iter().filter(|(_, attached)| lost(attached)).map(|(place, _)| place.clone()).collect();
        for place in lost {
            self.forget(&place);
        }
    }

    /// Somebody wants it again: the clock of its detach starts anew.
    fn keep(&mut self, place: &Place) {
        if let Some(attached) = self.attached.get_mut(place)
            && attached.unwanted_since.take().is_some()
            && attached.op == Op::Idle
            && attached.confirmed
            && !std::mem::replace(&mut attached.reported, true)
        {
            self.unreported.insert(Name::clone(&place.1));
        }
    }

    fn detach(&mut self, place: &Place, ctx: &Ctx<'_>) {
        let Some(attached) = self.attached.get_mut(place) else { return };
        let since = *attached.unwanted_since.get_or_insert(ctx.now);
        if attached.op != Op::Idle || attached.retry_at > ctx.now {
            return;
        }
        let node_key = Key::cluster(Kind::NODE, &place.1);
        let node = ctx.api.get(&node_key);
        let timed_out = since + MAX_WAIT_FOR_UNMOUNT <= ctx.now;
        let healthy = node.as_ref().is_some_and(|node| is_ready(node));
        let out_of_service = node.as_ref().is_some_and(|node| has_taint(node, OUT_OF_SERVICE));
        let by_force = timed_out && !healthy;
        if attached.mounted && !by_force && !out_of_service {
            return;
        }
        // The node has to read that it is no longer safe to mount, before it is no longer safe.
        if std::mem::replace(&mut attached.reported, false) {
            self.unreported.insert(Name::clone(&place.1));
            self.report(ctx);
        }
        let Some(attached) = self.attached.get_mut(place) else { return };
        let in_use = node.is_some_and(|node| items(&node, "/status/volumesInUse").any(|name| name == place.0.as_str()));
        if in_use && !timed_out && !out_of_service {
            attached.failed(ctx.now);
            attached.reported = attached.confirmed;
            self.unreported.insert(Name::clone(&place.1));
            return;
        }
        attached.op = Op::Detaching;
        match ctx.api.delete(&attached.attachment, &DeleteOptions::default()) {
            Ok(deleted) if !deleted.is_gone() => {}
            // Gone at once, or gone before.
            _ => self.forget(place),
        }
    }

    fn attach(&mut self, place: &Place, volume: &PodVolume, ctx: &Ctx<'_>) {
        if let Some(attached) = self.attached.get(place)
            && (attached.confirmed || attached.op != Op::Idle || attached.retry_at > ctx.now)
        {
            return;
        }
        let elsewhere = self.attached.keys().any(|(name, node)| *name == place.0 && *node != place.1);
        if elsewhere && !volume.many_nodes {
            self.complain(place, ctx);
            return;
        }
        let attached = self.attached.entry(place.clone()).or_insert_with(|| Attached::new(volume, &place.1));
        let attachment = serde_json::json!({
            "metadata": {"name": &*attached.attachment.name},
            "spec": {"attacher": volume.driver, "nodeName": place.1.as_ref(), "source": {"persistentVolumeName": volume.pv}},
        });
        let made = ctx.api.create(Kind::VOLUME_ATTACHMENT, attachment);
        let existing = ctx.api.get(&attached.attachment);
        match existing {
            // Left over from before: it has to go first.
            Some(object) if made.is_err() && metadata::is_deleting(&object) => attached.failed(ctx.now),
            Some(object) if flag(&object, "/status/attached") => {
                attached.succeeded();
                self.unreported.insert(Name::clone(&place.1));
            }
            Some(_) => attached.op = Op::Attaching,
            None => attached.failed(ctx.now),
        }
    }

    fn complain(&mut self, place: &Place, ctx: &Ctx<'_>) {
        if !self.told.insert(place.clone()) {
            return;
        }
        for pod in self.desired.pods_at(place).filter_map(|key| ctx.api.get(key)) {
            let why = format!(
                "Multi-Attach error for volume \"{}\" Volume is already exclusively attached to one node and can't be \
                 attached to another",
                place.0
            );
            tell(ctx, &pod, true, "FailedAttachVolume", &why);
        }
    }

    /// Writes `volumesAttached` of the nodes for which it changed.
    fn report(&mut self, ctx: &Ctx<'_>) {
        for node in std::mem::take(&mut self.unreported) {
            let here = self.attached.iter().filter(|((_, at), attached)| *at == node && attached.reported);
            let names: Vec<serde_json::Value> =
                here.map(|((name, _), _)| serde_json::json!({"name": name, "devicePath": ""})).collect();
            // A Node that is gone reads nothing.
            drop(ctx.api.update(&Key::cluster(Kind::NODE, &node), |node| {
                if let Some(attached) = list_at(node, &["status", "volumesAttached"]) {
                    *attached = names;
                }
            }));
        }
    }

    /// When a place has to be looked at again without anything having changed.
    fn due(&self, place: &Place, attached: &Attached, now: Duration) -> Option<Duration> {
        if attached.op != Op::Idle {
            return None;
        }
        let retry = (attached.retry_at > now).then_some(attached.retry_at);
        let timeout = attached.unwanted_since.map(|since| since + MAX_WAIT_FOR_UNMOUNT).filter(|due| *due > now);
        if self.desired.wants(place) { retry } else { [retry, timeout].into_iter().flatten().min() }
    }
}

fn place_of(volume: &PodVolume, pod: &serde_json::Value) -> Place {
    (volume.unique.clone(), text(pod, "/spec/nodeName").into())
}
