//! Bookkeeping: the ledger is built where there is none, entries of fences that are gone are taken out, and its slots age.
//!
//! Promise (I3): an entry goes only if its fence was looked for, live, after the ledger that shows it was read.

use std::collections::BTreeMap;

use kube::ResourceExt;
use kube::api::{Api, ListParams, PostParams};
use palisade_api::{FencePolicy, NodeFence, names};
use palisade_core::durable::write_ledger;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::ledger::{Found, Ledger, LiveGet, ReadNumber, rebuild, sweep};
use palisade_core::policy::Budget;
use palisade_core::time::Span;

use crate::context::Context;
use crate::effects::{ledger_of, live_fence};
use crate::leader::Hold;

/// Puts the ledger in order. `watched`: how much time passed under our eyes since the last time. `members`: whether a node
/// belongs to the control plane; one that nobody knows is taken for a member, of which only one is fenced at a time.
pub(crate) async fn keep(
    context: Context,
    hold: Hold,
    budget: Budget,
    watched: Span,
    members: BTreeMap<NodeName, bool>,
) -> kube::Result<()> {
    let policies: Api<FencePolicy> = Api::all(context.client.clone());
    let Some(mut policy) = policies.get_opt(names::POLICY_NAME).await? else { return Ok(()) };
    let uid = Uid::new(policy.uid().unwrap_or_default());
    let fences: Api<NodeFence> = Api::all(context.client.clone());
    let next = match ledger_of(&policy) {
        None => {
            let live = fences.list(&ListParams::default()).await?;
            let member = |fence: &NodeFence| {
                members.get(&NodeName::from(fence.spec.node_name.as_str())).copied().unwrap_or(true)
            };
            rebuild(&uid, &live.items.iter().map(|fence| live_fence(fence, member(fence))).collect::<Vec<_>>())
        }
        Some(known) => {
            let swept = swept(&known, &fences).await?.unwrap_or_else(|| known.clone());
            let aged = swept.aged(watched, &budget);
            if aged == known {
                return Ok(());
            }
            aged
        }
    };
    if !hold.stands() {
        return Ok(());
    }
    let mut status = policy.status.take().unwrap_or_default();
    write_ledger(&next, &mut status);
    policy.status = Some(status);
    policies.replace_status(names::POLICY_NAME, &PostParams::default(), &policy).await?;
    Ok(())
}

/// The ledger without the entries of fences that are gone.
async fn swept(ledger: &Ledger, fences: &Api<NodeFence>) -> kube::Result<Option<Ledger>> {
    let mut gets = Vec::new();
    for entry in ledger.entries.values() {
        let found = match fences.get_opt(entry.node.as_str()).await? {
            Some(fence) => Found::Fence(Uid::new(fence.uid().unwrap_or_default())),
            None => Found::Gone,
        };
        // The ledger was read before the first of these began.
        gets.push(LiveGet { node: entry.node.clone(), begun: ReadNumber(1), found });
    }
    Ok(sweep(ledger, ReadNumber(0), &gets))
}
