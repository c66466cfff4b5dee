//! Oracle: the promises, checked against the truth after every event of nature, every write and every request.
//!
//! Promise: it believes nobody. What machines, storage and BMCs are is read from the truth; what was recorded is read from the
//! store; what an operator thinks is never asked.
//!
//! | promise | file |
//! |---|---|
//! | I1 single writer | `single_writer` |
//! | I2 proof before release | `proof_first`, `order` |
//! | I3 majority guard | `majority` |
//! | I4 exact target | `exact_target` |
//! | I5 intent before effect | `intent_first` |
//! | I6 unknown is not success | `unknown` |
//! | I7 no secret | `secrets` |
//! | I8 liveness | `liveness` |
//! | I9 return safety | `clean_return` |

mod clean_return;
mod exact_target;
mod intent_first;
mod liveness;
mod majority;
mod order;
mod proof_first;
pub(crate) mod secrets;
mod single_writer;
mod unknown;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use palisade_api::NodeFence;
use palisade_api::names::taints;
use palisade_cluster::Cluster;
use palisade_cluster::api::wire::Call;
use palisade_cluster::api::{Change, Kind, Store, metadata};
use palisade_cluster::machines::bmc::Fate;
use palisade_cluster::truth::{Event, Name, Truth, World};
use serde_json::Value;

/// What the oracle found.
#[derive(Clone, Default)]
pub struct Oracle {
    seen: Arc<Mutex<Seen>>,
}

/// What is remembered from one look to the next.
#[derive(Default)]
struct Seen {
    now: Duration,
    found: Vec<String>,
    /// Two writers that no act of ours is among the causes of, as far as can be told.
    unexplained: Vec<String>,
    /// The fences as they stand on record, by node.
    fences: BTreeMap<String, NodeFence>,
    /// Volumes that we took from a node: a pod that had them was marked or removed, or they were detached.
    moved: BTreeSet<Name>,
    /// Nodes that carry Kubernetes' out-of-service taint.
    out_of_service: BTreeSet<String>,
    /// Operators that stand still, or did until lately: what they were about to send may come late.
    stood_still: Option<Duration>,
    /// Until when no watch shows anything.
    watches_until: Option<Duration>,
    /// When all operators could last see again, after a time in which none of them could.
    saw_again: Option<Duration>,
    writers: single_writer::Given,
    majority: majority::Watched,
    power: unknown::LastOff,
    marks: order::Marks,
    /// When the intent to switch a machine on last left the record of its fence.
    switched_on: BTreeMap<String, Duration>,
    /// Nodes whose fence has last failed for a reason that only people can resolve.
    for_people: BTreeSet<String>,
    /// Machines that are off by our command, and how that was carried out.
    told_off: BTreeMap<Name, Fate>,
}

impl Seen {
    fn broken(&mut self, what: String) {
        // The first few tell the story.
        if self.found.len() < 20 && !self.found.contains(&what) {
            self.found.push(what);
        }
    }

    /// Whether no watch shows anything, or did not a moment ago.
    fn watches_stand_still(&self) -> bool {
        const CATCHES_UP: Duration = Duration::from_secs(12);
        self.watches_until.is_some_and(|until| self.now < until + CATCHES_UP)
    }

    /// Whether something that an operator was about to send before it stood still may still arrive: whoever wakes up inside its
    /// own send costs a needless off at worst, and that is written down in the design.
    fn may_be_late(&self) -> bool {
        const WAKES: Duration = Duration::from_secs(10);
        self.stood_still.is_some_and(|until| self.now < until + WAKES)
    }
}

impl Oracle {
    /// Looks on at everything that happens in a cluster.
    pub fn watch(cluster: &Cluster, fences: Option<Kind>) -> Self {
        let oracle = Self::default();
        let (events, writes, truth) = (oracle.clone(), oracle.clone(), cluster.truth().clone());
        oracle.lock().majority = cluster.truth().look(majority::Watched::over);
        cluster.truth().on_event(Box::new(move |world, event| events.event(world, event)));
        cluster.api().on_write(Box::new(move |store, change| writes.write(store, change, fences, &truth)));
        oracle
    }

    /// Everything that was broken so far.
    pub fn found(&self) -> Vec<String> {
        self.lock().found.clone()
    }

    /// Two writers without an act of ours: Kubernetes alone may do that, and whether it does is seen in a run without us.
    pub fn unexplained(&self) -> Vec<String> {
        self.lock().unexplained.clone()
    }

    /// An operator stands still until then.
    pub(crate) fn stands_still(&self, until: Duration) {
        let mut seen = self.lock();
        seen.stood_still = seen.stood_still.max(Some(until));
    }

    /// Until then no watch shows anything.
    pub(crate) fn freeze_watches(&self, until: Duration) {
        let mut seen = self.lock();
        seen.watches_until = seen.watches_until.max(Some(until));
    }

    /// From now on no operator sees anything until then.
    pub(crate) fn go_blind(&self, until: Duration) {
        let mut seen = self.lock();
        seen.saw_again = seen.saw_again.max(Some(until));
    }

    /// Everything was mended: whoever was to be blind for longer sees again.
    pub(crate) fn mended(&self, now: Duration) {
        let mut seen = self.lock();
        seen.saw_again = seen.saw_again.map(|until| until.min(now));
    }

    /// An operator sends a request.
    pub(crate) fn call(&self, call: &Call) {
        exact_target::call(&mut self.lock(), call);
    }

    /// Nothing is wrong any more, and time has passed. What is left over?
    pub fn at_the_end(&self, cluster: &Cluster, fences: Option<Kind>, policies: Option<Kind>) {
        liveness::at_the_end(&mut self.lock(), cluster, fences, policies);
    }

    fn event(&self, world: &World, event: &Event) {
        let mut seen = self.lock();
        let seen = &mut *seen;
        seen.now = world.now;
        single_writer::event(seen, world, event);
        majority::event(seen, world, event);
        intent_first::event(seen, event);
        proof_first::event(seen, event);
        liveness::event(seen, event);
        seen.power.event(event);
    }

    fn write(&self, store: &Store, change: &Change, fences: Option<Kind>, truth: &Truth) {
        let fence = Some(change.key.kind) == fences;
        let ours = ours(change.by.name());
        if !fence && !ours && !matches!(change.key.kind, Kind::NODE | Kind::POD) && *change.key.name != *"cluster" {
            return;
        }
        truth.look(|world| {
            let mut seen = self.lock();
            let seen = &mut *seen;
            seen.now = world.now;
            match change.key.kind {
                Kind::NODE => seen.note_taints(change),
                Kind::POD => order::mark(seen, store, change, world),
                _ => {}
            }
            // A pod that calls a device is ours, and holds nothing.
            if ours && !intent_first::is_pod_of_a_call(seen, change) {
                match change.key.kind {
                    Kind::POD => order::release(seen, store, change, world),
                    Kind::NODE => order::out_of_service(seen, store, change),
                    _ => {}
                }
                proof_first::write(seen, store, change, world);
                intent_first::write(seen, change);
                secrets::write(seen, change);
                clean_return::write(seen, store, change, world);
                majority::request(seen, change);
            }
            majority::policy(seen, change);
            majority::node(seen, change);
            if fence {
                seen.note_fence(change, world);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// A fence was written: what it says now is compared with what it said before.
    fn note_fence(&mut self, change: &Change, world: &World) {
        let node = change.key.name.to_string();
        let new = change.new.as_ref().and_then(|new| serde_json::from_value::<NodeFence>((**new).clone()).ok());
        let old = match &new {
            Some(new) => self.fences.insert(node.clone(), new.clone()),
            None => self.fences.remove(&node),
        };
        let Some(new) = new else {
            liveness::closed(self, &node, old.as_ref(), world);
            return;
        };
        // Another fence of the same name is another fence.
        let old = old.filter(|old| old.metadata.uid == new.metadata.uid);
        intent_first::fence(self, &node, old.as_ref(), &new);
        unknown::fence(self, &node, old.as_ref(), &new, world);
        majority::fence(self, &node, old.as_ref(), &new);
        liveness::fence(self, &node, &new);
    }

    fn note_taints(&mut self, change: &Change) {
        let node = change.key.name.to_string();
        if change.new.as_ref().is_some_and(|new| has_taint(new, taints::OUT_OF_SERVICE)) {
            self.out_of_service.insert(node);
        } else {
            self.out_of_service.remove(&node);
        }
    }
}

/// Whether one of our operators did it.
fn ours(actor: &str) -> bool {
    actor.starts_with("palisade")
}

fn has_taint(node: &Value, key: &str) -> bool {
    let all = node.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    all.iter().any(|taint| taint.get("key").and_then(Value::as_str) == Some(key))
}

/// The volumes that a Node says its kubelet uses.
fn in_use(node: &Value) -> impl Iterator<Item = &str> {
    let all = node.pointer("/status/volumesInUse").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str)
}

/// Whether an object is being deleted.
fn deleting(object: &Value) -> bool {
    object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null())
}

/// The machine that still has a process of this pod in its memory.
fn home_of<'a>(world: &'a World, pod: &str) -> Option<&'a palisade_cluster::machines::machine::Machine> {
    world.machines.values().find(|machine| machine.processes.contains_key(pod))
}

/// What a pod is called, and its UID.
fn called(object: &Value) -> (String, String) {
    (metadata::name(object).to_owned(), metadata::uid(object).to_owned())
}
