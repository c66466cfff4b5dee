//! A pod's process: it writes to its volumes about every second, for as long as it can.
//!
//! Promise: whether it *can* write is worked out again after everything that touches its machine or the storage, and
//! each change is an [`What`]. The single lines are not events: they follow from the stretches (`storage.rs`).
//! A process that cannot get its write through keeps it, and flushes it when it can: that is how stale data reaches a
//! volume that belongs to another node by then.

use std::{collections::BTreeMap, time::Duration};

use super::program::{End, Ended, Which};
use crate::truth::{Later, Name, What, World, Writer};

/// What a process can do to a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Access {
    /// It reads only.
    Reading,
    /// It writes, line by line.
    Writing,
    /// The storage system answers each write with a refusal.
    Refused,
    /// No answer: it hangs in the write and cannot even be killed (state D).
    Stuck,
    /// Its machine stands still.
    Frozen,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// By itself.
    Code(i32),
    /// It was told to.
    Terminated,
    /// It was made to.
    Killed,
    /// Its machine lost its memory.
    Power,
}

/// A volume in the hands of a process.
#[derive(Clone, Debug)]
pub struct Mount {
    /// Whether it was mounted for reading only.
    pub read_only: bool,
    /// The storage session: it ends with the mount, or when the storage system revokes it.
    pub session: u64,
    /// What the process can do.
    pub access: Access,
    /// Since when a write waits; nothing if none does.
    pub held: Option<Duration>,
}

/// A pod's process.
#[derive(Clone, Debug)]
pub struct Process {
    /// The pod's UID.
    pub pod: Name,
    /// The pod, as namespace and name.
    pub of: Name,
    /// Since when it runs.
    pub since: Duration,
    /// Its volumes, by handle.
    pub mounts: BTreeMap<Name, Mount>,
    /// Killed, but stuck in a write: it goes as soon as that ends.
    pub doomed: bool,
    /// Unlike that of any other process.
    pub run: u64,
    /// What it has written into its termination log.
    pub words: String,
    /// How it ends when it is told to; nothing if it just ends.
    pub(crate) told: Option<End>,
}

impl Process {
    /// What it can do to a volume.
    pub fn access(&self, volume: &str) -> Option<Access> {
        self.mounts.get(volume).map(|mount| mount.access)
    }

    /// Whether it hangs in a write.
    pub fn is_stuck(&self) -> bool {
        self.mounts.values().any(|mount| mount.access == Access::Stuck)
    }
}

/// What a process is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Term,
    Kill,
}

/// How long a pod is at work that does nothing but write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stint {
    /// How long it runs by itself; nothing means for ever.
    pub(crate) runs_for: Option<Duration>,
    /// What it then ends with.
    pub(crate) end: End,
}

/// A pod that is about to run.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) pod: Name,
    pub(crate) of: Name,
    /// Volumes, by handle, and whether for reading only.
    pub(crate) volumes: Vec<(Name, bool)>,
    pub(crate) stint: Stint,
    /// How it ends when it is told to; nothing if it just ends.
    pub(crate) told: Option<End>,
}

impl World {
    /// Begins a process, and says which it is of all that ever were; nothing if its machine does not run.
    pub(crate) fn start_process(&mut self, node: &str, start: Start) -> Option<u64> {
        let now = self.now;
        let mut mounts = BTreeMap::new();
        for (volume, read_only) in start.volumes {
            let session = self.storage.new_session();
            mounts.insert(volume, Mount { read_only, session, access: Access::Frozen, held: None });
        }
        let machine = self.machines.get_mut(node).filter(|machine| machine.power.runs())?;
        self.runs += 1;
        let (run, told, words) = (self.runs, start.told, String::new());
        let pod = Name::clone(&start.pod);
        let process = Process { pod, of: start.of, since: now, mounts, doomed: false, run, words, told };
        machine.ended.remove(&start.pod);
        machine.processes.insert(Name::clone(&start.pod), process);
        let node = Name::clone(&machine.name);
        self.touched.insert(Name::clone(&node));
        self.happened(What::Started { node: Name::clone(&node), pod: Name::clone(&start.pod) });
        if let Some(runs_for) = start.stint.runs_for {
            let which = Which { node, pod: start.pod, run };
            self.plan(runs_for, Later::Program { which, end: start.stint.end });
        }
        Some(run)
    }

    /// Tells a process to end. It takes its time, and one that hangs in a write takes as long as that does.
    pub(crate) fn signal(&mut self, node: &str, pod: &Name, signal: Signal) {
        let Some(machine) = self.machines.get_mut(node) else { return };
        let node = Name::clone(&machine.name);
        let Some(process) = machine.processes.get_mut(pod) else { return };
        let stuck = process.is_stuck();
        match signal {
            Signal::Kill if stuck => process.doomed = true,
            Signal::Kill => self.process_exits(&node, pod, Exit::Killed),
            Signal::Term => {
                let wait = self.dice.millis(100, 1_000);
                self.plan(wait, Later::Exit { node, pod: Name::clone(pod), exit: Exit::Terminated });
            }
        }
    }

    pub(crate) fn process_exits(&mut self, node: &str, pod: &Name, exit: Exit) {
        let Some(machine) = self.machines.get_mut(node) else { return };
        // Who hangs in a write, or stands still, ends only when that ends, unless the memory itself goes.
        if exit != Exit::Power
            && machine.processes.get(pod).is_some_and(|process| process.is_stuck() || !machine.power.runs())
        {
            if let Some(process) = machine.processes.get_mut(pod) {
                process.doomed = true;
            }
            return;
        }
        let Some(mut process) = machine.processes.remove(pod) else { return };
        let exit = match (exit, process.told.take()) {
            (Exit::Terminated, Some(end)) => {
                process.words = end.words;
                Exit::Code(end.code)
            }
            (exit, _) => exit,
        };
        let words = std::mem::take(&mut process.words);
        machine.ended.insert(Name::clone(pod), Ended { exit, words });
        let (node, writer) = (Name::clone(&machine.name), machine.writer(&process));
        if let Some(writer) = writer {
            for (volume, mount) in process.mounts {
                if mount.access == Access::Writing {
                    self.storage.stretch_ends(&volume, &writer, self.now);
                    self.happened(What::CannotWrite { volume, writer: Writer::clone(&writer) });
                }
            }
        }
        self.happened(What::Ended { node, pod: Name::clone(pod), exit });
    }

    /// Works out anew who can write, on every machine that was touched.
    pub(crate) fn settle(&mut self) {
        for node in std::mem::take(&mut self.touched) {
            let Some(machine) = self.machines.get(&node) else { continue };
            let mut changes = Vec::new();
            for process in machine.processes.values() {
                for (volume, mount) in &process.mounts {
                    let access = self.storage.access(machine, volume, mount);
                    if access != mount.access {
                        changes.push((Name::clone(&process.pod), Name::clone(volume), access));
                    }
                }
            }
            for (pod, volume, access) in changes {
                self.access_changes(&node, &pod, &volume, access);
            }
            self.bury_the_doomed(&node);
        }
    }

    fn access_changes(&mut self, node: &Name, pod: &Name, volume: &Name, access: Access) {
        let now = self.now;
        let Some(machine) = self.machines.get_mut(node) else { return };
        let Some(boot) = machine.boot.clone() else { return };
        let writer = Writer { node: Name::clone(node), boot, pod: Name::clone(pod) };
        let Some(mount) = machine.processes.get_mut(pod).and_then(|process| process.mounts.get_mut(volume)) else {
            return;
        };
        let was = std::mem::replace(&mut mount.access, access);
        let volume = Name::clone(volume);
        if was == Access::Writing {
            mount.held = Some(now);
            self.storage.stretch_ends(&volume, &writer, now);
            self.happened(What::CannotWrite { volume, writer });
        } else if access == Access::Writing {
            let held = mount.held.take();
            self.storage.stretch_begins(&volume, &writer, now);
            self.happened(What::CanWrite { volume: Name::clone(&volume), writer: Writer::clone(&writer) });
            if let Some(since) = held {
                self.storage.flushed(&volume, &writer, now, since);
                self.happened(What::Flushed { volume, writer, since });
            }
        }
    }

    fn bury_the_doomed(&mut self, node: &Name) {
        let Some(machine) = self.machines.get(node).filter(|machine| machine.power.runs()) else { return };
        let freed = |process: &&Process| process.doomed && !process.is_stuck();
        let doomed: Vec<Name> = machine.processes.values().filter(freed).map(|process| process.pod.clone()).collect();
        for pod in doomed {
            self.process_exits(node, &pod, Exit::Killed);
        }
    }
}
