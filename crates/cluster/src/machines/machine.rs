//! A machine: its power, its boots, its links.
//!
//! Promise: memory is lost exactly when the power is [`Power::Off`]; with it every process is gone. A machine that was
//! only suspended or hibernated comes back with the same boot and goes on where it stood.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    process::{Access, Exit, Process},
    program::Ended,
};
use crate::truth::{Later, Name, What, World, Writer};

/// The state of a machine's power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Power {
    /// Memory is lost.
    Off,
    /// Self test; no processes yet.
    PoweringOn,
    /// The operating system is there, or on its way.
    On,
    /// On its way to off; processes still run.
    PoweringOff,
    /// Stands still, memory kept under power.
    Suspended,
    /// Stands still without power, memory kept on disk. Looks like off.
    Hibernated,
}

impl Power {
    /// Whether processes run.
    pub fn runs(self) -> bool {
        matches!(self, Self::On | Self::PoweringOff)
    }
}

/// What a machine is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Link {
    /// To the API server.
    Api,
    /// To the storage system.
    Storage,
    /// To the other nodes.
    Peers,
    /// To the network of the BMCs.
    Devices,
}

/// How a machine's kubelet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KubeletState {
    /// Not there: no power, or still booting.
    Down,
    /// At work.
    Running,
    /// There, but it does nothing. Processes go on.
    Hung,
}

/// A machine.
#[derive(Debug)]
pub struct Machine {
    /// The name of its node.
    pub name: Name,
    /// SMBIOS UUID, as Kubernetes and Redfish show it.
    pub uuid: String,
    /// Serial number.
    pub serial: String,
    /// Its power.
    pub power: Power,
    /// Which boot its memory is of; nothing if it has none.
    pub boot: Option<Name>,
    /// How often it has booted.
    pub boots: u32,
    /// Its kubelet.
    pub kubelet: KubeletState,
    /// Links that are cut.
    pub cut: BTreeSet<Link>,
    /// What runs on it, by the UID of the pod.
    pub processes: BTreeMap<Name, Process>,
    /// What ended on it, by the UID of the pod, for as long as its kubelet hears of the pod. It is on disk.
    pub ended: BTreeMap<Name, Ended>,
    /// Outlets that feed it; it has power while one of them does. None: it is always fed.
    pub supplies: Vec<(Name, u32)>,
    /// Whether it starts by itself when the feed comes back.
    pub restores: bool,
    /// Whether power reaches it at all.
    pub fed: bool,
    /// The revision from which its kubelet lists pods; nothing means a fresh one.
    pub lists_from: Option<u64>,
    /// Counts changes of power, so that a step that was planned before one is dropped.
    epoch: u64,
}

impl Machine {
    /// A machine that has been on for long.
    pub(crate) fn running(name: &Name, number: usize, seed: u64) -> Self {
        let seed = seed & 0xffff_ffff;
        let mut machine = Self {
            name: Name::clone(name),
            uuid: format!("{seed:08x}-0000-4000-9000-{number:012x}"),
            serial: format!("SN{seed:08X}{number:05}"),
            power: Power::On,
            boot: None,
            boots: 0,
            kubelet: KubeletState::Running,
            cut: BTreeSet::new(),
            processes: BTreeMap::new(),
            ended: BTreeMap::new(),
            supplies: Vec::new(),
            restores: true,
            fed: true,
            lists_from: None,
            epoch: 0,
        };
        machine.new_boot();
        machine
    }

    /// Whether a link is up, for a machine that runs.
    pub fn reaches(&self, link: Link) -> bool {
        !self.cut.contains(&link)
    }

    /// Whether its kubelet is at work.
    pub fn kubelet_works(&self) -> bool {
        self.power.runs() && self.kubelet == KubeletState::Running
    }

    /// The processes of this machine that could write to a volume.
    pub fn writers<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = Writer> + 'a {
        let writes = move |process: &&Process| process.access(volume) == Some(Access::Writing);
        self.processes.values().filter(writes).filter_map(|process| self.writer(process))
    }

    pub(crate) fn writer(&self, process: &Process) -> Option<Writer> {
        let boot = self.boot.clone()?;
        Some(Writer { node: Name::clone(&self.name), boot, pod: Name::clone(&process.pod) })
    }

    fn new_boot(&mut self) {
        self.boots += 1;
        // Made from the machine's UUID: unlike any other, and the same in each run.
        self.boot = Some(format!("{}-{:04x}{}", &self.uuid[..18], self.boots, &self.uuid[23..]).into());
    }
}

/// The steps that a machine takes by itself.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    PoweredOff,
    PoweredOn,
    KubeletUp,
    Resumed,
    /// Off and then on again.
    Cycled,
}

/// How power is to be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Switch {
    /// On, from whatever state.
    On,
    /// Off, as by holding the button.
    ForceOff,
    /// Off, by asking the operating system.
    GracefulOff,
    /// Off, and on again.
    Restart,
}

impl World {
    /// The feed is gone: memory is lost at once.
    pub fn feed_fails(&mut self, node: &str) {
        self.goes_off(node);
        if let Some(machine) = self.machines.get_mut(node) {
            machine.fed = false;
        }
    }

    /// The feed is back; machines that restore their state come up.
    pub fn feed_returns(&mut self, node: &str) {
        let Some(machine) = self.machines.get_mut(node).filter(|machine| !machine.fed) else { return };
        machine.fed = true;
        if machine.restores {
            self.switch(node, Switch::On);
        }
    }

    /// Somebody presses a button, at the machine or through its BMC.
    pub fn switch(&mut self, node: &str, switch: Switch) {
        let Some(machine) = self.machines.get(node).filter(|machine| machine.fed) else { return };
        let power = machine.power;
        match (switch, power) {
            (Switch::On, Power::Off) => {
                self.set_power(node, Power::PoweringOn);
                // Self test, as long as a server with little memory takes.
                let wait = self.dice.millis(2_000, 4_000);
                self.step_later(node, wait, Step::PoweredOn);
            }
            (Switch::On, Power::Suspended | Power::Hibernated) => {
                let wait = if power == Power::Hibernated { self.dice.millis(8_000, 15_000) } else { Duration::ZERO };
                self.step_later(node, wait, Step::Resumed);
            }
            // Nothing runs there, and nothing may run for even a moment on the way to off.
            (Switch::ForceOff, Power::Suspended) => self.goes_off(node),
            (Switch::ForceOff, Power::PoweringOn | Power::On | Power::PoweringOff) => {
                self.set_power(node, Power::PoweringOff);
                let wait = self.dice.millis(300, 1_500);
                self.step_later(node, wait, Step::PoweredOff);
            }
            (Switch::GracefulOff, Power::On) => {
                self.set_power(node, Power::PoweringOff);
                let wait = self.dice.millis(5_000, 15_000);
                self.step_later(node, wait, Step::PoweredOff);
            }
            (Switch::Restart, Power::PoweringOn | Power::On | Power::PoweringOff) => {
                self.set_power(node, Power::PoweringOff);
                let wait = self.dice.millis(300, 1_500);
                self.step_later(node, wait, Step::Cycled);
            }
            // What is off stays off, and a machine that hibernates keeps its image through any off.
            _ => {}
        }
    }

    /// The machine stands still with its memory under power.
    pub fn suspend(&mut self, node: &str) {
        self.pause(node, Power::Suspended);
    }

    /// The machine writes its memory to disk and switches itself off.
    pub fn hibernate(&mut self, node: &str) {
        self.pause(node, Power::Hibernated);
    }

    fn pause(&mut self, node: &str, power: Power) {
        if self.machines.get(node).is_some_and(|machine| machine.power == Power::On) {
            self.set_power(node, power);
        }
    }

    /// Cuts or heals a link.
    pub fn set_link(&mut self, node: &str, link: Link, up: bool) {
        let Some(machine) = self.machines.get_mut(node) else { return };
        let changed = if up { machine.cut.remove(&link) } else { machine.cut.insert(link) };
        if changed {
            let node = Name::clone(&machine.name);
            self.touched.insert(Name::clone(&node));
            self.happened(What::Link { node, link, up });
        }
    }

    /// Makes a kubelet hang or go on. One that is down stays down.
    pub fn set_kubelet(&mut self, node: &str, is: KubeletState) {
        let Some(machine) = self.machines.get_mut(node) else { return };
        if machine.kubelet != KubeletState::Down && machine.kubelet != is {
            machine.kubelet = is;
            let node = Name::clone(&machine.name);
            self.happened(What::Kubelet { node, is });
        }
    }

    /// Lets a kubelet list pods as they were after that write, or as they are.
    pub fn set_lists_from(&mut self, node: &str, revision: Option<u64>) {
        let Some(machine) = self.machines.get_mut(node) else { return };
        machine.lists_from = revision;
        let node = Name::clone(&machine.name);
        self.happened(What::Lags { node, behind: revision });
    }

    /// A kubelet starts anew in the same boot: its memory is gone, the processes are not.
    pub fn restart_kubelet(&mut self, node: &str) {
        let Some(machine) = self.machines.get_mut(node).filter(|machine| machine.kubelet != KubeletState::Down) else {
            return;
        };
        machine.kubelet = KubeletState::Down;
        let node = Name::clone(&machine.name);
        self.happened(What::Kubelet { node: Name::clone(&node), is: KubeletState::Down });
        let wait = self.dice.millis(1_000, 3_000);
        self.step_later(&node, wait, Step::KubeletUp);
    }

    pub(crate) fn machine_steps(&mut self, node: &str, epoch: u64, step: Step) {
        if self.machines.get(node).is_none_or(|machine| machine.epoch != epoch) {
            return;
        }
        match step {
            Step::PoweredOff => self.goes_off(node),
            Step::Cycled => {
                self.goes_off(node);
                self.switch(node, Switch::On);
            }
            Step::PoweredOn => {
                if let Some(machine) = self.machines.get_mut(node) {
                    machine.new_boot();
                }
                self.set_power(node, Power::On);
                let (least, most) = self.boot;
                let wait = self.dice.millis(least, most);
                self.step_later(node, wait, Step::KubeletUp);
            }
            Step::KubeletUp => {
                let Some(machine) = self.machines.get_mut(node) else { return };
                machine.kubelet = KubeletState::Running;
                let node = Name::clone(&machine.name);
                self.happened(What::Kubelet { node, is: KubeletState::Running });
            }
            Step::Resumed => {
                self.set_power(node, Power::On);
                // It fell asleep before its kubelet was up: that goes on, too.
                if self.machines.get(node).is_some_and(|machine| machine.kubelet == KubeletState::Down) {
                    let wait = self.dice.millis(2_000, 5_000);
                    self.step_later(node, wait, Step::KubeletUp);
                }
            }
        }
    }

    fn goes_off(&mut self, node: &str) {
        let Some(machine) = self.machines.get_mut(node) else { return };
        machine.kubelet = KubeletState::Down;
        let gone: Vec<Name> = machine.processes.keys().cloned().collect();
        for pod in gone {
            self.process_exits(node, &pod, Exit::Power);
        }
        self.set_power(node, Power::Off);
    }

    fn set_power(&mut self, node: &str, is: Power) {
        let Some(machine) = self.machines.get_mut(node) else { return };
        let was = std::mem::replace(&mut machine.power, is);
        machine.epoch += 1;
        if is == Power::Off {
            machine.boot = None;
        }
        if was != is {
            let (node, boot) = (Name::clone(&machine.name), machine.boot.clone());
            self.touched.insert(Name::clone(&node));
            self.happened(What::Power { node, was, is, boot });
        }
    }

    fn step_later(&mut self, node: &str, wait: Duration, step: Step) {
        let Some(machine) = self.machines.get(node) else { return };
        let (node, epoch) = (Name::clone(&machine.name), machine.epoch);
        self.plan(wait, Later::Machine { node, epoch, step });
    }
}
