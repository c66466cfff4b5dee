//! What a write to a built-in kind has to satisfy, as far as somebody in this cluster could get it wrong.

use serde_json::{Value, json};

use super::{kinds::Kind, metadata, status::Cause};

/// The name has to fit into a DNS name.
pub(crate) fn name(object: &Value) -> Option<Cause> {
    let name = metadata::name(object);
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last())
    };
    if name.len() <= 253 && name.split('.').all(label) {
        return None;
    }
    let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
               start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
               '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    Some(Cause::invalid("metadata.name", &name.into(), why))
}

/// Who is being deleted gets no new finalizers.
pub(crate) fn finalizers(old: &Value, new: &Value) -> Vec<Cause> {
    if !metadata::is_deleting(old) {
        return Vec::new();
    }
    let known: Vec<&str> = metadata::finalizers(old).collect();
    let added: Vec<&str> = metadata::finalizers(new).filter(|name| !known.contains(name)).collect();
    if added.is_empty() {
        return Vec::new();
    }
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
    );
    vec![Cause::forbidden("metadata.finalizers", &why)]
}

/// The rules of one kind.
pub(crate) fn built_in(kind: Kind, old: Option<&Value>, new: &Value) -> Vec<Cause> {
    match (kind, old) {
        (Kind::NODE, _) => taints(new),
        (Kind::POD, Some(old)) => pod_update(old, new),
        (Kind::POD, None) if new.pointer("/spec/containers").and_then(Value::as_array).is_none_or(Vec::is_empty) => {
            vec![Cause::required("spec.containers", "")]
        }
        (Kind::VOLUME_ATTACHMENT, Some(old)) if old["spec"] != new["spec"] => {
            vec![Cause::invalid("spec", &new["spec"], "field is immutable")]
        }
        (Kind::SECRET | Kind::CONFIG_MAP, Some(old)) if old["immutable"] == true && old["data"] != new["data"] => {
            vec![Cause::forbidden("data", "field is immutable when `immutable` is set")]
        }
        _ => Vec::new(),
    }
}

/// A taint is known by its key and its effect.
fn taints(node: &Value) -> Vec<Cause> {
    let mut seen = Vec::new();
    let mut wrong = Vec::new();
    for (index, taint) in node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let field = format!("spec.taints[{index}]");
        let identity = (taint["key"].as_str().unwrap_or_default(), taint["effect"].as_str().unwrap_or_default());
        if identity.0.is_empty() {
            wrong.push(Cause::required(format!("{field}.key"), "name part must be non-empty"));
        }
        if !matches!(identity.1, "NoSchedule" | "PreferNoSchedule" | "NoExecute") {
            let effects = [json!("NoSchedule"), json!("PreferNoSchedule"), json!("NoExecute")];
            wrong.push(Cause::unsupported(format!("{field}.effect"), &taint["effect"], &effects));
        }
        if seen.contains(&identity) {
            wrong.push(Cause::duplicate(field, taint));
        }
        seen.push(identity);
    }
    wrong
}

/// What runs is not rewritten: only a few fields of a pod's spec may change.
fn pod_update(old: &Value, new: &Value) -> Vec<Cause> {
    let mut allowed = new["spec"].clone();
    let before = &old["spec"];
    for field in ["activeDeadlineSeconds", "tolerations"] {
        if let Some(spec) = allowed.as_object_mut() {
            match before.get(field) {
                Some(value) => drop(spec.insert(field.to_owned(), value.clone())),
                None => drop(spec.remove(field)),
            }
        }
    }
    for list in ["containers", "initContainers"] {
        let count = before.get(list).and_then(Value::as_array).map_or(0, Vec::len);
        for index in 0..count {
            let image = before[list][index].get("image").cloned();
            if let (Some(image), Some(container)) = (image, allowed.pointer_mut(&format!("/{list}/{index}"))) {
                container["image"] = image;
            }
        }
    }
    let mut wrong = Vec::new();
    if allowed != *before {
        let why = "pod updates may not change fields other than `spec.containers[*].image`,\
                   `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to \
                   existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                   previously negative)";
        wrong.push(Cause::forbidden("spec", why));
    }
    let tolerations = |pod: &Value| pod.pointer("/spec/tolerations").and_then(Value::as_array).cloned();
    let kept = tolerations(new).unwrap_or_default();
    if tolerations(old).unwrap_or_default().iter().any(|toleration| !kept.contains(toleration)) {
        wrong.push(Cause::forbidden(
            "spec.tolerations",
            "existing toleration can not be modified except its tolerationSeconds",
        ));
    }
    wrong
}

/// To a built-in kind, null and nothing are the same.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_into_dns() {
        for good in ["n1", "a.b-c.d", "0"] {
            assert_eq!(name(&json!({"metadata": {"name": good}})), None, "{good}");
        }
        for bad in ["N1", "-a", "a-", "a..b", "a_b", "a/b"] {
            assert!(name(&json!({"metadata": {"name": bad}})).is_some(), "{bad}");
        }
    }

    #[test]
    fn a_taint_stands_once() {
        let taint = json!({"key": "k", "value": "1", "effect": "NoSchedule"});
        let other = json!({"key": "k", "value": "1", "effect": "NoExecute"});
        assert_eq!(taints(&json!({"spec": {"taints": [taint, other]}})), []);
        let wrong = taints(&json!({"spec": {"taints": [taint, other, taint]}}));
        assert_eq!(wrong[0].field, "spec.taints[2]");
    }

    #[test]
    fn a_pod_keeps_its_spec_but_for_its_image() {
        let old = json!({"spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "a"}]}});
        let mut new = old.clone();
        new["spec"]["containers"][0]["image"] = json!("b");
        assert_eq!(pod_update(&old, &new), []);
        new["spec"]["nodeName"] = json!("n2");
        assert_eq!(pod_update(&old, &new)[0].field, "spec");
    }
}
