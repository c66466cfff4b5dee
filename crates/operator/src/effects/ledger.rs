//! Effects / ledger: slots of the budget, by compare-and-swap on the policy's status.

use kube::api::{Api, PostParams};
use palisade_api::{FencePolicy, NodeFence, names};
use palisade_core::durable::{read_ledger, write_ledger};
use palisade_core::ident::{NodeName, Uid};
use palisade_core::ledger::{Entry, GiveBack, Ledger, LiveFence, Take, give_back, take};
use palisade_core::observe::LedgerSeen;
use palisade_core::planted::{self, Bug};
use palisade_core::resolve;

use super::{Hand, Outcome};

impl Hand {
    pub(super) async fn read_ledger(&mut self) -> kube::Result<Outcome> {
        let policy = self.policies().get_opt(names::POLICY_NAME).await?;
        let ledger = policy.as_ref().and_then(ledger_of);
        Ok(Outcome::Ledger(self.shows(ledger.as_ref())))
    }

    pub(super) async fn take_slot(&mut self, grant: u32) -> kube::Result<Outcome> {
        let Some(mut policy) = self.policies().get_opt(names::POLICY_NAME).await? else {
            return Ok(Outcome::NoSlot("there is no FencePolicy named cluster, so there is no ledger".to_owned()));
        };
        let uid = Uid::new(policy.metadata.uid.clone().unwrap_or_default());
        // How many there may be is asked of the very object that is written: a watch may show it late.
        let budget = match resolve::policy(uid.clone(), &policy.spec) {
            Ok(policy) => policy.budget,
            Err(why) => return Ok(Outcome::NoSlot(format!("the FencePolicy makes no sense: {why}"))),
        };
        let known = ledger_of(&policy);
        let entry = Entry { grant, ..self.entry.clone() };
        let asked = take(known.as_ref(), &uid, &self.uid, entry, &budget);
        let next = match asked {
            Take::Write(next) => next,
            Take::Already => return Ok(Outcome::Ledger(self.shows(known.as_ref()))),
            Take::Full(full) => return Ok(Outcome::NoSlot(format!("{full:?}"))),
            // Whoever keeps the books builds it anew; the slot is asked for again then.
            Take::Missing => return Ok(Outcome::NoSlot("the ledger is missing".to_owned())),
        };
        self.write(&mut policy, &next).await?;
        Ok(Outcome::Ledger(self.shows(Some(&next))))
    }

    pub(super) async fn give_slot_back(&mut self, grant: u32) -> kube::Result<Outcome> {
        let Some(mut policy) = self.policies().get_opt(names::POLICY_NAME).await? else {
            return Ok(Outcome::Ledger(LedgerSeen::Absent));
        };
        let Some(known) = ledger_of(&policy) else { return Ok(Outcome::Ledger(LedgerSeen::Absent)) };
        match give_back(&known, &self.uid, grant) {
            GiveBack::Write(next) => {
                self.write(&mut policy, &next).await?;
                Ok(Outcome::Ledger(self.shows(Some(&next))))
            }
            GiveBack::NotThere => Ok(Outcome::Ledger(self.shows(Some(&known)))),
        }
    }

    /// By the version that was read: whoever lost the race reads again and decides again.
    async fn write(&self, policy: &mut FencePolicy, next: &Ledger) -> kube::Result<()> {
        if planted::is(Bug::LedgerWithoutSwap) {
            policy.metadata.resource_version = self.version_a_second_later().await?;
        }
        let mut status = policy.status.take().unwrap_or_default();
        write_ledger(next, &mut status);
        policy.status = Some(status);
        self.policies().replace_status(names::POLICY_NAME, &PostParams::default(), policy).await?;
        Ok(())
    }

    /// A bug on purpose, and a slow one: within milliseconds it would show itself once in a thousand runs.
    async fn version_a_second_later(&self) -> kube::Result<Option<String>> {
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        Ok(self.policies().get_opt(names::POLICY_NAME).await?.and_then(|policy| policy.metadata.resource_version))
    }

    fn shows(&self, ledger: Option<&Ledger>) -> LedgerSeen {
        let entry = ledger.and_then(|ledger| ledger.entries.get(&self.uid));
        entry.map_or(LedgerSeen::Absent, |entry| LedgerSeen::Present { grant: entry.grant })
    }

    fn policies(&self) -> Api<FencePolicy> {
        Api::all(self.context.client.clone())
    }
}

/// The ledger of this very policy; one that was built for another, or cannot be read, is none.
pub(crate) fn ledger_of(policy: &FencePolicy) -> Option<Ledger> {
    let uid = Uid::new(policy.metadata.uid.clone().unwrap_or_default());
    match read_ledger(policy.status.as_ref()?) {
        Ok(ledger) => ledger.filter(|ledger| ledger.is_for(&uid)),
        Err(why) => {
            tracing::error!(%why, "the ledger cannot be read; it is rebuilt from the fences");
            None
        }
    }
}

/// A fence as a ledger that is built anew sees it.
pub(crate) fn live_fence(fence: &NodeFence, control_plane: bool) -> LiveFence {
    let status = fence.status.clone().unwrap_or_default();
    LiveFence {
        fence: Uid::new(fence.metadata.uid.clone().unwrap_or_default()),
        entry: Entry { node: NodeName::from(fence.spec.node_name.as_str()), control_plane, grant: status.grant },
        slot: status.slot == palisade_api::fence::Slot::Held,
    }
}
