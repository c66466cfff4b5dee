//! How controllers read Kubernetes' objects: the few questions that several of them ask.
//!
//! Promise: an object that lacks something reads as if it said nothing, never as an error: whoever wrote it may be wrong.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    api::{Kind, metadata},
    clock::seconds,
};

/// What is somewhere in an object. As `Value::pointer`, which makes two strings for each step on the way: this is asked
/// a hundred thousand times a minute.
pub(crate) fn at<'a>(object: &'a Value, pointer: &str) -> Option<&'a Value> {
    pointer.split('/').skip(1).try_fold(object, |place, step| match place {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        _ => None,
    })
}

/// A text somewhere in an object; empty if it is not there.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    at(object, pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A number somewhere in an object.
pub(crate) fn number(object: &Value, pointer: &str) -> Option<u64> {
    at(object, pointer).and_then(Value::as_u64)
}

/// A switch somewhere in an object; off if it is not there.
pub(crate) fn flag(object: &Value, pointer: &str) -> bool {
    at(object, pointer).and_then(Value::as_bool).unwrap_or_default()
}

/// The items of a list somewhere in an object.
pub(crate) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    at(object, pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The map at a place, made if it is not there.
pub(crate) fn map_at<'a>(object: &'a mut Value, path: &[&str]) -> &'a mut Value {
    path.iter().fold(object, |place, step| {
        if !place.is_object() {
            *place = json!({});
        }
        &mut place[*step]
    })
}

/// The list at a place, made if it is not there.
pub(crate) fn list_at<'a>(object: &'a mut Value, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    let place = map_at(object, path);
    if !place.is_array() {
        *place = json!([]);
    }
    place.as_array_mut()
}

/// A condition of an object's status.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    items(object, "/status/conditions").find(|condition| condition["type"] == kind)
}

/// What a condition says: `True`, `False`, `Unknown`, or nothing.
pub(crate) fn says<'a>(object: &'a Value, kind: &str) -> &'a str {
    condition(object, kind).map(|condition| text(condition, "/status")).unwrap_or_default()
}

/// Writes a condition; the time of its last change stays while its status does.
pub(crate) fn set_condition(object: &mut Value, now: Timestamp, said: &[(&str, &str)]) {
    let Some(conditions) = list_at(object, &["status", "conditions"]) else { return };
    let kind = said.iter().find(|(field, _)| *field == "type").map_or("", |(_, kind)| kind);
    let place = conditions.iter().position(|condition| condition["type"] == kind).unwrap_or_else(|| {
        conditions.push(json!({}));
        conditions.len() - 1
    });
    let condition = &mut conditions[place];
    let before = text(condition, "/status").to_owned();
    for (field, value) in said {
        condition[*field] = (*value).into();
    }
    if before != text(condition, "/status") {
        condition["lastTransitionTime"] = seconds(now).into();
    }
}

/// Whether a Node says that it is ready.
pub(crate) fn is_ready(object: &Value) -> bool {
    says(object, "Ready") == "True"
}

/// Whether a pod has ended for good.
pub(crate) fn is_finished(pod: &Value) -> bool {
    matches!(text(pod, "/status/phase"), "Failed" | "Succeeded")
}

/// The taints of a Node.
pub(crate) fn taints(node: &Value) -> impl Iterator<Item = &Value> {
    items(node, "/spec/taints")
}

/// Whether a Node has a taint with that key, whatever its effect.
pub(crate) fn has_taint(node: &Value, key: &str) -> bool {
    taints(node).any(|taint| taint["key"] == key)
}

/// Whether a toleration is about a taint (upstream's `ToleratesTaint`).
pub(crate) fn tolerates(toleration: &Value, taint: &Value) -> bool {
    let (key, effect) = (text(toleration, "/key"), text(toleration, "/effect"));
    let value_fits = match text(toleration, "/operator") {
        "Exists" => true,
        "" | "Equal" => text(toleration, "/value") == text(taint, "/value"),
        _ => false,
    };
    (effect.is_empty() || effect == text(taint, "/effect"))
        && (key.is_empty() || key == text(taint, "/key"))
        && value_fits
}

/// The owner that looks after an object.
pub(crate) fn controller(object: &Value) -> Option<&Value> {
    items(object, "/metadata/ownerReferences").find(|owner| flag(owner, "/controller"))
}

/// The UID of that owner, if it is of that kind.
pub(crate) fn controlled_by<'a>(object: &'a Value, kind: &str) -> Option<&'a str> {
    controller(object).filter(|owner| owner["kind"] == kind).map(|owner| text(owner, "/uid"))
}

/// A reference to an owner that looks after its dependents.
pub(crate) fn owner_reference(owner: &Value) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata::name(owner),
        "uid": metadata::uid(owner), "controller": true, "blockOwnerDeletion": true,
    })
}

/// Whether a label selector picks something with these labels. An empty one picks everything.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let none = Map::new();
    let wanted = selector.get("matchLabels").and_then(Value::as_object).unwrap_or(&none);
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
        && items(selector, "/matchExpressions").all(|wish| fulfils(wish, labels.get(text(wish, "/key"))))
}

/// Whether a value fulfils an expression of a label or node selector.
pub(crate) fn fulfils(wish: &Value, value: Option<&Value>) -> bool {
    let listed = || value.is_some_and(|value| items(wish, "/values").any(|one| one == value));
    match text(wish, "/operator") {
        "In" => listed(),
        "NotIn" => !listed(),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        _ => false,
    }
}

/// The labels of an object.
pub(crate) fn labels(object: &Value) -> &Value {
    at(object, "/metadata/labels").unwrap_or(&Value::Null)
}

/// An annotation's value; empty if it is not there.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> &'a str {
    metadata::of(object).get("annotations").and_then(|all| all.get(key)).and_then(Value::as_str).unwrap_or_default()
}

/// The kind of an owner reference, if it is one that controllers here look after.
pub(crate) fn workload_kind(owner: &Value) -> Option<Kind> {
    match text(owner, "/kind") {
        "StatefulSet" => Some(Kind::STATEFUL_SET),
        "ReplicaSet" => Some(Kind::REPLICA_SET),
        "Job" => Some(Kind::JOB),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_toleration_without_a_key_tolerates_everything_of_its_effect() {
        let taint = json!({"key": "k", "value": "v", "effect": "NoExecute"});
        assert!(tolerates(&json!({"operator": "Exists"}), &taint));
        assert!(tolerates(&json!({"key": "k", "operator": "Equal", "value": "v"}), &taint));
        assert!(!tolerates(&json!({"key": "k", "value": "other"}), &taint));
        assert!(!tolerates(&json!({"operator": "Exists", "effect": "NoSchedule"}), &taint));
    }

    #[test]
    fn selectors_join_their_wishes() {
        let labels = json!({"app": "db", "tier": "gold"});
        assert!(selects(&json!({}), &labels));
        assert!(selects(&json!({"matchLabels": {"app": "db"}}), &labels));
        let not_gold = json!({"key": "tier", "operator": "NotIn", "values": ["gold"]});
        assert!(!selects(&json!({"matchLabels": {"app": "db"}, "matchExpressions": [not_gold]}), &labels));
    }

    #[test]
    fn a_condition_remembers_when_it_last_changed() {
        let mut node = json!({});
        let first: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let later: Timestamp = "2026-03-01T12:05:00Z".parse().unwrap();
        set_condition(&mut node, first, &[("type", "Ready"), ("status", "True")]);
        set_condition(&mut node, later, &[("type", "Ready"), ("status", "True"), ("reason", "Still")]);
        assert_eq!(condition(&node, "Ready").unwrap()["lastTransitionTime"], "2026-03-01T12:00:00Z");
        set_condition(&mut node, later, &[("type", "Ready"), ("status", "Unknown")]);
        assert_eq!(condition(&node, "Ready").unwrap()["lastTransitionTime"], "2026-03-01T12:05:00Z");
    }
}
