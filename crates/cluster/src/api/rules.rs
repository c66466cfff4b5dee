//! What a write to a built-in kind has to satisfy, as far as somebody in this cluster could get it wrong.

use serde_json::{Value, json};

use super::{kinds::Kind, metadata, metadata_rules::qualified_name, status::Cause};

/// The name has to fit into a DNS name.
pub(crate) fn name(object: &Value) -> Option<Cause> {
    subdomain("metadata.name", metadata::name(object))
}

fn subdomain(field: &str, name: &str) -> Option<Cause> {
    let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
               start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
               '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    (!is_subdomain(name)).then(|| Cause::invalid(field, &name.into(), why))
}

/// Whether a text fits into a DNS name.
pub(super) fn is_subdomain(name: &str) -> bool {
    let inner = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let edge = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let label = |label: &str| {
        let bytes = label.as_bytes();
        bytes.iter().all(inner) && edge(bytes.first()) && edge(bytes.last())
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// Whether a body can be read at all: times with microseconds have all six digits.
pub(crate) fn readable(kind: Kind, object: &Value) -> Result<(), String> {
    let places: &[&str] = match kind {
        Kind::LEASE => &["/spec/acquireTime", "/spec/renewTime"],
        Kind::EVENT => &["/eventTime"],
        _ => return Ok(()),
    };
    for text in places.iter().filter_map(|place| object.pointer(place)?.as_str()) {
        let rest = text.get("2006-01-02T15:04:05".len()..).unwrap_or_default();
        let digits = rest.bytes().skip(1).take_while(u8::is_ascii_digit).count();
        if !rest.starts_with('.') || digits != 6 {
            let layout = "2006-01-02T15:04:05.000000Z07:00";
            return Err(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as \".000000\""));
        }
    }
    Ok(())
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
        (Kind::VOLUME_ATTACHMENT, None) => attachment(new),
        (Kind::PERSISTENT_VOLUME_CLAIM, Some(old)) => claim_update(old, new),
        (Kind::LEASE, _) => lease(new),
        (Kind::EVENT, None) => event(new),
        (Kind::SECRET | Kind::CONFIG_MAP, Some(old)) if old["immutable"] == true && old["data"] != new["data"] => {
            vec![Cause::forbidden("data", "field is immutable when `immutable` is set")]
        }
        _ => Vec::new(),
    }
}

fn attachment(attachment: &Value) -> Vec<Cause> {
    let text = |pointer| attachment.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let nameless = text("/spec/attacher").is_empty().then(|| Cause::required("spec.attacher", ""));
    nameless.into_iter().chain(subdomain("spec.nodeName", text("/spec/nodeName"))).collect()
}

/// What a claim asks for stays, but for its size, and for the volume that it was given.
fn claim_update(old: &Value, new: &Value) -> Vec<Cause> {
    let asked = |claim: &Value| {
        let mut spec = claim["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("resources");
            spec.remove("volumeName");
        }
        spec
    };
    let given = &old["spec"]["volumeName"];
    if asked(old) == asked(new) && (given.is_null() || *given == new["spec"]["volumeName"]) {
        return Vec::new();
    }
    let why =
        "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    vec![Cause::forbidden("spec", why)]
}

fn lease(lease: &Value) -> Vec<Cause> {
    let spec = &lease["spec"];
    let below = |field: &str, least: i64| spec[field].as_i64().is_some_and(|number| number < least);
    let mut wrong = Vec::new();
    if below("leaseDurationSeconds", 1) {
        let value = &spec["leaseDurationSeconds"];
        wrong.push(Cause::invalid("spec.leaseDurationSeconds", value, "must be greater than 0"));
    }
    if below("leaseTransitions", 0) {
        let value = &spec["leaseTransitions"];
        wrong.push(Cause::invalid("spec.leaseTransitions", value, "must be greater than or equal to 0"));
    }
    wrong
}

/// An Event lives where its subject does; those about the cluster's objects live in `default`.
fn event(event: &Value) -> Vec<Cause> {
    let subject = event.pointer("/involvedObject/namespace").and_then(Value::as_str).unwrap_or_default();
    let home = if subject.is_empty() { "default" } else { subject };
    if home == metadata::namespace(event) || (subject.is_empty() && metadata::namespace(event) == "kube-system") {
        return Vec::new();
    }
    vec![Cause::invalid("involvedObject.namespace", &subject.into(), "does not match event.namespace")]
}

/// A taint is known by its key and its effect.
fn taints(node: &Value) -> Vec<Cause> {
    let mut seen = Vec::new();
    let mut wrong = Vec::new();
    for (index, taint) in node.pointer("/spec/taints").and_then(Value::as_array).into_iter().flatten().enumerate() {
        // Upstream says metadata, though they stand in the spec.
        let field = format!("metadata.taints[{index}]");
        let identity = (taint["key"].as_str().unwrap_or_default(), taint["effect"].as_str().unwrap_or_default());
        wrong.extend(qualified_name(&format!("{field}.key"), identity.0));
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
        assert_eq!(wrong[0].field, "metadata.taints[2]");
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
