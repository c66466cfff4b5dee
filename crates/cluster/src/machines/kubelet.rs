//! The kubelet: speaks to the API for a machine, and runs the pods that are bound to it.
//!
//! Promise: it acts only on what it was told while it could hear, and its memory goes with its process. A pod that it
//! lists with a deletionTimestamp is never started, in no boot; a pod without one is, under its old UID.
//! Volumes are mounted only when this kubelet's own status said "in use" and a live read of the Node says "attached".
//!
//! Timings are upstream's: lease every 10 s, status looked at every 10 s and posted on change or after 5 minutes. Since
//! `volumesInUse` is part of that status, a pod with a volume waits up to 10 s for it, and only then checks whether it
//! is attached, backing off from half a second (kubernetes#89313, #106853): that is why pods with volumes start slowly
//! on real clusters, too.

mod files;
mod report;
mod worker;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use serde_json::json;

use self::worker::Worker;
pub use self::worker::{EXIT_CODE, LAST_WORDS, RUNS_FOR};
use super::{
    machine::{KubeletState, Link},
    process::{Exit, Signal},
};
use crate::{
    api::{Change, Key, Kind, Object, metadata},
    clock::micros,
    nature::{Actor, Ctx, Hears, fetch},
    objects::{self, flag, items, text},
    truth::{Daemon, DaemonState, Event, Name, What},
    volumes::attachment_name,
};

/// `nodeLeaseDurationSeconds`; renewed after a quarter of it.
const LEASE: u64 = 40;
/// `nodeStatusReportFrequency`.
const STATUS_REPORT: Duration = Duration::from_mins(5);

/// What a kubelet knows about its machine without asking.
#[derive(Clone, Debug)]
pub(crate) struct Home {
    pub(crate) node: Name,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) address: String,
    /// How many pods fit.
    pub(crate) pods: u32,
    /// `nodeStatusUpdateFrequency`.
    pub(crate) status_look: Duration,
}

/// A kubelet.
pub(crate) struct Kubelet {
    home: Home,
    memory: Option<Memory>,
    /// Something was written about its pods since the last look.
    news: bool,
    /// Something may have changed that its Node's status is about.
    unsure: bool,
    /// How processes ended since the last look.
    exits: BTreeMap<Name, Exit>,
}

/// What is lost when the process ends.
struct Memory {
    boot: Name,
    /// Since when the API answers again; nothing while it does not.
    connected: Option<Duration>,
    registered: bool,
    lease_due: Duration,
    /// When the status is looked at.
    looks: Looks,
    status_due: Option<Duration>,
    reported_at: Duration,
    /// Volumes that the API knows to be in use here.
    reported: BTreeSet<String>,
    workers: BTreeMap<Name, Worker>,
}

impl Kubelet {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::POD, Kind::NODE]);

    /// Who a kubelet is to the API.
    pub(crate) fn name(node: &str) -> String {
        format!("system:node:{node}")
    }

    pub(crate) fn new(home: Home) -> Self {
        Self { home, memory: None, news: true, unsure: true, exits: BTreeMap::new() }
    }

    fn key(&self) -> Key {
        Key::cluster(Kind::NODE, &self.home.node)
    }
}

/// What a kubelet feels of its machine.
struct Body {
    state: KubeletState,
    works: bool,
    boot: Option<Name>,
    hears_api: bool,
    lists_from: Option<u64>,
    running: BTreeSet<Name>,
    /// What has ended here.
    ended: Vec<Name>,
}

impl Actor for Kubelet {
    fn notice(&mut self, change: &Change) -> bool {
        let here = |object: &Option<Object>| {
            object.as_ref().is_some_and(|pod| text(pod, "/spec/nodeName") == &*self.home.node)
        };
        let about_us = match change.key.kind {
            Kind::POD => here(&change.new) || here(&change.old),
            _ => *change.key.name == *self.home.node && change.by.name() != Self::name(&self.home.node),
        };
        self.news |= about_us && change.key.kind == Kind::POD;
        self.unsure |= about_us;
        about_us
    }

    fn feel(&mut self, event: &Event) -> bool {
        if let What::Daemon { daemon: Daemon::ApiServer, .. } = event.what {
            (self.news, self.unsure) = (true, true);
            return true;
        }
        if event.what.node() != Some(&self.home.node) {
            return false;
        }
        match &event.what {
            What::Ended { pod, exit, .. } => drop(self.exits.insert(Name::clone(pod), *exit)),
            What::Lags { .. } | What::Link { .. } => (self.news, self.unsure) = (true, true),
            _ => {}
        }
        !matches!(event.what, What::Told { .. } | What::Started { .. })
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        let body = self.body(ctx)?;
        if body.state == KubeletState::Down {
            self.memory = None;
            return None;
        }
        if !body.works {
            return None;
        }
        let boot = body.boot.clone()?;
        let mut memory = match self.memory.take() {
            Some(memory) if memory.boot == boot => memory,
            _ => self.wake_up(ctx, boot),
        };
        let connected = memory.hears(body.hears_api, ctx);
        if connected {
            self.register(&mut memory, ctx);
            memory.renew_lease(&self.home.node, ctx);
            if std::mem::take(&mut self.news) {
                self.sync_pods(&mut memory, &body, ctx);
            }
        }
        // Most of the time there is nothing but a lease to renew.
        if self.unsure || !self.exits.is_empty() || memory.workers.values().any(|worker| worker.is_due(ctx.now)) {
            self.unsure = true;
            self.work(&mut memory, &body, connected, ctx);
        }
        if connected && (self.unsure || memory.status_look() <= ctx.now) {
            self.unsure = false;
            self.report(&mut memory, ctx);
        }
        let next = memory.next_due(connected, ctx.now);
        self.memory = Some(memory);
        next
    }
}

impl Kubelet {
    fn body(&self, ctx: &Ctx<'_>) -> Option<Body> {
        ctx.truth.look(|world| {
            let machine = world.machines.get(&self.home.node)?;
            Some(Body {
                state: if machine.boot.is_none() { KubeletState::Down } else { machine.kubelet },
                works: machine.kubelet_works(),
                boot: machine.boot.clone(),
                hears_api: machine.reaches(Link::Api) && world.daemon(Daemon::ApiServer) == DaemonState::Running,
                lists_from: machine.lists_from,
                running: machine.processes.keys().cloned().collect(),
                ended: machine.ended.keys().cloned().collect(),
            })
        })
    }

    fn wake_up(&mut self, ctx: &mut Ctx<'_>, boot: Name) -> Memory {
        (self.news, self.unsure) = (true, true);
        self.exits.clear();
        Memory {
            boot,
            connected: Some(ctx.now),
            registered: false,
            lease_due: ctx.now,
            looks: Looks { period: self.home.status_look, phase: ctx.dice.millis(0, 9_999) },
            // `fastStatusUpdateOnce`: the first one does not wait for its turn.
            status_due: Some(ctx.now + ctx.dice.millis(200, 1_500)),
            reported_at: Duration::ZERO,
            reported: BTreeSet::new(),
            workers: BTreeMap::new(),
        }
    }

    /// Makes the Node, once per life: a Node that somebody deletes stays away until the kubelet starts anew.
    fn register(&self, memory: &mut Memory, ctx: &Ctx<'_>) {
        if memory.registered {
            return;
        }
        let node = json!({"metadata": {
            "name": self.home.node.as_ref(), "labels": self.home.labels,
            "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        }});
        // One that is there already is taken over, with whatever taints it has.
        drop(ctx.api.create(Kind::NODE, node));
        if let Some(node) = ctx.api.get(&self.key()) {
            drop(ctx.api.create(Kind::CSI_NODE, report::csi_node(&node)));
            memory.registered = true;
        }
    }

    fn sync_pods(&self, memory: &mut Memory, body: &Body, ctx: &mut Ctx<'_>) {
        let lagging = body.lists_from.and_then(|revision| ctx.api.list_at(Kind::POD, revision).ok());
        let pods: Vec<(Key, Object)> = match lagging {
            Some(pods) => pods.into_iter().map(|pod| (Key::of(Kind::POD, &pod), pod)).collect(),
            None => fetch(ctx.api, ctx.index.pods_on(&self.home.node)),
        };
        let mut listed = BTreeSet::new();
        for (key, pod) in pods.into_iter().filter(|(_, pod)| text(pod, "/spec/nodeName") == &*self.home.node) {
            let uid = Name::from(metadata::uid(&pod));
            listed.insert(Name::clone(&uid));
            if let Some(worker) = memory.workers.get_mut(&uid) {
                worker.learn(pod, ctx.now);
            } else if let Some(worker) = Worker::begin(key, pod, body.running.contains(&uid), ctx) {
                memory.workers.insert(uid, worker);
            }
        }
        for (_, worker) in memory.workers.iter_mut().filter(|(uid, _)| !listed.contains(*uid)) {
            worker.object_is_gone(ctx.now);
        }
        if body.ended.iter().any(|uid| !listed.contains(uid)) {
            ctx.truth.act(|world| world.keep_ended(&self.home.node, &listed));
        }
        // Left over from a life before: nobody wants it, so it ends.
        let orphans = body.running.iter().filter(|uid| !memory.workers.contains_key(*uid));
        for uid in orphans {
            ctx.truth.act(|world| world.signal(&self.home.node, uid, Signal::Kill));
        }
    }

    fn work(&mut self, memory: &mut Memory, body: &Body, connected: bool, ctx: &mut Ctx<'_>) {
        let waiting = connected && memory.workers.values().any(Worker::is_waiting);
        let attached = if waiting { self.attached(ctx) } else { BTreeSet::new() };
        let exits = std::mem::take(&mut self.exits);
        let reported = memory.reported.clone();
        let mut around =
            worker::Around { node: &self.home.node, connected, exits, running: &body.running, reported, attached };
        memory.workers.retain(|_, worker| worker.step(&mut around, ctx));
        self.exits = around.exits;
    }

    /// What the attach/detach controller says is attached, and what an attachment says is, both by live reads: before it mounts,
    /// upstream's kubelet waits for the one and asks for the other.
    fn attached(&self, ctx: &Ctx<'_>) -> BTreeSet<String> {
        let node = ctx.api.get(&self.key());
        let volumes = node.iter().flat_map(|node| items(node, "/status/volumesAttached"));
        let names = volumes.map(|volume| text(volume, "/name"));
        names.filter(|name| self.is_attached(name, ctx)).map(str::to_owned).collect()
    }

    fn is_attached(&self, unique: &str, ctx: &Ctx<'_>) -> bool {
        let Some((driver, handle)) = unique.strip_prefix("kubernetes.io/csi/").and_then(|name| name.split_once('^'))
        else {
            return false;
        };
        let name = attachment_name(handle, driver, &self.home.node);
        ctx.api.get(&Key::cluster(Kind::VOLUME_ATTACHMENT, &name)).is_some_and(|found| flag(&found, "/status/attached"))
    }

    /// Looks at the node's status when its turn has come, and posts it if it has something to say.
    fn report(&self, memory: &mut Memory, ctx: &Ctx<'_>) {
        let Some(node) = ctx.api.get(&self.key()) else {
            // Somebody deleted it: nothing to say, and nobody to say it to.
            memory.status_due = Some(memory.looks.next(ctx.now));
            return;
        };
        let in_use: BTreeSet<String> = memory.workers.values().flat_map(Worker::in_use).cloned().collect();
        let said: BTreeSet<String> =
            items(&node, "/status/volumesInUse").filter_map(|name| name.as_str().map(str::to_owned)).collect();
        let differs =
            in_use != said || !objects::is_ready(&node) || text(&node, "/status/nodeInfo/bootID") != &*memory.boot;
        if memory.status_look() > ctx.now {
            if differs && memory.status_due.is_none() {
                memory.status_due = Some(memory.looks.next(ctx.now));
            }
            return;
        }
        let written = ctx.api.update(&self.key(), |node| {
            report::node_status(node, &self.home, &memory.boot, &in_use, ctx);
        });
        memory.status_due = Some(memory.looks.next(ctx.now)).filter(|_| written.is_err());
        if written.is_ok() {
            memory.reported = in_use;
            memory.reported_at = ctx.now;
            memory.workers.values_mut().for_each(|worker| worker.volumes_are_reported(ctx.now));
        }
    }
}

impl Memory {
    /// Whether the API answers. After an outage it takes a while until a kubelet tries again.
    fn hears(&mut self, answers: bool, ctx: &mut Ctx<'_>) -> bool {
        match (answers, self.connected) {
            (true, Some(since)) => since <= ctx.now,
            (true, None) => {
                let since = ctx.now + ctx.dice.millis(500, 7_000);
                self.connected = Some(since);
                self.lease_due = since;
                false
            }
            (false, _) => {
                self.connected = None;
                false
            }
        }
    }

    fn renew_lease(&mut self, node: &Name, ctx: &mut Ctx<'_>) {
        if self.lease_due > ctx.now {
            return;
        }
        let key = Key::new(Kind::LEASE, "kube-node-lease", node);
        let renew_time = micros(ctx.api.now());
        let renewed = ctx.api.update(&key, |lease| lease["spec"]["renewTime"] = renew_time.clone().into());
        if renewed.is_err() {
            let owner = ctx.api.get(&Key::cluster(Kind::NODE, node));
            let owners: Vec<_> = owner.iter().map(|owner| report::owned_by(owner)).collect();
            let lease = json!({
                "metadata": {"name": node.as_ref(), "namespace": "kube-node-lease", "ownerReferences": owners},
                "spec": {"holderIdentity": node.as_ref(), "leaseDurationSeconds": LEASE, "renewTime": renew_time},
            });
            drop(ctx.api.create(Kind::LEASE, lease));
        }
        // A quarter of the duration, with upstream's 4% of jitter.
        self.lease_due = ctx.now + Duration::from_secs(LEASE / 4) + ctx.dice.millis(0, 400);
    }

    /// When the status is posted: at the next turn if there is news, or when it has not been for long.
    fn status_look(&self) -> Duration {
        self.status_due.unwrap_or_else(|| self.looks.next(self.reported_at + STATUS_REPORT))
    }

    fn next_due(&self, connected: bool, now: Duration) -> Option<Duration> {
        let mut dues: Vec<Duration> = self.workers.values().filter_map(|worker| worker.due(connected)).collect();
        if connected {
            dues.push(self.lease_due);
            dues.push(self.status_look());
        } else if let Some(since) = self.connected {
            dues.push(since);
        }
        dues.into_iter().min().map(|due| due.saturating_sub(now))
    }
}

/// The times at which a kubelet looks at its node's status: a phase, and a multiple of a period.
struct Looks {
    period: Duration,
    phase: Duration,
}

impl Looks {
    /// The first one after that time.
    fn next(&self, after: Duration) -> Duration {
        let period = self.period.as_millis().max(1);
        let rounds = after.saturating_sub(self.phase).as_millis() / period + 1;
        self.phase + self.period * u32::try_from(rounds).unwrap_or(u32::MAX)
    }
}
