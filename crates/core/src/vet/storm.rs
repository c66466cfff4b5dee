//! Vet / storm: many nodes down at once may mean that *we* are the broken part (003: fencing storms).
//!
//! Promise (I3): no fence is admitted in a cluster or a failure domain of which more than the allowed share is down.
//! A claim that comes early, from one missed renewal and a device that says off, is admitted only when so many others were heard
//! after that renewal was due that the limit would hold even if all the rest had died with the node: nodes that lose their
//! power together miss their renewals one after the other.
//! When a storm ends, nodes come back one after the other: those that are back for a moment only still count, so that the last one
//! is not taken for the only one that failed.
//! Never: counts nodes whose absence was announced; blocks the first failure of a domain.

use palisade_api::names::labels::EXCLUDE_DISRUPTION;

use super::exclusions::in_maintenance;
use super::{Case, Gate, Source};
use crate::ident::NodeName;
use crate::planted::{self, Bug};
use crate::policy::{DomainBrake, WholeDomain};
use crate::reason::vet::HoldReason;
use crate::snapshot::NodeView;
use crate::time::{Span, Tick};

/// Within so long everybody comes back who was kept away by the same thing: a kubelet tries to renew every 10 s, and the attempt that
/// fails takes up to 10 s more.
const RETURN_TOGETHER: Span = Span::secs(25);

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let Some(target) = case.node.filter(|_| !planted::is(Bug::NoStormBrake)) else {
        return Gate::Open;
    };
    let Tally { mut cluster, domains } = Tally::of(case, target);
    // A whole rack may die; the whole world does not: then it is we who are blind.
    if cluster.size > 0 && cluster.seen_down == cluster.size {
        return case.hold(HoldReason::ObserverSuspect { size: cluster.size });
    }
    let mut gone = 0;
    for (brake, domain) in &domains {
        match (domain.whole(), brake.whole_domain) {
            (true, WholeDomain::Hold) => {
                let domain_name = name_of(brake, target);
                return case.hold(HoldReason::WholeDomainDown { domain: domain_name, size: domain.size });
            }
            (true, WholeDomain::Fence) => gone = gone.max(domain.size),
            (false, WholeDomain::Hold | WholeDomain::Fence) => {
                let allowed = brake.limit.of(domain.size);
                if let Some(why) = domain.over(allowed, || name_of(brake, target)) {
                    return case.hold(why);
                }
            }
        }
    }
    cluster.count_as_one(gone);
    let over = cluster.over(case.policy.storm.cluster.of(cluster.size), || "cluster".to_owned());
    over.map_or(Gate::Open, |why| case.hold(why))
}

/// Since when the claim's one renewal is overdue, if that is all that it rests on.
fn early(case: &Case<'_>, target: &NodeView) -> Option<Tick> {
    let by_lease = case.claim.source == Source::Lease;
    target.late_since.filter(|_| by_lease && !target.down())
}

/// The domain's name; nodes without the label are one domain together.
fn name_of(brake: &DomainBrake, target: &NodeView) -> String {
    let value = target.labels.get(&brake.topology_key).map_or("(none)", String::as_str);
    format!("{}={value}", brake.topology_key)
}

#[derive(Clone, Copy, Default)]
struct Count {
    size: u32,
    /// Nodes that are down now, or about to be.
    seen_down: u32,
    /// The same, and the target, which will be.
    down: u32,
    /// Others that nobody has heard of since an early claim's renewal was due.
    unheard: u32,
    /// Others that were silent, and are back for a moment.
    returning: u32,
}

/// One node, as far as a storm goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Is {
    Down,
    Unheard,
    Returning,
    Well,
}

impl Count {
    fn add(&mut self, is: Is, is_target: bool) {
        self.size += 1;
        self.seen_down += u32::from(is == Is::Down);
        self.down += u32::from(is == Is::Down || is_target);
        self.unheard += u32::from(is == Is::Unheard && !is_target);
        self.returning += u32::from(is == Is::Returning && !is_target);
    }

    /// Everything is down, and it is more than the one node that may always fail.
    fn whole(&self) -> bool {
        self.size > 1 && self.seen_down == self.size
    }

    /// A domain that is gone as a whole, and may be fenced, is one failure of the cluster and not one per node.
    fn count_as_one(&mut self, gone: u32) {
        let but_one = gone.saturating_sub(1);
        self.size -= but_one;
        self.down -= but_one;
    }

    fn over(&self, allowed: u32, domain: impl FnOnce() -> String) -> Option<HoldReason> {
        let Self { size, down, unheard, returning, .. } = *self;
        if down > allowed {
            return Some(HoldReason::StormBrake { domain: domain(), down, size, allowed });
        }
        if down + returning > allowed && returning > 0 {
            return Some(HoldReason::OthersReturning { domain: domain(), returning, down, size, allowed });
        }
        let might_be = down + unheard;
        (might_be > allowed).then(|| HoldReason::OthersUnheard { domain: domain(), unheard, down, size, allowed })
    }
}

struct Tally<'a> {
    cluster: Count,
    domains: Vec<(&'a DomainBrake, Count)>,
}

impl<'a> Tally<'a> {
    /// One pass over all nodes.
    fn of(case: &Case<'a>, target: &NodeView) -> Self {
        let since = early(case, target);
        let mut cluster = Count::default();
        let brakes = case.policy.storm.domains.iter();
        let mut domains: Vec<_> =
            brakes.map(|brake| (brake, target.labels.get(&brake.topology_key), Count::default())).collect();
        for (name, node) in &case.view.nodes {
            if announced(case, name, node) {
                continue;
            }
            let is_target = *name == case.claim.target;
            let heard = since.is_none_or(|since| node.last_heard().is_some_and(|last| last >= since));
            // Whom a fence of ours brought back was not kept away by what kept the others.
            let back = node.back_since.is_some_and(|at| case.now < at + RETURN_TOGETHER);
            let is = match (node.suspect(), heard) {
                (true, _) => Is::Down,
                (false, false) => Is::Unheard,
                (false, true) if back && !case.view.fences.contains_key(name) => Is::Returning,
                (false, true) => Is::Well,
            };
            cluster.add(is, is_target);
            for (brake, home, count) in &mut domains {
                if node.labels.get(&brake.topology_key) == *home {
                    count.add(is, is_target);
                }
            }
        }
        Self { cluster, domains: domains.into_iter().map(|(brake, _, count)| (brake, count)).collect() }
    }
}

/// Somebody said that this node may be absent: whether it is says nothing about the network.
fn announced(case: &Case<'_>, name: &NodeName, node: &NodeView) -> bool {
    node.deleting
        || node.labels.contains_key(EXCLUDE_DISRUPTION)
        || in_maintenance(node)
        || case.view.fences.get(name).is_some_and(|fence| fence.held_off)
}
