//! The scheduler: finds a node for each pod that has none.
//!
//! Promise: a pod goes only to a node that takes it: schedulable, its taints tolerated, selector and required affinity
//! met, room left, claims bound. Among those, to the one that preferred affinity likes best, then to the emptiest.
//! A ReadWriteOnce claim does not bind a pod to a node: that its volume is still elsewhere is found out by
//! attach/detach, as upstream.
//! Left out: resources, preemption, spreading, preferred anti-affinity.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::{Value, json};

use super::{differs, tell};
use crate::{
    api::{Change, Key, Kind, Object, metadata},
    nature::{Actor, Ctx, Hears, claims, fetch},
    objects::{fulfils, is_finished, items, labels, number, selects, set_condition, taints, text, tolerates},
    volumes,
};

/// The first wait of a pod that fits nowhere; doubled up to [`BACKOFF_LIMIT`].
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_LIMIT: Duration = Duration::from_secs(10);

/// The scheduler.
#[derive(Default)]
pub(crate) struct Scheduler {
    started: bool,
    /// Pods without a node, when each may be tried again, and its next wait.
    pending: BTreeMap<Key, (Duration, Duration)>,
    /// Something changed since the last look.
    news: bool,
    told: BTreeSet<Key>,
}

impl Scheduler {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::POD, Kind::NODE, Kind::PERSISTENT_VOLUME_CLAIM]);
}

impl Actor for Scheduler {
    fn notice(&mut self, change: &Change) -> bool {
        if change.key.kind == Kind::POD {
            match &change.new {
                Some(pod) if is_ours(pod) && text(pod, "/spec/nodeName").is_empty() && !metadata::is_deleting(pod) => {
                    if change.old.is_none() {
                        self.pending.insert(change.key.clone(), (Duration::ZERO, BACKOFF));
                        self.news = true;
                    }
                    return change.old.is_none();
                }
                _ => {
                    self.pending.remove(&change.key);
                    self.told.remove(&change.key);
                }
            }
        }
        // A heartbeat makes no node fit.
        let mut parts = ["/spec", "/metadata/labels", "/status/phase", "/status/allocatable"].into_iter();
        let wakes = !self.pending.is_empty() && parts.any(|part| differs(change, part));
        self.news |= wakes;
        wakes
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        if !std::mem::replace(&mut self.started, true) {
            self.pending.extend(ctx.index.pods_on("").iter().map(|key| (key.clone(), (Duration::ZERO, BACKOFF))));
            self.news = true;
        }
        if std::mem::take(&mut self.news) {
            let ready: Vec<Key> =
                self.pending.iter().filter(|(_, (at, _))| *at <= ctx.now).map(|(key, _)| key.clone()).collect();
            let nodes = ctx.api.list(Kind::NODE);
            for key in ready {
                self.place(&key, &nodes, ctx);
            }
        }
        let next = self.pending.values().map(|(at, _)| *at).filter(|at| *at > ctx.now).min();
        self.news = next.is_some();
        next.map(|at| at.saturating_sub(ctx.now))
    }
}

/// Other pods have schedulers of their own.
fn is_ours(pod: &Value) -> bool {
    text(pod, "/spec/schedulerName") == "default-scheduler"
}

impl Scheduler {
    fn place(&mut self, key: &Key, nodes: &[Object], ctx: &mut Ctx<'_>) {
        let waits = |pod: &Value| text(pod, "/spec/nodeName").is_empty() && !metadata::is_deleting(pod);
        let unbound = |pod: &Object| is_ours(pod) && waits(pod);
        let Some(pod) = ctx.api.get(key).filter(unbound) else {
            self.pending.remove(key);
            return;
        };
        let tie = ctx.dice.throw();
        let ctx = &*ctx;
        let fitting = nodes.iter().filter(|node| fits(&pod, node, ctx));
        let rank = |node: &&Object| {
            let count = ctx.index.pods_on(metadata::name(node)).len();
            let liked = liking(&pod, node);
            (std::cmp::Reverse(liked), count, spread(tie, metadata::name(node)))
        };
        if let Some(node) = fitting.min_by_key(rank) {
            self.pending.remove(key);
            self.told.remove(key);
            bind(key, &pod, metadata::name(node), ctx);
        } else {
            if let Some((at, backoff)) = self.pending.get_mut(key) {
                *at = ctx.now + *backoff;
                *backoff = (*backoff * 2).min(BACKOFF_LIMIT);
            }
            if self.told.insert(key.clone()) {
                complain(key, &pod, nodes.len(), ctx);
            }
        }
    }
}

/// Among equals chance decides, the same in each run.
fn spread(tie: u64, name: &str) -> u64 {
    crate::dice::Dice::new(tie, name).throw()
}

fn bind(key: &Key, pod: &Value, node: &str, ctx: &Ctx<'_>) {
    let now = ctx.api.now();
    let bound = ctx.api.update(key, |pod| {
        pod["spec"]["nodeName"] = node.into();
        set_condition(pod, now, &[("type", "PodScheduled"), ("status", "True")]);
    });
    if bound.is_ok() {
        let what = format!("Successfully assigned {}/{} to {node}", key.namespace, key.name);
        tell(ctx, pod, false, "Scheduled", &what);
    }
}

fn complain(key: &Key, pod: &Value, nodes: usize, ctx: &Ctx<'_>) {
    let now = ctx.api.now();
    let message = format!("0/{nodes} nodes are available");
    drop(ctx.api.update(key, |pod| {
        let said =
            [("type", "PodScheduled"), ("status", "False"), ("reason", "Unschedulable"), ("message", message.as_str())];
        set_condition(pod, now, &said);
    }));
    tell(ctx, pod, true, "FailedScheduling", &message);
}

fn fits(pod: &Value, node: &Value, ctx: &Ctx<'_>) -> bool {
    takes(pod, node)
        && affinity_met(pod, node)
        && ctx.index.pods_on(metadata::name(node)).len() < room(node)
        && claims_met(pod, node, ctx)
        && company_fits(pod, node, ctx)
        && company_is_there(pod, node, ctx)
}

fn room(node: &Value) -> usize {
    text(node, "/status/allocatable/pods").parse().unwrap_or_default()
}

/// Taints, and the selector.
fn takes(pod: &Value, node: &Value) -> bool {
    let tolerated = |taint: &Value| items(pod, "/spec/tolerations").any(|toleration| tolerates(toleration, taint));
    let mut hard = taints(node).filter(|taint| taint["effect"] != "PreferNoSchedule");
    let wanted = pod.pointer("/spec/nodeSelector").and_then(Value::as_object);
    hard.all(tolerated)
        && wanted.is_none_or(|wanted| wanted.iter().all(|(key, value)| labels(node).get(key) == Some(value)))
}

fn affinity_met(pod: &Value, node: &Value) -> bool {
    let terms = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let mut terms = items(pod, terms).peekable();
    terms.peek().is_none() || terms.any(|term| term_met(term, node))
}

fn term_met(term: &Value, node: &Value) -> bool {
    // A term that asks for nothing is met by nobody.
    if items(term, "/matchExpressions").chain(items(term, "/matchFields")).next().is_none() {
        return false;
    }
    let name = Value::from(metadata::name(node));
    items(term, "/matchExpressions").all(|wish| fulfils(wish, labels(node).get(text(wish, "/key"))))
        && items(term, "/matchFields").all(|wish| fulfils(wish, Some(&name)))
}

/// The weight of the preferences that a node meets.
fn liking(pod: &Value, node: &Value) -> u64 {
    let preferences = "/spec/affinity/nodeAffinity/preferredDuringSchedulingIgnoredDuringExecution";
    let met = items(pod, preferences).filter(|term| term_met(&term["preference"], node));
    met.map(|term| number(term, "/weight").unwrap_or_default()).sum()
}

/// Claims are bound, reach the node, and are free if they are for one pod alone.
fn claims_met(pod: &Value, node: &Value, ctx: &Ctx<'_>) -> bool {
    let namespace = metadata::namespace(pod);
    let bound = ctx.api.read(|store| volumes::of_pod(store, pod).is_some());
    bound
        && claims(pod).all(|claim| {
            let key = Key::new(Kind::PERSISTENT_VOLUME_CLAIM, namespace, claim);
            let claim_object = ctx.api.get(&key).unwrap_or_default();
            let alone = items(&claim_object, "/spec/accessModes").any(|mode| mode == "ReadWriteOncePod");
            let others = ctx.index.pods_with_claim(namespace, claim);
            let taken = || {
                let others = fetch(ctx.api, others);
                others.iter().any(|(_, other)| !text(other, "/spec/nodeName").is_empty() && !is_finished(other))
            };
            let pv = ctx.api.get(&Key::cluster(Kind::PERSISTENT_VOLUME, text(&claim_object, "/spec/volumeName")));
            let terms = "/spec/nodeAffinity/required/nodeSelectorTerms";
            let reaches = pv.is_none_or(|pv| {
                let mut terms = items(&pv, terms).peekable();
                terms.peek().is_none() || terms.any(|term| term_met(term, node))
            });
            reaches && !(alone && taken())
        })
}

/// Whom the pod wants beside it is there; or nowhere, and it is one of them itself: somebody has to be the first.
fn company_is_there(pod: &Value, node: &Value, ctx: &Ctx<'_>) -> bool {
    const TERMS: &str = "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    items(pod, TERMS).all(|term| {
        let key = text(term, "/topologyKey");
        let wanted = |other: &Value| selects(&term["labelSelector"], labels(other)) && !is_finished(other);
        ctx.api.read(|store| {
            let placed: Vec<&str> = store
                .list_in(Kind::POD, metadata::namespace(pod))
                .filter(|(_, other)| !text(other, "/spec/nodeName").is_empty() && wanted(other))
                .map(|(_, other)| text(other, "/spec/nodeName"))
                .collect();
            let here = |place: &&str| {
                let there = store.get(&Key::cluster(Kind::NODE, place));
                there.is_some_and(|there| labels(there).get(key) == labels(node).get(key))
            };
            (placed.is_empty() && wanted(pod)) || placed.iter().any(here)
        })
    })
}

/// Nobody is there whom the pod, or who, will not have beside it.
fn company_fits(pod: &Value, node: &Value, ctx: &Ctx<'_>) -> bool {
    const TERMS: &str = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";
    let domain = |node: &Value, term: &Value| labels(node).get(text(term, "/topologyKey")).cloned();
    let clashes = |one: &Value, other: &Value, there: &Value| {
        metadata::namespace(one) == metadata::namespace(other)
            && items(one, TERMS).any(|term| {
                let here = domain(node, term);
                here.is_some() && here == domain(there, term) && selects(&term["labelSelector"], labels(other))
            })
    };
    ctx.api.read(|store| {
        let own_terms = items(pod, TERMS).next().is_some();
        for (_, other) in store.list_in(Kind::POD, metadata::namespace(pod)) {
            let place = text(other, "/spec/nodeName");
            if place.is_empty() || is_finished(other) || !(own_terms || items(other, TERMS).next().is_some()) {
                continue;
            }
            let gone = json!({});
            let there = store.get(&Key::cluster(Kind::NODE, place)).map_or(&gone, AsRef::as_ref);
            if clashes(pod, other, there) || clashes(other, pod, there) {
                return false;
            }
        }
        true
    })
}
