//! Model / worlds: which worlds there are, and how far each is explored by default, in full and at its widest.
//!
//! The default is what a desk bears: a minute on two cores. Every world is there, reaches what it is about, and catches its mutations.
//! Left to `PALISADE_MODEL=full`, which CI runs in minutes: a crash, a fault and a change of the leader in one and the same run (by
//! default at most two meet), more than one attempt or fence but for Jobs and a lost storage fence, and the ledger's retries
//! and a policy made anew under two operators at once. Left to `PALISADE_MODEL=widest`, which `cargo xtask soak` runs in
//! a quarter of an hour: a second crash or change of the leader, and the worlds of many millions of states.

use palisade_core::observe::Owner;

use crate::ledger;
use crate::setup::{Besides, Bounds, How, Members, Setup, Successor, Until};

/// How far the worlds are explored.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Depth {
    Default,
    Full,
    Widest,
}

/// How far is asked for; a word that nobody knows must not pass for a wide run.
fn depth() -> Depth {
    match std::env::var("PALISADE_MODEL").as_deref() {
        Err(_) => Depth::Default,
        Ok("full") => Depth::Full,
        Ok("widest") => Depth::Widest,
        Ok(other) => panic!("PALISADE_MODEL is {other:?}; it may be full or widest, or not set"),
    }
}

/// The bounds of that depth: wider ones are run besides the narrower.
fn bounds<B: Copy>(default: &[B], full: &[B], widest: &[B]) -> Vec<B> {
    let deep = [(Depth::Default, default), (Depth::Full, full), (Depth::Widest, widest)];
    deep.into_iter().filter(|(at, _)| *at <= depth()).flat_map(|(_, bounds)| bounds).copied().collect()
}

fn base(name: &'static str, how: How) -> Setup {
    Setup {
        name,
        how,
        owner: Owner::StatefulSet,
        members: Members::One,
        attach: true,
        successor: Successor::SameMachine,
        besides: Besides::Nothing,
        until: Until::On,
        bounds: Bounds::default(),
        mutation: None,
    }
}

/// One failover, no faults: every world widens this.
const PLAIN: Bounds = Bounds {
    handovers: 0,
    crashes: 0,
    faults: 0,
    outside_ons: 0,
    resets: 0,
    heals: 0,
    cuts: 0,
    posts: 0,
    outside_lifts: 0,
    node_deletions: 0,
    evictions: 0,
    more_fences: 0,
    attempts: 1,
    generations: 1,
};

/// A world under its bounds.
fn under(setup: &Setup, default: &[Bounds], full: &[Bounds], widest: &[Bounds]) -> Vec<Setup> {
    bounds(default, full, widest).into_iter().map(|bounds| Setup { bounds, ..setup.clone() }).collect()
}

/// A StatefulSet pod, one BMC, and somebody else who switches the machine on at any time. The kubelet starts its pods and
/// never gets round to posting its status: nothing but the device can tell.
pub(crate) fn power() -> Vec<Setup> {
    let race = Bounds { outside_ons: 1, ..PLAIN };
    under(
        &base("power", How::Power),
        &[Bounds { crashes: 1, faults: 1, ..race }, Bounds { handovers: 1, faults: 1, ..race }],
        &[Bounds { handovers: 1, crashes: 1, faults: 1, ..race }, Bounds { handovers: 2, ..race }],
        &[Bounds { handovers: 1, crashes: 2, faults: 1, ..race }, Bounds { handovers: 2, faults: 1, ..race }],
    )
}

/// The whole circle: released, switched on, back, clean, closed; the kubelet posts its status at any time.
pub(crate) fn power_and_back() -> Vec<Setup> {
    let circle = Bounds { outside_ons: 1, posts: 1, ..PLAIN };
    under(
        &Setup { until: Until::Closed, ..base("power and back", How::Power) },
        &[Bounds { crashes: 1, ..circle }],
        &[
            Bounds { handovers: 1, ..circle },
            Bounds { faults: 1, ..circle },
            Bounds { attempts: 2, ..circle },
            Bounds { more_fences: 1, ..circle },
        ],
        &[Bounds { crashes: 1, faults: 1, ..circle }],
    )
}

/// Somebody evicts the pod, the partition heals, and a later pod of the same name comes to the same node.
pub(crate) fn power_with_evictions() -> Vec<Setup> {
    let evicted = Bounds { outside_ons: 1, posts: 1, heals: 1, evictions: 1, generations: 2, ..PLAIN };
    under(
        &Setup { until: Until::Closed, ..base("power with evictions", How::Power) },
        &[evicted],
        &[Bounds { crashes: 1, outside_ons: 0, ..evicted }],
        &[],
    )
}

/// The node is alive behind a partition and writes until it is refused; what hangs in I/O may flush whenever it can.
pub(crate) fn storage() -> Vec<Setup> {
    let partition = Bounds { heals: 1, posts: 1, ..PLAIN };
    under(
        &Setup { until: Until::Closed, ..base("storage", How::Storage) },
        &[Bounds { handovers: 1, ..partition }, Bounds { faults: 1, ..partition }],
        &[Bounds { handovers: 1, faults: 1, ..partition }, Bounds { handovers: 1, crashes: 1, ..partition }],
        &[Bounds { crashes: 1, faults: 1, cuts: 1, heals: 2, ..partition }],
    )
}

/// ... and the machine may reset at any time, so that its present boot is not the one that was cut off.
pub(crate) fn storage_with_reboots() -> Vec<Setup> {
    let reboot = Bounds { resets: 1, posts: 1, ..PLAIN };
    under(
        &Setup { until: Until::Closed, ..base("storage with reboots", How::Storage) },
        &[Bounds { cuts: 1, heals: 1, ..reboot }, Bounds { resets: 2, ..reboot }],
        &[Bounds { resets: 2, posts: 2, ..reboot }],
        &[Bounds { posts: 2, heals: 1, ..reboot }],
    )
}

/// Somebody else lifts the storage fence; the next attempt gets no storage fence and falls back to the switch port.
pub(crate) fn storage_else_network() -> Vec<Setup> {
    let lifted = Bounds { outside_lifts: 1, attempts: 2, ..PLAIN };
    under(
        &base("storage else network", How::StorageElseNetwork),
        &[Bounds { handovers: 1, faults: 1, ..lifted }],
        &[Bounds { handovers: 1, crashes: 1, faults: 1, ..lifted }],
        &[Bounds { handovers: 1, crashes: 1, faults: 2, ..lifted }],
    )
}

/// Two pods on one claim.
pub(crate) fn group() -> Vec<Setup> {
    let race = Bounds { outside_ons: 1, ..PLAIN };
    under(
        &Setup { members: Members::Two, ..base("group", How::Power) },
        &[Bounds { crashes: 1, ..race }],
        &[Bounds { crashes: 1, faults: 1, ..race }, Bounds { handovers: 1, faults: 1, ..race }],
        &[Bounds { handovers: 1, crashes: 1, ..race }],
    )
}

/// The second pod on the claim is bound to the node at any later time: the scheduler had not seen the taint. (Where nothing
/// is ever attached, nobody can stop it: the second documented exception.)
pub(crate) fn group_that_grows() -> Vec<Setup> {
    let race = Bounds { outside_ons: 1, ..PLAIN };
    under(
        &Setup { members: Members::SecondJoins, ..base("group that grows", How::Power) },
        &[race],
        &[],
        &[Bounds { handovers: 1, ..race }],
    )
}

/// An owner that replaces what terminates, and a volume without attachment: the mark itself is the release.
pub(crate) fn replacing_owner() -> Vec<Setup> {
    let race = Bounds { outside_ons: 1, ..PLAIN };
    under(
        &Setup { owner: Owner::Replaces, attach: false, ..base("replacing owner", How::Power) },
        &[Bounds { crashes: 1, ..race }, Bounds { handovers: 1, faults: 1, ..race }],
        &[Bounds { handovers: 1, crashes: 1, faults: 1, ..race }],
        &[Bounds { handovers: 2, crashes: 1, ..race }],
    )
}

/// Calls are made by Jobs, which run late, and whose answers everybody sees. The BMC calls a suspended machine off.
pub(crate) fn jobs() -> Vec<Setup> {
    let late = Bounds { resets: 1, attempts: 2, ..PLAIN };
    under(
        &Setup { until: Until::Closed, ..base("jobs", How::PowerByJob) },
        &[Bounds { handovers: 1, resets: 0, ..late }, Bounds { faults: 1, ..late }],
        &[Bounds { handovers: 1, ..late }, Bounds { crashes: 1, faults: 1, ..late }],
        &[Bounds { handovers: 1, faults: 1, ..late }],
    )
}

/// Somebody deletes the Node; the kubelet of the same machine registers it again.
pub(crate) fn node_made_anew() -> Vec<Setup> {
    let anew = Bounds { node_deletions: 1, posts: 1, ..PLAIN };
    let healed = Bounds { heals: 1, ..anew };
    under(
        &base("node made anew", How::Power),
        &[healed],
        &[Bounds { outside_ons: 1, ..anew }],
        &[Bounds { handovers: 1, ..healed }],
    )
}

/// Somebody deletes the Node; another machine comes up under its name and starts whatever is bound to it.
pub(crate) fn node_taken_over() -> Vec<Setup> {
    let taken = Bounds { node_deletions: 1, ..PLAIN };
    under(
        &Setup { successor: Successor::OtherMachine, ..base("node taken over", How::Power) },
        &[taken],
        &[Bounds { outside_ons: 1, ..taken }],
        &[Bounds { handovers: 1, ..taken }],
    )
}

/// The policy asks for the out-of-service taint: pod GC deletes what terminates there, and volumes are detached though they are in use.
pub(crate) fn out_of_service() -> Vec<Setup> {
    let race = Bounds { outside_ons: 1, ..PLAIN };
    under(
        &Setup { besides: Besides::OutOfService, ..base("out of service", How::Power) },
        &[Bounds { crashes: 1, ..race }, Bounds { faults: 1, ..race }],
        &[Bounds { handovers: 1, faults: 1, ..race }, Bounds { crashes: 1, faults: 1, ..race }],
        &[],
    )
}

/// The config asks for the Node to be deleted: whatever is still bound to it goes with it.
pub(crate) fn delete_node() -> Vec<Setup> {
    let race = Bounds { outside_ons: 1, ..PLAIN };
    under(
        &Setup { besides: Besides::DeleteNode, ..base("delete the node", How::Power) },
        &[Bounds { crashes: 1, ..race }, Bounds { faults: 1, ..race }],
        &[Bounds { handovers: 1, faults: 1, ..race }, Bounds { crashes: 1, faults: 1, ..race }],
        &[],
    )
}

/// The smallest world in which the mutations of a release show.
pub(crate) fn for_mutations() -> Setup {
    Setup { bounds: Bounds { handovers: 1, faults: 1, outside_ons: 1, ..PLAIN }, ..base("power", How::Power) }
}

/// The smallest one in which the Job of an earlier attempt shows.
pub(crate) fn for_old_jobs() -> Setup {
    let bounds = Bounds { handovers: 1, resets: 1, attempts: 2, ..PLAIN };
    Setup { until: Until::Closed, bounds, ..base("jobs", How::PowerByJob) }
}

/// Two nodes fail, one slot; each fence gets it once.
pub(crate) const LEDGER: ledger::Bounds =
    ledger::Bounds { operators: 2, crashes: 0, faults: 0, policies: 0, recoveries: 0, fences: 1, attempts: 1 };

/// ... with everything that may go wrong, one at a time.
pub(crate) fn ledger() -> Vec<ledger::Bounds> {
    let plain = LEDGER;
    bounds(
        &[ledger::Bounds { faults: 1, ..plain }],
        &[ledger::Bounds { attempts: 2, ..plain }, ledger::Bounds { crashes: 1, ..plain }],
        &[ledger::Bounds { recoveries: 1, fences: 2, ..plain }],
    )
}

/// ... and a fence that failed takes its slot again.
pub(crate) fn ledger_with_retries() -> Vec<ledger::Bounds> {
    let retries = ledger::Bounds { attempts: 3, ..LEDGER };
    bounds(&[ledger::Bounds { operators: 1, crashes: 1, ..retries }], &[], &[retries])
}

/// ... and the FencePolicy is applied again, with an empty status.
pub(crate) fn ledger_made_anew() -> Vec<ledger::Bounds> {
    let anew = ledger::Bounds { policies: 1, ..LEDGER };
    bounds(&[ledger::Bounds { operators: 1, crashes: 1, ..anew }], &[anew], &[])
}
