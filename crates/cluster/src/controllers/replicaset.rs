//! ReplicaSets: so many pods, whoever they are.
//!
//! Promise: a pod that is being deleted no longer counts, so its replacement comes at once, wherever the old one runs.

use std::time::Duration;

use serde_json::{Value, json};

use super::{WorkQueue, pod_from, pods_of, tell};
use crate::{
    api::{Change, DeleteOptions, Key, Kind, Object, metadata},
    nature::{Actor, Ctx, Hears},
    objects::{is_finished, is_ready, number, text},
};

/// The controller.
#[derive(Default)]
pub(crate) struct ReplicaSets {
    queue: WorkQueue,
}

impl ReplicaSets {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::REPLICA_SET, Kind::POD]);
}

impl Actor for ReplicaSets {
    fn notice(&mut self, change: &Change) -> bool {
        self.queue.notice_workload(Kind::REPLICA_SET, change)
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        for key in self.queue.take(Kind::REPLICA_SET, ctx) {
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

fn active(set: &Value, ctx: &Ctx<'_>) -> Vec<(Key, Object)> {
    let mut pods = pods_of(set, ctx);
    pods.retain(|(_, pod)| !is_finished(pod) && !metadata::is_deleting(pod));
    pods
}

fn reconcile(set: &Value, ctx: &Ctx<'_>) {
    let wanted = usize::try_from(number(set, "/spec/replicas").unwrap_or(1)).unwrap_or(usize::MAX);
    let mut pods = active(set, ctx);
    for _ in pods.len()..wanted {
        let mut pod = pod_from(set);
        pod["metadata"]["generateName"] = format!("{}-", metadata::name(set)).into();
        match ctx.api.create(Kind::POD, pod) {
            Ok(pod) => tell(ctx, set, false, "SuccessfulCreate", &format!("Created pod: {}", metadata::name(&pod))),
            Err(why) => {
                tell(ctx, set, true, "FailedCreate", &format!("Error creating: {}", why.message));
                return;
            }
        }
    }
    // Those first that are worth least: without a node, then not ready.
    pods.sort_by_key(|(_, pod)| (!text(pod, "/spec/nodeName").is_empty(), is_ready(pod)));
    let surplus = pods.len().saturating_sub(wanted);
    for (key, pod) in pods.into_iter().take(surplus) {
        let options = DeleteOptions { uid: Some(metadata::uid(&pod).to_owned()), ..DeleteOptions::default() };
        if ctx.api.delete(&key, &options).is_ok() {
            tell(ctx, set, false, "SuccessfulDelete", &format!("Deleted pod: {}", key.name));
        }
    }
}

fn report(key: &Key, set: &Value, ctx: &Ctx<'_>) {
    let pods = active(set, ctx);
    let ready = pods.iter().filter(|(_, pod)| is_ready(pod)).count();
    let status = json!({
        "observedGeneration": set["metadata"]["generation"], "replicas": pods.len(), "readyReplicas": ready,
        "availableReplicas": ready, "fullyLabeledReplicas": pods.len(),
    });
    // Deleted meanwhile: nobody reads it.
    drop(ctx.api.update(key, |set| set["status"] = status));
}
