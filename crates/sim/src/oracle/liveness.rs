//! I8: when faults have stopped and time has passed, every node is back, every pod runs, and nothing of ours is left over; or
//! the node is held for a reason that only a person can resolve, and says so.

use std::collections::BTreeSet;

use palisade_api::NodeFence;
use palisade_api::fence::FencePhase;
use palisade_api::names::{GROUP, annotations, labels, taints};
use palisade_cluster::Cluster;
use palisade_cluster::api::{Kind, Object, metadata};
use palisade_cluster::machines::bmc::Fate;
use palisade_cluster::machines::machine::{Machine, Power, Switch};
use palisade_cluster::truth::{Event, Name, What, World};
use serde_json::Value;

use super::{Seen, has_taint};

/// A machine that may have hibernated before anybody looked can be proven by nobody: a person has to vouch, or switch it on.
const FOR_PEOPLE: &[&str] = &["CannotTellHibernated"];

/// So many failures within an hour are too many by the default policy.
const FLAPS: usize = 3;

/// Which machines are off by our command. One that has run since, whoever switched it on, and is off again is so by another's
/// doing; but a command that is carried out late may still be what did it.
pub(super) fn event(seen: &mut Seen, event: &Event) {
    match &event.what {
        What::Told { node, command } => match (command.switch, command.fate) {
            (Switch::ForceOff, Fate::Done | Fate::Late) => {
                seen.told_off.insert(Name::clone(node), command.fate);
            }
            (Switch::ForceOff, Fate::Ignored | Fate::Refused | Fate::Lost) => {}
            (Switch::On | Switch::GracefulOff | Switch::Restart, _) => {
                seen.told_off.remove(node);
            }
        },
        What::Power { node, is: Power::On, .. } if seen.told_off.get(node) == Some(&Fate::Done) => {
            seen.told_off.remove(node);
        }
        _ => {}
    }
}

/// A fence is gone: it must not leave a machine off that we switched off.
pub(super) fn closed(seen: &mut Seen, node: &str, fence: Option<&NodeFence>, world: &World) {
    seen.for_people.remove(node);
    // Off for people, and then its Node deleted: whoever does both takes the machine away.
    let taken_away = fence.is_some_and(|fence| {
        let asked = fence.spec.requests.iter().any(|request| request.name.starts_with("admin-"));
        asked && world.machines.contains_key(node) && fence.status.as_ref().is_some_and(|status| status.end.is_some())
    });
    let off = world.machines.get(node).is_some_and(|machine| machine.power == Power::Off);
    if seen.told_off.remove(node).is_some() && off && !taken_away {
        seen.broken(format!("I8: the fence of {node} is gone, and the machine that it switched off is still off"));
    }
}

pub(super) fn at_the_end(seen: &mut Seen, cluster: &Cluster, fences: Option<Kind>, policies: Option<Kind>) {
    let text =
        |object: &Value, pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let requests =
        cluster.api().kind(GROUP, "NodeFencingRequest").map(|kind| cluster.api().list(kind)).unwrap_or_default();
    // A node that failed so often within an hour is a person's task by the default policy, and nothing more is begun.
    let flaps = |node: &str| {
        let by_us = |request: &&Object| request.pointer("/spec/trigger").is_some();
        requests.iter().filter(by_us).filter(|request| text(request, "/spec/nodeName") == node).count() >= FLAPS
    };
    let mut held = BTreeSet::new();
    for fence in fences.map(|kind| cluster.api().list(kind)).unwrap_or_default() {
        if seen.for_people.contains(metadata::name(&fence)) || waits_for_people(seen, cluster, &fence) {
            held.insert(metadata::name(&fence).to_owned());
            continue;
        }
        if text(&fence, "/status/end") == "HeldOff" && by_a_person(&fence) {
            // As somebody asked.
            held.insert(metadata::name(&fence).to_owned());
            continue;
        }
        if matches!(text(&fence, "/status/phase").as_str(), "" | "New") && flaps(metadata::name(&fence)) {
            held.insert(metadata::name(&fence).to_owned());
            continue;
        }
        seen.broken(format!(
            "I8: the fence of {} is still there: {} {} ({})",
            metadata::name(&fence),
            text(&fence, "/status/phase"),
            text(&fence, "/status/reason"),
            text(&fence, "/status/message")
        ));
    }
    for request in &requests {
        let phase = text(request, "/status/phase");
        let node = text(request, "/spec/nodeName");
        if phase != "Completed"
            && phase != "Rejected"
            && !held.contains(&node)
            && !(phase == "Held" && flaps(&node) && text(request, "/status/reason") == "Flapping")
        {
            let (name, reason) = (metadata::name(request), text(request, "/status/reason"));
            seen.broken(format!("I8: the request {name} is not answered: {phase} {reason}"));
        }
    }
    for node in cluster.api().list(Kind::NODE) {
        let name = metadata::name(&node);
        if held.contains(name) {
            continue;
        }
        for key in [taints::QUARANTINE, taints::OUT_OF_SERVICE] {
            if has_taint(&node, key) {
                seen.broken(format!("I8: {name} keeps the taint {key}"));
            }
        }
        if node.pointer("/spec/unschedulable").and_then(Value::as_bool) == Some(true) {
            seen.broken(format!("I8: {name} stays cordoned"));
        }
    }
    jobs_left_over(seen, cluster, &held);
    for policy in policies.map(|kind| cluster.api().list(kind)).unwrap_or_default() {
        let left = policy.pointer("/status/inFlight").and_then(Value::as_u64).unwrap_or(0);
        // Whoever tries once more, slowly, has a slot for that time.
        if left > u64::try_from(seen.for_people.len()).unwrap_or(0) {
            seen.broken(format!("I8: {left} slots of the ledger are still taken"));
        }
    }
    cluster.truth().look(|world| {
        let back = |machine: &&Machine| machine.power == Power::On || held.contains(&*machine.name);
        for machine in world.machines.values().filter(|machine| !back(machine)) {
            let (name, power) = (machine.name.to_string(), machine.power);
            seen.broken(format!("I8: {name} is {power:?}"));
        }
    });
    let pods = cluster.api().list(Kind::POD);
    for set in [Kind::STATEFUL_SET, Kind::REPLICA_SET].into_iter().flat_map(|kind| cluster.api().list(kind)) {
        let wanted = set.pointer("/spec/replicas").and_then(Value::as_u64).unwrap_or(1);
        let owned = |pod: &&Object| {
            let owners = pod.pointer("/metadata/ownerReferences").and_then(Value::as_array);
            owners.is_some_and(|owners| owners.iter().any(|owner| owner["uid"] == metadata::uid(&set)))
        };
        let there = pods.iter().filter(owned).count();
        if u64::try_from(there).unwrap_or(u64::MAX) < wanted && held.is_empty() {
            seen.broken(format!("I8: {} has {there} of {wanted} pods", metadata::name(&set)));
        }
    }
    let known = cluster.api().list(Kind::NODE).len();
    if known < seen.majority.size() {
        seen.broken(format!("I8: of {} machines {known} have a Node", seen.majority.size()));
    }
    // What a node that is left to people still has, nobody else can have.
    let kept: BTreeSet<String> =
        pods.iter().filter(|pod| held.contains(&text(pod, "/spec/nodeName"))).flat_map(|pod| claims(pod)).collect();
    for pod in &pods {
        let phase = text(pod, "/status/phase");
        let stateful = metadata::label(pod, "app").is_some() && metadata::label(pod, labels::MANAGED_BY).is_none();
        let waits = held.contains(&text(pod, "/spec/nodeName")) || claims(pod).iter().any(|claim| kept.contains(claim));
        if stateful && phase != "Running" && !waits {
            seen.broken(format!("I8: {} is {phase}", metadata::name(pod)));
        }
    }
}

/// Whether a call of this fence may still be made by a pod on a node that is left to people: while nobody knows, nothing is sent that it
/// could cross.
fn waits_for_people(seen: &Seen, cluster: &Cluster, fence: &Value) -> bool {
    let over =
        |pod: &Object| matches!(pod.pointer("/status/phase").and_then(Value::as_str), Some("Succeeded" | "Failed"));
    let node = |pod: &Object| pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default().to_owned();
    let its = |pod: &Object| metadata::label(pod, labels::FENCE_UID) == Some(metadata::uid(fence));
    cluster.api().list(Kind::POD).iter().any(|pod| its(pod) && !over(pod) && seen.for_people.contains(&node(pod)))
}

/// A fence takes its Jobs with it; one that people have to end keeps them as long.
fn jobs_left_over(seen: &mut Seen, cluster: &Cluster, held: &BTreeSet<String>) {
    for job in cluster.api().list(Kind::JOB) {
        let of_fence = metadata::label(&job, labels::FENCE_UID).is_some();
        let of = job["metadata"]["annotations"][annotations::TARGET_NODE].as_str().unwrap_or_default();
        if of_fence && !held.contains(of) {
            seen.broken(format!("I8: the Job {} for {of} is left over", metadata::name(&job)));
        }
    }
}

/// Which fences have last failed for a reason that only people can resolve. Such a one is tried again, slowly, and may be in the middle
/// of that when the run ends.
pub(super) fn fence(seen: &mut Seen, node: &str, new: &NodeFence) {
    let Some(status) = &new.status else { return };
    match status.phase {
        FencePhase::Failed if status.reason.as_deref().is_some_and(|why| FOR_PEOPLE.contains(&why)) => {
            seen.for_people.insert(node.to_owned());
        }
        FencePhase::New | FencePhase::Isolating => {}
        _ => {
            seen.for_people.remove(node);
        }
    }
}

/// Whether somebody asked for this fence, and not we.
fn by_a_person(fence: &Value) -> bool {
    let requests = fence.pointer("/spec/requests").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    requests.iter().any(|request| request["name"].as_str().is_some_and(|name| name.starts_with("admin-")))
}

/// The claims of a pod.
fn claims(pod: &Value) -> Vec<String> {
    let volumes = pod.pointer("/spec/volumes").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let claim = |volume: &Value| volume.pointer("/persistentVolumeClaim/claimName")?.as_str().map(str::to_owned);
    volumes.iter().filter_map(claim).collect()
}
