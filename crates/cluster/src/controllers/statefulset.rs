//! StatefulSets: at most one pod per identity, in order.
//!
//! Promise: a pod is made only when no object bears its name any more. That is the promise that keeps a database from
//! running twice, and that leaves it down for ever when its node is gone.
//! Left out: updates of the template, the retention of claims.

use std::time::Duration;

use serde_json::{Value, json};

use super::{WorkQueue, pod_from, pods_of, tell};
use crate::{
    api::{Change, DeleteOptions, Key, Kind, Object, metadata},
    nature::{Actor, Ctx, Hears},
    objects::{controlled_by, is_finished, is_ready, items, list_at, map_at, number, text},
};

/// The controller.
#[derive(Default)]
pub(crate) struct StatefulSets {
    queue: WorkQueue,
}

impl StatefulSets {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::STATEFUL_SET, Kind::POD]);
}

impl Actor for StatefulSets {
    fn notice(&mut self, change: &Change) -> bool {
        self.queue.notice_workload(Kind::STATEFUL_SET, change)
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        for key in self.queue.take(Kind::STATEFUL_SET, ctx) {
            if let Some(set) = ctx.api.get(&key) {
                if !metadata::is_deleting(&set) {
                    reconcile(&set, ctx);
                }
                report(&key, &set, ctx);
            }
        }
        None
    }
}

fn reconcile(set: &Value, ctx: &Ctx<'_>) {
    let replicas = number(set, "/spec/replicas").unwrap_or(1);
    let first = number(set, "/spec/ordinals/start").unwrap_or_default();
    let in_order = text(set, "/spec/podManagementPolicy") != "Parallel";
    for ordinal in first..first + replicas {
        let settled = match mine(set, ordinal, ctx) {
            Found::Nothing => {
                make(set, ordinal, ctx);
                false
            }
            Found::Foreign => false,
            Found::Pod(key, pod) if is_finished(&pod) => {
                if !metadata::is_deleting(&pod) {
                    // It has ended, so this takes it away at once; the next look makes another.
                    delete(set, &key, &pod, ctx);
                }
                false
            }
            Found::Pod(_, pod) => is_ready(&pod) && !metadata::is_deleting(&pod),
        };
        if in_order && !settled {
            return;
        }
    }
    scale_down(set, first..first + replicas, in_order, ctx);
}

enum Found {
    Nothing,
    /// Somebody else's pod has the name.
    Foreign,
    Pod(Key, Object),
}

fn mine(set: &Value, ordinal: u64, ctx: &Ctx<'_>) -> Found {
    let key = Key::new(Kind::POD, metadata::namespace(set), &format!("{}-{ordinal}", metadata::name(set)));
    match ctx.api.get(&key) {
        None => Found::Nothing,
        Some(pod) if controlled_by(&pod, "StatefulSet") == Some(metadata::uid(set)) => Found::Pod(key, pod),
        Some(_) => Found::Foreign,
    }
}

fn make(set: &Value, ordinal: u64, ctx: &Ctx<'_>) {
    let name = format!("{}-{ordinal}", metadata::name(set));
    let mut pod = pod_from(set);
    pod["metadata"]["name"] = name.clone().into();
    let labels = map_at(&mut pod, &["metadata", "labels"]);
    labels["statefulset.kubernetes.io/pod-name"] = name.clone().into();
    labels["apps.kubernetes.io/pod-index"] = ordinal.to_string().into();
    labels["controller-revision-hash"] = format!("{}-1", metadata::name(set)).into();
    pod["spec"]["hostname"] = name.clone().into();
    for template in items(set, "/spec/volumeClaimTemplates") {
        let claim = format!("{}-{name}", metadata::name(template));
        make_claim(set, template, &claim, ctx);
        if let Some(volumes) = list_at(&mut pod, &["spec", "volumes"]) {
            volumes.retain(|volume| volume["name"] != metadata::name(template));
            volumes.push(json!({"name": metadata::name(template), "persistentVolumeClaim": {"claimName": claim}}));
        }
    }
    if ctx.api.create(Kind::POD, pod).is_ok() {
        let what = format!("create Pod {name} in StatefulSet {} successful", metadata::name(set));
        tell(ctx, set, false, "SuccessfulCreate", &what);
    }
}

fn make_claim(set: &Value, template: &Value, name: &str, ctx: &Ctx<'_>) {
    let namespace = metadata::namespace(set);
    let claim = json!({
        "metadata": {"name": name, "namespace": namespace, "labels": set.pointer("/spec/selector/matchLabels")},
        "spec": template["spec"],
    });
    // One that is there already is the one: that is how data outlives its pod.
    drop(ctx.api.create(Kind::PERSISTENT_VOLUME_CLAIM, claim));
}

/// From the highest ordinal down, one at a time where order matters.
fn scale_down(set: &Value, wanted: std::ops::Range<u64>, in_order: bool, ctx: &Ctx<'_>) {
    let ordinal = |key: &Key| key.name.rsplit('-').next().and_then(|text| text.parse::<u64>().ok());
    let mut surplus: Vec<(u64, Key, Object)> = pods_of(set, ctx)
        .into_iter()
        .filter_map(|(key, pod)| Some((ordinal(&key)?, key, pod)))
        .filter(|(ordinal, ..)| !wanted.contains(ordinal))
        .collect();
    surplus.sort_by_key(|(ordinal, ..)| std::cmp::Reverse(*ordinal));
    for (_, key, pod) in surplus.into_iter().take(if in_order { 1 } else { usize::MAX }) {
        if !metadata::is_deleting(&pod) {
            delete(set, &key, &pod, ctx);
        }
    }
}

fn delete(set: &Value, key: &Key, pod: &Value, ctx: &Ctx<'_>) {
    let options = DeleteOptions { uid: Some(metadata::uid(pod).to_owned()), ..DeleteOptions::default() };
    if ctx.api.delete(key, &options).is_ok() {
        let what = format!("delete Pod {} in StatefulSet {} successful", key.name, metadata::name(set));
        tell(ctx, set, false, "SuccessfulDelete", &what);
    }
}

fn report(key: &Key, set: &Value, ctx: &Ctx<'_>) {
    let pods = pods_of(set, ctx);
    let count = |test: &dyn Fn(&Value) -> bool| pods.iter().filter(|(_, pod)| test(pod)).count();
    let live = count(&|pod| !is_finished(pod) && !metadata::is_deleting(pod));
    let ready = count(&|pod| is_ready(pod) && !metadata::is_deleting(pod));
    let revision = format!("{}-1", metadata::name(set));
    let status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": pods.len(), "readyReplicas": ready,
        "availableReplicas": ready, "currentReplicas": live, "updatedReplicas": live, "collisionCount": 0,
        "currentRevision": revision, "updateRevision": revision,
    });
    // Deleted meanwhile: nobody reads it.
    drop(ctx.api.update(key, |set| set["status"] = status));
}
