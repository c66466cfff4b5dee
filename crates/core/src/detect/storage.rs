//! Detect / storage: a storage system says that the node is offline (000).
//!
//! Promise: one claim for each time that the node went offline, made again only after it was online in between or
//! after the expiry interval. Only the state counts: another capacity or version in the node's record changes nothing.
//! Never: acts on `unknown`, on a node that is not listed, or on a word that is stale.

use crate::detect::Finding;
use crate::ident::ProviderName;
use crate::reason::detect::{ClaimReason, WatchReason};
use crate::snapshot::StorageNodeState;
use crate::time::{Span, Tick};

/// The shortest poll interval: each poll lists all nodes of the storage system.
pub const POLL_FLOOR: Span = Span::secs(5);

/// So many missed polls make a word stale.
const STALE_POLLS: u64 = 3;

/// The intervals of 000, by the names of its flags.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageSettings {
    /// `node-poll-interval`.
    poll: Span,
    /// `node-expiry-interval`: after this a node that is still offline is claimed again.
    pub expiry: Span,
    /// `node-fencer-timeout`: how long one fencing operation may take.
    pub timeout: Span,
    /// `node-fencer-retry-interval`: the delay after an error in it.
    pub retry: Span,
    /// When pods that were left alone for unhealthy volumes are looked at again. In 000 they wait for the expiry (1h).
    pub look_again: Span,
}

impl Default for StorageSettings {
    fn default() -> Self {
        Self {
            poll: POLL_FLOOR,
            expiry: Span::mins(60),
            timeout: Span::secs(25),
            retry: Span::secs(5),
            look_again: Span::secs(30),
        }
    }
}

/// What follows an error in a fencing operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NextTry {
    /// Try again then.
    At(Tick),
    /// No time is left for another try: say so as an error.
    TimedOut {
        /// How long it took.
        took: Span,
    },
}

impl StorageSettings {
    /// With another poll interval, not below the floor.
    #[must_use]
    pub fn polling(self, poll: Span) -> Self {
        Self { poll: poll.max(POLL_FLOOR), ..self }
    }

    /// After this time an answer is stale.
    pub fn stale_after(&self) -> Span {
        self.poll.times(STALE_POLLS)
    }

    /// The poll interval.
    pub fn poll(&self) -> Span {
        self.poll
    }

    /// What follows when an operation that began at `began` met an error at `failed`.
    pub fn next_try(&self, began: Tick, failed: Tick) -> NextTry {
        let again = failed + self.retry;
        if again < began + self.timeout { NextTry::At(again) } else { NextTry::TimedOut { took: failed.since(began) } }
    }

    /// When to look again at the pods that were skipped, if any were.
    pub fn look_again_at(&self, skipped: usize, looked: Tick) -> Option<Tick> {
        (skipped > 0).then_some(looked + self.look_again)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Answer {
    at: Tick,
    said: Option<StorageNodeState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Episode {
    since: Tick,
    /// Since when it has been called offline at every poll, without a gap.
    steady: Tick,
    claimed: Option<Tick>,
}

/// What this process remembers of one node in one storage system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StorageMemory {
    last: Option<Answer>,
    offline: Option<Episode>,
}

impl StorageMemory {
    /// The provider answered a poll; `None`: it does not list this node. A poll that failed is not observed at all.
    pub fn observe(&mut self, said: Option<StorageNodeState>, by: &StorageSettings, now: Tick) {
        match said {
            Some(StorageNodeState::Online) => self.offline = None,
            Some(StorageNodeState::Offline) => {
                let gap = self.last.is_none_or(|last| last.said != said || now.since(last.at) > by.stale_after());
                let first = Episode { since: now, steady: now, claimed: None };
                let episode = self.offline.get_or_insert(first);
                if gap {
                    episode.steady = now;
                }
            }
            // Not healthy in between: the episode goes on.
            Some(StorageNodeState::Unknown) | None => {}
        }
        self.last = Some(Answer { at: now, said });
    }

    /// The claim has been written as a request. A crash before this only means that it is found again.
    pub fn claimed(&mut self, now: Tick) {
        if let Some(episode) = &mut self.offline {
            episode.claimed = Some(now);
        }
    }

    /// When the next poll is due: one interval after the last answer, or after now if that has passed.
    pub fn next_poll(&self, settings: &StorageSettings, now: Tick) -> Tick {
        let due = self.last.map(|answer| answer.at + settings.poll);
        due.filter(|due| *due > now).unwrap_or(now + settings.poll)
    }

    /// Whether the storage's word makes a claim, once it has stood for `period` (000: at once).
    pub fn judge(&self, provider: &ProviderName, period: Span, by: &StorageSettings, now: Tick) -> Finding {
        let provider = provider.clone();
        let watching = |why| Finding::Watching { why, until: self.next_poll(by, now) };
        let limit = by.stale_after();
        let age = now.since(self.last.map_or(Tick::START, |answer| answer.at));
        let Some(answer) = self.last.filter(|_| age <= limit) else {
            return watching(WatchReason::StorageSilent { provider, age, limit });
        };
        match (answer.said, self.offline) {
            (None, _) => watching(WatchReason::StorageNotListed { provider }),
            (Some(StorageNodeState::Unknown), _) => watching(WatchReason::StorageUnknown { provider }),
            (Some(StorageNodeState::Online), _) | (Some(StorageNodeState::Offline), None) => Finding::Quiet,
            (Some(StorageNodeState::Offline), Some(episode)) => episode.judge(provider, period, by.expiry, now),
        }
    }
}

impl Episode {
    fn judge(self, provider: ProviderName, period: Span, expiry: Span, now: Tick) -> Finding {
        let watching = |why, until| Finding::Watching { why, until };
        if let Some(expires) = self.claimed.map(|at| at + expiry)
            && now < expires
        {
            let offline = now.since(self.since);
            return watching(WatchReason::StorageAlreadyClaimed { provider, offline }, expires);
        }
        let offline = now.since(self.steady);
        if offline < period {
            let why = WatchReason::StorageHolding { provider, offline, period };
            return watching(why, self.steady + period);
        }
        Finding::Claim { why: ClaimReason::StorageOffline { provider, offline } }
    }
}
