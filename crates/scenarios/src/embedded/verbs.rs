//! Embedded / verbs: what happens to the embedded cluster.

use std::time::Duration;

use palisade_cluster::api::{DeleteOptions, Key, Part, Patch, Propagation, Status};
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine;
use palisade_cluster::truth::{Daemon, DaemonState};
use serde_json::Value;

use super::Embedded;
use super::sights::key;
use crate::look::Look;
use crate::world::{Agent, Bmc, Broken, Kind, Link, Told, World};

impl World for Embedded {
    async fn power_off(&mut self, node: &str) -> Told {
        self.cluster.power_off(node);
        self.lose_replicas(node);
        Ok(())
    }

    async fn cut_feed(&mut self, node: &str) -> Told {
        self.cluster.cut_feed(node);
        self.lose_replicas(node);
        Ok(())
    }

    async fn restore_feed(&mut self, node: &str) -> Told {
        self.cluster.restore_feed(node);
        Ok(())
    }

    async fn outside_on(&mut self, node: &str) -> Told {
        self.cluster.outside_on(node);
        Ok(())
    }

    async fn hibernate(&mut self, node: &str) -> Told {
        self.cluster.hibernate(node);
        self.lose_replicas(node);
        Ok(())
    }

    async fn cut(&mut self, node: &str, link: Link) -> Told {
        self.cluster.cut(node, theirs(link));
        self.set_link(node, link, true);
        Ok(())
    }

    async fn heal(&mut self, node: &str, link: Link) -> Told {
        self.cluster.heal(node, theirs(link));
        self.set_link(node, link, false);
        Ok(())
    }

    async fn kubelet_hang(&mut self, node: &str) -> Told {
        self.cluster.kubelet_hang(node);
        Ok(())
    }

    async fn kubelet_resume(&mut self, node: &str) -> Told {
        self.cluster.kubelet_resume(node);
        Ok(())
    }

    async fn kubelet_restart(&mut self, node: &str) -> Told {
        self.cluster.kubelet_restart(node);
        Ok(())
    }

    async fn bmc(&mut self, node: &str, behaves: Bmc) -> Told {
        self.cluster.bmc(node).set(match behaves {
            Bmc::Honest => Behaviour::Honest,
            Bmc::Slow(seconds) => Behaviour::Slow(Duration::from_secs(seconds)),
            Bmc::Silent => Behaviour::Silent,
            Bmc::Unreachable => Behaviour::Unreachable,
            Bmc::Refuses => Behaviour::Refuses(503),
            Bmc::AcceptsOnly => Behaviour::AcceptsOnly,
            Bmc::SaysOff => Behaviour::SaysOff,
            Bmc::Late(seconds) => Behaviour::Late(Duration::from_secs(seconds)),
            Bmc::LosesReply => Behaviour::LosesReply,
            Bmc::ShowsFor(millis) => Behaviour::ShowsFor(Duration::from_millis(millis)),
            Bmc::Flaps(millis) => Behaviour::Flaps(Duration::from_millis(millis)),
        });
        Ok(())
    }

    async fn agent(&mut self, behaves: Agent) -> Told {
        self.agents_behave(behaves);
        Ok(())
    }

    async fn api_down(&mut self) -> Told {
        self.network.set_down(true);
        self.cluster.set_daemon(Daemon::ApiServer, DaemonState::Down);
        Ok(())
    }

    async fn api_up(&mut self) -> Told {
        self.cluster.set_daemon(Daemon::ApiServer, DaemonState::Running);
        self.network.set_down(false);
        Ok(())
    }

    async fn operator_start(&mut self, name: &str) -> Told {
        self.start(name);
        Ok(())
    }

    async fn operator_start_on(&mut self, name: &str, node: &str) -> Told {
        self.start_replica(name, Some(node));
        Ok(())
    }

    async fn operator_crash(&mut self, name: &str) -> Told {
        self.crash(name);
        Ok(())
    }

    async fn operator_stop(&mut self, name: &str) -> Told {
        self.stop(name).await;
        Ok(())
    }

    async fn create(&mut self, kind: Kind, mut object: Value) -> Told {
        if object["metadata"]["namespace"].is_null() && !kind.home().is_empty() {
            object["metadata"]["namespace"] = kind.home().into();
        }
        let (group, word) = kind.words();
        if group == palisade_api::names::GROUP {
            object["apiVersion"] = format!("{group}/{}", palisade_api::names::VERSION).into();
            object["kind"] = word.into();
        }
        let found = self.cluster.api().kind(group, word).ok_or_else(|| Broken(format!("no kind {word}")))?;
        self.cluster.create(found, object).map(|_| ()).map_err(refused)
    }

    async fn patch(&mut self, kind: Kind, name: &str, patch: Value) -> Told {
        let key = self.key(kind, name)?;
        self.cluster.api().patch(&key, Part::Main, &Patch::Merge(patch)).map(|_| ()).map_err(refused)
    }

    async fn delete(&mut self, kind: Kind, name: &str) -> Told {
        let key = self.key(kind, name)?;
        // What kubectl says unless it is told otherwise.
        let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
        self.cluster.api().delete(&key, &options).map(|_| ()).map_err(refused)
    }

    async fn delete_alone(&mut self, kind: Kind, name: &str) -> Told {
        let key = self.key(kind, name)?;
        let options = DeleteOptions { propagation: Some(Propagation::Orphan), ..DeleteOptions::default() };
        self.cluster.api().delete(&key, &options).map(|_| ()).map_err(refused)
    }

    async fn forbid_deletion(&mut self, kind: Kind, name: &str, forbidden: bool) -> Told {
        let key = self.key(kind, name)?;
        self.network.forbid_deletion(key, forbidden);
        Ok(())
    }

    async fn daemon_set(&mut self, name: &str) -> Told {
        self.cluster.daemon_set(name).map(|_| ()).map_err(refused)
    }

    async fn settle(&mut self) {
        // Past the quiet period of a new operator.
        self.cluster.run_for(Duration::from_secs(90)).await;
    }

    async fn run_for(&mut self, seconds: u64) {
        self.cluster.run_for(Duration::from_secs(seconds)).await;
    }

    async fn run_until(&mut self, seconds: u64, what: &str, so: impl FnMut(&dyn Look) -> bool) -> Told<Duration> {
        let took = self.look_until(Duration::from_secs(seconds), so).await;
        took.ok_or_else(|| Broken(format!("not within {seconds} s: {what}")))
    }

    async fn hold_for(&mut self, seconds: u64, what: &str, mut so: impl FnMut(&dyn Look) -> bool) -> Told {
        match self.look_until(Duration::from_secs(seconds), |world| !so(world)).await {
            None => Ok(()),
            Some(after) => Err(Broken(format!("no longer so after {after:?}: {what}"))),
        }
    }

    fn refused_deletions(&self) -> usize {
        self.network.refused_deletions()
    }

    fn two_writers(&self) -> Vec<String> {
        self.watchdog.bites()
    }
}

impl Embedded {
    fn lose_replicas(&mut self, node: &str) {
        for name in self.replicas_on(node) {
            self.crash(&name);
        }
    }

    fn set_link(&mut self, node: &str, link: Link, cut: bool) {
        if link == Link::Api {
            for name in self.replicas_on(node) {
                self.network.set_cut(&name, cut);
            }
        }
    }

    fn key(&self, kind: Kind, name: &str) -> Told<Key> {
        key(&self.cluster, kind, name).ok_or_else(|| Broken(format!("no kind {}", kind.words().1)))
    }
}

fn theirs(link: Link) -> machine::Link {
    match link {
        Link::Api => machine::Link::Api,
        Link::Storage => machine::Link::Storage,
        Link::Peers => machine::Link::Peers,
        Link::Devices => machine::Link::Devices,
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn refused(status: Status) -> Broken {
    Broken(format!("{}: {}", status.reason, status.message))
}
