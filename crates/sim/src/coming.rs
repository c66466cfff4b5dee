//! Coming: the faults of a plan that have not struck yet, and which of them is next.

use std::collections::VecDeque;
use std::time::Duration;

use palisade_cluster::Cluster;

use crate::acts::{Act, Acts};
use crate::faults::Fault;
use crate::plan::{Plan, QUIET, When};

/// The faults that have not struck yet.
pub(crate) struct Coming {
    timed: VecDeque<(Duration, Fault)>,
    /// Those that wait for an act, of one kind or of any.
    after_acts: Vec<(Option<Act>, u64, Fault)>,
    /// Acts of any kind are counted from the first fault on.
    begun: Option<u64>,
}

/// What comes next.
pub(crate) enum Next {
    /// Something goes wrong.
    Fault(Fault),
    /// Somebody who stood still goes on.
    Thaw,
    /// Nothing goes wrong any more.
    Quiet,
}

impl Coming {
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut coming = Self { timed: VecDeque::new(), after_acts: Vec::new(), begun: None };
        for (when, fault) in &plan.faults {
            match when {
                When::At(at) => coming.timed.push_back((*at, fault.clone())),
                When::AfterAct(number) => coming.after_acts.push((None, *number, fault.clone())),
                When::AfterThe(act, number) => coming.after_acts.push((Some(*act), *number, fault.clone())),
            }
        }
        coming
    }

    /// Lets time pass until something goes wrong, somebody who stood still goes on, or nothing goes wrong any more.
    pub(crate) async fn next(&mut self, cluster: &Cluster, acts: &Acts, thaws: Option<Duration>) -> Next {
        let timed = self.timed.front().map(|(at, _)| *at);
        let until = [timed, thaws, Some(QUIET)].into_iter().flatten().min().unwrap_or(QUIET);
        let left = until.saturating_sub(cluster.elapsed());
        let begun = self.begun;
        let due = || {
            let since = acts.so_far().saturating_sub(begun?);
            self.after_acts.iter().position(|(act, number, _)| *number <= act.map_or(since, |act| acts.of(act)))
        };
        cluster.run_until(left, |_| due().is_some()).await;
        if let Some(place) = due() {
            return Next::Fault(self.after_acts.remove(place).2);
        }
        let now = cluster.elapsed();
        if now >= QUIET {
            return Next::Quiet;
        }
        if timed.is_some_and(|at| at <= now)
            && let Some((_, fault)) = self.timed.pop_front()
        {
            self.begun.get_or_insert(acts.so_far());
            return Next::Fault(fault);
        }
        Next::Thaw
    }
}
