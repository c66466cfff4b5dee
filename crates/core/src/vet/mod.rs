//! Vet: may this node be fenced now?
//!
//! A pure function from a snapshot to Admit, Hold or Reject. One gate, one file; the order of the table is the order
//! in which people read the answer. Every gate says which numbers closed it and when to look again.
//!
//! Promise (I3): nothing is admitted unless every gate is open, and what is not known keeps a gate closed.
//! Never: reads a clock or a cluster, writes anything, lets a request's own words (its source) open a gate that
//! protects data.
//!
//! How the verdict is found:
//! - Any refusal beats every hold: no waiting mends it, so the requester hears it now, even while the policy is paused.
//!   Refusals rest on what a request says of itself or on a view that is known to be fresh, never on a stale one.
//! - Otherwise the first closed gate speaks. The table runs from what concerns only the request, over what we can see
//!   at all, to the cluster, its storage and its people. The budget comes after the approval: a slot is only taken when
//!   nothing else is in the way.
//! - The last gate is closed in mode `DryRun`. What it holds is what would have been admitted; nothing that follows an
//!   admission can happen by mistake, since there is no admission.

mod approval;
mod budget;
mod duplicates;
pub mod exclusions;
mod flap;
mod grace;
mod kdump;
mod mode;
pub mod observer;
mod origin;
mod quiet;
mod quorum;
mod storage;
mod storage_in_use;
mod storage_outage;
mod storm;
mod witness;
mod workload;

use std::fmt;

use crate::ident::{NodeName, Uid};
use crate::ledger::Entry;
use crate::policy::Policy;
use crate::reason::vet::{HoldReason, RejectReason};
use crate::snapshot::{NodeView, Ready, Snapshot};
use crate::time::{Span, Tick};

/// The request under vetting: somebody says that a node should be fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The namespace that the request came from.
    pub namespace: String,
    /// The node that it names.
    pub target: NodeName,
    /// The UID of the Node that it means, if it says so; otherwise whoever has that name now.
    pub uid: Option<Uid>,
    /// What it rests on.
    pub source: Source,
    /// How long it has been watched since it began, over all processes: time in which nobody watched is not in it.
    pub observed_for: Span,
    /// Its own grace period, instead of the policy's.
    pub grace: Option<Span>,
    /// A person has approved it.
    pub approved: bool,
    /// The `NodeFence` that was already created for it: its own fence is no duplicate, its own slot no obstacle.
    pub fence: Option<Uid>,
}

/// What a request rests on. A requester says this of itself: it may ask for more care, never for less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The node's lease is silent.
    Lease,
    /// A node condition has held for its period.
    Condition,
    /// Events of the node-problem-detector.
    Event,
    /// A storage system reports the node offline.
    Storage,
    /// A person asks for it.
    Admin,
    /// Another controller asks for it.
    External,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every gate is open: take a slot.
    Admit,
    /// Not now.
    Hold {
        /// The first gate that is closed.
        gate: GateName,
        /// Why.
        why: HoldReason,
        /// When to vet again at the latest; a change of what was seen may come earlier.
        look_again: Tick,
    },
    /// Never.
    Reject {
        /// The gate that refuses.
        gate: GateName,
        /// Why.
        why: RejectReason,
    },
}

/// The answer of one gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Nothing speaks against it.
    Open,
    /// Not now.
    Closed {
        /// Why.
        why: HoldReason,
        /// When to look again at the latest.
        look_again: Tick,
    },
    /// Never.
    Refused(RejectReason),
}

macro_rules! gates {
    ($($(#[$meta:meta])* $Name:ident $text:literal => $judge:path),* $(,)?) => {
        /// The gates, in the order in which they are asked.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum GateName {
            $($(#[$meta])* $Name),*
        }

        impl GateName {
            /// All gates, in the order in which they are asked.
            pub const ALL: &'static [Self] = &[$(Self::$Name),*];

            /// The gate's name, as people read it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$Name => $text),* }
            }
        }

        impl fmt::Display for GateName {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }

        /// Each gate and the function that judges it.
        const GATES: &[(GateName, fn(&Case<'_>) -> Gate)] = &[$((GateName::$Name, $judge)),*];
    };
}

gates! {
    /// Does the request come from a namespace that the policy lists?
    Origin "origin" => origin::gate,
    /// Is anything new admitted at all?
    Mode "mode" => mode::gate,
    /// Is the node there, and is it ours to touch?
    Exclusions "exclusions" => exclusions::gate,
    /// Is it being fenced already?
    Duplicates "duplicates" => duplicates::gate,
    /// Has it had its chance to recover?
    Grace "grace" => grace::gate,
    /// Have we watched for long enough since we started?
    Quiet "quiet" => quiet::gate,
    /// Are we the isolated one?
    Observer "observer" => observer::gate,
    /// Does anybody else confirm the silence?
    Witness "witness" => witness::gate,
    /// Are too many down at once?
    Storm "storm" => storm::gate,
    /// Would the control plane keep its quorum?
    Quorum "quorum" => quorum::gate,
    /// Would the data survive?
    Storage "storage" => storage::gate,
    /// Is it the storage that is gone?
    StorageOutage "storage-outage" => storage_outage::gate,
    /// Does the node still use its storage?
    StorageInUse "storage-in-use" => storage_in_use::gate,
    /// Is it saving a kernel dump?
    Kdump "kdump" => kdump::gate,
    /// Is there anything on it that needs fencing?
    Workload "workload" => workload::gate,
    /// Does it fail again and again?
    Flap "flap" => flap::gate,
    /// Has a person said yes, where one has to?
    Approval "approval" => approval::gate,
    /// Is there a free slot?
    Budget "budget" => budget::gate,
    /// Is this only a rehearsal?
    DryRun "dry-run" => mode::rehearsal,
}

/// Vets a request.
pub fn vet(claim: &Claim, view: &Snapshot, policy: &Policy, now: Tick) -> Verdict {
    let mut held = None;
    for (gate, answer) in walk(claim, view, policy, now) {
        match answer {
            Gate::Open => {}
            Gate::Refused(why) => return Verdict::Reject { gate, why },
            Gate::Closed { why, look_again } => {
                held.get_or_insert(Verdict::Hold { gate, why, look_again });
            }
        }
    }
    held.unwrap_or(Verdict::Admit)
}

/// Asks every gate, for those who want to see more than the first closed one.
pub fn walk(claim: &Claim, view: &Snapshot, policy: &Policy, now: Tick) -> Vec<(GateName, Gate)> {
    let case = Case::new(claim, view, policy, now);
    GATES.iter().map(|(name, judge)| (*name, judge(&case))).collect()
}

/// What the ledger has to say of a node that is about to be fenced: by the same rule as the quorum gate.
pub fn entry_for(target: &NodeName, grant: u32, view: &Snapshot, policy: &Policy) -> Entry {
    let control_plane = quorum::guards(target, view, policy);
    Entry { node: target.clone(), control_plane, grant }
}

/// All that a gate may look at.
struct Case<'a> {
    claim: &'a Claim,
    view: &'a Snapshot,
    policy: &'a Policy,
    now: Tick,
    /// The target; `None` if it is not in view. Then the exclusions gate is closed or refuses, and the others have
    /// nothing to judge.
    node: Option<&'a NodeView>,
}

impl<'a> Case<'a> {
    fn new(claim: &'a Claim, view: &'a Snapshot, policy: &'a Policy, now: Tick) -> Self {
        let node = view.nodes.get(&claim.target);
        Self { claim, view, policy, now, node }
    }

    /// Closes a gate that cannot name a better time.
    fn hold(&self, why: HoldReason) -> Gate {
        Self::hold_until(self.now + self.policy.recheck, why)
    }

    fn hold_until(look_again: Tick, why: HoldReason) -> Gate {
        Gate::Closed { why, look_again }
    }

    fn age(&self, seen: Tick) -> Span {
        self.now.since(seen)
    }

    /// How long the claim has been watched without a gap: an outage of ours starts every timer again.
    fn observed(&self) -> Span {
        let since_outage = self.view.observer.outage_ended.map(|ended| self.age(ended));
        since_outage.map_or(self.claim.observed_for, |seen| seen.min(self.claim.observed_for))
    }

    /// Whether the claim rests on hearing nothing of the node. A kubelet that reports a problem is not silent.
    fn rests_on_silence(&self) -> bool {
        match self.claim.source {
            Source::Lease => true,
            Source::Condition => self.node.is_some_and(|node| node.lease_silent || node.ready == Ready::Unknown),
            Source::Event | Source::Storage | Source::Admin | Source::External => false,
        }
    }
}

#[cfg(test)]
mod tests;
