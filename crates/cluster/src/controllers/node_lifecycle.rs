//! Node lifecycle: tells from silence that a node is gone, and taints it.
//!
//! Promise: silence is measured by this controller's own clock, from the moment at which it *saw* the Lease or the
//! heartbeat change. NoExecute taints come at the rate of the node's zone (`node_zones.rs`), NoSchedule ones at once.
//! Left out: the cloud's word on nodes that are shut down.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use super::{
    WorkQueue,
    node_zones::{Zones, zone_of},
    tell,
};
use crate::{
    api::{Change, Key, Kind, Object, metadata},
    clock::seconds,
    nature::{Actor, Ctx, Hears, fetch},
    objects::{condition, flag, is_ready, list_at, says, set_condition, taints, text},
    truth::Name,
};

/// `--node-monitor-period`.
const MONITOR_PERIOD: Duration = Duration::from_secs(5);
/// `--node-monitor-grace-period` (50 s since Kubernetes 1.32).
const MONITOR_GRACE: Duration = Duration::from_secs(50);
/// `--node-startup-grace-period`.
const STARTUP_GRACE: Duration = Duration::from_mins(1);

pub(crate) const NOT_READY: &str = "node.kubernetes.io/not-ready";
pub(crate) const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The controller.
#[derive(Default)]
pub(crate) struct NodeLifecycle {
    health: BTreeMap<Name, Health>,
    zones: Zones,
    monitor_at: Duration,
    /// Nodes whose NoSchedule taints do not say what their conditions say.
    mistainted: WorkQueue,
}

/// What was last seen of a node, and when it was seen to change.
#[derive(Default)]
struct Health {
    renewed: String,
    heartbeat: String,
    changed: Duration,
}

impl NodeLifecycle {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::NODE]);
}

impl Actor for NodeLifecycle {
    fn notice(&mut self, change: &Change) -> bool {
        let Some(new) = &change.new else { return false };
        let wrong = schedule_taints(new) != said_taints(new);
        wrong && self.mistainted.add(change.key.clone())
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        for (_, node) in fetch(ctx.api, &self.mistainted.take(Kind::NODE, ctx)) {
            taint_for_scheduling(&node, ctx);
        }
        if self.monitor_at <= ctx.now {
            self.monitor(&ctx.api.list(Kind::NODE), ctx);
            self.monitor_at = ctx.now + MONITOR_PERIOD;
        }
        let zones_due = self.zones.taint(ctx, add_no_execute);
        let next = zones_due.map_or(self.monitor_at, |due| due.min(self.monitor_at));
        Some(next.saturating_sub(ctx.now))
    }
}

impl NodeLifecycle {
    fn monitor(&mut self, nodes: &[Object], ctx: &mut Ctx<'_>) {
        self.health.retain(|name, _| nodes.iter().any(|node| metadata::name(node) == &**name));
        self.zones.begin_round();
        for node in nodes {
            let observed = says(node, "Ready").to_owned();
            let current = self.look_at(node, ctx);
            if observed == "True" && current != "True" {
                mark_pods_not_ready(node, ctx);
                tell(
                    ctx,
                    node,
                    false,
                    "NodeNotReady",
                    &format!("Node {} status is now: NodeNotReady", metadata::name(node)),
                );
            }
            self.zones.count(node, current == "True");
            // As upstream: what follows looks at the word from before this round.
            self.decide_eviction(node, &observed, ctx);
        }
        if self.zones.judge(ctx.now) {
            // Nobody was ready and now somebody is: it was we who were blind. Everybody gets a fresh grace.
            for health in self.health.values_mut() {
                health.changed = ctx.now;
            }
        }
        if self.zones.all_dark() {
            for node in nodes {
                remove_no_execute(node, ctx);
            }
        }
    }

    /// Reads Lease and heartbeat; says `Unknown` for a node that was silent for too long. Returns what Ready says now.
    fn look_at(&mut self, node: &Value, ctx: &Ctx<'_>) -> String {
        let name = metadata::name(node);
        let lease = ctx.api.get(&Key::new(Kind::LEASE, "kube-node-lease", name));
        let renewed = lease.as_ref().map(|lease| text(lease, "/spec/renewTime")).unwrap_or_default();
        let ready = condition(node, "Ready");
        let heartbeat = ready.map(|ready| text(ready, "/lastHeartbeatTime")).unwrap_or_default();
        let health = self.health.entry(name.into()).or_insert_with(|| Health { changed: ctx.now, ..Health::default() });
        if health.renewed != renewed || health.heartbeat != heartbeat {
            *health = Health { renewed: renewed.to_owned(), heartbeat: heartbeat.to_owned(), changed: ctx.now };
        }
        let grace = if ready.is_some() { MONITOR_GRACE } else { STARTUP_GRACE };
        let said = says(node, "Ready").to_owned();
        if ctx.now < health.changed + grace || said == "Unknown" {
            return said;
        }
        let now = ctx.api.now();
        let written = ctx.api.update(&Key::of(Kind::NODE, node), |node| {
            for kind in ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"] {
                let never = condition(node, kind).is_none();
                let reason = if never { "NodeStatusNeverUpdated" } else { "NodeStatusUnknown" };
                let message =
                    if never { "Kubelet never posted node status." } else { "Kubelet stopped posting node status." };
                set_condition(
                    node,
                    now,
                    &[("type", kind), ("status", "Unknown"), ("reason", reason), ("message", message)],
                );
            }
        });
        if written.is_ok() { "Unknown".to_owned() } else { said }
    }

    fn decide_eviction(&mut self, node: &Value, observed: &str, ctx: &Ctx<'_>) {
        let name = metadata::name(node);
        match wanted_no_execute(observed) {
            Some(wanted) if has(node, wanted, "NoExecute") => {}
            // The other of the two is there already: a change of word is not a new eviction.
            Some(wanted) if has(node, NOT_READY, "NoExecute") || has(node, UNREACHABLE, "NoExecute") => {
                swap_no_execute(node, wanted, ctx);
            }
            Some(_) => self.zones.queue(&zone_of(node), name),
            None if observed == "True" => {
                remove_no_execute(node, ctx);
                self.zones.unqueue(name);
            }
            None => {}
        }
    }
}

fn wanted_no_execute(ready: &str) -> Option<&'static str> {
    match ready {
        "False" => Some(NOT_READY),
        "Unknown" => Some(UNREACHABLE),
        _ => None,
    }
}

fn has(node: &Value, key: &str, effect: &str) -> bool {
    taints(node).any(|taint| taint["key"] == key && taint["effect"] == effect)
}

/// Taints a node whose turn has come, if it is still in need of it; says whether it did.
fn add_no_execute(node: &Value, ctx: &Ctx<'_>) -> bool {
    match wanted_no_execute(says(node, "Ready")) {
        Some(wanted) if !has(node, wanted, "NoExecute") => {
            swap_no_execute(node, wanted, ctx);
            true
        }
        _ => false,
    }
}

fn swap_no_execute(node: &Value, wanted: &str, ctx: &Ctx<'_>) {
    let taint = json!({"key": wanted, "effect": "NoExecute", "timeAdded": seconds(ctx.api.now())});
    retaint(node, ctx, |taint| taint["effect"] != "NoExecute" || !is_ours(taint), &[taint]);
}

fn remove_no_execute(node: &Value, ctx: &Ctx<'_>) {
    if has(node, NOT_READY, "NoExecute") || has(node, UNREACHABLE, "NoExecute") {
        retaint(node, ctx, |taint| taint["effect"] != "NoExecute" || !is_ours(taint), &[]);
    }
}

fn is_ours(taint: &Value) -> bool {
    taint["key"] == NOT_READY || taint["key"] == UNREACHABLE
}

/// The NoSchedule taints that a node's conditions ask for.
fn schedule_taints(node: &Value) -> Vec<&'static str> {
    const PRESSURES: [(&str, &str); 4] = [
        ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
        ("DiskPressure", "node.kubernetes.io/disk-pressure"),
        ("PIDPressure", "node.kubernetes.io/pid-pressure"),
        ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
    ];
    let mut keys: Vec<&str> = Vec::new();
    match says(node, "Ready") {
        "Unknown" => keys.push(UNREACHABLE),
        "False" => keys.push(NOT_READY),
        // A Node that has said nothing yet is not tainted for it, as upstream.
        _ => {}
    }
    keys.extend(PRESSURES.iter().filter(|(kind, _)| says(node, kind) == "True").map(|(_, key)| *key));
    if flag(node, "/spec/unschedulable") {
        keys.push("node.kubernetes.io/unschedulable");
    }
    keys.sort_unstable();
    keys
}

/// Those of them that are there.
fn said_taints(node: &Value) -> Vec<&str> {
    let ours = taints(node).filter(|taint| taint["effect"] == "NoSchedule").map(|taint| text(taint, "/key"));
    let mut keys: Vec<&str> = ours.filter(|key| is_managed(key)).collect();
    keys.sort_unstable();
    keys
}

fn is_managed(key: &str) -> bool {
    let name = key.strip_prefix("node.kubernetes.io/").unwrap_or_default();
    matches!(
        name,
        "not-ready"
            | "unreachable"
            | "memory-pressure"
            | "disk-pressure"
            | "pid-pressure"
            | "network-unavailable"
            | "unschedulable"
    )
}

fn taint_for_scheduling(node: &Value, ctx: &Ctx<'_>) {
    let wanted = schedule_taints(node);
    if wanted == said_taints(node) {
        return;
    }
    let new: Vec<Value> = wanted.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
    retaint(node, ctx, |taint| taint["effect"] != "NoSchedule" || !is_managed(text(taint, "/key")), &new);
}

fn retaint(node: &Value, ctx: &Ctx<'_>, keep: impl Fn(&Value) -> bool, add: &[Value]) {
    // A Node that is gone needs no taints.
    drop(ctx.api.update(&Key::of(Kind::NODE, node), |node| {
        if let Some(taints) = list_at(node, &["spec", "taints"]) {
            taints.retain(keep);
            taints.extend(add.iter().cloned());
        }
    }));
}

/// Pods of a silent node are no longer ready: services must not send anybody there.
fn mark_pods_not_ready(node: &Value, ctx: &Ctx<'_>) {
    let now = ctx.api.now();
    for (key, pod) in fetch(ctx.api, ctx.index.pods_on(metadata::name(node))) {
        if is_ready(&pod) {
            drop(ctx.api.update(&key, |pod| {
                set_condition(pod, now, &[("type", "Ready"), ("status", "False"), ("reason", "NodeNotReady")]);
            }));
        }
    }
}
