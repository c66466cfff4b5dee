//! Moment: what was true, and what stood in the API, at one instant.

use std::fmt;

use palisade_api::names;
use palisade_cluster::Cluster;
use palisade_cluster::api::{Kind, metadata};
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::Machine;
use palisade_cluster::truth::World;

use crate::words;

/// One instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// Machines and volumes, by the truth.
    pub truth: Vec<String>,
    /// Objects, by the API.
    pub objects: Vec<String>,
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "by the truth:")?;
        for line in &self.truth {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "by the API:")?;
        for line in &self.objects {
            writeln!(f, "  {line}")?;
        }
        Ok(())
    }
}

/// What is true of each machine, and who can write to each volume.
pub(crate) fn truth(world: &World) -> Vec<String> {
    let mut lines: Vec<String> = world.machines.values().map(|machine| of_machine(world, machine)).collect();
    for volume in world.storage.volumes.keys() {
        let writers: Vec<String> = world.writers(volume).iter().map(|writer| name_of(world, writer)).collect();
        let words = if writers.is_empty() { "nobody".to_owned() } else { writers.join(" and ") };
        lines.push(format!("{volume}: {words} can write"));
    }
    lines
}

fn name_of(world: &World, writer: &palisade_cluster::truth::Writer) -> String {
    let machine = world.machines.get(&writer.node);
    let process = machine.and_then(|machine| machine.processes.get(&writer.pod));
    format!("{} on {}", process.map_or("?", |process| &process.of), writer.node)
}

fn of_machine(world: &World, machine: &Machine) -> String {
    let mut words = vec![format!("{:?}", machine.power), format!("kubelet {:?}", machine.kubelet)];
    words.push(format!("boot {}", machine.boots));
    words.extend(machine.cut.iter().map(|link| format!("{link:?} cut")));
    if let Some(bmc) = world.bmcs.get(&machine.name).filter(|bmc| bmc.behaviour != Behaviour::Honest) {
        words.push(format!("BMC {:?}", bmc.behaviour));
    }
    let pods: Vec<String> = machine.processes.values().map(|process| process.of.to_string()).collect();
    if !pods.is_empty() {
        words.push(format!("runs {}", pods.join(", ")));
    }
    format!("{}: {}", machine.name, words.join(", "))
}

/// What stood in the API after a write.
pub(crate) fn objects(cluster: &Cluster, revision: u64) -> Vec<String> {
    let ours = |name: &str| cluster.api().kind(names::GROUP, name);
    let kinds = [
        ("Node", Some(Kind::NODE)),
        ("FencePolicy", ours("FencePolicy")),
        ("NodeFencingRequest", ours("NodeFencingRequest")),
        ("NodeFence", ours("NodeFence")),
        ("Pod", Some(Kind::POD)),
        ("VolumeAttachment", Some(Kind::VOLUME_ATTACHMENT)),
    ];
    let mut lines = Vec::new();
    for (name, kind) in kinds {
        let all = kind.and_then(|kind| cluster.api().list_at(kind, revision).ok()).unwrap_or_default();
        for object in all {
            let facts = words::shown(words::facts(name, &object));
            lines.push(format!("{name} {}: {}", metadata::name(&object), facts.join(", ")));
        }
    }
    lines
}
