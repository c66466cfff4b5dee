//! Preflight: the shell around the checks of devices: who is followed, how a device is asked, and what is said of it.
//!
//! Promise: what is said changes only when something has changed, and no more often than every [`SAY`]; a network of BMCs that is
//! gone with all of them is one condition and [`TOLD`] Events, not thousands.
//! Promise (I7): the Secrets of a series are read once, and forgotten with it.
//! Promise: whoever asks by a Job stops when nobody needs to know: a fence of the node is never kept waiting by a check.
//! Never: sends a command. A check reads.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use futures_util::FutureExt;
use kube::api::ObjectMeta;
use palisade_core::ident::{NodeName, Uid};
use palisade_core::preflight::{self, Answer, EACH, Health, Key, Power, Rounds, Series};
use palisade_core::resolve::call::Device as Target;
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::{Span, Tick};
use palisade_devices::{Failure, PowerState};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;
use tokio::time::Instant;

use crate::clock::duration;
use crate::executor::Executor;
use crate::news::News;
use crate::plans::Plans;
use crate::secrets::Purse;
use crate::view::View;

/// So many nodes are looked up in one turn: where a template changes, thousands have other devices.
const AT_ONCE: usize = 64;
/// How soon the next ones are.
const GO_ON: Span = Span::millis(20);
/// What templates say of their devices changes no more often.
const SAY: Span = Span::secs(10);
/// So many Events are sent at once at most, and one more every so often.
const TOLD: u64 = 20;
const ONE_MORE: Span = Span::secs(30);

/// What is known of devices, and what was said.
#[derive(Debug, Default)]
pub(crate) struct Preflight {
    pub(crate) rounds: Rounds,
    /// Nodes whose devices have to be looked up.
    stale: BTreeSet<NodeName>,
    /// What they were looked up from.
    made_from: Option<u64>,
    /// Something has changed since it was last put into words.
    changed: bool,
    said: Option<Tick>,
    words: Words,
    /// Devices of which people know that they fail.
    pub(crate) told: BTreeSet<Key>,
    allowance: Allowance,
    /// Whose device a Job asks; who drops this stops it.
    job: Option<(Key, oneshot::Sender<()>)>,
}

/// What every template says of its devices.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// Another number: other words. Nothing was said yet at 0.
    pub(crate) version: u64,
    pub(crate) health: BTreeMap<Arc<str>, Health>,
}

/// How many Events may still be sent.
#[derive(Debug, Default)]
struct Allowance {
    sent: u64,
    since: Tick,
}

impl Preflight {
    /// What every template says of its devices.
    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// Finds out whose devices may be others than before, and looks up some of them. `looked`: of whom something was seen.
    pub(crate) fn follow(
        &mut self,
        view: &View,
        plans: &Plans,
        looked: &BTreeSet<NodeName>,
        now: Tick,
    ) -> Vec<NodeName> {
        let from = Some(made_from(view));
        if std::mem::replace(&mut self.made_from, from) != from {
            self.stale.extend(view.nodes().keys().cloned());
        }
        let is_there = |node: &NodeName| view.node(node).is_some_and(|track| track.facts.is_some());
        let other = looked.iter().filter(|node| is_there(node) != self.rounds.knows(node));
        self.stale.extend(other.cloned());
        let some: Vec<NodeName> = self.stale.iter().take(AT_ONCE).cloned().collect();
        for node in &some {
            self.stale.remove(node);
            self.look_up(node, view, plans, now);
        }
        some
    }

    /// Nodes that are gone without a word are lost, too.
    pub(crate) fn tidy(&mut self, view: &View) {
        let gone = |node: &&NodeName| view.node(node).is_none_or(|track| track.facts.is_none());
        self.stale.extend(self.rounds.nodes().filter(gone).cloned());
    }

    fn look_up(&mut self, node: &NodeName, view: &View, plans: &Plans, now: Tick) {
        self.changed = true;
        if view.node(node).is_none_or(|track| track.facts.is_none()) {
            self.rounds.lose(node);
        } else {
            let templates = view.templates.iter().map(|(name, one)| (name.as_str(), &one.spec)).collect();
            let calls = plans.calls_of(node, view);
            let wired = calls.map(|calls| preflight::wired(&calls, &templates)).unwrap_or_default();
            self.rounds.follow(node, wired, now);
        }
        let (rounds, told) = (&self.rounds, &mut self.told);
        told.retain(|key| key.node != *node || rounds.template_of(key).is_some());
    }

    /// A Job asks this device from now on. Ends when it is to stop.
    pub(crate) fn asks_by_job(&mut self, key: &Key) -> oneshot::Receiver<()> {
        let (stop, stopped) = oneshot::channel();
        self.job = Some((key.clone(), stop));
        stopped
    }

    /// Stops the Job if its node is being fenced, or its device is no longer one.
    pub(crate) fn stop_job(&mut self, fenced: impl Fn(&NodeName) -> bool) {
        let rounds = &self.rounds;
        self.job.take_if(|(key, _)| fenced(&key.node) || rounds.template_of(key).is_none());
    }

    /// A device was asked: if by a Job, that is over.
    pub(crate) fn asked(&mut self, key: &Key) {
        self.job.take_if(|(whose, _)| whose == key);
    }

    /// Something was learnt of a device.
    pub(crate) fn learnt(&mut self) {
        self.changed = true;
    }

    /// Puts what is known into words, if it is time.
    pub(crate) fn put_into_words(&mut self, now: Tick) {
        let early = self.said.is_some_and(|at| now < at + SAY);
        if !self.changed || early || !self.stale.is_empty() {
            return;
        }
        (self.changed, self.said) = (false, Some(now));
        let health = self.rounds.health();
        if self.words.version == 0 || health != self.words.health {
            self.words = Words { version: self.words.version + 1, health };
        }
    }

    /// When to look again.
    pub(crate) fn wake(&self, now: Tick) -> Option<Tick> {
        let more = (!self.stale.is_empty()).then(|| now + GO_ON);
        let say = self.said.filter(|_| self.changed).map(|at| at + SAY);
        [more, say, self.rounds.wake()].into_iter().flatten().min()
    }

    /// Whether people may be told by an Event.
    pub(crate) fn may_tell(&mut self, now: Tick) -> bool {
        self.allowance.take(now)
    }
}

impl Allowance {
    fn take(&mut self, now: Tick) -> bool {
        let back = now.since(self.since).as_millis() / ONE_MORE.as_millis();
        if back > 0 {
            self.since = now;
            self.sent = self.sent.saturating_sub(back);
        }
        let may = self.sent < TOLD;
        self.sent += u64::from(may);
        may
    }
}

/// Changes with every config and every template, and not with what they say of themselves.
fn made_from(view: &View) -> u64 {
    let mut hash = DefaultHasher::new();
    let mut take = |meta: &ObjectMeta| (&meta.uid, meta.generation).hash(&mut hash);
    view.configs.values().for_each(|one| take(&one.metadata));
    view.templates.values().for_each(|one| take(&one.metadata));
    hash.finish()
}

/// A device that is asked.
pub(crate) struct Asked {
    pub(crate) key: Key,
    pub(crate) target: Target,
    pub(crate) executor: Executor,
}

/// Who is to be asked, with what it takes; whoever has no device any more was not asked.
pub(crate) fn lines(series: Series, mut with: impl FnMut(&Key) -> Option<(Target, Executor)>) -> Vec<Vec<Asked>> {
    let mut asked = |key: Key| with(&key).map(|(target, executor)| Asked { key, target, executor });
    series.lines.into_iter().map(|line| line.into_iter().filter_map(&mut asked).collect()).collect()
}

/// Asks a series of devices, each at its moment, and says what came of each as soon as it is there.
pub(crate) async fn ask(lines: Vec<Vec<Asked>>, news: UnboundedSender<News>) {
    let (purse, began) = (Purse::default(), Instant::now());
    let mut before = 0;
    let all = lines.into_iter().map(|line| {
        let first = before;
        before += u32::try_from(line.len()).unwrap_or(u32::MAX);
        ask_in_turn(line, began + duration(EACH) * first, &purse, &news)
    });
    futures_util::future::join_all(all.collect::<Vec<_>>()).await;
}

/// Has a Job ask a device, and says what came of it.
pub(crate) async fn ask_by_job(
    asked: Asked,
    template: Uid,
    stopped: oneshot::Receiver<()>,
    news: UnboundedSender<News>,
) {
    let Asked { key, target, executor } = asked;
    let stop = stopped.map(|_| ());
    let answer = Box::pin(executor.survey_by_job(&target, &template, stop)).await;
    if let Answer::NotAsked(why) = &answer {
        tracing::info!(node = %key.node, template = target.template, why, "a device could not be asked");
    }
    let _ = news.send(News::Checked { key, answer });
}

async fn ask_in_turn(line: Vec<Asked>, mut not_before: Instant, purse: &Purse, news: &UnboundedSender<News>) {
    for asked in line {
        tokio::time::sleep_until(not_before).await;
        not_before += duration(EACH);
        let answer = ask_one(&asked, purse).await;
        let _ = news.send(News::Checked { key: asked.key, answer });
    }
}

async fn ask_one(asked: &Asked, purse: &Purse) -> Answer {
    let Asked { target, executor, .. } = asked;
    if let Err(late) = executor.hold.check() {
        return Answer::NotAsked(late.0);
    }
    let device = match executor.device_with(target, purse).await {
        Ok(device) => device,
        Err(Failure::Refused(why)) => return Answer::Refused(why),
        // The API server did not say what we need. Whatever that is, the device has no part in it.
        Err(Failure::Unknown(why)) => return Answer::NotAsked(why),
    };
    let (power, whose) = match executor.survey(target, &*device).await {
        Ok(said) => said,
        Err(Failure::Refused(why)) => {
            // The password may have been changed since this series read it.
            purse.empty().await;
            return Answer::Refused(why);
        }
        Err(Failure::Unknown(why)) => return Answer::Silent(why),
    };
    let (power, kubelet) = match power {
        PowerState::On => (Power::On, WitnessWord::Unknown),
        PowerState::Unclear(why) => (Power::Unclear(why), WitnessWord::Unknown),
        PowerState::Off => (Power::Off, executor.context.probe.kubelet(&executor.node, executor.kubelet).await),
    };
    Answer::Said { whose, power, kubelet }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thousand_devices_that_fail_together_are_a_few_events() {
        let mut allowance = Allowance::default();
        let at = |seconds: u64| Tick::START + Span::secs(seconds);
        let sent = (0..1_000).filter(|_| allowance.take(at(1))).count();
        assert_eq!(sent, 20);
        assert!(!allowance.take(at(20)));
        assert!(allowance.take(at(40)), "one more");
        assert!(!allowance.take(at(40)));
        let later = (0..1_000).filter(|_| allowance.take(at(3_600))).count();
        assert_eq!(later, 20, "and all of them again in an hour");
    }
}
