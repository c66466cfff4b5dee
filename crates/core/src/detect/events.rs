//! Detect / events: a node reports the same problem again and again (node-problem-detector).
//!
//! Promise: an occurrence counts once, at the moment that we saw it; it leaves the window by our own clock.
//! Never: counts what happened before we watched, or the same occurrence again after a resync.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use crate::detect::Finding;
use crate::detect::sight::Sight;
use crate::ident::Uid;
use crate::reason::detect::{ClaimReason, WatchReason};
use crate::time::{Span, Tick};

/// So many events of one reason within a window.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventRule {
    /// The event's reason: `KernelOops`, `TaskHung`.
    pub event: Box<str>,
    /// Who reports it, such as `kernel-monitor`; `None`: anybody.
    pub source: Option<Box<str>>,
    /// How many are too many.
    pub limit: NonZeroU32,
    /// In how long a time.
    pub window: Span,
}

impl EventRule {
    fn matches(&self, reason: &str, source: &str) -> bool {
        *self.event == *reason && self.source.as_deref().is_none_or(|wanted| wanted == source)
    }
}

/// How an Event object came to our eyes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Came {
    /// It was there when we listed: when it happened, nobody watched.
    Listed,
    /// It was created or changed while we watched.
    Watched,
}

/// An Event object about the node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeenEvent {
    /// The Event's own UID.
    pub uid: Uid,
    /// Its reason.
    pub reason: Box<str>,
    /// Who reports it.
    pub source: Box<str>,
    /// How often it has occurred so far, by its count or its series; an event without either has occurred once.
    pub count: Option<i64>,
    /// How we came to see it.
    pub came: Came,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Tally {
    occurred: Vec<(Tick, u32)>,
    unreadable: Option<(Tick, i64)>,
}

/// What this process remembers of one node's events.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Events {
    counted: BTreeMap<Uid, i64>,
    /// By reason and source.
    tallies: BTreeMap<(Box<str>, Box<str>), Tally>,
}

impl Events {
    /// An Event was seen.
    pub fn observe(&mut self, seen: &SeenEvent, now: Tick) {
        let tally = self.tallies.entry((seen.reason.clone(), seen.source.clone())).or_default();
        let count = seen.count.unwrap_or(1);
        if count < 1 {
            tally.unreadable = Some((now, count));
            return;
        }
        let known = self.counted.get(&seen.uid).copied();
        // A count that falls is an older copy of the object: nothing new has happened.
        self.counted.insert(seen.uid.clone(), count.max(known.unwrap_or(0)));
        let new = match seen.came {
            Came::Listed => 0,
            Came::Watched => (count - known.unwrap_or(0)).max(0),
        };
        if new > 0 {
            tally.occurred.push((now, u32::try_from(new).unwrap_or(u32::MAX)));
        }
    }

    /// The Event object is gone from the API (they expire after an hour). What it told still counts.
    pub fn gone(&mut self, uid: &Uid) {
        self.counted.remove(uid);
    }

    /// Forgets what is older than the longest window, so that memory stays bounded.
    pub fn forget(&mut self, longest_window: Span, now: Tick) {
        for tally in self.tallies.values_mut() {
            tally.occurred.retain(|(at, _)| now.since(*at) < longest_window);
        }
    }

    /// Whether a rule's limit has been reached.
    pub fn judge(&self, rule: &EventRule, sight: Sight, now: Tick) -> Finding {
        if let Err(blind) = sight.began(now, now) {
            return blind;
        }
        let (event, limit, window) = (rule.event.clone(), rule.limit.get(), rule.window);
        // Half open: what is exactly one window old has left it.
        let inside = |at: Tick| now.since(at) < window;
        let tallies = || self.tallies.iter().filter(|((reason, from), _)| rule.matches(reason, from));
        let recent = || tallies().flat_map(|(_, tally)| &tally.occurred).filter(|(at, _)| inside(*at));
        let count = recent().fold(0_u32, |sum, (_, times)| sum.saturating_add(*times));
        if count >= limit {
            return Finding::Claim { why: ClaimReason::EventsRepeated { event, count, limit, window } };
        }
        let unreadable = tallies().filter_map(|(_, tally)| tally.unreadable).find(|(at, _)| inside(*at));
        if let Some((at, said)) = unreadable {
            let why = WatchReason::EventsUnreadable { event, said };
            return Finding::Watching { why, until: at + window };
        }
        recent().map(|(at, _)| *at).min().map_or(Finding::Quiet, |oldest| Finding::Watching {
            why: WatchReason::EventsCounting { event, count, limit, window },
            until: oldest + window,
        })
    }
}
