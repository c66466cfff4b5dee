//! Vet / storage-outage: skip a node that cannot reach its storage (003): fencing would help nobody.
//!
//! Promise: while the storage itself is out, no node is switched off for it, where the policy asks for that.
//! Never: takes silence for an outage: a dead node reports nothing, and has to be fenced all the same.

use super::{Case, Gate};
use crate::reason::vet::HoldReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let Some(node) = case.node.filter(|_| case.policy.storage.skip_on_outage) else {
        return Gate::Open;
    };
    let fresh = node.storage.iter().filter(|seen| case.age(seen.seen) <= case.policy.storage.fresh);
    let mut cut_off = fresh.filter(|seen| seen.reachable == Some(false));
    let out = cut_off.next();
    out.map_or(Gate::Open, |seen| case.hold(HoldReason::StorageUnreachable { provider: seen.provider.clone() }))
}
