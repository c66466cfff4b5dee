//! Preflight / rounds: which devices are asked now, and what is known of each.
//!
//! Promise: a device is asked once in its interval, at a second of its own; one that fails sooner, and more slowly each time. No more
//! than [`TOGETHER`] are asked at a time, one begins every [`EACH`], and one at a time at each address: a PDU with forty outlets is
//! one device that can do one thing.
//! Promise: for all of it no more than one Secret is read every [`SECRET`]. Devices that need the same one are asked in one series,
//! which reads it once. Where there are more Secrets than fit into the interval, it takes longer; that is told, see [`Rounds::behind`].
//! Promise: whom we ask ourselves never waits for whoever takes a Job: each has an agenda of its own (`jobs`).
//! Never: asks a device of a node that is being fenced, as its executor talks to it; asks a device again that has not answered.

mod jobs;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub use self::jobs::{JOBS, PAUSE};
use super::health::{self, Health};
use super::outcome::Outcome;
use super::spread::{FIRST, hash, kept, slot, wait};
use super::{By, Key, Login, Part, Wired};
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
    /// Whom we ask ourselves.
    agenda: BTreeSet<(Tick, Key)>,
    /// No series begins before.
    rest: Tick,
    /// Whom a Job asks.
    jobs: BTreeSet<(Tick, Key)>,
    /// No Job begins before.
    pause: Tick,
    /// Who has yet to answer.
    under_way: BTreeMap<Key, UnderWay>,
}

/// A device that has yet to answer.
#[derive(Clone, Copy, Debug)]
struct UnderWay {
    by: By,
    address: u64,
    told: u64,
}

#[derive(Debug)]
struct Track {
    template: Arc<str>,
    by: By,
    interval: Span,
    address: u64,
    login: Login,
    told: u64,
    due: Tick,
    /// Failures in a row.
    failures: u32,
    /// How often in a row it could not be asked, and why not the last time.
    unasked: u32,
    why_unasked: Option<String>,
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
        let Wired { template, by, interval, address, login, told, .. } = wired;
        let (failures, unasked, why_unasked, outcome, good) = (0, 0, None, None, None);
        let track =
            Track { template, by, interval, address, login, told, due, failures, unasked, why_unasked, outcome, good };
        self.tracks.insert(key.clone(), track);
        self.agenda_of(by).insert((due, key));
    }

    const fn agenda_of(&mut self, by: By) -> &mut BTreeSet<(Tick, Key)> {
        match by {
            By::Us => &mut self.agenda,
            By::Job => &mut self.jobs,
        }
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
            self.agenda_of(track.by).remove(&(track.due, key.clone()));
        }
    }

    fn set(&mut self, key: &Key, due: Tick) {
        if let Some(track) = self.tracks.get_mut(key) {
            let (by, before) = (track.by, std::mem::replace(&mut track.due, due));
            let agenda = self.agenda_of(by);
            agenda.remove(&(before, key.clone()));
            agenda.insert((due, key.clone()));
        }
    }

    fn keys_of<'a>(&'a self, node: &'a NodeName) -> impl Iterator<Item = &'a Key> {
        let first = Key { node: node.clone(), method: MethodName::default(), part: Part::Acts };
        self.tracks.range(first..).map(|(key, _)| key).take_while(move |key| key.node == *node)
    }

    /// Whom we ask now. They count as under way until each has [`answered`](Self::answered).
    pub fn begin(&mut self, fenced: impl Fn(&NodeName) -> bool, now: Tick) -> Series {
        let room = TOGETHER.saturating_sub(self.asked_by(By::Us).count());
        if now < self.rest || room == 0 {
            return Series::default();
        }
        // A Job takes long, and a BMC has more than one session: nobody waits for it here.
        let busy: BTreeSet<u64> = self.asked_by(By::Us).map(|one| one.address).collect();
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
            let Some(address) = self.set_out(key) else { continue };
            lines.entry(address).or_default().push(key.clone());
        }
        if !picked.is_empty() {
            let begins = EACH.times(u64::try_from(picked.len()).unwrap_or(u64::MAX));
            self.rest = now + begins.max(SECRET.times(login.secrets.into()));
        }
        Series { lines: lines.into_values().collect() }
    }

    /// A device is being asked; says where it is.
    fn set_out(&mut self, key: &Key) -> Option<u64> {
        let Track { by, due, address, told, .. } = *self.tracks.get(key)?;
        self.agenda_of(by).remove(&(due, key.clone()));
        self.under_way.insert(key.clone(), UnderWay { by, address, told });
        Some(address)
    }

    fn asked_by(&self, by: By) -> impl Iterator<Item = &UnderWay> {
        self.under_way.values().filter(move |one| one.by == by)
    }

    /// A device was asked, and this came of it. What was told something else meanwhile is another device by now.
    pub fn answered(&mut self, key: &Key, outcome: Outcome, now: Tick) -> Option<Change> {
        let was = self.under_way.remove(key)?;
        if was.by == By::Job {
            self.pause = now + PAUSE;
        }
        let track = self.tracks.get_mut(key).filter(|track| track.told == was.told)?;
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
        [self.wake_for_us(), self.wake_for_job()].into_iter().flatten().min()
    }

    fn wake_for_us(&self) -> Option<Tick> {
        if self.asked_by(By::Us).count() >= TOGETHER {
            // Whoever answers makes room.
            return None;
        }
        let busy: BTreeSet<u64> = self.asked_by(By::Us).map(|one| one.address).collect();
        self.first_of(&self.agenda, &busy).map(|at| at.max(self.rest))
    }

    /// When the first one is due that has answered, at an address that is free.
    fn first_of(&self, agenda: &BTreeSet<(Tick, Key)>, busy: &BTreeSet<u64>) -> Option<Tick> {
        let free = |key: &Key| self.tracks.get(key).is_some_and(|track| !busy.contains(&track.address));
        let first = agenda.iter().find(|(_, key)| free(key) && !self.under_way.contains_key(key));
        first.map(|(at, _)| *at)
    }

    /// For how long the first has waited that should have been asked by now, by whomever.
    pub fn behind(&self, now: Tick) -> Span {
        let first = [self.agenda.first(), self.jobs.first()].into_iter().flatten().map(|(at, _)| *at).min();
        first.map_or(Span::ZERO, |at| now.since(at))
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
        health::of(
            self.tracks
                .iter()
                .map(|(key, track)| (&key.node, &track.template, track.outcome.as_ref(), track.why_unasked.as_deref())),
        )
    }
}

impl Track {
    /// When it is asked again.
    fn next(&mut self, key: &Key, outcome: &Outcome, now: Tick) -> Tick {
        let unasked = std::mem::take(&mut self.unasked);
        self.why_unasked = None;
        match outcome {
            Outcome::Good => {
                (self.failures, self.good) = (0, Some(now));
                slot(number(key, &self.template), self.interval, now + half(self.interval))
            }
            Outcome::NotAsked(why) => {
                (self.unasked, self.why_unasked) = (unasked.saturating_add(1), Some(why.clone()));
                match self.by {
                    By::Us => now + FIRST,
                    // What keeps a Job from starting lasts, and each try is a Job.
                    By::Job => now + wait(self.unasked, self.interval),
                }
            }
            // A password that is being changed may be right in a moment. One that stays wrong locks the account, if it is
            // tried too often, and the fence would find it locked.
            Outcome::Refused(_) => self.once_more(now),
            Outcome::NoAnswer(_)
            | Outcome::WrongMachine { .. }
            | Outcome::CannotTell
            | Outcome::Unclear(_)
            | Outcome::OffWhileReady => match self.by {
                By::Us => {
                    self.failures = self.failures.saturating_add(1);
                    now + wait(self.failures, self.interval)
                }
                // Agents have the same words for a device that is dead and for one that does not take the password.
                By::Job => self.once_more(now),
            },
        }
    }

    /// Soon for the first time, and then only in its interval.
    fn once_more(&mut self, now: Tick) -> Tick {
        self.failures = self.failures.saturating_add(1);
        now + if self.failures == 1 { FIRST } else { kept(self.interval) }
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
