//! What the API server fills in for built-in kinds. Only what somebody in this cluster reads.

use serde_json::{Map, Value, json};

use super::{
    kinds::{Definition, Kind},
    metadata, secret,
};

/// Fills in a new object.
pub(crate) fn on_create(definition: &Definition, object: &mut Value) {
    on_update(definition, object);
    match definition.kind {
        Kind::NAMESPACE => {
            lay_under(object, &json!({"spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}));
            let label = json!({"kubernetes.io/metadata.name": metadata::name(object)});
            lay_under(object, &json!({"metadata": {"labels": label}}));
        }
        Kind::POD => {
            lay_under(object, &json!({"status": {"phase": "Pending", "qosClass": "BestEffort"}}));
            tolerate_for_a_while(object);
        }
        Kind::PERSISTENT_VOLUME | Kind::PERSISTENT_VOLUME_CLAIM => {
            lay_under(object, &json!({"status": {"phase": "Pending"}}));
        }
        Kind::VOLUME_ATTACHMENT => lay_under(object, &json!({"status": {"attached": false}})),
        Kind::STATEFUL_SET | Kind::REPLICA_SET | Kind::DEPLOYMENT => {
            lay_under(object, &json!({"status": {"replicas": 0}}));
        }
        Kind::JOB => name_job_pods(object),
        Kind::NODE => take_no_pods_yet(object),
        _ => {}
    }
}

/// Fills in an object after every change: what was left out, or has been taken out.
pub(crate) fn on_update(definition: &Definition, object: &mut Value) {
    match definition.kind {
        Kind::POD => pod_spec(object.get_mut("spec"), "Always"),
        Kind::STATEFUL_SET => {
            let spec = json!({"replicas": 1, "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}}});
            lay_under(object, &json!({"spec": spec}));
            pod_spec(object.pointer_mut("/spec/template/spec"), "Always");
        }
        Kind::REPLICA_SET | Kind::DEPLOYMENT => {
            lay_under(object, &json!({"spec": {"replicas": 1}}));
            pod_spec(object.pointer_mut("/spec/template/spec"), "Always");
        }
        Kind::DAEMON_SET => pod_spec(object.pointer_mut("/spec/template/spec"), "Always"),
        Kind::JOB => {
            let spec = json!({"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
                "podReplacementPolicy": "TerminatingOrFailed"});
            lay_under(object, &json!({"spec": spec}));
            pod_spec(object.pointer_mut("/spec/template/spec"), "Never");
        }
        Kind::PERSISTENT_VOLUME => {
            lay_under(
                object,
                &json!({"spec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}}),
            );
        }
        Kind::PERSISTENT_VOLUME_CLAIM => lay_under(object, &json!({"spec": {"volumeMode": "Filesystem"}})),
        Kind::STORAGE_CLASS => {
            lay_under(object, &json!({"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}));
        }
        Kind::CSI_DRIVER => lay_under(object, &json!({"spec": {"attachRequired": true, "podInfoOnMount": false}})),
        Kind::SECRET => {
            lay_under(object, &json!({"type": "Opaque"}));
            secret::keep_text(object);
        }
        Kind::NODE => {
            // To a built-in kind, no, none and nothing are the same.
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                spec.retain(|field, value| match field.as_str() {
                    "unschedulable" => *value != json!(false),
                    "taints" => *value != json!([]),
                    _ => true,
                });
            }
        }
        Kind::SERVICE => lay_under(object, &json!({"spec": {"type": "ClusterIP", "sessionAffinity": "None"}})),
        _ => {}
    }
}

fn pod_spec(spec: Option<&mut Value>, restart: &str) {
    let Some(spec) = spec else { return };
    let defaults = json!({
        "restartPolicy": restart, "terminationGracePeriodSeconds": 30, "dnsPolicy": "ClusterFirst",
        "schedulerName": "default-scheduler", "securityContext": {},
    });
    lay_under(spec, &defaults);
}

/// The admission plugin DefaultTolerationSeconds: five minutes on a node that is gone.
fn tolerate_for_a_while(pod: &mut Value) {
    let Some(spec) = pod.get_mut("spec").and_then(Value::as_object_mut) else { return };
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let said = |toleration: &Value| {
            let text = |field| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            matches!(text("key"), "" | "node.kubernetes.io/not-ready" | "node.kubernetes.io/unreachable")
                && (text("key").is_empty() || text("key") == key)
                && matches!(text("effect"), "" | "NoExecute")
        };
        if !tolerations.iter().any(said) {
            tolerations
                .push(json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}));
        }
    }
}

/// The admission plugin TaintNodesByCondition: until somebody has looked at a new Node, it is taken for not ready.
fn take_no_pods_yet(node: &mut Value) {
    let taint = json!({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"});
    if !node["spec"].is_object() {
        node["spec"] = json!({});
    }
    let taints = &mut node["spec"]["taints"];
    match taints.as_array_mut() {
        Some(list) if list.iter().any(|known| known["key"] == taint["key"] && known["effect"] == taint["effect"]) => {}
        Some(list) => list.push(taint),
        None => *taints = json!([taint]),
    }
}

/// A Job finds its pods by its own UID.
fn name_job_pods(job: &mut Value) {
    if job.pointer("/spec/manualSelector") == Some(&json!(true)) {
        return;
    }
    let (uid, name) = (metadata::uid(job).to_owned(), metadata::name(job).to_owned());
    let labels = json!({
        "batch.kubernetes.io/controller-uid": uid, "controller-uid": uid,
        "batch.kubernetes.io/job-name": name, "job-name": name,
    });
    let selector = json!({"matchLabels": {"batch.kubernetes.io/controller-uid": uid}});
    lay_under(job, &json!({"spec": {"selector": selector, "template": {"metadata": {"labels": labels}}}}));
}

/// Adds what is missing, and changes nothing that is there.
fn lay_under(value: &mut Value, defaults: &Value) {
    if value.is_null() {
        *value = defaults.clone();
        return;
    }
    if let (Value::Object(fields), Value::Object(defaults)) = (value, defaults) {
        for (name, default) in defaults {
            lay_under(entry(fields, name), default);
        }
    }
}

fn entry<'a>(fields: &'a mut Map<String, Value>, name: &str) -> &'a mut Value {
    fields.entry(name.to_owned()).or_insert(Value::Null)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_stays() {
        let mut value = json!({"a": 1, "b": {"c": null}});
        lay_under(&mut value, &json!({"a": 2, "b": {"c": 3, "d": 4}, "e": 5}));
        assert_eq!(value, json!({"a": 1, "b": {"c": 3, "d": 4}, "e": 5}));
    }

    #[test]
    fn a_pod_leaves_a_dead_node_after_five_minutes_unless_it_says_otherwise() {
        let mut pod = json!({"spec": {"tolerations": [
            {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]}});
        tolerate_for_a_while(&mut pod);
        let tolerations = pod["spec"]["tolerations"].as_array().unwrap();
        assert_eq!(tolerations.len(), 2);
        assert_eq!(tolerations[1]["key"], "node.kubernetes.io/not-ready");

        let mut pod = json!({"spec": {"tolerations": [{"operator": "Exists"}]}});
        tolerate_for_a_while(&mut pod);
        assert_eq!(pod["spec"]["tolerations"].as_array().unwrap().len(), 1);
    }
}
