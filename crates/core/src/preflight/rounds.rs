//! Preflight / rounds: which devices are asked now, and what is known of each.
//!
//! Promise: a device is asked once in its interval, at a second of its own; one that fails sooner, and more slowly each time. No more
//! than [`TOGETHER`] are asked at a time, one begins every [`EACH`], and one at a time at each address: a PDU with forty outlets is
//! one device that can do one thing.
//! Promise: for all of it no more than one Secret is read every [`SECRET`]. Devices that need the same one are asked in one series,
//! which reads it once. Where there are more Secrets than fit into the interval, it takes longer; that is told, see [`Rounds::behind`].
//! Never: asks a device of a node that is being fenced, as its executor talks to it; asks a device again that has not answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::health::{self, Health};
use super::outcome::Outcome;
use super::spread::{FIRST, hash, kept, slot, wait};
use super::{Key, Login, Part, Wired};
use crate::ident::{MethodName, NodeName};
use crate::time::{Span, Tick};

/// So many devices are asked at a time: each is a connection, and a rack whose switch is dead keeps each for as long as the
/// template's `timeout`.
pub const TOGETHER: usize = 64;
/// From one begin to the next. 5,000 devices in ten minutes are eight a second.
pub const EACH: Span = Span::millis(100);
/// From one Secret that is read to the next: a third of the one request a second that the operator may cost when nothing happens.
pub const SECRET: Span = Span::secs(3);
/// A device that needs the Secret of a series is asked so much too early with it.
const AHEAD: Span = Span::secs(30);
/// How soon the devices of a node are thought of again that is being fenced.
const FENCED: Span = Span::secs(30);

/// Every device, and when it is asked.
#[derive(Debug, Default)]
pub struct Rounds {
    nodes: BTreeSet<NodeName>,
    tracks: BTreeMap<Key, Track>,
    agenda: BTreeSet<(Tick, Key)>,
    /// Who has yet to answer: where it is, and what it was told.
    under_way: BTreeMap<Key, (u64, u64)>,
    /// No series begins before.
    rest: Tick,
}

#[derive(Debug)]
struct Track {
    template: Arc<str>,
    interval: Span,
    address: u64,
    login: Login,
    told: u64,
    due: Tick,
    /// Failures in a row.
    failures: u32,
    outcome: Option<Outcome>,
    /// When it was last good.
    good: Option<Tick>,
}

/// Devices that are asked now, with what they need read once. Lines go on beside each other; in a line one waits for the last. In
/// the order of all of them, one begins every [`EACH`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// The devices of each address.
    pub lines: Vec<Vec<Key>>,
}

/// What has changed with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It was well, or nobody knew; or it failed for another reason.
    Fails,
    /// It failed.
    GoodAgain,
}

/// What is known of a node's devices of one template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// The last outcome: that of one that fails, if one does; nothing if one was never asked.
    pub last: Option<&'static str>,
    /// When all of them were last good; nothing if one never was.
    pub good: Option<Tick>,
}

impl Rounds {
    /// Whether a node is followed.
    pub fn knows(&self, node: &NodeName) -> bool {
        self.nodes.contains(node)
    }

    /// Every node that is followed.
    pub fn nodes(&self) -> impl Iterator<Item = &NodeName> {
        self.nodes.iter()
    }

    /// These are the devices of a node now. What is told something else than before is a new device, and is asked soon.
    pub fn follow(&mut self, node: &NodeName, wired: Vec<Wired>, now: Tick) {
        let is_new = self.nodes.insert(node.clone());
        let there: BTreeSet<(&MethodName, Part)> = wired.iter().map(|one| (&one.method, one.part)).collect();
        let gone: Vec<Key> =
            self.keys_of(node).filter(|key| !there.contains(&(&key.method, key.part))).cloned().collect();
        for key in &gone {
            self.strike(key);
        }
        for one in wired {
            let key = Key { node: node.clone(), method: one.method.clone(), part: one.part };
            self.wire(key, one, is_new, now);
        }
    }

    fn wire(&mut self, key: Key, wired: Wired, new_node: bool, now: Tick) {
        let number = number(&key, &wired.template);
        if let Some(track) = self.tracks.get_mut(&key).filter(|track| track.told == wired.told) {
            let shorter = wired.interval < track.interval;
            track.interval = wired.interval;
            if shorter {
                let due = track.due.min(slot(number, wired.interval, now));
                self.set(&key, due);
            }
            return;
        }
        self.strike(&key);
        let soon = if new_node { wired.interval } else { wired.interval.min(FIRST) };
        let due = slot(number, soon, now);
        let Wired { template, interval, address, login, told, .. } = wired;
        let track = Track { template, interval, address, login, told, due, failures: 0, outcome: None, good: None };
        self.tracks.insert(key.clone(), track);
        self.agenda.insert((due, key));
    }

    /// A node is gone.
    pub fn lose(&mut self, node: &NodeName) {
        self.nodes.remove(node);
        let gone: Vec<Key> = self.keys_of(node).cloned().collect();
        for key in &gone {
            self.strike(key);
        }
    }

    fn strike(&mut self, key: &Key) {
        if let Some(track) = self.tracks.remove(key) {
            self.agenda.remove(&(track.due, key.clone()));
        }
    }

    fn set(&mut self, key: &Key, due: Tick) {
        if let Some(track) = self.tracks.get_mut(key) {
            self.agenda.remove(&(track.due, key.clone()));
            track.due = due;
            self.agenda.insert((due, key.clone()));
        }
    }

    fn keys_of<'a>(&'a self, node: &'a NodeName) -> impl Iterator<Item = &'a Key> {
        let first = Key { node: node.clone(), method: MethodName::default(), part: Part::Acts };
        self.tracks.range(first..).map(|(key, _)| key).take_while(move |key| key.node == *node)
    }

    /// Who is asked now. They count as under way until each has [`answered`](Self::answered).
    pub fn begin(&mut self, fenced: impl Fn(&NodeName) -> bool, now: Tick) -> Series {
        let room = TOGETHER.saturating_sub(self.under_way.len());
        if now < self.rest || room == 0 {
            return Series::default();
        }
        let busy: BTreeSet<u64> = self.under_way.values().map(|(address, _)| *address).collect();
        let (mut login, mut picked, mut later) = (None, Vec::new(), Vec::new());
        for (at, key) in self.agenda.iter().take_while(|(at, _)| *at <= now + AHEAD) {
            let Some(track) = self.tracks.get(key) else { continue };
            // Only a series that begins anyway takes somebody along.
            let early = if login.is_some() { AHEAD.min(quarter(track.interval)) } else { Span::ZERO };
            if *at > now + early || busy.contains(&track.address) || self.under_way.contains_key(key) {
                continue;
            }
            if fenced(&key.node) {
                later.push(key.clone());
            } else if *login.get_or_insert(track.login) == track.login {
                picked.push(key.clone());
                if picked.len() == room {
                    break;
                }
            }
        }
        for key in later {
            self.set(&key, now + FENCED);
        }
        self.series(&picked, login.unwrap_or_default(), now)
    }

    fn series(&mut self, picked: &[Key], login: Login, now: Tick) -> Series {
        let mut lines: BTreeMap<u64, Vec<Key>> = BTreeMap::new();
        for key in picked {
            let Some(track) = self.tracks.get(key) else { continue };
            self.agenda.remove(&(track.due, key.clone()));
            self.under_way.insert(key.clone(), (track.address, track.told));
            lines.entry(track.address).or_default().push(key.clone());
        }
        if !picked.is_empty() {
            let begins = EACH.times(u64::try_from(picked.len()).unwrap_or(u64::MAX));
            self.rest = now + begins.max(SECRET.times(login.secrets.into()));
        }
        Series { lines: lines.into_values().collect() }
    }

    /// A device was asked, and this came of it. What was told something else meanwhile is another device by now.
    pub fn answered(&mut self, key: &Key, outcome: Outcome, now: Tick) -> Option<Change> {
        let (_, told) = self.under_way.remove(key)?;
        let track = self.tracks.get_mut(key).filter(|track| track.told == told)?;
        let change = match (&track.outcome, &outcome) {
            // Nothing was learnt of it, or nothing else than before.
            (_, Outcome::NotAsked(_)) | (None | Some(Outcome::Good), Outcome::Good) => None,
            (Some(_), Outcome::Good) => Some(Change::GoodAgain),
            (Some(before), fails) if before.name() == fails.name() => None,
            (None | Some(_), _) => Some(Change::Fails),
        };
        let due = track.next(key, &outcome, now);
        if !matches!(outcome, Outcome::NotAsked(_)) {
            track.outcome = Some(outcome);
        }
        self.set(key, due);
        change
    }

    /// When somebody may be asked next.
    pub fn wake(&self) -> Option<Tick> {
        if self.under_way.len() >= TOGETHER {
            // Whoever answers makes room.
            return None;
        }
        let busy: BTreeSet<u64> = self.under_way.values().map(|(address, _)| *address).collect();
        let free = |key: &Key| self.tracks.get(key).is_some_and(|track| !busy.contains(&track.address));
        let first = self.agenda.iter().find(|(_, key)| free(key) && !self.under_way.contains_key(key));
        first.map(|(at, _)| (*at).max(self.rest))
    }

    /// For how long the first has waited that should have been asked by now.
    pub fn behind(&self, now: Tick) -> Span {
        self.agenda.first().map_or(Span::ZERO, |(at, _)| now.since(*at))
    }

    /// The template of a device.
    pub fn template_of(&self, key: &Key) -> Option<Arc<str>> {
        self.tracks.get(key).map(|track| Arc::clone(&track.template))
    }

    /// What is known of a node's devices, by template.
    pub fn standing(&self, node: &NodeName) -> BTreeMap<Arc<str>, Standing> {
        let mut all: BTreeMap<Arc<str>, Standing> = BTreeMap::new();
        for track in self.keys_of(node).filter_map(|key| self.tracks.get(key)) {
            let (last, good) = (track.outcome.as_ref().map(Outcome::name), track.good);
            all.entry(Arc::clone(&track.template))
                .and_modify(|known| *known = known.and(Standing { last, good }))
                .or_insert(Standing { last, good });
        }
        all
    }

    /// How the devices of every template are.
    pub fn health(&self) -> BTreeMap<Arc<str>, Health> {
        health::of(self.tracks.iter().map(|(key, track)| (&key.node, &track.template, track.outcome.as_ref())))
    }
}

impl Track {
    /// When it is asked again.
    fn next(&mut self, key: &Key, outcome: &Outcome, now: Tick) -> Tick {
        match outcome {
            Outcome::Good => {
                (self.failures, self.good) = (0, Some(now));
                slot(number(key, &self.template), self.interval, now + half(self.interval))
            }
            Outcome::NotAsked(_) => now + FIRST,
            Outcome::Refused(_) => {
                self.failures = self.failures.saturating_add(1);
                // A password that is being changed may be right in a moment. One that stays wrong locks the account, if it is
                // tried too often, and the fence would find it locked.
                now + if self.failures == 1 { FIRST } else { kept(self.interval) }
            }
            Outcome::NoAnswer(_)
            | Outcome::WrongMachine { .. }
            | Outcome::CannotTell
            | Outcome::Unclear(_)
            | Outcome::OffWhileReady => {
                self.failures = self.failures.saturating_add(1);
                now + wait(self.failures, self.interval)
            }
        }
    }
}

impl Standing {
    fn and(self, other: Self) -> Self {
        let fails = [self.last, other.last].into_iter().flatten().find(|name| *name != Outcome::Good.name());
        let last = fails.or(self.last.and(other.last));
        Self { last, good: self.good.and_then(|one| other.good.map(|other| one.min(other))) }
    }
}

/// By which a device has its second.
fn number(key: &Key, template: &str) -> u64 {
    hash(&format!("{} {template} {} {:?}", key.node, key.method, key.part))
}

fn half(interval: Span) -> Span {
    Span::millis(kept(interval).as_millis() / 2)
}

fn quarter(interval: Span) -> Span {
    Span::millis(kept(interval).as_millis() / 4)
}

#[cfg(test)]
mod tests;
