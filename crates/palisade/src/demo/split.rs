//! Demo / split: which part of the failover took how long, and who could write meanwhile.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The parts of a failover, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mark {
    /// A request claims that the node should be fenced.
    Detected,
    /// Every gate was open.
    Admitted,
    /// The machine is off, by the truth.
    Isolated,
    /// A proof is in force.
    Proven,
    /// The pod is removed.
    Released,
    /// Its replacement has a node.
    Scheduled,
    /// Its replacement is ready.
    Running,
    /// The fence is over.
    Closed,
}

impl Mark {
    /// The parts up to the pod's return.
    pub(super) const FAILOVER: [Self; 7] =
        [Self::Detected, Self::Admitted, Self::Isolated, Self::Proven, Self::Released, Self::Scheduled, Self::Running];

    /// One word, and what it means.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Detected => ("detected", "the node's lease is silent, and a witness agrees"),
            Self::Admitted => ("admitted", "every gate is open"),
            Self::Isolated => ("isolated", "the machine is off"),
            Self::Proven => ("proven", "off was read back, steady"),
            Self::Released => ("released", "marked, read back again, removed"),
            Self::Scheduled => ("scheduled", "the replacement has a node"),
            Self::Running => ("running", "volume attached, replacement ready"),
            Self::Closed => ("closed", "the fence is over"),
        }
    }
}

/// When each part was first reached.
#[derive(Debug)]
pub(super) struct Split {
    failed: Duration,
    reached: BTreeMap<Mark, Duration>,
}

impl Split {
    /// A failure at that time.
    pub(super) fn since(failed: Duration) -> Self {
        Self { failed, reached: BTreeMap::new() }
    }

    /// A part was reached; only the first time counts, and never before the failure.
    pub(super) fn note(&mut self, mark: Mark, at: Duration) {
        let Some(after) = at.checked_sub(self.failed) else { return };
        // A pod that Kubernetes moved by itself, such as from a node that came back, is no failover of ours.
        if matches!(mark, Mark::Scheduled | Mark::Running) && !self.reached.contains_key(&Mark::Proven) {
            return;
        }
        // A machine may come back by itself before it is switched off for good: the off that the proof is about counts.
        if mark == Mark::Isolated && !self.reached.contains_key(&Mark::Proven) {
            self.reached.remove(&mark);
        }
        self.reached.entry(mark).or_insert(after);
    }

    /// How long after the failure; nothing if not reached.
    pub(super) fn after(&self, mark: Mark) -> Option<Duration> {
        let at = self.reached.get(&mark).copied();
        match mark {
            // A machine that is off without a proof may as well be on again.
            Mark::Isolated => self.after(Mark::Proven).and(at),
            _ => at,
        }
    }

    /// The last part that was reached.
    pub(super) fn last(&self) -> Option<Mark> {
        self.reached.keys().rev().copied().find(|mark| self.after(*mark).is_some())
    }

    /// Each part of the failover that was reached: when, and how long it took after the part before; nothing if it was so
    /// before that, as with a machine that was off from the start.
    pub(super) fn rows(&self) -> Vec<(Mark, Duration, Option<Duration>)> {
        let mut before = Duration::ZERO;
        let reached = Mark::FAILOVER.iter().filter_map(|mark| Some((*mark, self.after(*mark)?)));
        let row = |(mark, at): (Mark, Duration)| {
            let was_so = mark == Mark::Isolated && at < before;
            let took = (!was_so).then(|| at.saturating_sub(before));
            before = before.max(at);
            (mark, at, took)
        };
        reached.map(row).collect()
    }
}

/// Who could write to the volume, and for how long it was nobody or two nodes.
#[derive(Debug, Default)]
pub(super) struct Writers {
    now: BTreeSet<(String, String)>,
    since: Duration,
    nobody: Duration,
    two: Duration,
}

impl Writers {
    /// A process on a node can write from now on, or no longer.
    pub(super) fn change(&mut self, at: Duration, node: &str, pod: &str, can: bool) {
        self.pass(at);
        let writer = (node.to_owned(), pod.to_owned());
        if can {
            self.now.insert(writer);
        } else {
            self.now.remove(&writer);
        }
    }

    /// Time passes.
    pub(super) fn pass(&mut self, at: Duration) {
        let time = at.saturating_sub(self.since);
        match self.nodes().len() {
            0 => self.nobody += time,
            1 => {}
            _ => self.two += time,
        }
        self.since = self.since.max(at);
    }

    /// Counts from here on.
    pub(super) fn restart(&mut self, at: Duration) {
        (self.since, self.nobody, self.two) = (at, Duration::ZERO, Duration::ZERO);
    }

    /// The nodes that can write now.
    pub(super) fn nodes(&self) -> BTreeSet<&str> {
        self.now.iter().map(|(node, _)| node.as_str()).collect()
    }

    /// The same in words.
    pub(super) fn words(&self) -> String {
        let nodes: Vec<&str> = self.nodes().into_iter().collect();
        if nodes.is_empty() { "nobody".to_owned() } else { nodes.join(" and ") }
    }

    /// How long nobody could.
    pub(super) fn nobody(&self) -> Duration {
        self.nobody
    }

    /// How long two nodes could at once.
    pub(super) fn two(&self) -> Duration {
        self.two
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(secs: u64) -> Duration {
        Duration::from_secs(secs)
    }

    #[test]
    fn each_part_has_its_time_and_its_share() {
        let mut split = Split::since(secs(100));
        split.note(Mark::Scheduled, secs(90));
        split.note(Mark::Isolated, secs(100));
        split.note(Mark::Detected, secs(111));
        split.note(Mark::Admitted, secs(112));
        split.note(Mark::Detected, secs(150));
        split.note(Mark::Proven, secs(115));
        split.note(Mark::Running, secs(120));
        let rows = split.rows();
        assert_eq!(
            rows,
            [
                (Mark::Detected, secs(11), Some(secs(11))),
                (Mark::Admitted, secs(12), Some(secs(1))),
                (Mark::Isolated, secs(0), None),
                (Mark::Proven, secs(15), Some(secs(3))),
                (Mark::Running, secs(20), Some(secs(5))),
            ],
            "dead from the start took nobody's time; what came before the failure does not count"
        );
        assert_eq!(split.last(), Some(Mark::Running));
    }

    #[test]
    fn a_machine_that_nobody_was_allowed_to_fence_is_not_isolated() {
        let mut split = Split::since(secs(0));
        split.note(Mark::Isolated, secs(0));
        split.note(Mark::Detected, secs(11));
        assert_eq!(split.after(Mark::Isolated), None);
        assert_eq!(split.last(), Some(Mark::Detected), "what everybody waits for is the gates");
    }

    #[test]
    fn what_moves_without_a_proof_is_no_failover() {
        let mut split = Split::since(secs(0));
        split.note(Mark::Detected, secs(11));
        split.note(Mark::Running, secs(600));
        assert_eq!(split.after(Mark::Running), None);
    }

    #[test]
    fn the_off_that_was_proven_counts() {
        let mut split = Split::since(secs(0));
        split.note(Mark::Isolated, secs(0));
        split.note(Mark::Admitted, secs(19));
        split.note(Mark::Isolated, secs(21));
        split.note(Mark::Proven, secs(24));
        split.note(Mark::Isolated, secs(90));
        assert_eq!(split.after(Mark::Isolated), Some(secs(21)), "not the failure's, nor that of a later attempt");
    }

    #[test]
    fn writers_are_counted_by_node() {
        let mut writers = Writers::default();
        writers.change(secs(1), "n1", "a", true);
        writers.restart(secs(10));
        writers.change(secs(12), "n1", "a", false);
        assert_eq!(writers.words(), "nobody");
        writers.change(secs(17), "n2", "b", true);
        writers.change(secs(18), "n2", "c", true);
        writers.change(secs(20), "n1", "a", true);
        assert_eq!(writers.words(), "n1 and n2");
        writers.change(secs(23), "n1", "a", false);
        writers.pass(secs(30));
        assert_eq!((writers.nobody(), writers.two()), (secs(5), secs(3)), "two processes of one node are one writer");
    }
}
