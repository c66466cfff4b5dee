//! Scale / pulse: what kubelets write: a lease every 10 s and a status every 5 minutes, each node at its own moment.

use std::time::Duration;

use palisade_cluster::api::{Api, Key, Kind};
use palisade_cluster::clock::{micros, seconds};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::machines::Machines;
use super::population::NODE_LEASES;

/// A kubelet's `leaseDurationSeconds / 4`.
const LEASE: Duration = Duration::from_secs(10);
/// A kubelet's `nodeStatusReportFrequency`.
const STATUS: Duration = Duration::from_mins(5);
const BEAT: Duration = Duration::from_millis(20);

/// Writes for all nodes that live, for ever.
pub(crate) async fn beat(api: Api, nodes: u32, machines: Machines) {
    let api = api.acting_as("kubelet");
    let begun = Instant::now();
    let (mut leases, mut statuses) = (Round::new(LEASE, nodes), Round::new(STATUS, nodes));
    let mut ticks = interval(BEAT);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        let passed = begun.elapsed();
        for number in leases.due(passed).filter(|number| machines.lives(*number)) {
            renew(&api, number);
            if machines.was_off(number) {
                booted(&api, number);
            }
        }
        for number in statuses.due(passed).filter(|number| machines.lives(*number)) {
            report(&api, number, |_| {});
        }
    }
}

/// Whose turn it is: everybody once in a period, evenly.
struct Round {
    period: Duration,
    nodes: u32,
    done: u64,
}

impl Round {
    fn new(period: Duration, nodes: u32) -> Self {
        Self { period, nodes, done: 0 }
    }

    fn due(&mut self, passed: Duration) -> impl Iterator<Item = u32> + use<> {
        let all = passed.as_millis() * u128::from(self.nodes) / self.period.as_millis();
        let (from, to) = (self.done, u64::try_from(all).unwrap_or(u64::MAX));
        self.done = to;
        let nodes = u64::from(self.nodes);
        (from..to).map(move |turn| u32::try_from(turn % nodes).unwrap_or_default() + 1)
    }
}

fn renew(api: &Api, number: u32) {
    let now = micros(api.now());
    let key = Key::new(Kind::LEASE, NODE_LEASES, &format!("n{number}"));
    // Nobody else writes leases, so nothing can be in the way.
    drop(api.update(&key, |lease| lease["spec"]["renewTime"] = now.into()));
}

fn report(api: &Api, number: u32, change: impl FnOnce(&mut Value)) {
    let now = seconds(api.now());
    let key = Key::cluster(Kind::NODE, &format!("n{number}"));
    drop(api.update(&key, |node| {
        for condition in node["status"]["conditions"].as_array_mut().into_iter().flatten() {
            condition["lastHeartbeatTime"] = now.clone().into();
        }
        change(node);
    }));
}

/// The kubelet of a machine that was off tells of its new boot.
fn booted(api: &Api, number: u32) {
    report(api, number, |node| node["status"]["nodeInfo"]["bootID"] = json!(format!("boot-2-{number:08}")));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_has_one_turn_in_a_period() {
        let mut round = Round::new(Duration::from_secs(10), 3);
        let first: Vec<u32> = round.due(Duration::from_secs(4)).collect();
        let rest: Vec<u32> = round.due(Duration::from_secs(10)).collect();
        assert_eq!((first, rest), (vec![1], vec![2, 3]));
        assert_eq!(round.due(Duration::from_secs(20)).collect::<Vec<_>>(), [1, 2, 3]);
    }
}
