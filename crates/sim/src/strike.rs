//! Strike: lets the faults of a plan happen to the world, and mends everything at the end.

use std::time::Duration;

use palisade_api::names;
use palisade_cluster::Cluster;
use palisade_cluster::api::{DeleteOptions, Key, Kind};
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::{Link, Power};
use palisade_cluster::truth::{Daemon, DaemonState};
use palisade_scenarios::embedded::Embedded;
use palisade_scenarios::world::Agent;
use serde_json::{Value, json};

use crate::agents;
use crate::faults::{Fault, Watched};
use crate::oracle::Oracle;
use crate::people::{
    self, delete, delete_requests, edit, edit_policy, let_pods_go, pods_on, policy_again, say, take_taint_off,
};
use crate::plan::Plan;
use crate::run::NODES;
use crate::wire::Lossy;

/// An outage of this length is one by the default policy, with some to spare.
const OUTAGE: Duration = Duration::from_secs(20);
/// What somebody puts on pods so that they stay.
const HELD: &str = "example.org/held";

/// The name of an operator process.
pub(crate) fn operator(number: usize) -> String {
    format!("palisade-{number}")
}

/// Everything that a fault can reach.
pub(crate) struct Scene<'a> {
    pub(crate) world: &'a mut Embedded,
    pub(crate) wire: &'a Lossy,
    pub(crate) plan: &'a Plan,
    pub(crate) oracle: &'a Oracle,
    /// Operators that stand still, and when they go on.
    pub(crate) frozen: Vec<(Duration, String)>,
    /// Since when the API server is away.
    pub(crate) dark_since: Option<Duration>,
}

impl Scene<'_> {
    /// Lets one thing go wrong.
    pub(crate) async fn strike(&mut self, fault: &Fault) {
        let cluster = self.world.cluster.clone();
        match fault {
            Fault::PowerOff(node) => cluster.power_off(node),
            Fault::PowerOffUnder(pod) => {
                if let Some(node) = people::node_under(cluster.api(), pod) {
                    cluster.power_off(&node);
                }
            }
            Fault::CutFeed(node) => cluster.cut_feed(node),
            Fault::RestoreFeed(node) => cluster.restore_feed(node),
            Fault::OutsideOn(node) => cluster.outside_on(node),
            Fault::Cut(node, link) => cluster.cut(node, *link),
            Fault::Heal(node, link) => cluster.heal(node, *link),
            Fault::Hang(node) => cluster.kubelet_hang(node),
            Fault::Resume(node) => cluster.kubelet_resume(node),
            Fault::RestartKubelet(node) => cluster.kubelet_restart(node),
            Fault::KubeletLags(node, behind) => {
                let revision = cluster.api().revision().saturating_sub(*behind);
                cluster.kubelet_lists_from(node, Some(revision));
            }
            Fault::KubeletCatchesUp(node) => cluster.kubelet_lists_from(node, None),
            Fault::Suspend(node) => cluster.suspend(node),
            // A device that cannot tell sleep from off says nothing more once it was seen on and is told off: see decisions.md.
            Fault::Hibernate(node) if told_off(&cluster, node) => {}
            Fault::Hibernate(node) => cluster.hibernate(node),
            Fault::WakeUp(node) => cluster.resume(node),
            Fault::Bmc(node, behaviour) => cluster.bmc(node).set(behaviour.clone()),
            Fault::Halt(daemon) => self.daemon(*daemon, DaemonState::Paused),
            Fault::Down(daemon) => self.daemon(*daemon, DaemonState::Down),
            Fault::Up(daemon) => self.daemon(*daemon, DaemonState::Running),
            Fault::DeleteNode(node) => {
                let _ = cluster.delete_node(node);
            }
            Fault::TakeTaintOff(node) => {
                let _ = cluster.api().update(&Key::cluster(Kind::NODE, node), take_taint_off);
            }
            Fault::DeleteFence(node) => delete(&cluster, "NodeFence", node),
            Fault::Say(node, word) => say(&cluster, node, word),
            Fault::Ask(node, what) => people::ask(&cluster, node, *what),
            Fault::Mark(node, what) => people::mark(&cluster, node, *what),
            Fault::Unmark(node) => people::unmark(&cluster, node),
            Fault::DeleteRequests(node) => delete_requests(&cluster, node),
            Fault::DeletePods(node) => {
                for key in pods_on(cluster.api(), node) {
                    let _ = cluster.api().delete(&key, &DeleteOptions::default());
                }
            }
            Fault::HoldPods(node) => {
                for key in pods_on(cluster.api(), node) {
                    let _ = cluster.api().update(&key, |pod| pod["metadata"]["finalizers"] = json!([HELD]));
                }
            }
            Fault::LetPodsGo => let_pods_go(cluster.api()),
            Fault::ProtectPod(node, time) => {
                if let Some(key) = pods_on(cluster.api(), node).pop() {
                    self.wire.protect(key, *time);
                }
            }
            Fault::PolicyAgain => policy_again(&cluster, self.plan),
            Fault::EditPolicy(what) => edit_policy(&cluster, &edit(what)),
            Fault::Agents(behave) => self.world.agents_behave(*behave),
            Fault::DeleteJobs => agents::delete_jobs(&cluster),
            Fault::CrashOperator(_) | Fault::RestartOperator(_) | Fault::FreezeOperator(..) | Fault::SetClock(..) => {
                self.strike_operator(fault).await;
            }
            Fault::Blackout(_) | Fault::FreezeWatches(_) | Fault::Reorder(..) | Fault::OldServer(_) => {
                self.strike_wire(fault);
            }
        }
    }

    async fn strike_operator(&mut self, fault: &Fault) {
        let cluster = self.world.cluster.clone();
        match fault {
            Fault::CrashOperator(number) => {
                let name = self.replica(*number);
                self.world.crash(&name);
                self.world.start(&name);
            }
            Fault::RestartOperator(number) => {
                let name = self.replica(*number);
                // One that stands still cannot hear that it is to end.
                self.thaw(&name);
                self.world.stop(&name).await;
                self.world.start(&name);
            }
            Fault::FreezeOperator(number, time) => {
                let name = self.replica(*number);
                let until = cluster.elapsed() + *time;
                self.world.freeze(&name);
                self.oracle.stands_still(until);
                self.frozen.push((until, name));
            }
            Fault::SetClock(number, time, back) => self.world.set_clock(&self.replica(*number), *time, *back),
            _ => {}
        }
    }

    /// What goes wrong on the way to the API server and back.
    fn strike_wire(&mut self, fault: &Fault) {
        let cluster = self.world.cluster.clone();
        match fault {
            Fault::Blackout(time) => {
                self.wire.go_dark(*time);
                self.oracle.freeze_watches(cluster.elapsed() + *time);
                if *time > OUTAGE {
                    self.oracle.go_blind(cluster.elapsed() + *time);
                }
            }
            Fault::FreezeWatches(time) => {
                self.wire.freeze(*time);
                self.oracle.freeze_watches(cluster.elapsed() + *time);
            }
            Fault::Reorder(what, time) => {
                let kind = match what {
                    Watched::Nodes => Some(Kind::NODE),
                    Watched::Leases => Some(Kind::LEASE),
                    Watched::Fences => cluster.api().kind(names::GROUP, "NodeFence"),
                    Watched::Policies => cluster.api().kind(names::GROUP, "FencePolicy"),
                    Watched::Requests => cluster.api().kind(names::GROUP, "NodeFencingRequest"),
                };
                if let Some(kind) = kind {
                    self.wire.lag(kind, *time);
                }
                if matches!(what, Watched::Nodes | Watched::Leases) {
                    self.oracle.freeze_watches(cluster.elapsed() + *time);
                }
            }
            Fault::OldServer(time) => {
                self.wire.grow_old(cluster.api().revision(), *time);
                self.oracle.freeze_watches(cluster.elapsed() + *time);
            }
            _ => {}
        }
    }

    /// When the next operator goes on.
    pub(crate) fn next_thaw(&self) -> Option<Duration> {
        self.frozen.iter().map(|(until, _)| *until).min()
    }

    /// Lets operators go on whose time has come.
    pub(crate) fn thaw_due(&mut self) {
        let now = self.world.cluster.elapsed();
        let due: Vec<String> =
            self.frozen.iter().filter(|(until, _)| *until <= now).map(|(_, name)| name.clone()).collect();
        for name in due {
            self.thaw(&name);
        }
    }

    fn thaw(&mut self, name: &str) {
        self.frozen.retain(|(_, frozen)| frozen != name);
        self.world.thaw(name);
    }

    fn replica(&self, number: usize) -> String {
        operator(number % self.plan.operators.max(1))
    }

    fn daemon(&mut self, daemon: Daemon, is: DaemonState) {
        self.world.cluster.set_daemon(daemon, is);
        if daemon == Daemon::ApiServer {
            match is {
                DaemonState::Running => {
                    self.wire.light();
                    let now = self.world.cluster.elapsed();
                    self.oracle.freeze_watches(now);
                    if self.dark_since.take().is_some_and(|since| now > since + OUTAGE) {
                        self.oracle.go_blind(now);
                    }
                }
                DaemonState::Paused | DaemonState::Down => {
                    self.wire.stay_dark();
                    self.dark_since.get_or_insert(self.world.cluster.elapsed());
                }
            }
        }
    }

    /// Everything works again.
    pub(crate) fn mend(&mut self) {
        self.wire.mend();
        self.oracle.mended(self.world.cluster.elapsed());
        for (_, name) in std::mem::take(&mut self.frozen) {
            self.world.thaw(&name);
        }
        let cluster = &self.world.cluster;
        for daemon in [Daemon::ApiServer, Daemon::ControllerManager, Daemon::Scheduler, Daemon::Csi] {
            cluster.set_daemon(daemon, DaemonState::Running);
        }
        edit_policy(cluster, &edit("Enforce"));
        self.world.agents_behave(Agent::Honest);
        let_pods_go(cluster.api());
        for number in 1..=NODES {
            let node = format!("n{number}");
            cluster.restore_feed(&node);
            for link in [Link::Api, Link::Peers, Link::Storage] {
                cluster.heal(&node, link);
            }
            cluster.kubelet_lists_from(&node, None);
            cluster.kubelet_resume(&node);
            people::unmark(cluster, &node);
            cluster.bmc(&node).set(Behaviour::Honest);
            let (known, fenced) = (cluster.node(&node).is_some(), fenced(cluster, &node));
            match cluster.power(&node) {
                Some(Power::Suspended | Power::Hibernated) => cluster.resume(&node),
                Some(Power::On) | None => {}
                // What is fenced is ours to switch on, unless off proves nothing; for the rest there are people.
                Some(Power::Off | Power::PoweringOn | Power::PoweringOff) => {
                    if self.plan.hibernates || !fenced {
                        cluster.outside_on(&node);
                    }
                }
            }
            // A Node that was deleted under a living kubelet comes back only with the kubelet's next start.
            if !known {
                cluster.kubelet_restart(&node);
            }
            say(cluster, &node, "resume");
        }
    }
}

/// Whether the machine was seen on, by a device that cannot tell sleep from off, and is being told off.
fn told_off(cluster: &Cluster, node: &str) -> bool {
    let kind = cluster.api().kind(names::GROUP, "NodeFence");
    let fence = kind.and_then(|kind| cluster.api().get(&Key::cluster(kind, node)));
    fence.is_some_and(|fence| fence.pointer("/status/run/seenRunning").and_then(Value::as_bool) == Some(true))
}

/// Whether a fence looks after the node; one that an admin stopped leaves it to people.
fn fenced(cluster: &Cluster, node: &str) -> bool {
    let kind = cluster.api().kind(names::GROUP, "NodeFence");
    let fence = kind.and_then(|kind| cluster.api().get(&Key::cluster(kind, node)));
    fence.is_some_and(|fence| {
        let deleted = fence.pointer("/metadata/deletionTimestamp").is_some();
        let stopped = fence.pointer("/spec/admin/stop").and_then(Value::as_bool) == Some(true);
        !deleted && !stopped
    })
}
