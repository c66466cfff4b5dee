//! Effects / record: the compare-and-swap write of a fence's state.

use kube::api::{Api, PostParams};
use palisade_api::NodeFence;
use palisade_api::fence::{FencePhase, NodeFenceStatus, TimelineEntry};
use palisade_core::durable;
use palisade_core::fence::{End, Fence, Phase};
use palisade_core::reason::automaton::MoveReason;

use super::{Hand, Outcome, conflict, gone};

/// How many lines the timeline keeps, and how many actions the record.
const LINES: usize = 64;

impl Hand {
    pub(super) async fn record(&mut self, fence: &Fence, why: &MoveReason) -> kube::Result<Outcome> {
        let mut next = self.fence.clone();
        let mut status = next.status.take().unwrap_or_default();
        durable::write(fence, &mut status);
        if matches!(why, MoveReason::PoweredOn) || matches!(fence.phase, Phase::Final(End::NodeGone)) {
            // What a person asked to be resumed is done: it is not asked for twice.
            status.observed_resume = next.spec.admin.resume;
        }
        self.tell(&mut status, why);
        status.actions.extend(self.actions.iter().cloned());
        let over = status.actions.len().saturating_sub(LINES);
        status.actions.drain(..over);
        next.status = Some(status);
        let fences: Api<NodeFence> = Api::all(self.context.client.clone());
        match fences.replace_status(self.node.as_str(), &PostParams::default(), &next).await {
            Ok(written) => {
                self.context.reached.told(written.metadata.resource_version.as_deref());
                *self.fence = written;
                Ok(Outcome::Recorded(self.fence.clone()))
            }
            // Whatever it was: what stands there now decides. A refused write and a lost reply look the same to a reader.
            Err(why) if conflict(&why) || gone(&why) => self.read_again().await,
            Err(why) => {
                tracing::warn!(node = %self.node, %why, "the record of the fence was not confirmed; it is read again");
                self.read_again().await
            }
        }
    }

    async fn read_again(&mut self) -> kube::Result<Outcome> {
        let fences: Api<NodeFence> = Api::all(self.context.client.clone());
        let found = fences.get_opt(self.node.as_str()).await?;
        Ok(Outcome::RecordLost(found.map(Box::new)))
    }

    /// Adds a line for people. Time that is merely kept is no news.
    fn tell(&self, status: &mut NodeFenceStatus, why: &MoveReason) {
        if matches!(why, MoveReason::TimeKept { .. }) {
            return;
        }
        let message: String = why.to_string().chars().take(1024).collect();
        // A fence that has failed goes on saying why, whatever else is written down meanwhile.
        if status.phase != FencePhase::Failed {
            status.reason = Some(why.name().to_owned());
            status.message.clone_from(&message);
        }
        let line = TimelineEntry { time: self.context.clock.wall(), reason: why.name().to_owned(), message };
        status.timeline.push(line);
        let over = status.timeline.len().saturating_sub(LINES);
        status.timeline.drain(..over);
    }
}
