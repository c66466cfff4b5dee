//! Volumes for claims: makes one in the storage system, and binds both.
//!
//! Promise: a claim that names our class gets a volume of its own within a second or two; a claim that is gone gives
//! its volume back when the class says Delete. A claim may also name a PersistentVolume that somebody made by hand.
//! Left out: WaitForFirstConsumer, sizes, protection finalizers.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::WorkQueue;
use crate::{
    api::{Change, DeleteOptions, Key, Kind, metadata},
    nature::{Actor, Ctx, Hears, fetch},
    objects::{items, text},
    truth::Name,
    volumes::DRIVER,
};

/// The controller.
#[derive(Default)]
pub(crate) struct PvBinder {
    queue: WorkQueue,
    /// When the storage system has made a claim's volume.
    made_at: BTreeMap<Key, Duration>,
}

impl PvBinder {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::PERSISTENT_VOLUME_CLAIM, Kind::PERSISTENT_VOLUME]);
}

impl Actor for PvBinder {
    fn notice(&mut self, change: &Change) -> bool {
        if change.key.kind == Kind::PERSISTENT_VOLUME {
            let claim = change.new.as_ref().and_then(|pv| claim_of(pv));
            return claim.is_some_and(|claim| self.queue.add(claim));
        }
        self.queue.add(change.key.clone())
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        let keys = self.queue.take(Kind::PERSISTENT_VOLUME_CLAIM, ctx);
        for key in &keys {
            if ctx.api.get(key).is_none() {
                self.made_at.remove(key);
                give_back(key, ctx);
            }
        }
        for (key, claim) in fetch(ctx.api, &keys) {
            if text(&claim, "/status/phase") == "Pending"
                && !bind_to_existing(&key, &claim, ctx)
                && is_ours(&claim, ctx)
            {
                let made_at = ctx.now + ctx.dice.millis(300, 1_500);
                self.made_at.entry(key).or_insert(made_at);
            }
        }
        let due: Vec<Key> = self.made_at.iter().filter(|(_, at)| **at <= ctx.now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.made_at.remove(&key);
            if let Some(claim) = ctx.api.get(&key) {
                provision(&key, &claim, ctx);
            }
        }
        self.made_at.values().map(|at| at.saturating_sub(ctx.now)).min()
    }
}

fn class_of(claim: &Value, ctx: &Ctx<'_>) -> Option<crate::api::Object> {
    ctx.api.get(&Key::cluster(Kind::STORAGE_CLASS, text(claim, "/spec/storageClassName")))
}

fn is_ours(claim: &Value, ctx: &Ctx<'_>) -> bool {
    class_of(claim, ctx).is_some_and(|class| text(&class, "/provisioner") == DRIVER)
}

fn claim_of(pv: &Value) -> Option<Key> {
    let claim = pv.pointer("/spec/claimRef")?;
    Some(Key::new(Kind::PERSISTENT_VOLUME_CLAIM, text(claim, "/namespace"), text(claim, "/name")))
}

/// A claim that names its volume, or that a volume names.
fn bind_to_existing(key: &Key, claim: &Value, ctx: &Ctx<'_>) -> bool {
    let named = text(claim, "/spec/volumeName").to_owned();
    let found = ctx.api.read(|store| {
        let fits = |pv: &Value| metadata::name(pv) == named || (named.is_empty() && claim_of(pv).as_ref() == Some(key));
        store.list(Kind::PERSISTENT_VOLUME).find(|(_, pv)| fits(pv)).map(|(_, pv)| pv.clone())
    });
    let Some(pv) = found else { return !named.is_empty() };
    if text(&pv, "/spec/csi/driver") == DRIVER {
        make_volume(&pv, ctx);
    }
    bind(key, claim, metadata::name(&pv), ctx);
    true
}

fn provision(key: &Key, claim: &Value, ctx: &Ctx<'_>) {
    let name = format!("pvc-{}", metadata::uid(claim));
    let reclaim = class_of(claim, ctx).map(|class| text(&class, "/reclaimPolicy").to_owned()).unwrap_or_default();
    // A name for people, and an end that no other volume had or will have.
    let uid = metadata::uid(claim);
    let handle = format!("vol-{}-{}", metadata::name(claim), &uid[uid.len().saturating_sub(4)..]);
    let pv = json!({
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": DRIVER}},
        "spec": {
            "accessModes": claim["spec"]["accessModes"], "capacity": claim["spec"]["resources"]["requests"],
            "storageClassName": claim["spec"]["storageClassName"], "persistentVolumeReclaimPolicy": reclaim,
            "csi": {"driver": DRIVER, "volumeHandle": handle, "fsType": "ext4"},
            "claimRef": {
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": &*key.namespace, "name": &*key.name,
                "uid": metadata::uid(claim),
            },
        },
    });
    if let Ok(pv) = ctx.api.create(Kind::PERSISTENT_VOLUME, pv) {
        make_volume(&pv, ctx);
        bind(key, claim, &name, ctx);
    }
}

fn make_volume(pv: &Value, ctx: &Ctx<'_>) {
    let handle = Name::from(text(pv, "/spec/csi/volumeHandle"));
    let many = items(pv, "/spec/accessModes").any(|mode| mode == "ReadWriteMany");
    ctx.truth.act(|world| world.make_volume(&handle, many));
}

fn bind(key: &Key, claim: &Value, pv: &str, ctx: &Ctx<'_>) {
    // Either may be gone meanwhile; the next look finds what is left.
    drop(ctx.api.update(&Key::cluster(Kind::PERSISTENT_VOLUME, pv), |pv| {
        pv["status"]["phase"] = "Bound".into();
        if claim_of(pv).is_none() {
            pv["spec"]["claimRef"] = json!({
                "apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": &*key.namespace, "name": &*key.name,
                "uid": metadata::uid(claim),
            });
        }
    }));
    drop(ctx.api.update(key, |claim| {
        claim["spec"]["volumeName"] = pv.into();
        claim["status"] = json!({
            "phase": "Bound", "accessModes": claim["spec"]["accessModes"],
            "capacity": claim["spec"]["resources"]["requests"],
        });
    }));
}

fn give_back(claim: &Key, ctx: &Ctx<'_>) {
    let volumes: Vec<(Key, bool)> = ctx.api.read(|store| {
        let own = store.list(Kind::PERSISTENT_VOLUME).filter(|(_, pv)| claim_of(pv).as_ref() == Some(claim));
        own.map(|(key, pv)| (key.clone(), text(pv, "/spec/persistentVolumeReclaimPolicy") == "Delete")).collect()
    });
    for (key, delete) in volumes {
        if delete {
            drop(ctx.api.delete(&key, &DeleteOptions::default()));
        } else {
            drop(ctx.api.update(&key, |pv| pv["status"]["phase"] = "Released".into()));
        }
    }
}
