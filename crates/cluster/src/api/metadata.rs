//! `metadata` of an object: the fields that the API server itself reads and writes.

use serde_json::{Map, Value, json};

/// `metadata`; of a broken object an empty one.
pub fn of(object: &Value) -> &Map<String, Value> {
    static NONE: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    object.get("metadata").and_then(Value::as_object).unwrap_or(&NONE)
}

/// A text of `metadata`; empty if it is not there.
pub fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    of(object).get(field).and_then(Value::as_str).unwrap_or_default()
}

/// `metadata.name`.
pub fn name(object: &Value) -> &str {
    text(object, "name")
}

/// `metadata.namespace`; empty for objects of the cluster.
pub fn namespace(object: &Value) -> &str {
    text(object, "namespace")
}

/// `metadata.uid`.
pub fn uid(object: &Value) -> &str {
    text(object, "uid")
}

/// `metadata.resourceVersion` as the number that it is here; 0 if there is none.
pub fn revision(object: &Value) -> u64 {
    text(object, "resourceVersion").parse().unwrap_or_default()
}

/// Whether somebody asked for the object's deletion.
pub fn is_deleting(object: &Value) -> bool {
    of(object).get("deletionTimestamp").is_some_and(|stamp| !stamp.is_null())
}

/// `metadata.deletionGracePeriodSeconds`.
pub fn grace(object: &Value) -> Option<i64> {
    of(object).get("deletionGracePeriodSeconds").and_then(Value::as_i64)
}

/// `metadata.finalizers`.
pub fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    of(object).get("finalizers").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

/// A label's value.
pub fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    of(object).get("labels")?.get(key)?.as_str()
}

/// Sets a field of `metadata`.
pub fn set(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(metadata) = of_mut(object) {
        metadata.insert(field.to_owned(), value.into());
    }
}

/// Removes a field of `metadata`.
pub fn remove(object: &mut Value, field: &str) {
    if let Some(metadata) = of_mut(object) {
        metadata.remove(field);
    }
}

/// Copies a field of `metadata`, or its absence.
pub(crate) fn copy(from: &Value, to: &mut Value, field: &str) {
    match of(from).get(field) {
        Some(value) => set(to, field, value.clone()),
        None => remove(to, field),
    }
}

pub(crate) fn generation(object: &Value) -> i64 {
    of(object).get("generation").and_then(Value::as_i64).unwrap_or_default()
}

fn of_mut(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let object = object.as_object_mut()?;
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    if !metadata.is_object() {
        *metadata = json!({});
    }
    metadata.as_object_mut()
}
