//! What can be done to a cluster, in the words of stories.

use std::time::Duration;

use serde_json::Value;

use super::Cluster;
use crate::{
    api::{DeleteOptions, Deleted, Key, Kind, Object, Status},
    machines::{
        bmc::{Behaviour, Bmc, Command},
        machine::{KubeletState, Link, Switch},
    },
    truth::{Daemon, DaemonState, Name, Truth},
};

impl Cluster {
    /// Makes an object.
    pub fn create(&self, kind: Kind, object: Value) -> Result<Object, Status> {
        self.api.create(kind, object)
    }

    /// Deletes a Node, as an administrator or an autoscaler does.
    pub fn delete_node(&self, node: &str) -> Result<Deleted, Status> {
        self.api.delete(&Key::cluster(Kind::NODE, node), &DeleteOptions::default())
    }

    /// Deletes a pod of the namespace `default` by force.
    pub fn force_delete(&self, pod: &str) -> Result<Deleted, Status> {
        let options = DeleteOptions { grace: Some(0), ..DeleteOptions::default() };
        self.api.delete(&Key::new(Kind::POD, "default", pod), &options)
    }

    /// A machine loses its power; its BMC and its feed do not.
    pub fn power_off(&self, node: &str) {
        self.truth.act(|world| {
            world.feed_fails(node);
            if let Some(machine) = world.machines.get_mut(node) {
                machine.fed = true;
            }
        });
    }

    /// A machine's feed fails: its BMC is gone with it.
    pub fn cut_feed(&self, node: &str) {
        self.truth.act(|world| world.feed_fails(node));
    }

    /// The feed is back.
    pub fn restore_feed(&self, node: &str) {
        self.truth.act(|world| world.feed_returns(node));
    }

    /// Somebody presses a machine's button, past every BMC.
    pub fn outside_on(&self, node: &str) {
        self.truth.act(|world| world.switch(node, Switch::On));
    }

    /// Stands a machine still with its memory.
    pub fn suspend(&self, node: &str) {
        self.truth.act(|world| world.suspend(node));
    }

    /// Lets a machine that was suspended or hibernates go on.
    pub fn resume(&self, node: &str) {
        self.outside_on(node);
    }

    /// Lets a machine write its memory to disk and switch itself off.
    pub fn hibernate(&self, node: &str) {
        self.truth.act(|world| world.hibernate(node));
    }

    /// Cuts a link of a machine.
    pub fn cut(&self, node: &str, link: Link) {
        self.truth.act(|world| world.set_link(node, link, false));
    }

    /// Heals a link of a machine.
    pub fn heal(&self, node: &str, link: Link) {
        self.truth.act(|world| world.set_link(node, link, true));
    }

    /// A kubelet hangs; the pods go on.
    pub fn kubelet_hang(&self, node: &str) {
        self.truth.act(|world| world.set_kubelet(node, KubeletState::Hung));
    }

    /// A kubelet that hung goes on.
    pub fn kubelet_resume(&self, node: &str) {
        self.truth.act(|world| world.set_kubelet(node, KubeletState::Running));
    }

    /// A kubelet starts anew; the pods go on.
    pub fn kubelet_restart(&self, node: &str) {
        self.truth.act(|world| world.restart_kubelet(node));
    }

    /// A kubelet lists pods from an old revision, until it is told to catch up with `None`.
    pub fn kubelet_lists_from(&self, node: &str, revision: Option<u64>) {
        self.truth.act(|world| world.set_lists_from(node, revision));
    }

    /// Pauses, ends or starts a daemon of the control plane.
    pub fn set_daemon(&self, daemon: Daemon, is: DaemonState) {
        self.truth.act(|world| world.set_daemon(daemon, is));
    }

    /// A machine's BMC.
    pub fn bmc(&self, node: &str) -> BmcHandle {
        BmcHandle { truth: self.truth.clone(), node: Name::from(node) }
    }
}

/// A BMC, in the hands of a test.
#[derive(Clone, Debug)]
pub struct BmcHandle {
    truth: Truth,
    node: Name,
}

impl BmcHandle {
    /// Makes it behave like this from now on.
    pub fn set(&self, behaviour: Behaviour) {
        self.change(|bmc| bmc.behaviour = behaviour);
    }

    /// Whether it can tell a machine that hibernates from one that is off.
    pub fn tells_hibernated(&self, tells: bool) {
        self.change(|bmc| bmc.tells_hibernated = tells);
    }

    /// Every reset that reached it.
    pub fn log(&self) -> Vec<(Duration, Command)> {
        self.truth.look(|world| world.bmcs.get(&self.node).map(|bmc| bmc.log.clone()).unwrap_or_default())
    }

    /// Host, user and password.
    pub fn login(&self) -> Option<(String, String, String)> {
        self.truth.look(|world| {
            let bmc = world.bmcs.get(&self.node)?;
            Some((bmc.host.clone(), bmc.user.clone(), bmc.password.clone()))
        })
    }

    /// Gives it another login; sessions that are open go on.
    pub fn set_login(&self, user: &str, password: &str) {
        self.change(|bmc| (bmc.user, bmc.password) = (user.to_owned(), password.to_owned()));
    }

    fn change(&self, change: impl FnOnce(&mut Bmc)) {
        self.truth.act(|world| world.bmcs.get_mut(&self.node).map(change));
    }
}
