//! The ledger: which fences hold a slot of the budget, and when the last ones were granted.
//!
//! Promise (I3): the number of fences in flight is bounded by a compare-and-swap on this one object, never by a count
//! over a cache. Whoever loses the race reads again and decides again.
//! Never: holds an instant (ages are time that somebody watched), frees a slot on the strength of an old read, grants
//! anything from a ledger that was built for another policy.
//!
//! The order of writes keeps a slot from being lost or used twice:
//! - **take**: create the `NodeFence`, [`take`], record the slot and its number in its status, read the ledger again. No act
//!   before that read shows the entry: the policy may have been made anew in between, and its ledger rebuilt without us.
//! - **give back**: record in its status that it holds none, then [`give_back`].
//! - **sweep**: an entry goes only if the fence was looked for after the ledger was read ([`sweep`]).

use std::collections::BTreeMap;

use crate::ident::{NodeName, Uid};
use crate::planted::{self, Bug};
use crate::policy::Budget;
use crate::time::Span;

/// The fences in flight, as the status of the `FencePolicy` records them.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ledger {
    /// The `FencePolicy` that it was built for: a policy that is applied again is another one, and has an empty status.
    pub policy_uid: Uid,
    /// Who holds a slot, by the UID of the `NodeFence`.
    pub entries: BTreeMap<Uid, Entry>,
    /// How long ago slots were granted, youngest first, in time that somebody watched.
    pub grants: Vec<Span>,
}

/// One slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Entry {
    /// The node that is fenced; the `NodeFence` has the same name.
    pub node: NodeName,
    /// It is a member of the control plane whose quorum the policy guards: of these there is one at a time.
    pub control_plane: bool,
    /// Which of the fence's slots this is: a fence that tries again takes another one.
    pub grant: u32,
}

/// What a fence gets when it asks for a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Take {
    /// Write this ledger, with the `resourceVersion` of the one that was read; the slot is taken when that succeeds.
    Write(Ledger),
    /// It has this slot, or a later one: an earlier write went through and its reply was lost.
    Already,
    /// There is no room.
    Full(Full),
    /// There is no ledger for this policy: rebuild it first.
    Missing,
}

/// Why there is no room.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Full {
    /// So many are in flight, so many are allowed.
    Concurrency {
        /// How many are in flight.
        in_flight: u32,
        /// How many are allowed.
        allowed: u32,
    },
    /// Another member of the control plane is being fenced.
    ControlPlane {
        /// Its node.
        by: NodeName,
    },
    /// The last grant was too short a time ago.
    Spacing {
        /// How long ago it was.
        since: Span,
        /// How long it has to be.
        spacing: Span,
    },
    /// Too many grants in too short a time.
    Rate {
        /// How many there were.
        granted: u32,
        /// How many are allowed.
        allowed: u32,
        /// In how long.
        per: Span,
        /// How long until there is room.
        left: Span,
    },
}

/// Whether a slot could be given back.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GiveBack {
    /// Write this ledger.
    Write(Ledger),
    /// It is not there: an earlier write went through, or a later slot has taken its place.
    NotThere,
}

/// The order in which this process began and ended its reads: a later event has a larger number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReadNumber(pub u64);

/// A live GET of a `NodeFence`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LiveGet {
    /// The node whose `NodeFence` was asked for.
    pub node: NodeName,
    /// When it was sent.
    pub begun: ReadNumber,
    /// What came back.
    pub found: Found,
}

/// What a live GET found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Found {
    /// 404.
    Gone,
    /// A `NodeFence` with this UID.
    Fence(Uid),
    /// A timeout or an error: it may be there or not.
    Unknown,
}

/// A `NodeFence` of a live LIST.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LiveFence {
    /// Its UID.
    pub fence: Uid,
    /// What its slot says or would say.
    pub entry: Entry,
    /// Its status records that it holds a slot.
    pub slot: bool,
}

/// Asks for a slot for `fence`.
pub fn take(ledger: Option<&Ledger>, policy_uid: &Uid, fence: &Uid, entry: Entry, budget: &Budget) -> Take {
    let Some(ledger) = ledger.filter(|ledger| ledger.is_for(policy_uid)) else {
        return Take::Missing;
    };
    let mut next = ledger.clone();
    match ledger.entries.get(fence) {
        Some(known) if known.grant >= entry.grant => return Take::Already,
        // One that was never given back takes up no more room when it becomes the next.
        Some(_) => {}
        None => match ledger.full(None, entry.control_plane, budget) {
            // A bug on purpose: a cache shows the ledger as it was before the others took their slots.
            Some(_) if planted::is(Bug::BudgetFromCache) => next.entries.clear(),
            Some(full) => return Take::Full(full),
            None => {}
        },
    }
    next.entries.insert(fence.clone(), entry);
    next.grants.insert(0, Span::ZERO);
    Take::Write(next.aged(Span::ZERO, budget))
}

/// Gives back the slot of `fence` with this number, or an older one. A later one is none of this caller's business: somebody
/// who knows more has taken it. That it was granted stays: it still counts for spacing and rate.
pub fn give_back(ledger: &Ledger, fence: &Uid, grant: u32) -> GiveBack {
    if ledger.entries.get(fence).is_none_or(|entry| entry.grant > grant) || planted::is(Bug::LeaksAnEntry) {
        return GiveBack::NotThere;
    }
    let mut next = ledger.clone();
    next.entries.remove(fence);
    GiveBack::Write(next)
}

/// Drops the slots of fences that are gone; `None` if there are none of them.
///
/// `read` is when the answer with this ledger arrived. A fence exists before its entry does, so one that is not found
/// by a GET begun *after* that is gone for good; a GET begun earlier may have come before the fence was created.
pub fn sweep(ledger: &Ledger, read: ReadNumber, gets: &[LiveGet]) -> Option<Ledger> {
    let gone = |fence: &Uid, entry: &Entry| {
        gets.iter().filter(|get| get.node == entry.node && get.begun > read).any(|get| match &get.found {
            Found::Gone => true,
            Found::Fence(uid) => uid != fence || planted::is(Bug::LiveEntryIsGarbage),
            Found::Unknown => false,
        })
    };
    let mut next = ledger.clone();
    next.entries.retain(|fence, entry| !gone(fence, entry));
    (next.entries.len() < ledger.entries.len()).then_some(next)
}

/// Builds the ledger anew from a live LIST, for a policy whose status has none.
///
/// A fence whose status records no slot gets none: it has done nothing yet, or nothing any more, and asks again.
/// When the slots were granted is forgotten, so the rebuilding itself counts as a grant, as does each slot.
pub fn rebuild(policy_uid: &Uid, live: &[LiveFence]) -> Ledger {
    let held = live.iter().filter(|fence| fence.slot && !planted::is(Bug::LedgerBuiltEmpty));
    let entries: BTreeMap<_, _> = held.map(|fence| (fence.fence.clone(), fence.entry.clone())).collect();
    let grants = vec![Span::ZERO; entries.len().max(1)];
    Ledger { policy_uid: policy_uid.clone(), entries, grants }
}

impl Ledger {
    /// Whether it was built for this policy. A policy without UID has no ledger.
    pub fn is_for(&self, policy_uid: &Uid) -> bool {
        !policy_uid.as_str().is_empty() && self.policy_uid == *policy_uid
    }

    /// The ledger after `by` more time was watched. Grants that no limit looks at any more are forgotten.
    #[must_use]
    pub fn aged(&self, by: Span, budget: &Budget) -> Self {
        let horizon = budget.rate.map_or(Span::ZERO, |rate| rate.per).max(budget.spacing);
        let mut grants: Vec<_> = self.grants.iter().map(|age| *age + by).filter(|age| *age < horizon).collect();
        grants.sort_unstable();
        Self { grants, ..self.clone() }
    }

    /// Why one more has no room; `own` already holds what it asks for.
    pub fn full(&self, own: Option<&Uid>, control_plane: bool, budget: &Budget) -> Option<Full> {
        if own.is_some_and(|fence| self.entries.contains_key(fence)) {
            return None;
        }
        self.too_many(budget)
            .or_else(|| {
                self.other_member(own).filter(|_| control_plane).map(|by| Full::ControlPlane { by: by.clone() })
            })
            .or_else(|| self.too_soon(budget))
            .or_else(|| self.too_often(budget))
    }

    /// A member of the control plane that is being fenced, by another fence than `own`.
    pub fn other_member(&self, own: Option<&Uid>) -> Option<&NodeName> {
        let mut others = self.entries.iter().filter(|(fence, entry)| entry.control_plane && own != Some(*fence));
        others.next().map(|(_, entry)| &entry.node)
    }

    fn too_many(&self, budget: &Budget) -> Option<Full> {
        let (in_flight, allowed) = (count(self.entries.len()), budget.max_concurrent);
        (in_flight >= allowed).then_some(Full::Concurrency { in_flight, allowed })
    }

    fn too_soon(&self, budget: &Budget) -> Option<Full> {
        let (since, spacing) = (*self.grants.iter().min()?, budget.spacing);
        (since < spacing).then_some(Full::Spacing { since, spacing })
    }

    fn too_often(&self, budget: &Budget) -> Option<Full> {
        let rate = budget.rate?;
        let mut recent: Vec<_> = self.grants.iter().copied().filter(|age| *age < rate.per).collect();
        recent.sort_unstable();
        let granted = count(recent.len());
        if granted < rate.count {
            return None;
        }
        // There is room again when the oldest of the last `count` grants leaves the window.
        let leaves = usize::try_from(rate.count).ok().and_then(|n| recent.get(n.checked_sub(1)?)).copied();
        let left = rate.per.left_after(leaves.unwrap_or(Span::ZERO));
        Some(Full::Rate { granted, allowed: rate.count, per: rate.per, left })
    }
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
