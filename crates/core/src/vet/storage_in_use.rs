//! Vet / storage-in-use: skip a node that still uses its storage (003: a live storage lease).
//!
//! Promise: where the policy asks for that, a node that works but is not heard is left to work.
//! Never: takes a stale or missing answer for "not in use".

use super::{Case, Gate};
use crate::reason::vet::HoldReason;
use crate::snapshot::NodeStorageView;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let Some(node) = case.node.filter(|_| case.policy.storage.skip_in_use) else {
        return Gate::Open;
    };
    node.storage.iter().find_map(|seen| veto(case, seen)).map_or(Gate::Open, |why| case.hold(why))
}

fn veto(case: &Case<'_>, seen: &NodeStorageView) -> Option<HoldReason> {
    let (provider, age) = (seen.provider.clone(), case.age(seen.seen));
    match seen.in_use {
        Some(_) if age > case.policy.storage.fresh => Some(HoldReason::StorageUseUnknown { provider, age }),
        Some(true) => Some(HoldReason::StorageInUse { provider }),
        Some(false) => None,
        None => Some(HoldReason::StorageUseUnknown { provider, age }),
    }
}
