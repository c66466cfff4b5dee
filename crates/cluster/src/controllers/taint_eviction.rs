//! Taint eviction: deletes the pods of a node with a NoExecute taint, each when its toleration ends.
//!
//! Promise: a pod is deleted as anybody would delete it, with its own grace; who cannot hear of it stays.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::Value;

use super::{differs, mark_disrupted, tell};
use crate::{
    api::{Change, DeleteOptions, Key, Kind, metadata},
    nature::{Actor, Ctx, Hears},
    objects::{items, number, taints, text, tolerates},
};

/// The controller.
#[derive(Default)]
pub(crate) struct TaintEviction {
    started: bool,
    nodes: BTreeSet<Key>,
    pods: BTreeSet<Key>,
    /// When which pod goes: its UID, since when it is counted, and when.
    planned: BTreeMap<Key, (String, Duration, Duration)>,
}

impl TaintEviction {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::NODE, Kind::POD]);

    fn judge(&mut self, key: &Key, ctx: &Ctx<'_>) {
        let Some(pod) = ctx.api.get(key) else {
            self.planned.remove(key);
            return;
        };
        let node = ctx.api.get(&Key::cluster(Kind::NODE, text(&pod, "/spec/nodeName")));
        let Some(wait) = node.and_then(|node| tolerated_for(&pod, &node)) else {
            self.planned.remove(key);
            return;
        };
        let since = self.planned.get(key).filter(|(uid, ..)| uid == metadata::uid(&pod)).map_or(ctx.now, |plan| plan.1);
        self.planned.insert(key.clone(), (metadata::uid(&pod).to_owned(), since, since + wait));
    }
}

impl Actor for TaintEviction {
    fn notice(&mut self, change: &Change) -> bool {
        if change.key.kind == Kind::NODE {
            return differs(change, "/spec/taints") && self.nodes.insert(change.key.clone());
        }
        let moved = change.new.is_none() || differs(change, "/spec/nodeName") || differs(change, "/spec/tolerations");
        moved && self.pods.insert(change.key.clone())
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        if !std::mem::replace(&mut self.started, true) {
            self.nodes.extend(ctx.api.list(Kind::NODE).iter().map(|node| Key::of(Kind::NODE, node)));
        }
        for node in std::mem::take(&mut self.nodes) {
            self.pods.extend(ctx.index.pods_on(&node.name).iter().cloned());
        }
        for pod in std::mem::take(&mut self.pods) {
            self.judge(&pod, ctx);
        }
        let due: Vec<Key> =
            self.planned.iter().filter(|(_, plan)| plan.2 <= ctx.now).map(|(key, _)| key.clone()).collect();
        for key in due {
            self.planned.remove(&key);
            evict(&key, ctx);
        }
        self.planned.values().map(|plan| plan.2.saturating_sub(ctx.now)).min()
    }
}

/// How long a pod may stay; nothing means for ever.
fn tolerated_for(pod: &Value, node: &Value) -> Option<Duration> {
    let mut shortest: Option<Duration> = None;
    for taint in taints(node).filter(|taint| taint["effect"] == "NoExecute") {
        let mut fitting = items(pod, "/spec/tolerations").filter(|toleration| tolerates(toleration, taint)).peekable();
        if fitting.peek().is_none() {
            return Some(Duration::ZERO);
        }
        let limits = fitting.filter_map(|toleration| match toleration.get("tolerationSeconds") {
            Some(seconds) if seconds.as_i64().is_some_and(|seconds| seconds <= 0) => Some(0),
            _ => number(toleration, "/tolerationSeconds"),
        });
        if let Some(limit) = limits.map(Duration::from_secs).min() {
            shortest = Some(shortest.map_or(limit, |shortest| shortest.min(limit)));
        }
    }
    shortest
}

fn evict(key: &Key, ctx: &Ctx<'_>) {
    let Some(pod) = ctx.api.get(key).filter(|pod| !metadata::is_deleting(pod)) else { return };
    tell(ctx, &pod, false, "TaintManagerEviction", &format!("Marking for deletion Pod {}/{}", key.namespace, key.name));
    mark_disrupted(ctx, key, "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint", false);
    // Somebody else may have been faster.
    drop(ctx.api.delete(key, &DeleteOptions::default()));
}
