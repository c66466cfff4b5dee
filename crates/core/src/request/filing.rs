//! Request / filing: when does a claim become a request?
//!
//! Promise: one rule has one request for one node at a time, and one answer for each time that the evidence arose:
//! what was rejected, or stopped by a person, is not asked again until the evidence has cleared in between.
//! Never: files for anything but a claim, nor gives up a node whose fence was lost without a result.

use crate::detect::{Finding, LOOK_AGAIN};
use crate::ident::Uid;
use crate::reason::detect::{ClaimReason, WatchReason};
use crate::reason::request::RequestReason;
use crate::request::{Life, Origin, Request};
use crate::time::Tick;

/// What this process remembers of its requests for one rule and one Node object. It may be lost: then a claim that
/// still stands is filed once more, and vetted like any other.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Filed {
    in_this_episode: Option<Mine>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Mine {
    uid: Uid,
    last: Last,
}

/// How we last saw our request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Last {
    /// Made then, and not seen since.
    Made(Tick),
    /// Open.
    Open,
    /// Answered: somebody who tidies up history does not ask for another fence.
    Answered,
}

/// Whether a request is to be made.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Filing {
    /// No: there is no claim.
    NoClaim,
    /// No: this one stands for it.
    Open(Uid),
    /// No: this one has been answered, and the evidence has not cleared since.
    Answered(Uid),
    /// Yes.
    File(ClaimReason),
}

impl Filed {
    /// Decides from the rule's finding and the node's requests.
    pub fn decide(&mut self, finding: &Finding, rule: &str, node_uid: &Uid, all: &[Request], now: Tick) -> Filing {
        let why = match finding {
            Finding::Claim { why } => why.clone(),
            Finding::Watching { why, .. } => {
                // The storage detector keeps its own account of claims, with their expiry: its next claim is a new one.
                if let WatchReason::StorageAlreadyClaimed { .. } = why {
                    self.in_this_episode = None;
                }
                return Filing::NoClaim;
            }
            Finding::Quiet => {
                self.in_this_episode = None;
                return Filing::NoClaim;
            }
        };
        let ours: Vec<&Request> = all.iter().filter(|one| one.is_of(rule, node_uid)).collect();
        if let Some(open) = ours.iter().find(|one| !matches!(one.life, Life::Ended(_))) {
            let uid = open.uid.clone();
            self.in_this_episode = Some(Mine { uid: uid.clone(), last: Last::Open });
            return Filing::Open(uid);
        }
        let Some(mine) = &mut self.in_this_episode else { return Filing::File(why) };
        if let Some(answer) = ours.iter().find(|one| one.uid == mine.uid) {
            // Lost with its fence: the evidence stands, and nobody works on it.
            if answer.fence_lost() {
                return Filing::File(why);
            }
            mine.last = Last::Answered;
        }
        match mine.last {
            Last::Answered => Filing::Answered(mine.uid.clone()),
            // The cache may lag behind.
            Last::Made(at) if now.since(at) < LOOK_AGAIN => Filing::Open(mine.uid.clone()),
            // Deleted before it was answered.
            Last::Made(_) | Last::Open => Filing::File(why),
        }
    }

    /// The request has been made.
    pub fn filed(&mut self, uid: Uid, now: Tick) {
        self.in_this_episode = Some(Mine { uid, last: Last::Made(now) });
    }
}

impl Request {
    fn is_of(&self, rule: &str, node_uid: &Uid) -> bool {
        let same_rule = match &self.origin {
            Origin::Detector { rule: own } => **own == *rule,
            Origin::Asker => false,
        };
        same_rule && self.node_uid.as_ref() == Some(node_uid)
    }

    fn fence_lost(&self) -> bool {
        matches!(self.why, Some(RequestReason::FenceLost { .. }))
    }
}
