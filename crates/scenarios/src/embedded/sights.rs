//! Embedded / sights: what a story sees of the embedded cluster. Objects come from the API, everything else from the truth.

use std::time::Duration;

use palisade_cluster::Cluster;
use palisade_cluster::api::Key;
use palisade_cluster::machines::machine::{self, Switch};
use serde_json::Value;

use super::Embedded;
use crate::look::Look;
use crate::world::{Kind, Power, Switched};

/// A look at a cluster.
pub(super) struct Sight<'a>(pub(super) &'a Cluster);

/// Where an object is.
pub(super) fn key(cluster: &Cluster, kind: Kind, name: &str) -> Option<Key> {
    let (group, word) = kind.words();
    let found = cluster.api().kind(group, word)?;
    Some(if kind.home().is_empty() { Key::cluster(found, name) } else { Key::new(found, kind.home(), name) })
}

impl Look for Sight<'_> {
    fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        let key = key(self.0, kind, name)?;
        self.0.api().get(&key).map(|object| Value::clone(&object))
    }

    fn list(&self, kind: Kind) -> Vec<Value> {
        let (group, word) = kind.words();
        let Some(found) = self.0.api().kind(group, word) else { return Vec::new() };
        self.0.api().list(found).iter().map(|object| Value::clone(object)).collect()
    }

    fn power_of(&self, node: &str) -> Power {
        match self.0.power(node) {
            None | Some(machine::Power::Off) => Power::Off,
            Some(machine::Power::Suspended | machine::Power::Hibernated) => Power::Sleeps,
            Some(machine::Power::On | machine::Power::PoweringOn | machine::Power::PoweringOff) => Power::On,
        }
    }

    fn writers_of(&self, claim: &str) -> Vec<String> {
        let Some(volume) = self.0.volume_of(claim) else { return Vec::new() };
        let mut nodes: Vec<String> = self.0.writers(&volume).iter().map(|writer| writer.node.to_string()).collect();
        nodes.dedup();
        nodes
    }

    fn commands_to(&self, node: &str) -> Vec<Switched> {
        let said = |switch| match switch {
            Switch::On => Switched::On,
            Switch::ForceOff | Switch::GracefulOff => Switched::Off,
            Switch::Restart => Switched::Cycle,
        };
        self.0.bmc(node).log().into_iter().map(|(_, command)| said(command.switch)).collect()
    }

    fn boots_of(&self, node: &str) -> u32 {
        self.0.truth().look(|world| world.machines.get(node).map_or(0, |machine| machine.boots))
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

impl Look for Embedded {
    fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        Sight(&self.cluster).get(kind, name)
    }

    fn list(&self, kind: Kind) -> Vec<Value> {
        Sight(&self.cluster).list(kind)
    }

    fn power_of(&self, node: &str) -> Power {
        Sight(&self.cluster).power_of(node)
    }

    fn writers_of(&self, claim: &str) -> Vec<String> {
        Sight(&self.cluster).writers_of(claim)
    }

    fn commands_to(&self, node: &str) -> Vec<Switched> {
        Sight(&self.cluster).commands_to(node)
    }

    fn boots_of(&self, node: &str) -> u32 {
        Sight(&self.cluster).boots_of(node)
    }

    fn elapsed(&self) -> Duration {
        self.cluster.elapsed()
    }
}
