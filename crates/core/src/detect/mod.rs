//! Detect: what was seen of a node, and whether it makes a claim.
//!
//! Promise: a detector yields a [`Finding`] and nothing else. It measures by our own monotonic clock from the moment
//! that we saw a change; time in which nobody watched does not count, and what is missing is neither bad nor well.
//! Never: reads a clock, compares a stamp of another machine with ours, touches a node.

use std::collections::BTreeMap;

use crate::ident::{BootId, ProviderName, Uid};
use crate::reason::detect::{ClaimReason, UnwellReason, WatchReason};
use crate::snapshot::{NodeView, Ready};
use crate::time::{Span, Tick};

pub mod conditions;
pub mod events;
pub mod lease;
pub mod remedy;
pub mod sight;
pub mod storage;
pub mod witness;

/// When evidence that names no better time is looked at again.
pub const LOOK_AGAIN: Span = Span::secs(30);

/// What a detector says of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Finding {
    /// Nothing speaks against the node; what did has cleared.
    Quiet,
    /// Neither a claim nor a recovery yet.
    Watching {
        /// What is waited for.
        why: WatchReason,
        /// When to look again if nothing changes before.
        until: Tick,
    },
    /// The node should be fenced, as far as this evidence goes.
    Claim {
        /// What was seen.
        why: ClaimReason,
    },
}

/// How far a finding bears a request that was made from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Standing {
    /// It has cleared.
    Cleared,
    /// It cannot be told now: nothing new is begun from it, and nothing is taken for recovered (I6).
    Unsure,
    /// It stands.
    Stands,
}

impl Finding {
    /// How far this finding bears a request.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Quiet => Standing::Cleared,
            Self::Claim { .. } => Standing::Stands,
            Self::Watching { why, .. } => why.standing(),
        }
    }

    /// Its name without its numbers: what may be written down without a write on every pass.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Quiet => "Quiet",
            Self::Watching { why, .. } => why.name(),
            Self::Claim { why } => why.name(),
        }
    }

    /// When it should be looked at again if nothing changes before.
    pub fn look_again(&self, now: Tick) -> Tick {
        match self {
            Self::Watching { until, .. } => *until,
            Self::Quiet | Self::Claim { .. } => now + LOOK_AGAIN,
        }
    }

    /// Whether it may become another while nothing new is seen. One that does not stays until something is seen of the
    /// node or our own sight changes, and need not be asked for before.
    pub fn ripens(&self) -> bool {
        match self {
            Self::Quiet => false,
            Self::Claim { .. } => true,
            Self::Watching { why, .. } => why.ripens(),
        }
    }

    /// The finding on one line, for tables and logs.
    pub fn brief(&self) -> String {
        match self {
            Self::Quiet => "Quiet".to_owned(),
            Self::Watching { why, until } => format!("Watching {} until={until}", why.brief()),
            Self::Claim { why } => format!("Claim {}", why.brief()),
        }
    }
}

impl WatchReason {
    fn ripens(&self) -> bool {
        match self {
            Self::ObserverBlind { .. }
            | Self::ConditionMissing { .. }
            | Self::ConditionUnreadable { .. }
            | Self::LeaseAbsent
            | Self::LeaseNeverRenewed
            | Self::LeaseUnheard
            | Self::LeaseOfAnother { .. }
            | Self::LeaseDurationAbsurd { .. } => false,
            Self::ConditionHolding { .. }
            | Self::LeaseLate { .. }
            | Self::LeaseUnwitnessed { .. }
            | Self::LeaseContradicted { .. }
            | Self::StorageUnknown { .. }
            | Self::StorageNotListed { .. }
            | Self::StorageHolding { .. }
            | Self::StorageSilent { .. }
            | Self::StorageAlreadyClaimed { .. }
            | Self::EventsCounting { .. }
            | Self::EventsUnreadable { .. } => true,
        }
    }

    fn standing(&self) -> Standing {
        match self {
            // The claim has been made, and the storage still says the same.
            Self::StorageAlreadyClaimed { .. } => Standing::Stands,
            Self::ObserverBlind { .. }
            | Self::ConditionHolding { .. }
            | Self::ConditionMissing { .. }
            | Self::ConditionUnreadable { .. }
            | Self::LeaseLate { .. }
            | Self::LeaseUnwitnessed { .. }
            | Self::LeaseContradicted { .. }
            | Self::LeaseAbsent
            | Self::LeaseNeverRenewed
            | Self::LeaseUnheard
            | Self::LeaseOfAnother { .. }
            | Self::LeaseDurationAbsurd { .. }
            | Self::StorageUnknown { .. }
            | Self::StorageNotListed { .. }
            | Self::StorageHolding { .. }
            | Self::StorageSilent { .. }
            | Self::EventsCounting { .. }
            | Self::EventsUnreadable { .. } => Standing::Unsure,
        }
    }
}

/// What a request rests on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Evidence {
    /// A detector's finding, as it is now.
    Found(Finding),
    /// Somebody asked: it clears only when the step that was asked for has been done.
    Asked {
        /// The step was done.
        done: bool,
    },
    /// Who asked has taken the request back.
    Withdrawn,
}

impl Evidence {
    /// How far it bears the request now.
    pub fn standing(&self) -> Standing {
        match self {
            Self::Found(finding) => finding.standing(),
            Self::Asked { done: true } | Self::Withdrawn => Standing::Cleared,
            Self::Asked { done: false } => Standing::Stands,
        }
    }
}

/// Whether a node is well.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Health {
    /// Ready, and all evidence has cleared.
    Healthy,
    /// Not so.
    Unwell {
        /// The first thing that is missing.
        why: UnwellReason,
    },
}

/// Healthy means: Ready by a living lease, and the evidence of every attached request has cleared.
pub fn health(node: &NodeView, evidence: &[Evidence]) -> Health {
    let unwell = |why| Health::Unwell { why };
    match node.ready {
        Ready::True if node.lease_silent => return unwell(UnwellReason::StaleReady),
        Ready::True => {}
        Ready::False | Ready::Unknown => {
            return unwell(UnwellReason::NotReady { ready: node.ready.into() });
        }
    }
    let left = evidence.iter().find(|one| one.standing() != Standing::Cleared);
    match left {
        None => Health::Healthy,
        Some(Evidence::Found(finding)) => unwell(UnwellReason::EvidenceStands { seen: finding.name().into() }),
        Some(Evidence::Asked { .. } | Evidence::Withdrawn) => unwell(UnwellReason::StepNotDone),
    }
}

/// What this process remembers of one life of one Node object.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeMemory {
    uid: Uid,
    boot: Option<BootId>,
    /// Its conditions.
    pub conditions: conditions::Conditions,
    /// Its lease.
    pub lease: lease::LeaseMemory,
    /// What others say of it.
    pub witnesses: witness::Witnesses,
    /// The events that it reported in this boot.
    pub events: events::Events,
    /// What each storage system says of it.
    pub storage: BTreeMap<ProviderName, storage::StorageMemory>,
    /// When it was seen to fail, newest last; by whatever Node of this name, for a machine is not cured by another object.
    failures: Vec<Tick>,
}

impl NodeMemory {
    /// Call with each sighting, before anything else is observed: a Node with another UID is another node, and nothing
    /// that was seen of the old one counts, but that its lease has moved since. A new boot forgets the events, which told of the old kernel.
    pub fn recognise(&mut self, uid: &Uid, boot: Option<&BootId>) {
        if self.uid != *uid {
            let lease = std::mem::take(&mut self.lease).of_another();
            let failures = std::mem::take(&mut self.failures);
            *self = Self { uid: uid.clone(), lease, failures, ..Self::default() };
        }
        if boot.is_some() && self.boot.as_ref() != boot {
            if self.boot.is_some() {
                self.events = events::Events::default();
            }
            self.boot = boot.cloned();
        }
    }

    /// When the node last showed a sign of life: a renewal, or a witness who saw it.
    pub fn last_heard(&self) -> Option<Tick> {
        self.lease.last_renewal().max(self.witnesses.last_alive())
    }

    /// The node fails, by whatever rule. What is noticed twice without a sign of life in between is one failure.
    pub fn fails(&mut self, now: Tick) {
        let before = self.failures.last().copied();
        if before.is_none_or(|before| self.last_heard().is_some_and(|heard| heard > before)) {
            self.failures.push(now);
        }
    }

    /// When it was seen to fail, newest last.
    pub fn failures(&self) -> &[Tick] {
        &self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_that_two_rules_notice_is_one_failure() {
        let mut memory = NodeMemory::default();
        let renewed = |text: &str| lease::SeenLease { holder: None, seconds: None, renewed: Some(text.into()) };
        memory.lease.observe(Some(renewed("a")), Tick::at_millis(0));
        memory.fails(Tick::at_millis(21_000));
        memory.fails(Tick::at_millis(55_000));
        assert_eq!(memory.failures(), [Tick::at_millis(21_000)]);
        memory.lease.observe(Some(renewed("b")), Tick::at_millis(90_000));
        memory.recognise(&"another".into(), None);
        memory.lease.observe(Some(renewed("c")), Tick::at_millis(95_000));
        memory.fails(Tick::at_millis(120_000));
        assert_eq!(memory.failures(), [Tick::at_millis(21_000), Tick::at_millis(120_000)]);
    }
}
