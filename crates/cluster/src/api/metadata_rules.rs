//! What `metadata` of any object has to satisfy: labels, annotations, owners, finalizers, and what never changes.

use serde_json::Value;

use super::{
    metadata,
    status::{Cause, Status},
};

/// Finalizers that need no domain.
const STANDARD: [&str; 3] = ["orphan", "foregroundDeletion", "kubernetes"];
/// What only a deletion may set.
const OF_DELETION: [&str; 2] = ["deletionTimestamp", "deletionGracePeriodSeconds"];

/// Everything that is wrong with an object's own metadata.
pub(super) fn check(object: &Value, is_custom: bool) -> Vec<Cause> {
    let mut wrong = Vec::new();
    for (key, value) in entries(object, "labels") {
        wrong.extend(qualified_name("metadata.labels", key));
        let text = value.as_str().unwrap_or_default();
        if !is_label(text) {
            let why = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
                       must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', \
                       regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
            wrong.push(Cause::invalid("metadata.labels", value, why));
        }
    }
    for (key, _) in entries(object, "annotations") {
        // Upstream compares the lower case: an annotation may have upper case in its domain.
        wrong.extend(qualified_name("metadata.annotations", &key.to_lowercase()));
    }
    wrong.extend(owners(object));
    if !is_custom {
        let unqualified = |name: &str| !name.contains('/') && !STANDARD.contains(&name);
        for (index, name) in metadata::finalizers(object).enumerate().filter(|(_, name)| unqualified(name)) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            wrong.push(Cause::invalid(format!("metadata.finalizers[{index}]"), &name.into(), why));
        }
    }
    wrong
}

/// What upstream warns of in a custom object, where it refuses a built-in one.
pub(super) fn warnings(object: &Value) -> Vec<String> {
    let unqualified = metadata::finalizers(object).filter(|name| !name.contains('/') && !STANDARD.contains(name));
    let warn = |name: &str| {
        format!(
            "metadata.finalizers: {name:?}: prefer a domain-qualified finalizer name to avoid accidental conflicts with \
             other finalizer writers"
        )
    };
    unqualified.map(warn).collect()
}

/// What is wrong with a change.
pub(super) fn check_update(old: &Value, new: &Value) -> Vec<Cause> {
    let mut wrong = Vec::new();
    for field in OF_DELETION {
        let (before, after) = (metadata::of(old).get(field), metadata::of(new).get(field));
        // What is left out stays as it was.
        if let Some(after) = after.filter(|after| !after.is_null() && Some(*after) != before) {
            wrong.push(Cause::invalid(format!("metadata.{field}"), after, "field is immutable"));
        }
    }
    wrong
}

/// An update or a patch is about the object of its path.
pub(super) fn same_place(old: &Value, new: &Value) -> Result<(), Status> {
    let (name, stated) = (metadata::name(old), metadata::name(new));
    if !stated.is_empty() && stated != name {
        let why = format!("the name of the object ({stated}) does not match the name on the URL ({name})");
        return Err(Status::bad_request(why));
    }
    let stated = metadata::namespace(new);
    if !stated.is_empty() && stated != metadata::namespace(old) {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why));
    }
    Ok(())
}

/// An empty list and an empty map say nothing, and are not shown.
pub(super) fn tidy(object: &mut Value) {
    for field in ["labels", "annotations", "finalizers", "ownerReferences"] {
        let is_empty = match metadata::of(object).get(field) {
            Some(Value::Array(list)) => list.is_empty(),
            Some(Value::Object(map)) => map.is_empty(),
            Some(Value::Null) => true,
            _ => false,
        };
        if is_empty {
            metadata::remove(object, field);
        }
    }
}

/// A name with an optional domain before it, such as the key of a label or of a taint.
pub(super) fn qualified_name(field: &str, key: &str) -> Option<Cause> {
    let (domain, name) = key.split_once('/').map_or((None, key), |(domain, name)| (Some(domain), name));
    let fits = !name.is_empty() && is_label(name) && domain.is_none_or(super::rules::is_subdomain);
    let why = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
               alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
               '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
    (!fits).then(|| Cause::invalid(field, &key.into(), why))
}

fn owners(object: &Value) -> Vec<Cause> {
    let owners = metadata::of(object).get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    let (mut wrong, mut controllers) = (Vec::new(), 0);
    for owner in owners {
        for (field, why) in [
            ("apiVersion", "version must not be empty"),
            ("kind", "must not be empty"),
            ("name", "must not be empty"),
            ("uid", "must not be empty"),
        ] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                wrong.push(Cause::invalid(format!("metadata.ownerReferences.{field}"), &"".into(), why));
            }
        }
        controllers += usize::from(owner["controller"] == true);
    }
    if controllers > 1 {
        let list = &metadata::of(object)["ownerReferences"];
        let why = "Only one reference can have Controller set to true. Found \"true\" in references";
        wrong.push(Cause::invalid("metadata.ownerReferences", list, why));
    }
    wrong
}

fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let edge = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    bytes.len() <= 63 && bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last())
}

fn entries<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    metadata::of(object).get(field).and_then(Value::as_object).into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn labels_and_their_keys_are_of_a_kind() {
        let told = |labels: Value| check(&json!({"metadata": {"labels": labels}}), true).len();
        for good in [json!({"a": "b"}), json!({"palisade.dev/a_b": ""}), json!({"A.b-c": "1.2_3"})] {
            assert_eq!(told(good.clone()), 0, "{good}");
        }
        for bad in
            [json!({"a": "b c"}), json!({"a b": "c"}), json!({"A/b": "c"}), json!({"a": "-"}), json!({"/a": "b"})]
        {
            assert_eq!(told(bad.clone()), 1, "{bad}");
        }
    }
}
