//! I2: nothing is released before it cannot write any more: no pod is removed (or marked, where the mark is the release) while a
//! machine still has its process in memory, no volume is detached while a process has it, no machine is told on while its Node
//! is out of service.

use std::time::Duration;

use palisade_cluster::api::{Change, Key, Kind, Store, metadata};
use palisade_cluster::machines::machine::{Machine, Switch};
use palisade_cluster::truth::{Event, Name, What, World};
use palisade_cluster::volumes;
use serde_json::Value;

use super::{Seen, called, deleting, has_taint, home_of, in_use};
use palisade_api::names::taints;

/// Whoever has worked for so long, and reaches the API server, was heard by everybody who listens.
const HEARD: Duration = Duration::from_secs(25);

pub(super) fn write(seen: &mut Seen, store: &Store, change: &Change, world: &World) {
    match change.key.kind {
        Kind::POD => pod(seen, store, change, world),
        Kind::NODE => node(seen, change, world),
        Kind::VOLUME_ATTACHMENT => attachment(seen, store, change, world),
        _ => {}
    }
}

pub(super) fn event(seen: &mut Seen, event: &Event) {
    if let What::Told { node, command } = &event.what
        && command.switch == Switch::On
        && seen.out_of_service.contains(&**node)
    {
        seen.broken(format!("I2: {node} was told on while its Node is out of service"));
    }
}

fn pod(seen: &mut Seen, store: &Store, change: &Change, world: &World) {
    let Some(old) = &change.old else { return };
    let (name, uid) = called(old);
    let marked = !deleting(old) && change.new.as_ref().is_some_and(|new| deleting(new));
    if marked || change.new.is_none() {
        let taken = volumes::handles_of(store, old);
        seen.moved.extend(taken);
    }
    let what = match &change.new {
        None => "removed",
        Some(_) if marked && replaces(old) => "marked, which lets its owner make another,",
        Some(_) => return,
    };
    if let Some(machine) = home_of(world, &uid) {
        let (machine, power) = (Name::clone(&machine.name), machine.power);
        seen.broken(format!("I2: {name} was {what} while {machine} ({power:?}) has it in memory"));
    }
}

/// Whether the owner makes another pod as soon as this one is marked.
fn replaces(pod: &Value) -> bool {
    let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
    let kind = owners.and_then(|owners| owners.first()).and_then(|owner| owner.get("kind")).and_then(Value::as_str);
    !matches!(kind, None | Some("StatefulSet"))
}

fn node(seen: &mut Seen, change: &Change, world: &World) {
    let Some(old) = &change.old else { return };
    let name = &*change.key.name;
    let Some(machine) = world.machines.get(name) else { return };
    let Some(new) = &change.new else {
        if !machine.processes.is_empty() {
            seen.broken(format!("I2: the Node {name} was deleted while pods are in its memory"));
        }
        return;
    };
    for volume in in_use(old).filter(|volume| !in_use(new).any(|left| left == *volume)) {
        let handle = volume.rsplit('^').next().unwrap_or_default();
        seen.moved.insert(handle.into());
        if has(machine, handle) {
            seen.broken(format!("I2: {handle} was taken out of volumesInUse of {name} while a pod there has it"));
        } else if seen.majority.well_for(name, world.now) > HEARD && !seen.may_be_late() {
            seen.broken(format!("I2: {handle} was taken out of volumesInUse of {name} while its kubelet is heard"));
        }
    }
    if !has_taint(old, taints::OUT_OF_SERVICE)
        && has_taint(new, taints::OUT_OF_SERVICE)
        && !machine.processes.is_empty()
    {
        seen.broken(format!("I2: {name} was put out of service while pods are in its memory"));
    }
}

fn attachment(seen: &mut Seen, store: &Store, change: &Change, world: &World) {
    let Some(old) = change.old.as_ref().filter(|old| !deleting(old)) else { return };
    if change.new.as_ref().is_some_and(|new| !deleting(new)) {
        return;
    }
    let text = |pointer: &str| old.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let pv = store.get(&Key::cluster(Kind::PERSISTENT_VOLUME, text("/spec/source/persistentVolumeName")));
    let handle = pv.and_then(|pv| pv.pointer("/spec/csi/volumeHandle")).and_then(Value::as_str).unwrap_or_default();
    seen.moved.insert(handle.into());
    let node = text("/spec/nodeName");
    if world.machines.get(node).is_some_and(|machine| has(machine, handle)) {
        let name = metadata::name(old);
        seen.broken(format!("I2: the attachment {name} of {handle} was deleted while a pod on {node} has it"));
    }
}

fn has(machine: &Machine, volume: &str) -> bool {
    machine.processes.values().any(|process| process.mounts.contains_key(volume))
}
