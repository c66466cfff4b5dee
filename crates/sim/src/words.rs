//! Words: a write to the API and an event of nature, each as one short line.
//!
//! Promise: pure; what is not in here (heartbeats, renewals, bookkeeping of Kubernetes) is left out on purpose.

use palisade_cluster::api::{Change, metadata};
use palisade_cluster::truth::{Name, What};
use serde_json::Value;

/// A write, told.
pub(crate) struct Written {
    /// The node that it is about; empty if none.
    pub(crate) node: String,
    /// What changed.
    pub(crate) text: String,
    /// What a run has come to with it.
    pub(crate) reached: Vec<String>,
}

/// Facts of an object that a reader wants to see, by name.
type Facts = Vec<(&'static str, String)>;

/// What a write changed; nothing if nobody wants to read it.
pub(crate) fn write(kind: &str, change: &Change) -> Option<Written> {
    if kind == "Event" {
        return None;
    }
    let (old, new) = (change.old.as_deref(), change.new.as_deref());
    let object = new.or(old)?;
    let what = match (old, new) {
        (_, None) => "gone".to_owned(),
        (None, Some(new)) => {
            let known: Vec<String> = shown(facts(kind, new));
            if known.is_empty() { "made".to_owned() } else { format!("made: {}", known.join(", ")) }
        }
        (Some(old), Some(new)) if only_beats(kind, old, new) => return None,
        (Some(old), Some(new)) => {
            let changes = differences(facts(kind, old), facts(kind, new));
            if changes.is_empty() {
                return None;
            }
            changes.join(", ")
        }
    };
    let text = format!("{kind} {}: {what}", change.key.name);
    Some(Written { node: node_of(kind, object), text, reached: reached(kind, old, new) })
}

/// Whether a Node or a Lease says no more than that it is still there, which is what most writes are.
fn only_beats(kind: &str, old: &Value, new: &Value) -> bool {
    let same = |pointers: &[&str]| pointers.iter().all(|pointer| old.pointer(pointer) == new.pointer(pointer));
    let deleting = |object| metadata::is_deleting(object);
    let node = ["/spec", "/status/nodeInfo", "/status/volumesInUse", "/status/volumesAttached"];
    deleting(old) == deleting(new)
        && match kind {
            "Lease" => same(&["/spec/holderIdentity"]),
            "Node" => condition(old, "Ready") == condition(new, "Ready") && same(&node),
            _ => false,
        }
}

/// The facts of an object that say something.
pub(crate) fn shown(facts: Facts) -> Vec<String> {
    facts.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| format!("{name} {value}")).collect()
}

fn differences(old: Facts, new: Facts) -> Vec<String> {
    let changed = old.into_iter().zip(new).filter(|(old, new)| old.1 != new.1);
    let word = |value: String| if value.is_empty() { "-".to_owned() } else { value };
    changed.map(|((name, old), (_, new))| format!("{name} {} -> {}", word(old), word(new))).collect()
}

/// The phases of a fence and of a request, and the moves between them, as they came on record.
fn reached(kind: &str, old: Option<&Value>, new: Option<&Value>) -> Vec<String> {
    let (Some(new), "NodeFence") = (new, kind) else { return Vec::new() };
    let phase = |object: &Value| match text(object, "/status/phase") {
        // Without a status nothing has been done yet.
        "" => "New".to_owned(),
        named => named.to_owned(),
    };
    let to = phase(new);
    match old.map(phase) {
        None => vec![format!("phase/{to}")],
        Some(from) if from != to => vec![format!("phase/{to}"), format!("transition/{from} -> {to}")],
        Some(_) => Vec::new(),
    }
}

fn node_of(kind: &str, object: &Value) -> String {
    match kind {
        "Node" | "NodeFence" => metadata::name(object),
        "Pod" | "VolumeAttachment" | "NodeFencingRequest" => text(object, "/spec/nodeName"),
        _ => "",
    }
    .to_owned()
}

/// What a reader wants to see of an object.
pub(crate) fn facts(kind: &str, object: &Value) -> Facts {
    let text = |pointer: &str| text(object, pointer).to_owned();
    let each = |pointer: &str, show: &dyn Fn(&Value) -> String| {
        let all: Vec<String> = list(object, pointer).iter().map(show).collect();
        all.join(" ")
    };
    let mut facts = match kind {
        "Node" => vec![
            ("Ready", condition(object, "Ready").to_owned()),
            ("taints", each("/spec/taints", &|taint| short(field(taint, "key")).to_owned())),
            ("boot", boot(&text("/status/nodeInfo/bootID"))),
            ("inUse", each("/status/volumesInUse", &|name| short(name.as_str().unwrap_or_default()).to_owned())),
            ("attached", each("/status/volumesAttached", &|one| short(field(one, "name")).to_owned())),
            ("cordoned", flag(object, "/spec/unschedulable")),
        ],
        "Pod" => vec![
            ("on", text("/spec/nodeName")),
            ("phase", text("/status/phase")),
            ("Ready", condition(object, "Ready").to_owned()),
            ("grace", metadata::grace(object).map(|grace| grace.to_string()).unwrap_or_default()),
        ],
        "VolumeAttachment" => vec![
            ("of", text("/spec/source/persistentVolumeName")),
            ("to", text("/spec/nodeName")),
            ("attached", flag(object, "/status/attached")),
        ],
        "NodeFence" => vec![
            ("phase", text("/status/phase")),
            ("reason", text("/status/reason")),
            ("attempt", number(object, "/status/attempt")),
            ("slot", text("/status/slot")),
            ("grant", number(object, "/status/grant")),
            (
                "isolations",
                each("/status/isolations", &|one| format!("{}:{}", field(one, "method"), field(one, "state"))),
            ),
            ("proofs", each("/status/proofs", &proof)),
            ("releases", each("/status/releases", &|one| format!("{}:{}", field(one, "podName"), field(one, "state")))),
            ("stopped", flag(object, "/status/stopped")),
            ("requests", number_of(object, "/spec/requests")),
        ],
        "NodeFencingRequest" => vec![
            ("for", text("/spec/nodeName")),
            ("phase", text("/status/phase")),
            ("reason", text("/status/reason")),
            ("result", text("/status/result")),
        ],
        "FencePolicy" => vec![
            ("slots", each("/status/entries", &|one| format!("{}#{}", field(one, "node"), number(one, "/grant")))),
            ("ledger", if object.pointer("/status/policyUID").is_some() { "built".to_owned() } else { String::new() }),
        ],
        "Lease" => vec![("holder", text("/spec/holderIdentity"))],
        _ => vec![("phase", text("/status/phase"))],
    };
    facts.push(("deleting", if metadata::is_deleting(object) { "yes".to_owned() } else { String::new() }));
    facts
}

fn proof(proof: &Value) -> String {
    let ended = text(proof, "/ended/reason");
    if ended.is_empty() {
        field(proof, "class").to_owned()
    } else {
        format!("{}(ended:{ended})", field(proof, "class"))
    }
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn field<'a>(object: &'a Value, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn flag(object: &Value, pointer: &str) -> String {
    let set = object.pointer(pointer).and_then(Value::as_bool).unwrap_or_default();
    if set { "yes".to_owned() } else { String::new() }
}

fn number(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_u64).map(|number| number.to_string()).unwrap_or_default()
}

fn number_of(object: &Value, pointer: &str) -> String {
    list(object, pointer).len().to_string()
}

fn condition<'a>(object: &'a Value, kind: &str) -> &'a str {
    let found = list(object, "/status/conditions").iter().find(|condition| field(condition, "type") == kind);
    found.map(|condition| field(condition, "status")).unwrap_or_default()
}

/// The last part of a name that has a path before it.
fn short(name: &str) -> &str {
    name.rsplit(['/', '^']).next().unwrap_or(name)
}

/// Which boot it is: the part of the ID that counts them, in this cluster.
fn boot(id: &str) -> String {
    id.get(19..23).unwrap_or(id).to_owned()
}

/// The pod that an event is about, by UID.
pub(crate) fn pod_of(what: &What) -> Option<&Name> {
    match what {
        What::Started { pod, .. } | What::Ended { pod, .. } => Some(pod),
        What::CanWrite { writer, .. } | What::CannotWrite { writer, .. } | What::Flushed { writer, .. } => {
            Some(&writer.pod)
        }
        What::Power { .. }
        | What::Kubelet { .. }
        | What::Lags { .. }
        | What::Link { .. }
        | What::Published { .. }
        | What::Unpublished { .. }
        | What::Fenced { .. }
        | What::Unfenced { .. }
        | What::Told { .. }
        | What::Daemon { .. }
        | What::Outlet { .. } => None,
    }
}

/// Whose doing an event of nature is, and the event in words; `pod` is the one that it is about.
pub(crate) fn event(what: &What, pod: &str) -> (String, String) {
    let of = |node: &Name| node.to_string();
    let storage = || "storage".to_owned();
    match what {
        What::Power { node, was, is, boot: id } => {
            let boot = id.as_deref().map(|id| format!(", boot {}", boot(id))).unwrap_or_default();
            (of(node), format!("power {was:?} -> {is:?}{boot}"))
        }
        What::Kubelet { node, is } => (of(node), format!("kubelet {is:?}")),
        What::Lags { node, behind: Some(revision) } => (of(node), format!("kubelet lists from revision {revision}")),
        What::Lags { node, behind: None } => (of(node), "kubelet lists freshly again".to_owned()),
        What::Link { node, link, up } => (of(node), format!("link {link:?} {}", if *up { "up" } else { "down" })),
        What::Started { node, .. } => (of(node), format!("process of {pod} started")),
        What::Ended { node, exit, .. } => (of(node), format!("process of {pod} ended: {exit:?}")),
        What::CanWrite { volume, writer } => (of(&writer.node), format!("{pod} can write to {volume}")),
        What::CannotWrite { volume, writer } => (of(&writer.node), format!("{pod} cannot write to {volume} any more")),
        What::Flushed { volume, writer, since } => {
            (of(&writer.node), format!("{pod} flushed to {volume} what it held since {:.3}", since.as_secs_f64()))
        }
        What::Published { volume, node } => (storage(), format!("{volume} published to {node}")),
        What::Unpublished { volume, node } => (storage(), format!("{volume} unpublished from {node}")),
        What::Fenced { node, .. } => (storage(), format!("refuses {node}")),
        What::Unfenced { node, .. } => (storage(), format!("no longer refuses {node}")),
        What::Told { node, command } => {
            (format!("bmc-{node}"), format!("was told {:?}: {:?}", command.switch, command.fate))
        }
        What::Daemon { daemon, is } => (format!("{daemon:?}"), format!("{is:?}")),
        What::Outlet { pdu, outlet, on } => (of(pdu), format!("outlet {outlet} {}", if *on { "on" } else { "off" })),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_changed_is_told() {
        let old = json!({"metadata": {"name": "n1"}, "status": {"phase": "Isolating", "slot": "Held", "attempt": 1}});
        let new = json!({"metadata": {"name": "n1"}, "status": {"phase": "Isolated", "slot": "Held", "attempt": 1}});
        assert_eq!(differences(facts("NodeFence", &old), facts("NodeFence", &new)), ["phase Isolating -> Isolated"]);
        assert!(differences(facts("NodeFence", &old), facts("NodeFence", &old)).is_empty());
        assert_eq!(
            reached("NodeFence", Some(&old), Some(&new)),
            ["phase/Isolated", "transition/Isolating -> Isolated"]
        );
    }

    #[test]
    fn a_heartbeat_is_no_news_and_a_renewal_neither() {
        let beat = |at: &str| json!({"status": {"conditions": [{"type": "Ready", "status": "True", "lastHeartbeatTime": at}]}});
        assert!(differences(facts("Node", &beat("1")), facts("Node", &beat("2"))).is_empty());
        let renewal = |at: &str| json!({"spec": {"holderIdentity": "n1", "renewTime": at}});
        assert!(differences(facts("Lease", &renewal("1")), facts("Lease", &renewal("2"))).is_empty());
    }
}
