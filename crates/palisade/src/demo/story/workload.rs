//! Story / workload: what Kubernetes does with the pod, its volume and the nodes.

use serde_json::Value;

use super::{Beat, Cast, Room, Written, list, ready, text};
use crate::demo::split::Mark;

/// The database's pod: marked, made again, bound, ready.
pub(super) fn pod(write: &Written<'_>, cast: &Cast) -> Vec<Beat> {
    let (Some(new), name) = (write.new, write.name) else { return Vec::new() };
    let node = text(new, "/spec/nodeName");
    if write.old.is_none() {
        return vec![write.beat(Room::Moved, format!("{name} is made again by its StatefulSet"))];
    }
    let mut beats = Vec::new();
    // Palisade's own mark is told by its fence.
    let unmarked = write.old.is_some_and(|old| text(old, "/metadata/deletionTimestamp").is_empty());
    if unmarked && write.changed("/metadata/deletionTimestamp").is_some() && !write.by.starts_with("palisade") {
        let words = format!("{name} is told to end by {}, and does when its node hears of it", write.by);
        beats.push(write.beat(Room::Kubernetes, words));
    }
    if write.changed("/spec/nodeName").is_some() {
        let line = write.beat(Room::Moved, format!("{name} is bound to {node}"));
        beats.push(line.marks_if(node != cast.home, Mark::Scheduled));
    }
    match (write.old.map(ready), ready(new)) {
        (Some("True"), "True") => {}
        (_, "True") => {
            let line = write.beat(Room::Moved, format!("{name} runs on {node}"));
            beats.push(line.marks_if(node != cast.home, Mark::Running));
        }
        (Some("True"), _) => {
            beats.push(write.beat(Room::Kubernetes, format!("{name} is no longer ready, says {}", write.by)));
        }
        _ => {}
    }
    beats
}

/// The database's volume: detached and attached.
pub(super) fn attachment(write: &Written<'_>, cast: &Cast) -> Vec<Beat> {
    let Some(object) = write.new.or(write.old) else { return Vec::new() };
    if text(object, "/spec/source/persistentVolumeName") != cast.pv {
        return Vec::new();
    }
    let node = text(object, "/spec/nodeName");
    if write.new.is_none() {
        return vec![write.beat(Room::Moved, format!("the volume is detached from {node}"))];
    }
    let attached = |object: Option<&Value>| object.is_some_and(|object| object["status"]["attached"] == true);
    if attached(write.new) && !attached(write.old) {
        return vec![write.beat(Room::Moved, format!("the volume is attached to {node}"))];
    }
    Vec::new()
}

/// Nodes: readiness, and the taints that matter.
pub(super) fn node(write: &Written<'_>) -> Vec<Beat> {
    let (Some(new), Some(old), name) = (write.new, write.old, write.name) else { return Vec::new() };
    let mut beats = Vec::new();
    match (ready(old), ready(new)) {
        (was, is) if was == is => {}
        (_, "True") => beats.push(write.beat(Room::Returned, format!("{name} is Ready"))),
        (_, is) => {
            let words = format!("{name} is NotReady ({is}): the control plane has noticed");
            beats.push(write.beat(Room::Kubernetes, words));
        }
    }
    if evicts(new) && !evicts(old) {
        beats.push(write.beat(Room::Kubernetes, format!("{name} is unreachable: its pods are evicted in 300 s")));
    }
    beats
}

fn evicts(node: &Value) -> bool {
    let unreachable = |taint: &Value| {
        text(taint, "/effect") == "NoExecute" && text(taint, "/key") == "node.kubernetes.io/unreachable"
    };
    list(node, "/spec/taints").iter().any(unreachable)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn cast() -> Cast {
        let words = ["n3", "db-0", "pv-1", "vol-1"].map(str::to_owned);
        let [home, pod, pv, volume] = words;
        Cast { home, pod, pv, volume }
    }

    fn written<'a>(name: &'a str, by: &'a str, old: Option<&'a Value>, new: Option<&'a Value>) -> Written<'a> {
        Written { at: Duration::from_secs(3), by, name, old, new }
    }

    fn pod_on(node: &str, is_ready: bool) -> Value {
        let status = if is_ready { "True" } else { "False" };
        json!({
            "metadata": {}, "spec": { "nodeName": node },
            "status": { "conditions": [{ "type": "Ready", "status": status }] },
        })
    }

    #[test]
    fn a_pod_is_bound_and_runs_elsewhere() {
        let (unbound, bound, runs) = (pod_on("", false), pod_on("n4", false), pod_on("n4", true));
        let told = pod(&written("db-0", "kube-scheduler", Some(&unbound), Some(&bound)), &cast());
        assert_eq!((told[0].text.as_str(), told[0].mark), ("db-0 is bound to n4", Some(Mark::Scheduled)));
        let told = pod(&written("db-0", "system:node:n4", Some(&bound), Some(&runs)), &cast());
        assert_eq!((told[0].text.as_str(), told[0].mark), ("db-0 runs on n4", Some(Mark::Running)));
    }

    #[test]
    fn a_pod_that_comes_back_where_it_was_is_no_failover() {
        let (waits, runs) = (pod_on("n3", false), pod_on("n3", true));
        let told = pod(&written("db-0", "system:node:n3", Some(&waits), Some(&runs)), &cast());
        assert_eq!((told[0].text.as_str(), told[0].mark), ("db-0 runs on n3", None));
    }

    #[test]
    fn only_the_eviction_of_others_is_told_here() {
        let alive = pod_on("n3", true);
        let mut marked = alive.clone();
        marked["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
        assert!(pod(&written("db-0", "palisade-0", Some(&alive), Some(&marked)), &cast()).is_empty());
        let told = pod(&written("db-0", "taint-eviction-controller", Some(&alive), Some(&marked)), &cast());
        assert_eq!(told[0].room, Room::Kubernetes);
        let mut ended = marked.clone();
        ended["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:30Z".into();
        assert!(pod(&written("db-0", "system:node:n3", Some(&marked), Some(&ended)), &cast()).is_empty(), "told once");
    }

    #[test]
    fn only_the_databases_volume_is_followed() {
        let object = |pv: &str, attached: bool| {
            json!({
                "spec": { "nodeName": "n4", "source": { "persistentVolumeName": pv } }, "status": { "attached": attached },
            })
        };
        let (before, after) = (object("pv-1", false), object("pv-1", true));
        let told = attachment(&written("csi-x", "csi-attacher", Some(&before), Some(&after)), &cast());
        assert_eq!(told[0].text, "the volume is attached to n4");
        assert!(attachment(&written("csi-x", "csi-attacher", Some(&after), Some(&after)), &cast()).is_empty());
        let other = object("pv-2", true);
        assert!(attachment(&written("csi-y", "csi-attacher", Some(&other), None), &cast()).is_empty());
    }

    #[test]
    fn a_node_is_told_when_its_word_changes() {
        let with = |status: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": status }] } });
        let (good, lost) = (with("True"), with("Unknown"));
        assert!(node(&written("n3", "x", Some(&good), Some(&good))).is_empty());
        assert_eq!(node(&written("n3", "x", Some(&good), Some(&lost)))[0].room, Room::Kubernetes);
        assert_eq!(node(&written("n3", "x", Some(&lost), Some(&good)))[0].text, "n3 is Ready");
    }
}
