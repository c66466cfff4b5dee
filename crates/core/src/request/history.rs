//! Request / history: ended requests are kept for people, and not for ever (001: "eventually aged out").
//!
//! Promise: a request is deleted only when it has ended, its fence is gone, and it is older than its time or beyond its
//! number; a failed one is kept at least as long as any other. Age is watched time, so a long outage ages nothing.
//! Never: deletes by name; each delete carries the UID and the version that the decision was made from (I4).

use std::collections::{BTreeMap, BTreeSet};

use crate::ident::{NodeName, Uid};
use crate::reason::request::HistoryReason;
use crate::request::{End, Life, Request, RequestEffect};
use crate::time::Span;

/// How long, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Keep {
    /// How long, in watched time.
    pub age: Span,
    /// How many of one node.
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

impl Default for Keep {
    /// As the schema of the FencePolicy has it: a month, and 20.
    fn default() -> Self {
        Self { age: Span::mins(720 * 60), count: 20 }
    }
}

impl Default for Retention {
    fn default() -> Self {
        Keep::default().into()
    }
}

impl From<Keep> for Retention {
    /// Failures are looked into later than anything else: they are kept three times as long, and three times as many.
    fn from(ordinary: Keep) -> Self {
        let failed = Keep { age: ordinary.age.times(3), count: ordinary.count.saturating_mul(3) };
        Self::new(ordinary, failed)
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
    // Counted for each node: one that fails every day must not push out what is known of the others.
    let mut of_node: BTreeMap<&NodeName, usize> = BTreeMap::new();
    let rows = ended.into_iter().map(|request| {
        let seen = of_node.entry(&request.node).or_default();
        *seen += 1;
        (*seen - 1, request)
    });
    let rows: Vec<(usize, &Request)> = rows.filter(|(_, request)| free(request)).collect();
    rows.into_iter()
        .filter_map(|(newer, request)| {
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
