//! I3: fences in flight never exceed the budget; nothing is fenced while most of the cluster is gone; and a node that has been
//! well for long is not fenced by a detector.

use std::collections::BTreeMap;
use std::time::Duration;

use palisade_api::NodeFence;
use palisade_api::fence::{FencePhase, Slot};
use palisade_api::names;
use palisade_cluster::api::{Change, Kind};
use palisade_cluster::machines::bmc::Command;
use palisade_cluster::machines::machine::{Link, Machine, Switch};
use palisade_cluster::truth::{Daemon, DaemonState, Event, Name, What, World};
use serde_json::Value;

use super::Seen;

/// Whoever has been down for so long has missed more than two renewals, whatever anybody's watch shows.
const KNOWN_DOWN: Duration = Duration::from_secs(35);
/// Whoever has been well for so long has renewed several times.
const KNOWN_WELL: Duration = Duration::from_secs(45);
/// How long a budget that was lowered may still be exceeded by what was in flight.
const BUDGET_MEMORY: Duration = Duration::from_mins(1);
/// After an outage of our own, nobody has been watched for as long as the shortest threshold takes.
const FRESH_WINDOW: Duration = Duration::from_millis(4_900);
/// The share that may be down, as the default policy has it.
const STORM_PERCENT: usize = 40;

/// What is known of every machine and of the budget.
#[derive(Default)]
pub(super) struct Watched {
    /// Since when each machine's kubelet works and reaches the API, or does not.
    nodes: BTreeMap<Name, (bool, Duration)>,
    /// Which of them have a Node.
    registered: std::collections::BTreeSet<String>,
    /// Fences that a person asked for need no reason that can be seen.
    asked_for: std::collections::BTreeSet<String>,
    /// Attempts of fences that have told the machine something.
    told_off: std::collections::BTreeSet<(String, u32)>,
    /// The budgets that were in force, and since when.
    budgets: Vec<(Duration, u64)>,
}

impl Watched {
    pub(super) fn over(world: &World) -> Self {
        let nodes =
            world.machines.values().map(|machine| (Name::clone(&machine.name), (well(world, machine), world.now)));
        let registered = world.machines.keys().map(ToString::to_string).collect();
        Self { nodes: nodes.collect(), registered, ..Self::default() }
    }

    /// For how long a node's kubelet has worked and reached the API.
    pub(super) fn well_for(&self, node: &str, now: Duration) -> Duration {
        let since = self.nodes.get(node).filter(|(well, _)| *well).map_or(now, |(_, since)| *since);
        now.saturating_sub(since)
    }

    fn note(&mut self, world: &World, machine: &Machine) {
        let is = well(world, machine);
        let known = self.nodes.entry(Name::clone(&machine.name)).or_insert((is, world.now));
        if known.0 != is {
            *known = (is, world.now);
        }
    }

    /// How many machines there are.
    pub(super) fn size(&self) -> usize {
        self.nodes.len()
    }

    fn allowed(&self, now: Duration) -> u64 {
        let mut allowed = self.budgets.last().map_or(1, |(_, budget)| *budget);
        for pair in self.budgets.windows(2) {
            if pair[1].0 + BUDGET_MEMORY > now {
                allowed = allowed.max(pair[0].1);
            }
        }
        allowed
    }
}

fn well(world: &World, machine: &Machine) -> bool {
    machine.kubelet_works() && machine.reaches(Link::Api) && world.daemon(Daemon::ApiServer) == DaemonState::Running
}

pub(super) fn event(seen: &mut Seen, world: &World, event: &Event) {
    match &event.what {
        What::Daemon { .. } => world.machines.values().for_each(|machine| seen.majority.note(world, machine)),
        What::Told { node, command } => told(seen, node, *command),
        _ => {
            if let Some(machine) = event.what.node().and_then(|node| world.machines.get(node)) {
                seen.majority.note(world, machine);
            }
        }
    }
}

fn told(seen: &mut Seen, node: &Name, command: Command) {
    let long_well = seen.majority.nodes.get(node).is_some_and(|(well, since)| *well && *since + KNOWN_WELL < seen.now);
    let asked_for = seen.majority.asked_for.contains(&**node);
    // Who was told off once is told again when that did not help, unless it is seen to be well; while watches stand still, nobody is.
    let fence = seen.fences.get(&**node);
    let attempt = fence.map(|fence| {
        let attempt = fence.status.as_ref().map_or(0, |status| status.attempt);
        (fence.metadata.uid.clone().unwrap_or_default(), attempt)
    });
    let again = attempt.is_some_and(|attempt| !seen.majority.told_off.insert(attempt));
    if again && seen.watches_stand_still() {
        return;
    }
    if command.switch == Switch::ForceOff && long_well && !asked_for && !seen.may_be_late() {
        seen.broken(format!("I3: {node} was told off, and had been well for more than {KNOWN_WELL:?}"));
    }
}

/// The budget as the policy has it.
pub(super) fn policy(seen: &mut Seen, change: &Change) {
    let Some(new) = &change.new else { return };
    if new.get("kind").and_then(Value::as_str) == Some("FencePolicy") && *change.key.name == *names::POLICY_NAME {
        let budget = new.pointer("/spec/budget/maxConcurrent").and_then(Value::as_u64).unwrap_or(1);
        if seen.majority.budgets.last().map(|(_, known)| *known) != Some(budget) {
            seen.majority.budgets.push((seen.now, budget));
        }
    }
}

/// A Node was made, or is gone.
pub(super) fn node(seen: &mut Seen, change: &Change) {
    if change.key.kind == Kind::NODE {
        let name = change.key.name.to_string();
        let _news = if change.new.is_some() {
            seen.majority.registered.insert(name)
        } else {
            seen.majority.registered.remove(&name)
        };
    }
}

/// How long ago it is that nobody watched, if nothing can be told of anybody yet.
fn since_blind(seen: &Seen) -> Option<Duration> {
    let passed = seen.now.checked_sub(seen.saw_again?)?;
    (passed < FRESH_WINDOW).then_some(passed)
}

/// We made a request: it rests on what was watched without a gap.
pub(super) fn request(seen: &mut Seen, change: &Change) {
    let made = change.new.as_ref().filter(|_| change.old.is_none());
    let Some(made) = made.filter(|new| new.get("kind").and_then(Value::as_str) == Some("NodeFencingRequest")) else {
        return;
    };
    if let Some(passed) = since_blind(seen) {
        let node = made.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
        seen.broken(format!("I3: {node} is called silent {passed:?} after a time in which nobody watched"));
    }
}

/// A fence was written.
pub(super) fn fence(seen: &mut Seen, node: &str, old: Option<&NodeFence>, new: &NodeFence) {
    let by_admin = new.spec.requests.iter().any(|request| request.name.starts_with("admin"));
    if by_admin {
        seen.majority.asked_for.insert(node.to_owned());
    } else if old.is_none() {
        seen.majority.asked_for.remove(node);
    }
    if let (None, false, Some(passed)) = (old, by_admin, since_blind(seen)) {
        seen.broken(format!("I3: {node} is fenced {passed:?} after a time in which nobody watched"));
    }
    if old.is_some_and(acts) || !acts(new) {
        return;
    }
    let acting: Vec<&str> =
        seen.fences.iter().filter(|(_, fence)| acts(fence)).map(|(node, _)| node.as_str()).collect();
    let allowed = seen.majority.allowed(seen.now);
    if u64::try_from(acting.len()).unwrap_or(u64::MAX) > allowed {
        let who = acting.join(" and ");
        seen.broken(format!("I3: {who} act at once under a budget of {allowed}"));
    }
    let down = |(well, since): &(bool, Duration)| !well && *since + KNOWN_DOWN < seen.now;
    // A machine without a Node is none of the cluster's.
    let known = |name: &Name| seen.majority.registered.contains(&**name);
    let others = seen.majority.nodes.iter().filter(|(name, _)| ***name != *node && known(name));
    let gone = others.filter(|(_, state)| down(state)).count();
    let size = seen.majority.registered.len();
    // One that was admitted goes on, and tries again, whatever happens to others meanwhile.
    let first = new.status.as_ref().is_some_and(|status| status.attempt <= 1);
    if first && !by_admin && gone + 1 > (size * STORM_PERCENT / 100).max(1) {
        seen.broken(format!("I3: {node} is fenced while {gone} of {size} other nodes are gone"));
    }
}

/// Whether a fence may cut off or release.
fn acts(fence: &NodeFence) -> bool {
    fence.status.as_ref().is_some_and(|status| {
        status.slot == Slot::Held
            && matches!(status.phase, FencePhase::Isolating | FencePhase::Isolated | FencePhase::PoweringOff)
    })
}
