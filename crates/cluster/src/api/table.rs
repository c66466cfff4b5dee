//! Tables, as `kubectl get` asks for them: upstream's columns for the kinds that people look at here.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{jsonpath::JsonPath, kinds::Kind, metadata, path::Served, render, render::Include};

/// A column: its title, its type, and 1 if only `-o wide` shows it.
type Column = (&'static str, &'static str, u8);

const NAME: Column = ("Name", "string", 0);
const AGE: Column = ("Age", "string", 0);

/// Objects as a table.
pub(crate) fn table<'a>(
    served: &Served,
    objects: impl IntoIterator<Item = &'a Value>,
    list: &Value,
    include: Include,
    now: Timestamp,
) -> Value {
    let custom = served.definition.custom.as_ref().map(|custom| custom.columns.as_slice());
    let columns: Vec<Value> = match custom {
        Some(own) => custom_columns(own),
        None => columns(served.definition.kind)
            .iter()
            .map(|(name, kind, priority)| column(name, kind, "", *priority))
            .collect(),
    };
    let row = |object: &Value| {
        let cells = match custom {
            Some(own) => custom_cells(own, object, now),
            None => cells(served.definition.kind, object, now),
        };
        let carried = match include {
            Include::Nothing => return json!({"cells": cells}),
            Include::Metadata => render::only_metadata(object),
            Include::Object => render::dressed(served, object).into_owned(),
        };
        json!({"cells": cells, "object": carried})
    };
    json!({
        "kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": list,
        "columnDefinitions": columns, "rows": objects.into_iter().map(row).collect::<Vec<_>>(),
    })
}

fn column(name: &str, kind: &str, description: &str, priority: u8) -> Value {
    let format = if name == "Name" { "name" } else { "" };
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

fn custom_columns(own: &[Value]) -> Vec<Value> {
    let mut columns = vec![column("Name", "string", "", 0)];
    for wish in own {
        let text = |field: &str| wish[field].as_str().unwrap_or_default();
        let priority = u8::try_from(wish["priority"].as_u64().unwrap_or_default()).unwrap_or(1);
        columns.push(column(text("name"), text("type"), text("description"), priority));
    }
    if own.is_empty() {
        columns.push(column("Age", "date", "", 0));
    }
    columns
}

fn custom_cells(own: &[Value], object: &Value, now: Timestamp) -> Vec<Value> {
    let mut cells = vec![json!(metadata::name(object))];
    for wish in own {
        let path = wish["jsonPath"].as_str().and_then(JsonPath::parse);
        let found = path.map(|path| path.follow(object)).unwrap_or_default();
        cells.push(match (wish["type"].as_str(), found.as_slice()) {
            (_, []) => Value::Null,
            (Some("date"), [stamp, ..]) => json!(since(stamp.as_str().unwrap_or_default(), now)),
            (Some("string"), [one]) => json!(shown(one)),
            (Some("string"), many) => json!(many.iter().map(|value| shown(value)).collect::<Vec<_>>().join(",")),
            (_, [first, ..]) => (*first).clone(),
        });
    }
    if own.is_empty() {
        cells.push(json!(age(object, now)));
    }
    cells
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn columns(kind: Kind) -> Vec<Column> {
    let text = |title| (title, "string", 0);
    let wide = |title| (title, "string", 1);
    match kind {
        Kind::NODE => vec![
            NAME,
            text("Status"),
            text("Roles"),
            AGE,
            text("Version"),
            wide("Internal-IP"),
            wide("External-IP"),
            wide("OS-Image"),
            wide("Kernel-Version"),
            wide("Container-Runtime"),
        ],
        Kind::POD => vec![
            NAME,
            text("Ready"),
            text("Status"),
            text("Restarts"),
            AGE,
            wide("IP"),
            wide("Node"),
            wide("Nominated Node"),
            wide("Readiness Gates"),
        ],
        Kind::STATEFUL_SET => vec![NAME, text("Ready"), AGE, wide("Containers"), wide("Images")],
        Kind::REPLICA_SET => vec![NAME, text("Desired"), text("Current"), text("Ready"), AGE],
        Kind::DEPLOYMENT => vec![NAME, text("Ready"), text("Up-to-date"), text("Available"), AGE],
        Kind::JOB => vec![NAME, text("Status"), text("Completions"), AGE],
        Kind::PERSISTENT_VOLUME => vec![
            NAME,
            text("Capacity"),
            text("Access Modes"),
            text("Reclaim Policy"),
            text("Status"),
            text("Claim"),
            text("StorageClass"),
            text("Reason"),
            AGE,
            wide("VolumeMode"),
        ],
        Kind::PERSISTENT_VOLUME_CLAIM => vec![
            NAME,
            text("Status"),
            text("Volume"),
            text("Capacity"),
            text("Access Modes"),
            text("StorageClass"),
            AGE,
            wide("VolumeMode"),
        ],
        Kind::VOLUME_ATTACHMENT => vec![NAME, text("Attacher"), text("PV"), text("Node"), text("Attached"), AGE],
        Kind::LEASE => vec![NAME, text("Holder"), AGE],
        Kind::EVENT => vec![
            text("Last Seen"),
            text("Type"),
            text("Reason"),
            text("Object"),
            text("Message"),
            wide("First Seen"),
            wide("Count"),
            wide("Name"),
        ],
        Kind::NAMESPACE => vec![NAME, text("Status"), AGE],
        Kind::POD_DISRUPTION_BUDGET => {
            vec![NAME, text("Min Available"), text("Max Unavailable"), text("Allowed Disruptions"), AGE]
        }
        Kind::CONFIG_MAP => vec![NAME, text("Data"), AGE],
        Kind::SECRET => vec![NAME, text("Type"), text("Data"), AGE],
        Kind::CUSTOM_RESOURCE_DEFINITION => vec![NAME, text("Created At")],
        _ => vec![NAME, AGE],
    }
}

#[rustfmt::skip] // One kind, one line: it reads as the table that it makes.
fn cells(kind: Kind, object: &Value, now: Timestamp) -> Vec<Value> {
    let text = |pointer: &str| json!(object.pointer(pointer).map(shown).unwrap_or_default());
    let or = |pointer: &str, default: &str| json!(object.pointer(pointer).map_or_else(|| default.to_owned(), shown));
    let count = |pointer: &str| object.pointer(pointer).and_then(Value::as_u64).unwrap_or_default();
    let name = json!(metadata::name(object));
    let age = json!(age(object, now));
    match kind {
        Kind::NODE => vec![name, node_status(object), node_roles(object), age, text("/status/nodeInfo/kubeletVersion"),
            address(object, "InternalIP"), address(object, "ExternalIP"), or("/status/nodeInfo/osImage", "<unknown>"),
            or("/status/nodeInfo/kernelVersion", "<unknown>"), or("/status/nodeInfo/containerRuntimeVersion", "<unknown>")],
        Kind::POD => vec![name, pod_ready(object), json!(pod_status(object)), restarts(object), age,
            or("/status/podIP", "<none>"), or("/spec/nodeName", "<none>"), json!("<none>"), json!("<none>")],
        Kind::STATEFUL_SET => vec![name, json!(format!("{}/{}", count("/status/readyReplicas"), count("/spec/replicas"))), age,
            containers(object, "name"), containers(object, "image")],
        Kind::REPLICA_SET => vec![name, json!(count("/spec/replicas").to_string()), json!(count("/status/replicas").to_string()),
            json!(count("/status/readyReplicas").to_string()), age],
        Kind::DEPLOYMENT => vec![name, json!(format!("{}/{}", count("/status/readyReplicas"), count("/spec/replicas"))),
            json!(count("/status/updatedReplicas").to_string()), json!(count("/status/availableReplicas").to_string()), age],
        Kind::JOB => vec![name, job_status(object),
            json!(format!("{}/{}", count("/status/succeeded"), count("/spec/completions").max(1))), age],
        Kind::PERSISTENT_VOLUME => vec![name, text("/spec/capacity/storage"), access_modes(&object["spec"]),
            text("/spec/persistentVolumeReclaimPolicy"), phase(object), claim(object), text("/spec/storageClassName"),
            text("/status/reason"), age, text("/spec/volumeMode")],
        Kind::PERSISTENT_VOLUME_CLAIM => vec![name, phase(object), text("/spec/volumeName"), text("/status/capacity/storage"),
            access_modes(&object["status"]), text("/spec/storageClassName"), age, text("/spec/volumeMode")],
        Kind::VOLUME_ATTACHMENT => vec![name, text("/spec/attacher"), text("/spec/source/persistentVolumeName"),
            text("/spec/nodeName"), or("/status/attached", "false"), age],
        Kind::LEASE => vec![name, text("/spec/holderIdentity"), age],
        Kind::EVENT => vec![json!(since(&last_seen(object), now)), text("/type"), text("/reason"), json!(subject(object)), text("/message"),
            age, json!(count("/count").max(1).to_string()), name],
        Kind::NAMESPACE => vec![name, text("/status/phase"), age],
        Kind::POD_DISRUPTION_BUDGET => vec![name, or("/spec/minAvailable", "N/A"), or("/spec/maxUnavailable", "N/A"),
            json!(count("/status/disruptionsAllowed").to_string()), age],
        Kind::CONFIG_MAP => vec![name, json!(entries(object)), age],
        Kind::SECRET => vec![name, text("/type"), json!(entries(object)), age],
        Kind::CUSTOM_RESOURCE_DEFINITION => vec![name, text("/metadata/creationTimestamp")],
        _ => vec![name, age],
    }
}

fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object.pointer("/status/conditions")?.as_array()?.iter().find(|condition| condition["type"] == kind)
}

fn node_status(node: &Value) -> Value {
    let mut words = vec![match condition(node, "Ready").and_then(|ready| ready["status"].as_str()) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if node.pointer("/spec/unschedulable") == Some(&json!(true)) {
        words.push("SchedulingDisabled");
    }
    json!(words.join(","))
}

fn node_roles(node: &Value) -> Value {
    let labels = metadata::of(node).get("labels").and_then(Value::as_object);
    let roles: Vec<&str> =
        labels.into_iter().flatten().filter_map(|(key, _)| key.strip_prefix("node-role.kubernetes.io/")).collect();
    json!(if roles.is_empty() { "<none>".to_owned() } else { roles.join(",") })
}

fn address(node: &Value, kind: &str) -> Value {
    let addresses = node.pointer("/status/addresses").and_then(Value::as_array).into_iter().flatten();
    let found = addresses.into_iter().find(|address| address["type"] == kind).map(|address| &address["address"]);
    found.cloned().unwrap_or_else(|| json!("<none>"))
}

fn statuses(pod: &Value) -> impl Iterator<Item = &Value> {
    pod.pointer("/status/containerStatuses").and_then(Value::as_array).into_iter().flatten()
}

fn pod_ready(pod: &Value) -> Value {
    let all = pod.pointer("/spec/containers").and_then(Value::as_array).map_or(0, Vec::len);
    let ready = statuses(pod).filter(|status| status["ready"] == true).count();
    json!(format!("{ready}/{all}"))
}

fn restarts(pod: &Value) -> Value {
    json!(statuses(pod).filter_map(|status| status["restartCount"].as_u64()).sum::<u64>().to_string())
}

fn pod_status(pod: &Value) -> String {
    let text = |pointer: &str| pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let reason = text("/status/reason");
    if metadata::is_deleting(pod) {
        return if reason == "NodeLost" { "Unknown" } else { "Terminating" }.to_owned();
    }
    let of_container = |status: &Value| {
        let waiting = status.pointer("/state/waiting/reason").and_then(Value::as_str);
        let ended = status.pointer("/state/terminated/reason").and_then(Value::as_str);
        waiting.or(ended).map(str::to_owned)
    };
    let plain = if reason.is_empty() { text("/status/phase") } else { reason };
    statuses(pod).find_map(of_container).unwrap_or_else(|| plain.to_owned())
}

fn containers(owner: &Value, field: &str) -> Value {
    let list = owner.pointer("/spec/template/spec/containers").and_then(Value::as_array).into_iter().flatten();
    json!(list.filter_map(|container| container[field].as_str()).collect::<Vec<_>>().join(","))
}

fn job_status(job: &Value) -> Value {
    let holds = |kind: &str| condition(job, kind).is_some_and(|condition| condition["status"] == "True");
    json!(["Complete", "Failed", "Suspended"].into_iter().find(|kind| holds(kind)).unwrap_or("Running"))
}

fn phase(object: &Value) -> Value {
    if metadata::is_deleting(object) { json!("Terminating") } else { object["status"]["phase"].clone() }
}

fn claim(volume: &Value) -> Value {
    let claim = &volume["spec"]["claimRef"];
    match (claim["namespace"].as_str(), claim["name"].as_str()) {
        (Some(namespace), Some(name)) => json!(format!("{namespace}/{name}")),
        _ => json!(""),
    }
}

fn access_modes(part: &Value) -> Value {
    let short = |mode: &Value| match mode.as_str()? {
        "ReadWriteOnce" => Some("RWO"),
        "ReadOnlyMany" => Some("ROX"),
        "ReadWriteMany" => Some("RWX"),
        "ReadWriteOncePod" => Some("RWOP"),
        _ => None,
    };
    json!(part["accessModes"].as_array().into_iter().flatten().filter_map(short).collect::<Vec<_>>().join(","))
}

fn entries(object: &Value) -> usize {
    object["data"].as_object().map_or(0, serde_json::Map::len)
}

fn last_seen(event: &Value) -> String {
    let of = |pointer: &str| event.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let stamps = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime", "/metadata/creationTimestamp"];
    stamps.into_iter().find_map(of).unwrap_or_default()
}

fn subject(event: &Value) -> String {
    let about = &event["involvedObject"];
    let text = |field: &str| about[field].as_str().unwrap_or_default();
    format!("{}/{}", text("kind").to_lowercase(), text("name"))
}

fn age(object: &Value, now: Timestamp) -> String {
    since(metadata::text(object, "creationTimestamp"), now)
}

/// How long ago, as kubectl says it: `45s`, `3m10s`, `5h`, `2d3h`.
fn since(stamp: &str, now: Timestamp) -> String {
    let Ok(then) = stamp.parse::<Timestamp>() else { return "<unknown>".to_owned() };
    let seconds = now.duration_since(then).as_secs().max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let and = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => and(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => and(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if days < 8 => and(days, "d", hours % 24, "h"),
        () => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_told_as_kubectl_tells_them() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        for (then, told) in [
            ("2026-03-10T11:59:15Z", "45s"),
            ("2026-03-10T11:56:50Z", "3m10s"),
            ("2026-03-10T11:00:00Z", "60m"),
            ("2026-03-10T07:00:00Z", "5h"),
            ("2026-03-08T09:00:00Z", "2d3h"),
            ("2026-03-10T12:00:05Z", "0s"),
            ("", "<unknown>"),
        ] {
            assert_eq!(since(then, now), told, "{then}");
        }
    }

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        for definition in crate::api::kinds::Registry::new().all() {
            let kind = definition.kind;
            assert_eq!(cells(kind, &json!({}), now).len(), columns(kind).len(), "{}", definition.name);
        }
    }
}
