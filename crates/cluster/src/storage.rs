//! The storage system: who is attached to a volume, whom it refuses, and what was written.
//!
//! Promise: a refusal holds for every write that reaches the storage from then on. Detaching alone refuses nobody, as
//! with most network storage, unless [`StorageSettings::unpublish_revokes`] says so: attachments are a word, not a lock.
//! The log is kept in stretches ("this process could write from here to there"); lines are worked out when asked for,
//! so that a writer costs nothing while nothing happens to it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    machines::{
        machine::{Link, Machine},
        process::{Access, Mount},
    },
    truth::{Name, What, World, Writer},
};

/// How often a process writes a line.
pub const LINE: Duration = Duration::from_secs(1);

/// What kind of storage system this is. The default is the most dangerous kind: nothing but a fence stops anybody, and
/// that only while it lasts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageSettings {
    /// It will not publish a volume to a second node while it is published to another.
    pub exclusive: bool,
    /// A node that a volume is unpublished from can no longer write to it.
    pub unpublish_revokes: bool,
    /// A fence ends the sessions of the node for good: what hung then gets errors for ever.
    pub revokes_sessions: bool,
}

/// A volume.
#[derive(Clone, Debug, Default)]
pub struct Volume {
    /// Whether it is meant for many nodes at once.
    pub many_nodes: bool,
    /// The nodes that it is published to.
    pub published: BTreeSet<Name>,
    /// What the driver answers to every unpublish, as long as it is in trouble.
    pub trouble: Option<String>,
    /// The nodes whose keys are registered, while a reservation lets only those write (SCSI-3: write exclusive, registrants only).
    pub reserved_for: Option<BTreeSet<Name>>,
}

/// A stretch of time in which a process could write to a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The volume.
    pub volume: Name,
    /// Who.
    pub writer: Writer,
    /// From when.
    pub from: Duration,
    /// Until when; nothing if it goes on.
    pub until: Option<Duration>,
}

/// One line on a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// When it reached the volume.
    pub at: Duration,
    /// By whom.
    pub writer: Writer,
    /// When it was written, if it was held up on the way.
    pub stale_since: Option<Duration>,
}

/// The storage system.
#[derive(Debug, Default)]
pub struct Storage {
    /// What kind it is.
    pub settings: StorageSettings,
    /// Its volumes, by handle.
    pub volumes: BTreeMap<Name, Volume>,
    fenced: BTreeSet<(Name, Option<Name>)>,
    revoked: BTreeSet<u64>,
    sessions: u64,
    stretches: Vec<Stretch>,
    flushes: Vec<(Name, Line)>,
}

impl Storage {
    pub(crate) fn new(settings: StorageSettings) -> Self {
        Self { settings, ..Self::default() }
    }

    /// Whether a node, or that boot of it, is refused.
    pub fn is_fenced(&self, node: &str, boot: Option<&str>) -> bool {
        let hits = |(fenced, only): &(Name, Option<Name>)| {
            **fenced == *node && only.as_deref().is_none_or(|only| Some(only) == boot)
        };
        self.fenced.iter().any(hits)
    }

    /// Who is refused, and in which boot.
    pub fn fences(&self) -> impl Iterator<Item = &(Name, Option<Name>)> {
        self.fenced.iter()
    }

    /// When who could write to a volume, in the order in which they began.
    pub fn stretches<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = &'a Stretch> {
        self.stretches.iter().filter(move |stretch| *stretch.volume == *volume)
    }

    /// The lines on a volume up to now, oldest first.
    pub fn lines(&self, volume: &str, now: Duration) -> Vec<Line> {
        let mut lines = Vec::new();
        for stretch in self.stretches(volume) {
            let mut at = stretch.from;
            let until = stretch.until.unwrap_or(now);
            while at < until {
                lines.push(Line { at, writer: stretch.writer.clone(), stale_since: None });
                at += LINE;
            }
        }
        lines.extend(self.flushes.iter().filter(|(on, _)| **on == *volume).map(|(_, line)| line.clone()));
        lines.sort_by_key(|line| line.at);
        lines
    }

    /// Writes that reached a volume long after they were made.
    pub fn flushes<'a>(&'a self, volume: &'a str) -> impl Iterator<Item = &'a Line> {
        self.flushes.iter().filter(move |(on, _)| **on == *volume).map(|(_, line)| line)
    }

    pub(crate) fn access(&self, machine: &Machine, volume: &Name, mount: &Mount) -> Access {
        if !machine.power.runs() {
            return Access::Frozen;
        }
        if mount.read_only {
            return Access::Reading;
        }
        if !machine.reaches(Link::Storage) {
            return Access::Stuck;
        }
        let published = || self.volumes.get(volume).is_some_and(|volume| volume.published.contains(&machine.name));
        let reserved = self.volumes.get(volume).and_then(|volume| volume.reserved_for.as_ref());
        let refused = self.is_fenced(&machine.name, machine.boot.as_deref())
            || reserved.is_some_and(|registered| !registered.contains(&machine.name))
            || self.revoked.contains(&mount.session)
            || (self.settings.unpublish_revokes && !published());
        if refused { Access::Refused } else { Access::Writing }
    }

    pub(crate) fn new_session(&mut self) -> u64 {
        self.sessions += 1;
        self.sessions
    }

    pub(crate) fn stretch_begins(&mut self, volume: &Name, writer: &Writer, from: Duration) {
        self.stretches.push(Stretch { volume: Name::clone(volume), writer: writer.clone(), from, until: None });
    }

    pub(crate) fn stretch_ends(&mut self, volume: &Name, writer: &Writer, until: Duration) {
        let open =
            |stretch: &&mut Stretch| stretch.until.is_none() && stretch.volume == *volume && stretch.writer == *writer;
        if let Some(stretch) = self.stretches.iter_mut().rev().find(open) {
            stretch.until = Some(until);
        }
    }

    pub(crate) fn flushed(&mut self, volume: &Name, writer: &Writer, at: Duration, since: Duration) {
        let line = Line { at, writer: writer.clone(), stale_since: Some(since) };
        self.flushes.push((Name::clone(volume), line));
    }
}

impl World {
    /// Makes a volume.
    pub(crate) fn make_volume(&mut self, handle: &Name, many_nodes: bool) {
        self.storage.volumes.entry(Name::clone(handle)).or_insert(Volume { many_nodes, ..Volume::default() });
    }

    /// ControllerPublishVolume.
    pub fn publish(&mut self, handle: &str, node: &Name) -> Result<(), String> {
        let exclusive = self.storage.settings.exclusive;
        let Some((handle, volume)) = self
            .storage
            .volumes
            .get_key_value(handle)
            .map(|(name, _)| Name::clone(name))
            .and_then(|name| self.storage.volumes.get_mut(&name).map(|volume| (name, volume)))
        else {
            return Err(format!("rpc error: code = NotFound desc = volume {handle} not found"));
        };
        if let Some(other) = volume.published.iter().find(|other| *other != node && exclusive && !volume.many_nodes) {
            let why = format!("volume {handle} is published to node {other}");
            return Err(format!("rpc error: code = FailedPrecondition desc = {why}"));
        }
        if volume.published.insert(Name::clone(node)) {
            self.touched.insert(Name::clone(node));
            self.happened(What::Published { volume: handle, node: Name::clone(node) });
        }
        Ok(())
    }

    /// ControllerUnpublishVolume.
    pub fn unpublish(&mut self, handle: &str, node: &Name) -> Result<(), String> {
        let handle = Name::from(handle);
        // A volume that is not there is not published either.
        let Some(volume) = self.storage.volumes.get_mut(&handle) else { return Ok(()) };
        if let Some(trouble) = &volume.trouble {
            return Err(trouble.clone());
        }
        if volume.published.remove(node) {
            self.touched.insert(Name::clone(node));
            self.happened(What::Unpublished { volume: handle, node: Name::clone(node) });
        }
        Ok(())
    }

    /// Reserves a volume for the nodes whose keys are registered; none: the reservation is released. A key that is no longer among them
    /// was preempted, and stays so over a boot: a node that comes back has to register anew.
    pub fn reserve(&mut self, handle: &str, registered: Option<BTreeSet<Name>>) {
        let Some(volume) = self.storage.volumes.get_mut(handle) else { return };
        volume.reserved_for = registered;
        // Whoever has it mounted is refused, or no longer.
        self.touched.extend(self.machines.keys().map(Name::clone));
    }

    /// Refuses every write of a node, or of one boot of it.
    pub fn fence(&mut self, node: &str, boot: Option<&str>) {
        let (node, boot) = (Name::from(node), boot.map(Name::from));
        if self.storage.settings.revokes_sessions {
            let machine = self.machines.get(&node).filter(|machine| boot.is_none() || machine.boot == boot);
            let processes = machine.into_iter().flat_map(|machine| machine.processes.values());
            let sessions = processes.flat_map(|process| process.mounts.values().map(|mount| mount.session));
            self.storage.revoked.extend(sessions);
        }
        if self.storage.fenced.insert((Name::clone(&node), boot.clone())) {
            self.touched.insert(Name::clone(&node));
            self.happened(What::Fenced { node, boot });
        }
    }

    /// Lifts a fence.
    pub fn unfence(&mut self, node: &str, boot: Option<&str>) {
        let fence = (Name::from(node), boot.map(Name::from));
        if self.storage.fenced.remove(&fence) {
            let (node, boot) = fence;
            self.touched.insert(Name::clone(&node));
            self.happened(What::Unfenced { node, boot });
        }
    }

    /// Lets every unpublish of a volume fail with this answer, or no longer.
    pub fn set_trouble(&mut self, handle: &str, trouble: Option<&str>) {
        if let Some(volume) = self.storage.volumes.get_mut(handle) {
            volume.trouble = trouble.map(str::to_owned);
        }
    }
}
