//! Run / requests: claims are filed, requests take their turn, history ages.

use std::collections::BTreeSet;

use kube::ResourceExt;
use palisade_api::NodeFencingRequest;
use palisade_api::request::Phase as Stage;
use palisade_core::detect::sight::Sight;
use palisade_core::fence::Phase;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::policy::Policy;
use palisade_core::request::history::{Retention, aged_out};
use palisade_core::request::{Request, RequestEffect};
use palisade_core::snapshot::Snapshot;
use palisade_core::time::Tick;

use super::{AT_LEAST, Operator};
use crate::fences::Live;
use crate::news::News;
use crate::requests::{self, RequestOutcome};

impl Operator {
    /// What was decided for a request came to an end.
    pub(super) fn request_done(&mut self, mut outcome: RequestOutcome, now: Tick) {
        self.requests.done(&mut outcome, now);
        if let Some(why) = &outcome.failed {
            tracing::info!(why, "a request is looked at again");
        }
        if let Some(uid) = &outcome.gone {
            self.view.lose_request(uid);
        }
        if let Some((node, rule, made)) = outcome.filed {
            self.detect.filed(&node, &rule, Uid::new(made.uid().unwrap_or_default()), now);
            self.view.see_request(*made);
        }
        if let Some(written) = outcome.written {
            self.count_hold(&written);
            self.view.see_request(*written);
        }
        if let Some(fence) = outcome.fence {
            self.view.see_fence(*fence);
            self.follow_fences(now);
        }
    }

    /// A request that is held, or held for another reason than before, is counted once.
    fn count_hold(&self, written: &NodeFencingRequest) {
        let why = |request: &NodeFencingRequest| {
            let held = request.status.as_ref().filter(|status| status.phase == Stage::Held)?;
            held.reason.clone()
        };
        let before = self.view.requests.get(&Uid::new(written.uid().unwrap_or_default())).and_then(why);
        if let Some(reason) = why(written).filter(|reason| before.as_ref() != Some(reason)) {
            self.context.metrics.held(&reason);
        }
    }

    pub(super) fn file(&mut self, all: &[Request], now: Tick) {
        for claim in self.detect.claims(&self.view, all, now) {
            let facts = self.view.node(&claim.node).and_then(|track| track.facts.as_ref());
            let Some(uid) = facts.map(|facts| facts.uid.clone()) else { continue };
            if let Some(track) = self.view.track(&claim.node) {
                track.memory.fails(now);
            }
            // Noted at once, so that the next turn does not file it again; the real one takes its place.
            self.detect.filed(&claim.node, &claim.rule.name, Uid::default(), now);
            let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
            self.beside.start(async move {
                let outcome = requests::file(context, hold, claim, uid).await;
                let _ = news.send(News::Requests(outcome));
            });
        }
    }

    /// Deletes requests that are no longer kept.
    pub(super) fn age(&mut self, all: &[Request]) {
        let fences: BTreeSet<Uid> =
            self.view.fences.values().map(|fence| Uid::new(fence.uid().unwrap_or_default())).collect();
        for aged in aged_out(all, Some(&fences), &Retention::from(self.policy.history)) {
            let RequestEffect::Delete { uid, .. } = &aged.effect else { continue };
            let Some(object) = self.view.requests.get(uid) else { continue };
            tracing::info!(request = %object.name_any(), why = %aged.why, "history");
            let decided = requests::Decided {
                object: Box::new(object.clone()),
                effects: vec![aged.effect],
                fence: None,
                config: None,
            };
            let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
            self.beside.start(async move {
                let outcome = requests::perform(context, hold, decided).await;
                let _ = news.send(News::Requests(outcome));
            });
        }
    }

    pub(super) fn turn_requests(&mut self, snapshot: &Snapshot, policy: &Policy, sight: Sight, now: Tick) -> Tick {
        let mut waiting: Vec<NodeName> = self.requests.waiting().map(|request| request.node.clone()).collect();
        let new = |live: &&Live| matches!(live.fence().phase, Phase::New);
        waiting.extend(self.fences.values().filter(new).map(|live| live.fence().node.clone()));
        for node in waiting {
            self.refresh_workload(node, now);
        }
        let (decided, look_again) = self.requests.step(&self.view, snapshot, policy, &self.detect, sight, now);
        for one in decided {
            let (context, hold, news) = (self.context.clone(), self.hold.clone(), self.news.clone());
            self.beside.start(async move {
                let outcome = requests::perform(context, hold, one).await;
                let _ = news.send(News::Requests(outcome));
            });
        }
        look_again.unwrap_or(now + AT_LEAST)
    }
}
