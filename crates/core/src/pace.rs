//! Pace: what does not help is tried again, more slowly each time.
//!
//! Promise: an API server that refuses (a webhook, a quota, a missing right) is not flooded; and what is refused for one pod
//! or one attachment holds up no other.

use std::collections::BTreeMap;

use crate::effect::Effect;
use crate::time::{Span, Tick};

/// The pause after the second try; each later one is twice as long.
const FIRST: Span = Span::millis(500);
/// No pause is longer.
const LONGEST: Span = Span::secs(30);
/// What was not wanted for so long after its pause begins anew.
const FORGET: Span = Span::secs(60);

/// How long to wait after so many tries. The first repetition is free: the world may just have changed under the first try.
pub fn pause(tries: u32) -> Span {
    match tries {
        0 | 1 => Span::ZERO,
        more => Span::millis(FIRST.as_millis().saturating_mul(1 << (more - 2).min(16))).min(LONGEST),
    }
}

/// An effect, and what it is done to.
type Deed = (&'static str, Box<str>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tried {
    times: u32,
    not_before: Tick,
}

/// What one fence has tried lately.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    tried: BTreeMap<Deed, Tried>,
}

/// What is left of a decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paced {
    /// What is done now.
    pub go: Vec<Effect>,
    /// When something that was held back may be tried again.
    pub look_again: Option<Tick>,
}

impl Pace {
    /// Holds back what was tried too lately. Pods and attachments do not wait for each other; everything else waits for what
    /// stands before it, as it would if that had failed.
    pub fn pass(&mut self, effects: Vec<Effect>, now: Tick) -> Paced {
        let mut paced = Paced { go: Vec::new(), look_again: None };
        for effect in effects {
            let Some(deed) = deed(&effect) else {
                paced.go.push(effect);
                continue;
            };
            if let Some(tried) = self.tried.get(&deed).filter(|tried| now < tried.not_before) {
                let at = tried.not_before;
                paced.look_again = Some(paced.look_again.map_or(at, |known| known.min(at)));
                if !effect.stands_alone() {
                    break;
                }
            } else {
                self.tries(deed, now);
                paced.go.push(effect);
            }
        }
        paced
    }

    fn tries(&mut self, deed: Deed, now: Tick) {
        let known = self.tried.get(&deed).filter(|tried| now < tried.not_before + FORGET);
        let times = known.map_or(1, |tried| tried.times.saturating_add(1));
        self.tried.insert(deed, Tried { times, not_before: now + pause(times) });
    }
}

/// What is paced: every write of ours but the record, which differs each time, and the slot, whose queue has a pace of its
/// own. Reads are paced by what they are made for, devices by their plan.
fn deed(effect: &Effect) -> Option<Deed> {
    let to: Box<str> = match effect {
        Effect::EndJobs(calls) | Effect::TellJobsToGo(calls) => format!("{calls:?}").into(),
        Effect::GiveSlotBack { grant } => grant.to_string().into(),
        Effect::PatchNode(patch) => format!("{:?} {}", patch.change, patch.guard.uid).into(),
        Effect::MarkPod(mark) => mark.pod().uid.as_str().into(),
        Effect::Unpublish(unpublish) => unpublish.volume().as_str().into(),
        Effect::RemovePod(remove) => remove.pod().uid.as_str().into(),
        Effect::DetachVolumes(detach) => detach.node().uid.as_str().into(),
        Effect::TouchNode(guard) => guard.uid.as_str().into(),
        Effect::DeleteAttachment(delete) => delete.attachment().uid.as_str().into(),
        Effect::DeleteNode(delete) => delete.guard().uid.as_str().into(),
        Effect::Close { fence, .. } => fence.as_str().into(),
        Effect::Record { .. }
        | Effect::ReadLedger
        | Effect::TakeSlot { .. }
        | Effect::ReadNode(_)
        | Effect::ListPods
        | Effect::CallDevice(_)
        | Effect::ReadBack(_) => return None,
    };
    Some((effect.name(), to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::RemovePod;
    use crate::fence::End;
    use crate::ident::{PodRef, Uid};

    fn remove(uid: &str) -> Effect {
        let pod = PodRef { namespace: "db".into(), name: uid.into(), uid: Uid::from(uid) };
        Effect::RemovePod(RemovePod { pod })
    }

    fn close() -> Effect {
        Effect::Close { fence: Uid::from("f"), end: End::Recovered }
    }

    fn at(seconds: u64) -> Tick {
        Tick::START + Span::secs(1_000 + seconds)
    }

    #[test]
    fn each_pause_is_twice_the_last_up_to_half_a_minute() {
        let pauses: Vec<u64> = (0..=10).map(|tries| pause(tries).as_millis()).collect();
        assert_eq!(pauses, [0, 0, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        assert_eq!(pause(u32::MAX), LONGEST);
    }

    #[test]
    fn a_fence_that_is_asked_a_thousand_times_a_second_to_close_asks_seldom() {
        let mut pace = Pace::default();
        let sent = (0..60_000).filter(|milli| {
            let now = at(0) + Span::millis(*milli);
            !pace.pass(vec![close()], now).go.is_empty()
        });
        assert_eq!(sent.count(), 8);
    }

    #[test]
    fn a_pod_whose_deletion_is_refused_holds_up_no_other() {
        let mut pace = Pace::default();
        for _ in 0..2 {
            pace.pass(vec![remove("refused")], at(0));
        }
        let paced = pace.pass(vec![remove("refused"), remove("other")], at(0));
        assert_eq!(paced, Paced { go: vec![remove("other")], look_again: Some(at(0) + FIRST) });
    }

    #[test]
    fn what_stands_behind_something_that_is_held_back_waits_for_it() {
        let mut pace = Pace::default();
        for _ in 0..2 {
            pace.pass(vec![close()], at(0));
        }
        assert_eq!(pace.pass(vec![close(), Effect::ReadLedger], at(0)).go, vec![]);
        let after = at(0) + FIRST;
        assert_eq!(pace.pass(vec![close(), Effect::ReadLedger], after).go, vec![close(), Effect::ReadLedger]);
    }

    #[test]
    fn what_was_not_wanted_for_a_minute_begins_anew() {
        let mut pace = Pace::default();
        for second in [0, 0, 1, 3] {
            assert_eq!(pace.pass(vec![close()], at(second)).go.len(), 1);
        }
        assert_eq!(pace.pass(vec![close()], at(4)).go.len(), 0, "two seconds are not over");
        assert_eq!(pace.pass(vec![close()], at(90)).go.len(), 1);
        assert_eq!(pace.pass(vec![close()], at(90)).go.len(), 1, "the first repetition is free again");
    }
}
