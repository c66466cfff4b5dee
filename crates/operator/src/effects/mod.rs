//! Effects: what `core` decided, carried out in order. The rest of a decision is dropped at the first thing that goes another
//! way than expected: then somebody looks, and decides again. Only pods and attachments do not wait for each other, as each
//! stands on preconditions of its own.
//!
//! Promise (I4): each destructive request carries its UID, and the version where a change could alter the decision; and each
//! is preceded by a last look at the clock and at our leadership.

mod close;
mod jobs;
mod ledger;
mod node;
mod pods;
mod record;
mod volumes;

use std::collections::BTreeSet;
use std::sync::Arc;

use palisade_api::NodeFence;
use palisade_api::request::ActionOutcome;
use palisade_core::effect::Effect;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::ledger::Entry;
use palisade_core::observe::{CallId, LedgerSeen, NodeRead};
use palisade_core::time::Tick;

pub(crate) use ledger::{ledger_of, live_fence};
pub(crate) use pods::Listing;

use crate::context::Context;
use crate::leader::Hold;
use crate::said::brief;
use crate::view::{NodeFacts, ShownLease};

/// What came of an effect.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The record was written.
    Recorded(Box<NodeFence>),
    /// The record was not written, or nobody knows: read it again. None: it is gone.
    RecordLost(Option<Box<NodeFence>>),
    /// The ledger was read, or written.
    Ledger(LedgerSeen),
    /// There is no free slot.
    NoSlot(String),
    /// The Node was read, and its lease; none: there is no such Node, or no lease.
    Node(NodeRead, Option<Box<NodeFacts>>, Option<ShownLease>),
    /// The Node was written.
    NodeWritten(Box<NodeFacts>),
    /// These calls' Jobs are over.
    JobsOver(BTreeSet<CallId>),
    /// Pods and attachments were listed.
    Listed(Arc<Listing>),
    /// A pod or an attachment was told to go: what was listed is out of date.
    Told,
    /// It went another way: list again before anything else is sent.
    Relist,
    /// The fence is closed.
    Closed,
    /// It cannot be done yet, and nothing is wrong.
    NotYet,
    /// It went another way, or nobody knows: look and decide again.
    Failed {
        /// Which effect.
        effect: &'static str,
        /// Why.
        why: String,
    },
    /// Nothing to tell.
    Nothing,
}

/// What carries out the effects of one decision.
pub(crate) struct Hand {
    pub(crate) context: Context,
    pub(crate) hold: Hold,
    pub(crate) node: NodeName,
    /// The fence as it was last read or written.
    pub(crate) fence: Box<NodeFence>,
    pub(crate) uid: Uid,
    /// What was listed last, if anything was.
    pub(crate) listing: Option<Arc<Listing>>,
    /// The Node as the decision saw it.
    pub(crate) facts: Option<Box<NodeFacts>>,
    /// What the ledger says of a fence that takes a slot.
    pub(crate) entry: Entry,
    /// What methods did, that is not on record yet.
    pub(crate) actions: Vec<ActionOutcome>,
}

impl Hand {
    /// Carries out `effects`, as far as they go as expected.
    pub(crate) async fn perform(mut self, effects: Vec<Effect>) -> Vec<Outcome> {
        let (mut outcomes, mut disturbed) = (Vec::new(), false);
        for effect in effects {
            let alone = effect.stands_alone();
            // What stands behind a pod that went another way may rest on it; but whatever is read is read for all.
            if disturbed && !alone && !effect.reads() {
                break;
            }
            let outcome = self.one(effect).await;
            let other_way = matches!(outcome, Outcome::Failed { .. } | Outcome::RecordLost(_) | Outcome::Relist);
            outcomes.push(outcome);
            if other_way && !alone {
                break;
            }
            disturbed |= other_way;
        }
        outcomes
    }

    async fn one(&mut self, effect: Effect) -> Outcome {
        let name = effect.name();
        if !effect.reads()
            && let Err(late) = self.hold.check()
        {
            return Outcome::Failed { effect: name, why: late.0 };
        }
        let done = match effect {
            Effect::Record { fence, why } => self.record(&fence, &why).await,
            Effect::ReadLedger => self.read_ledger().await,
            Effect::TakeSlot { grant } => self.take_slot(grant).await,
            Effect::GiveSlotBack { grant } => self.give_slot_back(grant).await,
            Effect::ReadNode(id) => self.read_node(id).await,
            Effect::ListPods => self.list().await,
            Effect::EndJobs(calls) => self.end_jobs(&calls).await.map(Outcome::JobsOver),
            // Who else may still make one is not known here, so nobody learns from it that they are over.
            Effect::TellJobsToGo(calls) => self.end_jobs(&calls).await.map(|_| Outcome::Nothing),
            Effect::PatchNode(patch) => self.patch_node(&patch).await,
            Effect::MarkPod(mark) => self.mark(&mark).await,
            Effect::RemovePod(remove) => self.remove(&remove).await,
            Effect::DetachVolumes(detach) => self.detach(&detach).await,
            Effect::TouchNode(guard) => self.touch(&guard).await,
            Effect::DeleteAttachment(delete) => self.delete_attachment(&delete).await,
            Effect::DeleteNode(delete) => self.delete_node(&delete).await,
            Effect::Close { end, .. } => self.close(end).await,
            // Carried out beside, as they take their time; or by our attacher.
            Effect::CallDevice(_) | Effect::ReadBack(_) | Effect::Unpublish(_) => Ok(Outcome::Nothing),
        };
        done.unwrap_or_else(|why| Outcome::Failed { effect: name, why: brief(&why) })
    }

    fn too_late(&self, send_before: Tick) -> bool {
        self.context.clock.tick() > send_before
    }
}

/// Whether the API server says that a precondition does not hold.
pub(crate) fn conflict(why: &kube::Error) -> bool {
    matches!(why, kube::Error::Api(status) if status.code == 409)
}

/// Whether the API server says that there is no such object.
pub(crate) fn gone(why: &kube::Error) -> bool {
    matches!(why, kube::Error::Api(status) if status.code == 404)
}
