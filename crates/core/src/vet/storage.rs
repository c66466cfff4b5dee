//! Vet / storage: would the data survive without this node? (002)
//!
//! Promise: a node on which a storage system runs is fenced only while that system says that it can spare it.
//! Never: lets a stale or missing answer count as a yes; lets the target use up its own budget; guards a node on which
//! none of the system's daemons run.

use super::{Case, Gate};
use crate::ident::ProviderName;
use crate::reason::vet::HoldReason;
use crate::snapshot::{DisruptionBudgetView, StorageView};
use crate::time::Tick;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let rules = &case.policy.storage;
    let mut budgets = case.view.disruption_budgets.iter().filter(|_| rules.disruption_budgets);
    let veto = rules.providers.iter().find_map(|name| provider_veto(case, name));
    let veto = veto.or_else(|| budgets.find_map(|budget| budget_veto(case, budget)));
    veto.map_or(Gate::Open, |why| case.hold(why))
}

fn provider_veto(case: &Case<'_>, provider: &ProviderName) -> Option<HoldReason> {
    let Some(view) = case.view.storage.get(provider) else {
        return Some(HoldReason::StorageSilent { provider: provider.clone() });
    };
    let (age, limit) = (case.age(view.reported), case.policy.storage.fresh);
    if age > limit {
        return Some(HoldReason::StorageStale { provider: provider.clone(), age, limit });
    }
    // 002: once the daemons on the node are down it holds nothing that could be lost with it.
    if !view.daemons_run_on.contains(&case.claim.target) {
        return None;
    }
    daemons_veto(case, provider, view)
}

/// Daemons run there: somebody has to vouch for the data.
fn daemons_veto(case: &Case<'_>, provider: &ProviderName, view: &StorageView) -> Option<HoldReason> {
    let provider = provider.clone();
    match (view.groups, view.redundancy_lost_without.get(&case.claim.target)) {
        // More clean than there are is no answer either.
        (Some(groups), _) if groups.clean != groups.all => {
            Some(HoldReason::StorageNotClean { provider, clean: groups.clean, all: groups.all })
        }
        (Some(_) | None, Some(true)) => Some(HoldReason::RedundancyLost { provider }),
        (None, None) => Some(HoldReason::RedundancyUnknown { provider }),
        (Some(_), None) | (Some(_) | None, Some(false)) => None,
    }
}

fn budget_veto(case: &Case<'_>, budget: &DisruptionBudgetView) -> Option<HoldReason> {
    if !budget.covers.contains(&case.claim.target) {
        return None;
    }
    let (name, limit) = (budget.name.clone(), case.policy.storage.fresh);
    let age = case.age(budget.refreshed.unwrap_or(Tick::START));
    if budget.refreshed.is_none() || age > limit {
        return Some(HoldReason::DisruptionBudgetStale { budget: name, age, limit });
    }
    let unavailable = others_unavailable(case, budget);
    let allowed = budget.max_unavailable;
    (unavailable >= allowed).then_some(HoldReason::DisruptionBudgetUsed { budget: name, unavailable, allowed })
}

/// Covered nodes other than the target that are down, gone, or being fenced.
fn others_unavailable(case: &Case<'_>, budget: &DisruptionBudgetView) -> u32 {
    let available = |name| {
        let up = case.view.nodes.get(name).is_some_and(|node| !node.down());
        let fenced = case.view.ledger.iter().flat_map(|ledger| ledger.entries.values()).any(|slot| slot.node == *name);
        up && !fenced
    };
    let others = budget.covers.iter().filter(|name| **name != case.claim.target && !available(name));
    u32::try_from(others.count()).unwrap_or(u32::MAX)
}
