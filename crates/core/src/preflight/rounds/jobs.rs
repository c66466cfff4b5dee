//! Preflight / rounds / jobs: whose device a Job asks now.
//!
//! Promise: no more than [`JOBS`] at a time, the one first that has waited longest, and [`PAUSE`] after the last one was over: where
//! there are more devices than fit into their interval, each is asked less often, and none is left out.
//! Promise: whom we ask ourselves never waits for a Job. Where both are at one address, it is the Job that waits.

use std::collections::BTreeSet;

use super::{By, FENCED, Key, Rounds};
use crate::ident::NodeName;
use crate::time::{Span, Tick};

/// So many Jobs ask at a time. A Job is a pod, with an image and a place on a node, and a check must never be what a cluster is
/// busy with; and one name for all of them has the API server see to it, whoever else believes to lead. More would need more names.
pub const JOBS: usize = 1;
/// From the end of one Job to the begin of the next: time for its pod to be gone. With the four to eight seconds that a Job takes
/// there are 25 to 30 devices in ten minutes, for a third of a request a second: as much again as Secrets may cost.
pub const PAUSE: Span = Span::secs(15);

impl Rounds {
    /// Whose device a Job asks now. It counts as under way until it has [`answered`](Self::answered).
    pub fn begin_job(&mut self, fenced: impl Fn(&NodeName) -> bool, now: Tick) -> Option<Key> {
        if now < self.pause || self.asked_by(By::Job).count() >= JOBS {
            return None;
        }
        let busy = self.busy();
        let (mut first, mut later) = (None, Vec::new());
        for (_, key) in self.jobs.iter().take_while(|(at, _)| *at <= now) {
            let free = self.tracks.get(key).is_some_and(|track| !busy.contains(&track.address));
            if !free || self.under_way.contains_key(key) {
                continue;
            }
            if fenced(&key.node) {
                later.push(key.clone());
            } else {
                first = Some(key.clone());
                break;
            }
        }
        for key in later {
            self.set(&key, now + FENCED);
        }
        first.filter(|key| self.set_out(key).is_some())
    }

    pub(super) fn wake_for_job(&self) -> Option<Tick> {
        if self.asked_by(By::Job).count() >= JOBS {
            // Its end is news.
            return None;
        }
        self.first_of(&self.jobs, &self.busy()).map(|at| at.max(self.pause))
    }

    /// Where anybody is asked, by whomever.
    fn busy(&self) -> BTreeSet<u64> {
        self.under_way.values().map(|one| one.address).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::super::super::{Health, Outcome, Wired};
    use super::super::tests::{TEN, at, bmc, nobody, node, silent};
    use super::super::{Change, FIRST, Series};
    use super::*;

    /// What a Job takes.
    const TAKES: Span = Span::secs(5);

    /// A BMC that an agent asks.
    fn agent(number: usize) -> Wired {
        Wired { template: Arc::from("agent"), by: By::Job, ..bmc(number, 7) }
    }

    fn agents(nodes: usize) -> Rounds {
        let mut rounds = Rounds::default();
        for number in 0..nodes {
            rounds.follow(&node(number), vec![agent(number)], Tick::START);
        }
        rounds
    }

    /// What Jobs asked, and when each began, if each takes as long as one does.
    fn played(rounds: &mut Rounds, until: Span, answer: impl Fn(&Key) -> Outcome) -> Vec<(Tick, Key)> {
        let (mut asked, mut now) = (Vec::new(), Tick::START);
        while let Some(next) = rounds.wake().filter(|next| *next < Tick::START + until) {
            now = next.max(now + Span::millis(1));
            assert_eq!(rounds.begin(nobody, now), Series::default(), "nobody here is asked by us");
            let Some(key) = rounds.begin_job(nobody, now) else { continue };
            assert_eq!(rounds.begin_job(nobody, now + TAKES), None, "one at a time");
            assert_eq!(rounds.wake(), None, "its end is news");
            asked.push((now, key.clone()));
            now = now + TAKES;
            rounds.answered(&key, answer(&key), now);
        }
        asked
    }

    #[test]
    fn a_few_agents_are_asked_in_their_interval_and_not_all_at_once() {
        let mut rounds = agents(12);
        let asked = played(&mut rounds, Span::mins(60), |_| Outcome::Good);
        assert!((60..=84).contains(&asked.len()), "six times each: {}", asked.len());
        let mut last: BTreeMap<&Key, Tick> = BTreeMap::new();
        for (at, key) in &asked {
            let before = last.insert(key, *at).unwrap_or(Tick::START);
            assert!(at.since(before) <= TEN + Span::mins(2), "{key:?} waited for {}", at.since(before));
        }
        assert_eq!(last.len(), 12);
        let soon = asked.iter().filter(|(when, _)| *when < at(60)).count();
        assert!(soon <= 3, "not all after a start: {soon}");
        assert_eq!(rounds.health()["agent"], Health::Healthy { nodes: 12 });
    }

    #[test]
    fn there_is_a_pause_after_each_job() {
        let asked = played(&mut agents(200), Span::mins(60), |_| Outcome::Good);
        for two in asked.windows(2) {
            assert!(two[1].0.since(two[0].0) >= Span::secs(20), "{two:?}");
        }
    }

    #[test]
    fn where_there_are_too_many_each_is_asked_less_often_in_turn_and_the_delay_is_told() {
        let mut rounds = agents(500);
        let asked =
            played(&mut rounds, Span::mins(120), |key| if key.node == node(3) { silent() } else { Outcome::Good });
        assert!((340..=361).contains(&asked.len()), "one every twenty seconds: {}", asked.len());
        let different: BTreeSet<_> = asked.iter().map(|(_, key)| key.node.clone()).collect();
        assert_eq!(different.len(), asked.len(), "nobody is asked twice before all were asked once, whatever it says");
        assert!(rounds.behind(at(7_200)) > Span::mins(100), "{}", rounds.behind(at(7_200)));
    }

    #[test]
    fn whom_we_ask_ourselves_never_waits_for_a_job() {
        let mut rounds = agents(500);
        rounds.follow(&node(900), vec![bmc(900, 7)], Tick::START);
        // The same BMC by both ways.
        let twin = Wired { address: 900, told: 901, method: "by-agent".into(), ..agent(900) };
        rounds.follow(&node(901), vec![twin.clone()], Tick::START);
        rounds.follow(&node(902), vec![Wired { told: 902, ..twin }], Tick::START);
        let mut job: Option<Key> = None;
        let mut asked = 0;
        for seconds in 0..3_600 {
            // A Job that takes for ever.
            job = job.or_else(|| rounds.begin_job(|name| *name != node(901), at(seconds)));
            for key in rounds.begin(nobody, at(seconds)).lines.into_iter().flatten() {
                asked += 1;
                rounds.answered(&key, Outcome::Good, at(seconds));
            }
        }
        assert_eq!(job.map(|key| key.node), Some(node(901)), "it is under way at the same address");
        assert!((5..=7).contains(&asked), "six times in an hour: {asked}");
        assert!(rounds.behind(at(3_600)) > TEN, "agents do wait");
    }

    #[test]
    fn a_job_waits_for_whom_we_ask_at_its_address() {
        let mut rounds = Rounds::default();
        rounds.follow(&node(1), vec![bmc(1, 7)], Tick::START);
        rounds.follow(&node(2), vec![Wired { address: 1, ..agent(2) }], Tick::START);
        let ours = rounds.begin(nobody, at(601)).lines.remove(0).remove(0);
        assert_eq!(rounds.begin_job(nobody, at(601)), None);
        rounds.answered(&ours, Outcome::Good, at(602));
        assert_eq!(rounds.begin_job(nobody, at(602)).map(|key| key.node), Some(node(2)));
    }

    #[test]
    fn the_device_of_a_node_that_is_being_fenced_is_asked_by_no_job() {
        let mut rounds = agents(2);
        let first = rounds.begin_job(|name| *name == node(0), at(601)).unwrap();
        assert_eq!(first.node, node(1));
        rounds.answered(&first, Outcome::Good, at(606));
        assert_eq!(rounds.begin_job(|name| *name == node(0), at(700)), None);
        let after = rounds.wake().unwrap();
        assert_eq!(rounds.begin_job(nobody, after).map(|key| key.node), Some(node(0)));
    }

    /// How long it is until the device is asked again, after each of these in turn.
    fn waits(outcomes: &[Outcome]) -> (Vec<u64>, Vec<Option<Change>>) {
        let mut rounds = agents(1);
        let mut now = rounds.wake().unwrap();
        let mut all = (Vec::new(), Vec::new());
        for outcome in outcomes {
            let key = rounds.begin_job(nobody, now).unwrap();
            all.1.push(rounds.answered(&key, outcome.clone(), now));
            let next = rounds.wake().unwrap();
            all.0.push(next.since(now).as_millis() / 1_000);
            now = next;
        }
        all
    }

    #[test]
    fn an_agents_device_that_fails_is_asked_once_more_soon_and_then_only_in_its_interval() {
        let (waits, told) = waits(&[silent(), silent(), silent(), Outcome::Good, silent()]);
        assert_eq!(waits[..3], [30, 600, 600], "its words may hide a password that is refused");
        assert_eq!(waits[4], FIRST.as_millis() / 1_000);
        let fails = Some(Change::Fails);
        assert_eq!(told, [fails.clone(), None, None, Some(Change::GoodAgain), fails]);
    }

    #[test]
    fn a_job_that_cannot_start_accuses_nobody_and_is_tried_more_slowly_each_time() {
        let unasked = || Outcome::NotAsked("no node took its pod".to_owned());
        let (waits, told) = waits(&[unasked(), unasked(), unasked(), unasked(), unasked(), unasked(), Outcome::Good]);
        assert_eq!(waits[..6], [30, 60, 120, 240, 480, 600]);
        assert_eq!(told, vec![None; 7]);
    }

    #[test]
    fn a_device_that_is_asked_otherwise_than_before_is_not_asked_while_the_job_is_under_way() {
        let mut rounds = agents(1);
        let key = rounds.begin_job(nobody, at(601)).unwrap();
        rounds.follow(&node(0), vec![Wired { told: 99, ..bmc(0, 7) }], at(602));
        assert_eq!(rounds.begin(nobody, at(700)), Series::default());
        assert_eq!(rounds.answered(&key, silent(), at(701)), None, "that was the old one");
        assert_eq!(rounds.begin(nobody, at(701)).lines.len(), 1);
        assert_eq!(rounds.wake(), None);
    }
}
