//! Oracle: the promises, checked against the truth after every event and every write.
//!
//! | promise | asked here |
//! |---|---|
//! | I1 | no volume that is not ReadWriteMany ever has two nodes that can write to it |
//! | I2 | when we remove a pod, take a volume out of `volumesInUse` or delete an attachment, nothing on that node writes to it |
//! | I3 | fences that hold a slot and cut off or release never exceed the budget |
//! | I5 | a BMC is told something only when a fence has that on record |
//! | I8 | when faults stop, everything is released and back, or held with a reason; nothing leaks |
//! | I9 | our taint goes only when no process of a released pod is left on the node |

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use palisade_api::names::{labels, taints};
use palisade_cluster::Cluster;
use palisade_cluster::api::{Change, Kind, Store, metadata};
use palisade_cluster::truth::{Event, Truth, What, World};
use serde_json::Value;

/// What the oracle found.
#[derive(Clone, Default)]
pub struct Oracle {
    found: Arc<Mutex<Vec<String>>>,
    /// Nodes whose fences have a power isolation on record.
    intended: Arc<Mutex<BTreeSet<String>>>,
}

impl Oracle {
    /// Looks on at everything that happens in a cluster.
    pub fn watch(cluster: &Cluster, fences: Option<Kind>) -> Self {
        let oracle = Self::default();
        let (events, writes, truth) = (oracle.clone(), oracle.clone(), cluster.truth().clone());
        cluster.truth().on_event(Box::new(move |world, event| events.event(world, event)));
        cluster.api().on_write(Box::new(move |store, change| writes.write(store, change, fences, &truth)));
        oracle
    }

    /// Everything that was broken so far.
    pub fn found(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn broken(&self, what: String) {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        if found.len() < 20 && !found.contains(&what) {
            found.push(what);
        }
    }

    fn event(&self, world: &World, event: &Event) {
        for volume in world.volumes_with_two_writers() {
            let who: Vec<String> =
                world.writers(&volume).iter().map(|writer| format!("{} (pod {})", writer.node, writer.pod)).collect();
            self.broken(format!("I1: {volume} has two writers: {}", who.join(", ")));
        }
        if let What::Told { node, command } = &event.what {
            let intended = self.intended.lock().unwrap_or_else(PoisonError::into_inner);
            if !intended.contains(&**node) {
                self.broken(format!("I5: the BMC of {node} was told {command:?}, and no record intends it"));
            }
        }
    }

    fn write(&self, store: &Store, change: &Change, fences: Option<Kind>, truth: &Truth) {
        if Some(change.key.kind) == fences {
            self.fence(store, change, fences);
        }
        if !change.by.name().starts_with("palisade") {
            return;
        }
        if change.key.kind == Kind::POD
            && change.new.is_none()
            && let Some(old) = &change.old
        {
            let uid = metadata::uid(old);
            truth.look(|world| {
                let home = world.machines.values().find(|machine| machine.processes.contains_key(uid));
                if let Some(machine) = home.filter(|machine| machine.power.runs()) {
                    self.broken(format!("I2: {} was removed while it runs on {}", change.key.name, machine.name));
                }
            });
        }
        if change.key.kind == Kind::NODE
            && let (Some(old), Some(new)) = (&change.old, &change.new)
        {
            self.untainted(store, change, old, new, fences, truth);
        }
    }

    /// I3, and what is on record for I5.
    fn fence(&self, store: &Store, change: &Change, fences: Option<Kind>) {
        let node = change.key.name.to_string();
        let text = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
        let power = change.new.as_ref().is_some_and(|new| {
            let all = new.pointer("/status/isolations").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            all.iter().any(|one| text(one, "/kind").as_deref() == Some("Power"))
        });
        if power {
            self.intended.lock().unwrap_or_else(PoisonError::into_inner).insert(node);
        }
        let Some(kind) = fences else { return };
        let acting = store.list(kind).filter(|(_, fence)| {
            let phase = text(fence, "/status/phase").unwrap_or_default();
            text(fence, "/status/slot").as_deref() == Some("Held")
                && matches!(phase.as_str(), "Isolating" | "Isolated" | "PoweringOff")
        });
        let acting: Vec<String> = acting.map(|(key, _)| key.name.to_string()).collect();
        if acting.len() > 1 {
            self.broken(format!("I3: {} act at once under a budget of one", acting.join(" and ")));
        }
    }

    /// I9: our taint went.
    fn untainted(&self, store: &Store, change: &Change, old: &Value, new: &Value, fences: Option<Kind>, truth: &Truth) {
        let ours = |node: &Value| {
            let all = node.pointer("/spec/taints").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            all.iter().any(|taint| taint.get("key").and_then(Value::as_str) == Some(taints::QUARANTINE))
        };
        if !ours(old) || ours(new) {
            return;
        }
        let Some(kind) = fences else { return };
        let released: BTreeSet<String> = store
            .list(kind)
            .filter(|(key, _)| key.name == change.key.name)
            .filter_map(|(_, fence)| fence.pointer("/status/releases").and_then(Value::as_array).cloned())
            .flatten()
            .filter_map(|release| release.get("podUID").and_then(Value::as_str).map(str::to_owned))
            .collect();
        truth.look(|world| {
            let Some(machine) = world.machines.get(&*change.key.name) else { return };
            if let Some(left) = machine.processes.keys().find(|uid| released.contains(&***uid)) {
                self.broken(format!("I9: {} was let back in with the released pod {left} still on it", machine.name));
            }
        });
    }

    /// I8: nothing is wrong any more, and time has passed. What is left over?
    pub fn at_the_end(&self, cluster: &Cluster, fences: Option<Kind>, policies: Option<Kind>) {
        let Some(fences) = fences else { return };
        for fence in cluster.api().list(fences) {
            let text = |pointer: &str| fence.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
            self.broken(format!(
                "I8: the fence of {} is still there: {} {} ({})",
                metadata::name(&fence),
                text("/status/phase"),
                text("/status/reason"),
                text("/status/message")
            ));
        }
        for node in cluster.api().list(Kind::NODE) {
            let all = node.pointer("/spec/taints").and_then(Value::as_array).cloned().unwrap_or_default();
            if all.iter().any(|taint| taint.get("key").and_then(Value::as_str) == Some(taints::QUARANTINE)) {
                self.broken(format!("I8: {} keeps our taint", metadata::name(&node)));
            }
        }
        for policy in policies.map(|kind| cluster.api().list(kind)).unwrap_or_default() {
            let left = policy.pointer("/status/inFlight").and_then(Value::as_u64).unwrap_or(0);
            if left > 0 {
                self.broken(format!("I8: {left} slots of the ledger are still taken"));
            }
        }
        for pod in cluster.api().list(Kind::POD) {
            let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
            let stateful =
                metadata::label(&pod, "app").is_some() && metadata::label(&pod, labels::MANAGED_BY).is_none();
            if stateful && phase != "Running" {
                self.broken(format!("I8: {} is {phase}", metadata::name(&pod)));
            }
        }
    }
}
