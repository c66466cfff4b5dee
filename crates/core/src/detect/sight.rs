//! Detect / sight: since when have we been watching without a gap?
//!
//! Promise: after an observer outage every waiting time starts anew; what survives a restart is only time that
//! somebody watched.
//! Never: lets a silence of our own pass for a silence of a node.

use crate::detect::{Finding, LOOK_AGAIN};
use crate::planted::{self, Bug};
use crate::reason::detect::WatchReason;
use crate::snapshot::ObserverView;
use crate::time::{Span, Tick};

/// How well this process sees at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Sight {
    /// The API answers, without a gap since then.
    Clear {
        /// The end of the last outage, or the start.
        since: Tick,
    },
    /// The API has not answered since then.
    Blind {
        /// Its last answer, or the start.
        since: Tick,
    },
}

impl Sight {
    /// The sight that a snapshot's observer has.
    pub fn of(view: &ObserverView, fresh: Span, now: Tick) -> Self {
        match view.api_last_answered {
            Some(last) if now.since(last) <= fresh => Self::Clear { since: view.outage_ended.unwrap_or(Tick::START) },
            last => Self::Blind { since: last.unwrap_or(Tick::START) },
        }
    }

    /// When something that was first seen at `first` began to count, or why nothing counts now.
    pub fn began(self, first: Tick, now: Tick) -> Result<Tick, Finding> {
        match self {
            Self::Clear { since } => Ok(first.max(since)),
            Self::Blind { since } => {
                let why = WatchReason::ObserverBlind { blind: now.since(since) };
                Err(Finding::Watching { why, until: now + LOOK_AGAIN })
            }
        }
    }
}

/// Keeps account of the API's answers, so that also a pause of our own process shows as an outage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watch {
    last_answer: Option<Tick>,
    clear_since: Tick,
    outage_ended: Option<Tick>,
}

impl Watch {
    /// The API answered (a watch event, a bookmark, a write of ours).
    pub fn answered(&mut self, fresh: Span, now: Tick) {
        match self.last_answer {
            None => self.clear_since = now,
            Some(last) if now.since(last) > fresh => {
                self.clear_since = now;
                self.outage_ended = Some(now);
            }
            Some(_) => {}
        }
        self.last_answer = Some(now);
    }

    /// How well we see now: an answer older than `fresh` is none.
    pub fn sight(&self, fresh: Span, now: Tick) -> Sight {
        if planted::is(Bug::CountsBlindTime) {
            return Sight::Clear { since: Tick::START };
        }
        match self.last_answer {
            Some(last) if now.since(last) <= fresh => Sight::Clear { since: self.clear_since },
            last => Sight::Blind { since: last.unwrap_or(Tick::START) },
        }
    }

    /// When the API last answered, for the snapshot.
    pub fn last_answer(&self) -> Option<Tick> {
        self.last_answer
    }

    /// When the last outage ended, for the snapshot; the start is not the end of an outage.
    pub fn outage_ended(&self) -> Option<Tick> {
        self.outage_ended
    }
}

/// Accumulated watched time. Only its total may be written to the API; the instant stays in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stint {
    total: Span,
    counted_to: Option<Tick>,
}

impl Stint {
    /// Goes on from a total that was written down, perhaps by another process.
    pub fn resumed(total: Span) -> Self {
        Self { total, counted_to: None }
    }

    /// Adds the time since the last call, as far as it was watched.
    pub fn watch(&mut self, sight: Sight, now: Tick) -> Span {
        match sight {
            Sight::Clear { since } => {
                let from = self.counted_to.unwrap_or(now).max(since);
                self.total += now.since(from);
                self.counted_to = Some(now);
            }
            Sight::Blind { .. } => {}
        }
        self.total
    }

    /// All time that was watched.
    pub fn total(&self) -> Span {
        self.total
    }
}
