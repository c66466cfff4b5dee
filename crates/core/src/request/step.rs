//! Request / step: one decision in the life of a request.
//!
//! Promise: a pure function of what is written and what is seen, so that a crash after any effect is healed by the next
//! step: the fence names its requests before the request names its fence.
//! Never: writes a status that says nothing new.

use crate::detect::sight::Sight;
use crate::detect::{Evidence, Finding, LOOK_AGAIN, Standing};
use crate::ident::Uid;
use crate::reason::request::RequestReason;
use crate::request::{
    End, FenceFacts, FenceResult, FenceSeen, How, Life, NodeSeen, Origin, Request, RequestEffect, RequestStatus, Seen,
    Step, VetWord,
};
use crate::time::{Span, Tick};

/// How much watched time may be lost to a restart at least: less would be a write at every look.
const LEAST_LOST: Span = Span::secs(15);

/// And at most.
const MOST_LOST: Span = Span::mins(60);

/// Numbers that only grow older are not worth a write at every look.
const NUMBERS_APART: Span = Span::secs(5);

/// One decision: where the request goes, and what is to be done for it.
struct Turn {
    life: Life,
    why: RequestReason,
    first: Option<RequestEffect>,
    look_again: Option<Tick>,
}

impl Turn {
    fn wait(why: RequestReason, look_again: Tick) -> Self {
        Self { life: Life::Pending, why, first: None, look_again: Some(look_again) }
    }

    fn end(end: End, why: RequestReason) -> Self {
        Self { life: Life::Ended(end), why, first: None, look_again: None }
    }

    fn held(gate: Box<str>, why: Box<str>, numbers: Box<str>, recheck: Tick) -> Self {
        Self::wait(RequestReason::HeldByGate { gate, why, numbers }, recheck)
    }

    fn rejected(gate: Box<str>, why: Box<str>, numbers: Box<str>) -> Self {
        Self::end(End::Rejected, RequestReason::RejectedByGate { gate, why, numbers })
    }

    fn close(why: RequestReason) -> Self {
        Self::end(End::Closed { fence: None }, why)
    }

    fn attached(fence: Uid) -> Self {
        let why = RequestReason::Attached { fence: fence.clone() };
        Self { life: Life::Attached { fence }, why, first: None, look_again: None }
    }

    fn and(self, effect: RequestEffect) -> Self {
        Self { first: Some(effect), ..self }
    }

    /// What the end of its fence means for a request.
    fn fence_ended(fence: Uid, result: FenceResult) -> Self {
        match result {
            FenceResult::Untouched => Self::end(End::Closed { fence: Some(fence) }, RequestReason::Recovered),
            FenceResult::Failed { cause } => {
                let why = RequestReason::FenceFailed { fence: fence.clone(), cause };
                Self::end(End::Failed { fence }, why)
            }
            FenceResult::Returned | FenceResult::HeldOff | FenceResult::NodeDeleted | FenceResult::Stopped => {
                let why = RequestReason::FenceEnded { fence: fence.clone(), result };
                Self::end(End::Completed { fence }, why)
            }
        }
    }
}

/// The Node object that a request means.
enum Target {
    NotRead,
    There(Uid),
    /// It is not in view, and this is how the request would end if it stayed so.
    Missing(RequestReason),
}

/// Whether two reasons differ at most in the numbers of the same gate.
fn same_words(one: &RequestReason, other: &RequestReason) -> bool {
    let words = |why: &RequestReason| match why {
        RequestReason::HeldByGate { gate, why, .. } => Some((gate.clone(), why.clone())),
        _ => None,
    };
    one == other || words(one).is_some_and(|words_of_one| words(other) == Some(words_of_one))
}

impl Request {
    /// One step of its life. The status is written only when it says something new.
    pub fn step(mut self, seen: &Seen, sight: Sight, now: Tick) -> Step {
        let turn = match &self.life {
            Life::Pending => Some(self.pending(seen, now)),
            Life::Attached { fence } => self.attached(fence.clone(), &seen.fence, now),
            Life::Ended(_) => return self.grow_old(sight, now),
        };
        let Some(turn) = turn else {
            return Step { request: self, effects: Vec::new(), look_again: None };
        };
        let bound = self.bind(seen);
        let moved = self.life != turn.life || !self.why.as_ref().is_some_and(|why| same_words(why, &turn.why));
        self.life = turn.life;
        self.keep_time(sight, now);
        let renumbered = self.why.as_ref() != Some(&turn.why) && self.waited.unwritten() >= NUMBERS_APART;
        let news = bound || moved || renumbered || self.time_is_due();
        if news {
            self.why = Some(turn.why.clone());
        }
        let look_again = turn.look_again.map(|at| at.since(now));
        let write = news.then(|| self.write(turn.why, look_again));
        let effects = turn.first.into_iter().chain(write).collect();
        Step { request: self, effects, look_again: turn.look_again }
    }

    /// A request that names no Node object is bound to that of its fence, or else to the first that it meets.
    fn bind(&mut self, seen: &Seen) -> bool {
        if self.node_uid.is_some() {
            return false;
        }
        self.node_uid = match (self.named_by(&seen.fence), &seen.node) {
            (Some(fence), _) => Some(fence.node_uid.clone()),
            (None, NodeSeen::Present(uid)) => Some(uid.clone()),
            (None, NodeSeen::NotRead | NodeSeen::Gone) => None,
        };
        self.node_uid.is_some()
    }

    /// The fence, if it names this request.
    fn named_by<'a>(&self, seen: &'a FenceSeen) -> Option<&'a FenceFacts> {
        match seen {
            FenceSeen::NotRead => None,
            FenceSeen::Read { found, .. } => found.as_ref().filter(|fence| fence.requests.contains(&self.uid)),
        }
    }

    /// A waiting request counts the time that it waits, an ended one its age.
    fn keep_time(&mut self, sight: Sight, now: Tick) {
        match self.life {
            Life::Pending => self.waited.stint.watch(sight, now),
            Life::Attached { .. } => Span::ZERO,
            Life::Ended(_) => self.ended_for.stint.watch(sight, now),
        };
    }

    /// Whether so much time is unwritten that it should be written down.
    fn time_is_due(&self) -> bool {
        // A tenth: a grace period of minutes survives a restart, and who waits for days is not written to all the time.
        let tenth = Span::millis(self.waited.written.as_millis() / 10);
        self.waited.unwritten() >= tenth.clamp(LEAST_LOST, MOST_LOST) || self.ended_for.unwritten() >= MOST_LOST
    }

    fn write(&mut self, why: RequestReason, look_again: Option<Span>) -> RequestEffect {
        self.waited.written = self.waited.total();
        self.ended_for.written = self.ended_for.total();
        RequestEffect::WriteStatus(RequestStatus {
            uid: self.uid.clone(),
            resource_version: self.resource_version.clone(),
            phase: self.life.phase(),
            why,
            node_uid: self.node_uid.clone(),
            fence: self.life.fence().cloned(),
            look_again,
            waited: self.waited.written,
            ended_for: self.ended_for.written,
        })
    }

    fn pending(&self, seen: &Seen, now: Tick) -> Turn {
        // A fence that names us was made for us, perhaps just before a crash: the verdict has been given.
        if let Some(fence) = self.named_by(&seen.fence) {
            return match fence.result.clone() {
                None => Turn::attached(fence.uid.clone()),
                Some(result) => Turn::fence_ended(fence.uid.clone(), result),
            };
        }
        let node_uid = match self.target(&seen.node) {
            Target::There(uid) => uid,
            Target::NotRead => return self.unread(now),
            Target::Missing(why) => return self.missing(why, &seen.vet, now),
        };
        if let Some(turn) = self.joins(&node_uid, seen, now) {
            return turn;
        }
        if seen.evidence.standing() == Standing::Cleared {
            return Turn::close(match seen.evidence {
                Evidence::Withdrawn => RequestReason::Withdrawn,
                Evidence::Found(_) | Evidence::Asked { .. } => RequestReason::Recovered,
            });
        }
        match seen.vet.clone() {
            VetWord::Admit => self.admitted(node_uid, seen, now),
            VetWord::Hold { gate, why, numbers, recheck } => Turn::held(gate, why, numbers, recheck),
            VetWord::Reject { gate, why, numbers } => Turn::rejected(gate, why, numbers),
            // The vetting looked at another view than we did.
            VetWord::NoTarget => self.unread(now),
            VetWord::DryRun { verdict, recheck } => {
                let why = RequestReason::DryRunVerdict { verdict };
                match &self.origin {
                    // Its evidence is looked at anew before anything: it may wait for another mode.
                    Origin::Detector { .. } => Turn::wait(why, recheck),
                    // Who asked has the answer; a change of mode days later must not fence by surprise.
                    Origin::Asker => Turn::close(why),
                }
            }
        }
    }

    /// The Node object that is meant, if it is in view.
    fn target(&self, node: &NodeSeen) -> Target {
        let name = self.node.clone();
        match (node, &self.node_uid) {
            (NodeSeen::NotRead, _) => Target::NotRead,
            (NodeSeen::Gone, _) => Target::Missing(RequestReason::NodeGone { node: name }),
            (NodeSeen::Present(found), Some(asked)) if asked != found => {
                let (asked, found) = (asked.clone(), found.clone());
                Target::Missing(RequestReason::NodeReplaced { node: name, asked, found })
            }
            (NodeSeen::Present(found), Some(_) | None) => Target::There(found.clone()),
        }
    }

    fn unread(&self, now: Tick) -> Turn {
        Turn::wait(RequestReason::NodeNotRead { node: self.node.clone() }, now + LOOK_AGAIN)
    }

    /// The node is not in view. A request can overtake our watch, so it is closed only when the vetting has lost its patience.
    fn missing(&self, why: RequestReason, vet: &VetWord, now: Tick) -> Turn {
        match vet.clone() {
            VetWord::NoTarget => Turn::close(why),
            VetWord::Hold { gate, why, numbers, recheck } => Turn::held(gate, why, numbers, recheck),
            VetWord::Reject { gate, why, numbers } => Turn::rejected(gate, why, numbers),
            VetWord::Admit | VetWord::DryRun { .. } => self.unread(now),
        }
    }

    /// A node that is being fenced is not fenced twice: whatever gate holds the request, it joins that fence if that goes as far as
    /// it wants, or if what it was made for clears meanwhile. Its end is then the end of that fence.
    fn joins(&self, node_uid: &Uid, seen: &Seen, now: Tick) -> Option<Turn> {
        let FenceSeen::Read { found: Some(fence), .. } = &seen.fence else { return None };
        let refused = matches!(seen.vet, VetWord::Reject { .. } | VetWord::NoTarget);
        if refused || seen.evidence == Evidence::Withdrawn || fence.node_uid != *node_uid {
            return None;
        }
        let cleared = seen.evidence.standing() == Standing::Cleared;
        let uid = fence.uid.clone();
        match fence.result.clone() {
            None if cleared || fence.does >= self.wants => {
                let attach = RequestEffect::AttachTo(uid.clone());
                Some(Turn::wait(RequestReason::Attaching { fence: uid }, now + LOOK_AGAIN).and(attach))
            }
            // Refused before it had done anything: it cleared nothing.
            None | Some(FenceResult::Failed { .. }) => None,
            Some(result) => cleared.then(|| Turn::fence_ended(uid, result)),
        }
    }

    fn admitted(&self, node_uid: Uid, seen: &Seen, now: Tick) -> Turn {
        let wait = |why| Turn::wait(why, now + LOOK_AGAIN);
        if let Evidence::Found(Finding::Watching { why, until }) = &seen.evidence
            && seen.evidence.standing() == Standing::Unsure
        {
            return Turn::wait(RequestReason::EvidenceInDoubt { seen: why.name().into() }, *until);
        }
        let node = self.node.clone();
        match &seen.fence {
            FenceSeen::NotRead => wait(RequestReason::FenceNotRead { node }),
            FenceSeen::Read { found: None, .. } => {
                let request = self.uid.clone();
                let create = RequestEffect::CreateFence { node: node.clone(), node_uid, request };
                wait(RequestReason::FenceAsked { node }).and(create)
            }
            FenceSeen::Read { found: Some(fence), .. } => {
                let FenceFacts { uid, node_uid: of, result, .. } = fence.clone();
                if of != node_uid {
                    wait(RequestReason::FenceOfPredecessor { fence: uid, of })
                } else if result.is_some() {
                    wait(RequestReason::FenceEnding { fence: uid })
                } else {
                    wait(RequestReason::FenceDoesLess { fence: uid })
                }
            }
        }
    }

    fn attached(&self, fence: Uid, seen: &FenceSeen, now: Tick) -> Option<Turn> {
        let FenceSeen::Read { how, found } = seen else { return None };
        match found.as_ref().filter(|found| found.uid == fence) {
            Some(found) => match found.result.clone() {
                Some(result) => Some(Turn::fence_ended(fence, result)),
                None if found.requests.contains(&self.uid) => Some(Turn::attached(fence)),
                // Our name was lost from the fence: put it there again.
                None => {
                    let attach = RequestEffect::AttachTo(fence.clone());
                    Some(Turn::attached(fence).and(attach))
                }
            },
            None => Some(match how {
                How::Cached => {
                    let why = RequestReason::FenceUnseen { fence: fence.clone() };
                    let read = RequestEffect::ReadFence(fence.clone());
                    let life = Life::Attached { fence };
                    Turn { life, why, first: Some(read), look_again: Some(now + LOOK_AGAIN) }
                }
                How::Live => {
                    let why = RequestReason::FenceLost { fence: fence.clone() };
                    Turn::end(End::Failed { fence }, why)
                }
            }),
        }
    }

    /// An ended request only grows older, in time that somebody watched; now and then that is written down.
    fn grow_old(mut self, sight: Sight, now: Tick) -> Step {
        self.keep_time(sight, now);
        let mut effects = Vec::new();
        if let Some(why) = self.why.clone()
            && self.time_is_due()
        {
            effects.push(self.write(why, None));
        }
        Step { request: self, effects, look_again: None }
    }
}
