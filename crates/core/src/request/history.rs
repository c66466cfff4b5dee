//! Request / history: ended requests are kept for people, and not for ever (001: "eventually aged out").
//!
//! Promise: a request is deleted only when it has ended, its fence is gone, and it is older than its time or beyond its
//! number; a failed one is kept at least as long as any other. Age is watched time, so a long outage ages nothing.
//! Never: deletes by name; each delete carries the UID and the version that the decision was made from (I4).

use std::collections::BTreeSet;

use crate::ident::Uid;
use crate::reason::request::HistoryReason;
use crate::request::{End, Life, Request, RequestEffect};
use crate::time::Span;

/// How long, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keep {
    /// How long, in watched time.
    pub age: Span,
    /// How many.
    pub count: usize,
}

/// How history is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Retention {
    ordinary: Keep,
    failed: Keep,
}

impl Retention {
    /// Failed requests are kept at least as long as ordinary ones, whatever is asked for.
    pub fn new(ordinary: Keep, failed: Keep) -> Self {
        let failed = Keep { age: failed.age.max(ordinary.age), count: failed.count.max(ordinary.count) };
        Self { ordinary, failed }
    }
}

impl Default for Retention {
    /// A week and 100 for ordinary ones, four weeks and 300 for failed ones.
    fn default() -> Self {
        let days = |days: u64| Span::mins(days * 24 * 60);
        Self::new(Keep { age: days(7), count: 100 }, Keep { age: days(28), count: 300 })
    }
}

/// One request to be deleted, and why.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Aged {
    /// The delete.
    pub effect: RequestEffect,
    /// Why.
    pub why: HistoryReason,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Failed,
}

/// The requests that are no longer kept. `fences` are the `NodeFence`s that are still there, ended or not;
/// before they have been listed every request that had one is kept.
pub fn aged_out(requests: &[Request], fences: Option<&BTreeSet<Uid>>, by: &Retention) -> Vec<Aged> {
    let mut aged = of_kind(requests, fences, Kind::Ordinary, by.ordinary);
    aged.extend(of_kind(requests, fences, Kind::Failed, by.failed));
    aged
}

fn of_kind(requests: &[Request], fences: Option<&BTreeSet<Uid>>, kind: Kind, keep: Keep) -> Vec<Aged> {
    let mut ended: Vec<&Request> = requests.iter().filter(|request| kind_of(&request.life) == Some(kind)).collect();
    // The youngest first; among equals by UID, so that every replica decides alike.
    ended.sort_by_key(|request| (request.ended_for.total(), &request.uid));
    let free =
        |request: &Request| request.life.fence().is_none_or(|fence| fences.is_some_and(|there| !there.contains(fence)));
    let rows = ended.into_iter().enumerate().filter(|(_, request)| free(request));
    rows.filter_map(|(newer, request)| {
        let age = request.ended_for.total();
        let why = if age >= keep.age {
            HistoryReason::AgedOut { age, keep: keep.age }
        } else if newer >= keep.count {
            HistoryReason::CrowdedOut { newer, keep: keep.count }
        } else {
            return None;
        };
        Some(Aged { effect: delete(request), why })
    })
    .collect()
}

fn kind_of(life: &Life) -> Option<Kind> {
    match life {
        Life::Pending | Life::Attached { .. } => None,
        Life::Ended(End::Closed { .. } | End::Rejected | End::Completed { .. }) => Some(Kind::Ordinary),
        Life::Ended(End::Failed { .. }) => Some(Kind::Failed),
    }
}

fn delete(request: &Request) -> RequestEffect {
    RequestEffect::Delete { uid: request.uid.clone(), resource_version: request.resource_version.clone() }
}
