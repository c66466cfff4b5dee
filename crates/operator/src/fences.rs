//! Fences: each live NodeFence, stepped by `core` whenever something about it may have changed.
//!
//! Promise: one decision at a time per fence; what it decided is carried out before it is asked again. Device calls and reads
//! go on beside, and their answers count only for the call or series that they belong to.
//! Promise (I1, I2): what an earlier look at the same fence asked for, before this process lost the lease and got it back, counts
//! for nothing: reads are numbered from the beginning by each look.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kube::ResourceExt;
use palisade_api::NodeFence;
use palisade_api::request::ActionOutcome;
use palisade_core::detect::sight::Sight;
use palisade_core::durable;
use palisade_core::effect::Effect;
use palisade_core::fence::{Fence, Slot};
use palisade_core::ident::{BootId, NodeName, Uid};
use palisade_core::observe::{
    Admin, CallAnswer, CallId, Confirmation, LedgerSeen, Memory, NodeRead, NodeSeen, Observations, ReadAnswer, Vetted,
};
use palisade_core::pace::{Pace, pause};
use palisade_core::policy::ReleasePolicy;
use palisade_core::reason::automaton::WaitReason;
use palisade_core::settings::Settings;
use palisade_core::time::{Span, Tick};
use palisade_core::{Decision, State, step};

use crate::decided;
use crate::effects::{Listing, Outcome};
use crate::plans::Plan;
use crate::view::{NodeTrack, version};

/// How soon something that went another way is tried again.
const AGAIN: Span = Span::millis(500);
/// How soon a list is made again while pods or attachments are waited for.
const RELIST: Span = Span::secs(1);
/// How soon it is made again otherwise.
const RELIST_SLOWLY: Span = Span::secs(5);

/// How soon a fence that waits for nothing that we know is asked again.
const UNASKED: Span = Span::secs(5);

/// How long a fence waits for one thing before people are told.
const TELL: Span = Span::secs(15);

/// One look at a fence, from when this process began to lead, or first saw it, until it no longer does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Look(u64);

impl Look {
    /// The next one; no two looks of a process are the same.
    pub(crate) fn next(&mut self) -> Self {
        self.0 += 1;
        *self
    }
}

/// One live fence.
#[derive(Debug)]
pub(crate) struct Live {
    look: Look,
    pub(crate) object: Box<NodeFence>,
    state: State,
    pub(crate) busy: bool,
    ledger: LedgerSeen,
    node_read: Option<NodeRead>,
    pub(crate) listing: Option<Arc<Listing>>,
    listed_at: Tick,
    calls: Vec<CallAnswer>,
    jobs_over: BTreeSet<CallId>,
    /// What methods did, that is not on record yet.
    pub(crate) actions: Vec<ActionOutcome>,
    /// How many of these are being written.
    writing_actions: usize,
    reads: Vec<ReadAnswer>,
    /// Where the fence will stand when what this process is writing has gone through.
    writing: Option<Place>,
    pace: Pace,
    /// How often in a row a record was not taken, although nobody else had written.
    refused: u32,
    wake: Option<Tick>,
    waits: Option<Waiting>,
}

/// What a fence waits for, for people.
#[derive(Debug)]
struct Waiting {
    reason: &'static str,
    since: Tick,
    told: bool,
    said: String,
}

/// What is seen beside the fence itself.
pub(crate) struct Around<'a> {
    pub(crate) track: Option<&'a NodeTrack>,
    pub(crate) plan: Option<&'a Plan>,
    /// Why there is none.
    pub(crate) unusable: Option<&'a str>,
    pub(crate) release: &'a ReleasePolicy,
    pub(crate) vetted: Vetted,
    /// Which gate is closed, and why.
    pub(crate) closed: Option<&'a str>,
    pub(crate) evidence_cleared: bool,
    pub(crate) sight: Sight,
    pub(crate) now: Tick,
}

impl Live {
    /// A fence that this process begins to look at.
    pub(crate) fn new(object: NodeFence, look: Look, now: Tick) -> Result<Self, durable::Unreadable> {
        let fence = read(&object)?;
        Ok(Self {
            look,
            object: Box::new(object),
            state: State { fence, memory: Memory::fresh(now) },
            busy: false,
            ledger: LedgerSeen::Unknown,
            node_read: None,
            listing: None,
            listed_at: now,
            calls: Vec::new(),
            jobs_over: BTreeSet::new(),
            actions: Vec::new(),
            writing_actions: 0,
            reads: Vec::new(),
            writing: None,
            pace: Pace::default(),
            refused: 0,
            wake: None,
            waits: None,
        })
    }

    /// Which look at the fence this is.
    pub(crate) fn look(&self) -> Look {
        self.look
    }

    /// The fence as it is on record.
    pub(crate) fn fence(&self) -> &Fence {
        &self.state.fence
    }

    /// The NodeFence was seen, by a watch or by a read. An echo of what we wrote tells nothing.
    pub(crate) fn see(&mut self, object: &NodeFence, now: Tick) -> Result<(), durable::Unreadable> {
        let (known, seen) = (self.object.resource_version(), object.resource_version());
        if version(&seen.unwrap_or_default()) <= version(&known.unwrap_or_default()) {
            return Ok(());
        }
        let before = place(&self.state.fence);
        self.take(object)?;
        // The echo of a write may come before its answer.
        let after = place(&self.state.fence);
        if after != before && self.writing != Some(after) {
            self.state.memory.found_again(now);
        }
        Ok(())
    }

    /// An answer may come later than the watch's word of what somebody else wrote after it; then that stands.
    fn take_answer(&mut self, object: &NodeFence) -> Result<(), durable::Unreadable> {
        let number = |fence: &NodeFence| version(&fence.resource_version().unwrap_or_default());
        if number(object) < number(&self.object) { Ok(()) } else { self.take(object) }
    }

    fn take(&mut self, object: &NodeFence) -> Result<(), durable::Unreadable> {
        let fence = read(object)?;
        self.became(fence);
        *self.object = object.clone();
        self.wake = None;
        Ok(())
    }

    /// What was read for the old state does not count for the new one.
    fn became(&mut self, fence: Fence) {
        let slot = |fence: &Fence| (fence.slot, fence.grant);
        if slot(&fence) != slot(&self.state.fence) {
            self.ledger = LedgerSeen::Unknown;
        }
        let phase = |fence: &Fence| (fence.attempt, fence.phase.name());
        if phase(&fence) != phase(&self.state.fence) {
            self.listing = None;
        }
        self.state.fence = fence;
    }

    /// Whether it is time to ask what to do.
    pub(crate) fn due(&self, now: Tick) -> bool {
        !self.busy && self.wake.is_none_or(|at| now >= at)
    }

    /// When it wants to be asked again.
    pub(crate) fn wake(&self) -> Option<Tick> {
        if self.busy { None } else { self.wake }
    }

    /// Something about it may have changed.
    pub(crate) fn nudge(&mut self) {
        self.wake = None;
    }

    /// Asks `core` what to do.
    pub(crate) fn decide(&mut self, around: &Around<'_>) -> Decision {
        let now = around.now;
        if self.relist().is_some_and(|every| now >= self.listed_at + every) {
            self.listing = None;
        }
        let seen = self.observations(around);
        let (next, mut decision) = step(self.state.clone(), &seen, now);
        let records = decision.effects.iter().any(|effect| matches!(effect, Effect::Record { .. }));
        let paced = self.pace.pass(std::mem::take(&mut decision.effects), now);
        decision.effects = paced.go;
        decided::fence(&self.state.fence, &decision);
        self.writing = records.then(|| place(&next.fence));
        self.writing_actions = self.actions.len();
        // A record becomes the state only when its write went through.
        self.state = if records { State { fence: self.state.fence.clone(), memory: next.memory } } else { next };
        self.waits_for(decision.waits.as_ref(), around.closed, now);
        let relist = self.relist().map(|every| now + every);
        let earliest = [decision.look_again, relist, paced.look_again].into_iter().flatten().min();
        self.wake = Some(earliest.unwrap_or(now + UNASKED));
        decision
    }

    fn waits_for(&mut self, what: Option<&WaitReason>, closed: Option<&str>, now: Tick) {
        let known = self.waits.take();
        self.waits = what.map(|why| {
            let said = match (why, closed) {
                (WaitReason::VettingClosed, Some(closed)) => format!("{why}: {closed}"),
                _ => why.to_string(),
            };
            match known.filter(|known| known.reason == why.name()) {
                Some(known) => Waiting { said, ..known },
                None => Waiting { reason: why.name(), since: now, told: false, said },
            }
        });
    }

    /// What it has waited for so long that people should hear of it; each thing once.
    pub(crate) fn long_waited(&mut self, now: Tick) -> Option<(&'static str, String)> {
        let waits = self.waits.as_mut().filter(|waits| !waits.told && now >= waits.since + TELL)?;
        waits.told = true;
        Some((waits.reason, waits.said.clone()))
    }

    /// How soon pods and attachments of the node, which may change without a word to us, are listed again.
    fn relist(&self) -> Option<Span> {
        use palisade_core::fence::{Phase, ReleaseState};
        let unfinished = |state| state > ReleaseState::Intended && state < ReleaseState::Detached;
        let releasing = self.state.fence.releases.iter().any(|release| unfinished(release.state));
        match self.state.fence.phase {
            Phase::Isolated { .. } if releasing => Some(RELIST),
            Phase::Isolated { .. }
            | Phase::PoweringOn(_)
            | Phase::Returning
            | Phase::Recovering(_)
            | Phase::Final(_) => Some(RELIST_SLOWLY),
            Phase::New | Phase::Isolating(_) | Phase::PoweringOff(_) | Phase::Failed { .. } => None,
        }
    }

    fn observations(&self, around: &Around<'_>) -> Observations {
        let node =
            around.track.and_then(|track| track.live(&self.state.fence.node, self.node_read, around.sight, around.now));
        let listing = self.listing.as_deref();
        Observations {
            settings: around.plan.map_or_else(Settings::default, |plan| plan.settings.clone()),
            unusable: around.unusable.map(Into::into),
            release: around.release.clone(),
            vetted: around.vetted,
            ledger: self.ledger,
            node: node.map_or(NodeSeen::Gone, NodeSeen::There),
            evidence_cleared: around.evidence_cleared,
            power_wanted: self.object.spec.power_step || around.plan.is_some(),
            admin: self.admin(),
            pods: listing.map(|listing| listing.pods.clone()),
            volumes: listing.map(|listing| listing.volumes.clone()).unwrap_or_default(),
            attachments: listing.map(|listing| listing.attachments.clone()),
            calls: self.calls.clone(),
            jobs_over: self.jobs_over.clone(),
            reads: self.reads.clone(),
            unpublished: BTreeSet::new(),
            released_lately: 0,
            kdump_proves: false,
        }
    }

    fn admin(&self) -> Admin {
        let said = &self.object.spec.admin;
        let status = self.object.status.clone().unwrap_or_default();
        Admin {
            stop: said.stop || self.object.metadata.deletion_timestamp.is_some(),
            resume: said.resume > status.observed_resume,
            confirm: said.confirm.as_ref().map(|confirm| Confirmation {
                by: confirm.confirmed_by.as_str().into(),
                uid: Uid::from(confirm.node_uid.as_str()),
                boot: BootId::from(confirm.boot_id.as_str()),
            }),
        }
    }

    /// A device call was answered.
    pub(crate) fn called(&mut self, answer: CallAnswer, action: Option<ActionOutcome>, job_over: bool) {
        self.actions.extend(action);
        if job_over {
            self.jobs_over.insert(answer.call);
        }
        self.calls.retain(|known| known.call != answer.call);
        self.calls.push(answer);
        // Older ones can never count again.
        let over = self.calls.len().saturating_sub(4);
        self.calls.drain(..over);
        self.nudge();
    }

    /// A series of reads was answered.
    pub(crate) fn read(&mut self, answer: ReadAnswer) {
        self.reads = vec![answer];
        self.nudge();
    }

    /// What was decided was done, as far as it went. True: the fence is closed.
    pub(crate) fn done(&mut self, outcomes: Vec<Outcome>, now: Tick) -> Result<bool, durable::Unreadable> {
        self.busy = false;
        self.nudge();
        self.state.memory.effects_ended();
        for outcome in outcomes {
            decided::came(&self.state.fence.node, &outcome);
            match outcome {
                Outcome::Recorded(object) => {
                    self.refused = 0;
                    self.actions.drain(..self.writing_actions.min(self.actions.len()));
                    self.writing_actions = 0;
                    self.take_answer(&object)?;
                }
                Outcome::RecordLost(Some(object)) if object.uid() == self.object.uid() => {
                    let refused = object.resource_version() == self.object.resource_version();
                    self.refused = if refused { self.refused.saturating_add(1) } else { 0 };
                    self.take_answer(&object)?;
                    self.state.memory.found_again(now);
                    self.wake = Some(now + pause(self.refused));
                }
                Outcome::RecordLost(_) | Outcome::Closed => return Ok(true),
                Outcome::Ledger(seen) => self.ledger = seen,
                Outcome::NoSlot(why) => {
                    if let Some(waits) = &mut self.waits {
                        waits.said = format!("waiting for a slot of the budget: {why}");
                    }
                    self.ledger = LedgerSeen::Unknown;
                    self.wake = Some(now + RELIST);
                }
                Outcome::Node(read, facts, _) => {
                    self.node_read = facts.map(|_| read);
                }
                Outcome::JobsOver(over) => self.jobs_over.extend(over),
                Outcome::Listed(listing) => {
                    self.listing = Some(listing);
                    self.listed_at = now;
                }
                Outcome::Told | Outcome::Relist => self.listing = None,
                Outcome::Failed { effect, why } => {
                    tracing::info!(node = %self.state.fence.node, effect, why, "looked at again");
                    self.wake = Some(now + AGAIN);
                    if self.state.fence.slot == Slot::None {
                        self.ledger = LedgerSeen::Unknown;
                    }
                }
                Outcome::NotYet => self.wake = Some(now + AGAIN),
                Outcome::NodeWritten(_) | Outcome::Nothing => {}
            }
        }
        Ok(false)
    }
}

/// How far a fence has come: its attempt, its calls and its phase.
type Place = (u32, u32, &'static str);

fn place(fence: &Fence) -> Place {
    (fence.attempt, fence.calls, fence.phase.name())
}

fn read(object: &NodeFence) -> Result<Fence, durable::Unreadable> {
    let uid = Uid::new(object.uid().unwrap_or_default());
    let node = NodeName::from(object.spec.node_name.as_str());
    match &object.status {
        None => Ok(Fence::new(uid, node)),
        Some(status) => durable::read(&uid, &node, status),
    }
}

/// All live fences, by node.
pub(crate) type Fences = BTreeMap<NodeName, Live>;

/// The fence for which an answer counts, if it is still looked at as it was when it asked.
pub(crate) fn asked_by<'a>(fences: &'a mut Fences, node: &NodeName, look: Look) -> Option<&'a mut Live> {
    fences.get_mut(node).filter(|live| live.look == look)
}

#[cfg(test)]
mod tests {
    use palisade_api::fence::NodeFenceSpec;

    use super::*;

    fn object(version: &str) -> NodeFence {
        let spec = NodeFenceSpec {
            node_name: "n1".to_owned(),
            requests: Vec::new(),
            config: None,
            power_step: false,
            stay_off: false,
            admin: palisade_api::fence::Admin::default(),
        };
        let mut object = NodeFence::new("n1", spec);
        object.metadata.resource_version = Some(version.to_owned());
        object
    }

    #[test]
    fn an_answer_that_comes_late_does_not_undo_what_an_admin_wrote_since() {
        let mut live = Live::new(object("1"), Look::default(), Tick::START).unwrap();
        live.see(&object("3"), Tick::START).unwrap();
        live.done(vec![Outcome::Recorded(Box::new(object("2")))], Tick::START).unwrap();
        assert_eq!(live.object.resource_version().as_deref(), Some("3"));
        live.done(vec![Outcome::Recorded(Box::new(object("4")))], Tick::START).unwrap();
        assert_eq!(live.object.resource_version().as_deref(), Some("4"));
    }

    #[test]
    fn what_was_asked_before_the_lease_was_lost_does_not_count_after_it_was_won_again() {
        let (node, mut looks, mut fences) = (NodeName::from("n1"), Look::default(), Fences::new());
        let mut begin = |fences: &mut Fences| {
            let live = Live::new(object("1"), looks.next(), Tick::START).unwrap();
            let look = live.look();
            fences.insert(node.clone(), live);
            look
        };
        let before = begin(&mut fences);
        fences.clear();
        let after = begin(&mut fences);
        assert!(asked_by(&mut fences, &node, before).is_none());
        assert!(asked_by(&mut fences, &node, after).is_some());
    }
}
