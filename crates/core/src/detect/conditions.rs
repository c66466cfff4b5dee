//! Detect / conditions: a node condition that has stood for a period, whatever its type.
//!
//! Promise: the period runs by our own clock from the moment we saw the status; only a change of the status starts it
//! anew. Reasons that flap and transition times that jump do not (they would make the wait endless).
//! Never: takes a missing or unreadable condition for bad, or for well.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::detect::sight::Sight;
use crate::detect::{Finding, LOOK_AGAIN};
use crate::reason::detect::{ClaimReason, WatchReason};
use crate::snapshot::Ready;
use crate::time::{Span, Tick};

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Status {
    /// `True`: for most types bad, for `Ready` and the like good.
    True,
    /// `False`.
    False,
    /// `Unknown`: whoever reports it has lost contact.
    Unknown,
}

impl Status {
    /// The status as the API spells it; any other spelling is no status.
    fn exactly(text: &str) -> Option<Self> {
        match text {
            "True" => Some(Self::True),
            "False" => Some(Self::False),
            "Unknown" => Some(Self::Unknown),
            _ => None,
        }
    }
}

impl FromStr for Status {
    type Err = String;

    /// As a person writes it in a remedy: `false` is `False`.
    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Self::True, Self::False, Self::Unknown];
        known
            .into_iter()
            .find(|status| status.to_string().eq_ignore_ascii_case(text))
            .ok_or_else(|| format!("`{text}` is no status; write true, false or unknown"))
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        })
    }
}

impl From<Ready> for Status {
    fn from(ready: Ready) -> Self {
        match ready {
            Ready::True => Self::True,
            Ready::False => Self::False,
            Ready::Unknown => Self::Unknown,
        }
    }
}

/// A condition, and how long it may stand (003: `Ready false 5s`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Threshold {
    /// The condition's type, letter by letter.
    pub condition: Box<str>,
    /// The status that is bad. Exactly this one: a dead node turns `Unknown`, not `False`.
    pub status: Status,
    /// How long it may stand.
    pub period: Span,
}

/// One condition as a Node shows it. There is no place for heartbeat and transition times: nothing may be decided from
/// another machine's clock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeenCondition {
    /// Its type.
    pub condition: Box<str>,
    /// Its status, as written.
    pub status: Box<str>,
    /// Its reason, for people.
    pub reason: Box<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Read {
    Status(Status),
    Unreadable(Box<str>),
}

impl Read {
    fn of(text: &str) -> Self {
        Status::exactly(text).map_or_else(|| Self::Unreadable(text.into()), Self::Status)
    }

    /// A type that is listed twice with two statuses says nothing.
    fn joined(self, twin: Option<&Self>) -> Self {
        match twin {
            Some(twin) if *twin != self => Self::Unreadable(format!("{twin} and {self}").into()),
            Some(_) | None => self,
        }
    }
}

impl fmt::Display for Read {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(status) => status.fmt(f),
            Self::Unreadable(text) => f.write_str(text),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Held {
    read: Read,
    since: Tick,
    reason: Box<str>,
}

/// What this process remembers of one node's conditions.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Conditions {
    held: BTreeMap<Box<str>, Held>,
}

impl Conditions {
    /// The Node was seen with exactly these conditions.
    pub fn observe(&mut self, seen: &[SeenCondition], now: Tick) {
        let before = std::mem::take(&mut self.held);
        for one in seen {
            let twin = self.held.get(&one.condition).map(|held| &held.read);
            let read = Read::of(&one.status).joined(twin);
            let same = before.get(&one.condition).filter(|held| held.read == read);
            let since = same.map_or(now, |held| held.since);
            let held = Held { read, since, reason: one.reason.clone() };
            self.held.insert(one.condition.clone(), held);
        }
    }

    /// Whether a threshold has been reached.
    pub fn judge(&self, threshold: &Threshold, sight: Sight, now: Tick) -> Finding {
        let Threshold { condition, status: bad, period } = threshold;
        let held = self.held.get(condition);
        let began = match sight.began(held.map_or(now, |held| held.since), now) {
            Ok(began) => began,
            Err(blind) => return blind,
        };
        let unsure = |why| Finding::Watching { why, until: now + LOOK_AGAIN };
        let (condition, period) = (condition.clone(), *period);
        let Some(Held { read, reason, .. }) = held else {
            return unsure(WatchReason::ConditionMissing { condition });
        };
        let status = match read {
            Read::Unreadable(said) => {
                return unsure(WatchReason::ConditionUnreadable { condition, said: said.clone() });
            }
            Read::Status(status) if status != bad => return Finding::Quiet,
            Read::Status(status) => *status,
        };
        let held = now.since(began);
        if held < period {
            let why = WatchReason::ConditionHolding { condition, status, held, period };
            return Finding::Watching { why, until: began + period };
        }
        let reported = reason.clone();
        Finding::Claim { why: ClaimReason::ConditionHeld { condition, status, held, period, reported } }
    }
}
