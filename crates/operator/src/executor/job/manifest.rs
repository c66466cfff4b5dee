//! Executor / job / manifest: the Job of one call.
//!
//! Promise (I7): a secret is mounted as a file; the pod's text holds its name and no value. What an agent is told is in an
//! annotation, which the pod finds as a file too: nothing is in argv or in the environment.
//! Promise: no pod of ours can do more than its call: no root, no capability, no writable root, no token unless a user's template
//! names a service account. It never runs on the node that it is about, nor where others are in trouble; and it makes no second
//! try by itself.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::batch::v1::Job;
use palisade_api::names::{FIELD_MANAGER, annotations, environment, labels};
use palisade_api::template::{Container, PodTemplate, Volume};
use palisade_core::resolve::call::{Device as Target, Value as Parameter};
use palisade_core::settings::JOB_START;
use palisade_core::time::Span;
use palisade_devices::act::Order;
use serde_json::{Value, json};

use super::super::Executor;
use super::owner::Owner;

/// Where the pod finds its order and its secrets.
const ORDER: &str = "/etc/palisade/order";
const SECRETS: &str = "/etc/palisade/secrets";
/// A user of no name, as in the operator's own pod.
const NOBODY: i64 = 65_532;
/// How long a pod may take to go when it is told to.
const GRACE: Span = Span::secs(5);

/// The file of a secret's key, below the directory of secrets.
pub(super) fn file_of(secret: &str, key: &str) -> String {
    format!("{secret}/{key}")
}

impl Executor {
    /// The Job that has an agent do as ordered.
    pub(super) fn of_order(&self, order: &Order, target: &Target, owner: Owner<'_>) -> Result<Job, String> {
        let Some(image) = &self.context.act.image else {
            return Err(format!(
                "{}: fence agents run in an image of their own, and the operator was given none; start it with --act-image",
                target.template
            ));
        };
        let mut volumes = vec![
            json!({ "name": "order", "downwardAPI": { "items": [
                { "path": "order", "fieldRef": { "fieldPath": format!("metadata.annotations['{}']", annotations::ORDER) } },
            ] } }),
            // Agents keep what they need for a moment there; it is memory, and goes with the pod.
            json!({ "name": "tmp", "emptyDir": { "medium": "Memory", "sizeLimit": "16Mi" } }),
        ];
        let mut mounts = vec![
            json!({ "name": "order", "mountPath": ORDER, "readOnly": true }),
            json!({ "name": "tmp", "mountPath": "/tmp" }),
        ];
        for (index, (secret, keys)) in secrets_of(target).into_iter().enumerate() {
            let items: Vec<Value> = keys.iter().map(|key| json!({ "key": key, "path": key })).collect();
            volumes
                .push(json!({ "name": format!("secret-{index}"), "secret": { "secretName": secret, "items": items } }));
            let path = format!("{SECRETS}/{secret}");
            mounts.push(json!({ "name": format!("secret-{index}"), "mountPath": path, "readOnly": true }));
        }
        let container = json!({
            "name": "act",
            "image": image,
            "imagePullPolicy": self.context.act.pull,
            "args": ["act"],
            "securityContext": restricted(),
            "resources": { "requests": { "cpu": "10m", "memory": "32Mi" }, "limits": { "memory": "128Mi" } },
            "volumeMounts": mounts,
        });
        let spec = json!({
            "automountServiceAccountToken": false,
            "securityContext": nobody(),
            "containers": [container],
            "volumes": volumes,
        });
        let noted = BTreeMap::from([(annotations::ORDER.to_owned(), order.text())]);
        self.job(spec, BTreeMap::new(), noted, target, owner)
    }

    /// The Job that runs a user's own pod.
    pub(super) fn of_pod(&self, pod: &PodTemplate, target: &Target) -> Result<Job, String> {
        let containers: Vec<Value> = pod.spec.containers.iter().map(|one| self.container(one)).collect();
        let mut spec = json!({
            "automountServiceAccountToken": pod.spec.service_account_name.is_some(),
            "securityContext": nobody(),
            "containers": containers,
            "volumes": pod.spec.volumes.iter().map(volume).collect::<Vec<_>>(),
            "nodeSelector": pod.spec.node_selector,
            "imagePullSecrets": pod.spec.image_pull_secrets.iter().map(|name| json!({ "name": name })).collect::<Vec<_>>(),
        });
        if let Some(account) = &pod.spec.service_account_name {
            spec["serviceAccountName"] = json!(account);
        }
        let tolerated = pod.spec.tolerations.iter().map(|taint| match &taint.value {
            Some(value) => json!({ "key": taint.key, "operator": "Equal", "value": value }),
            None => json!({ "key": taint.key, "operator": "Exists" }),
        });
        spec["tolerations"] = tolerated.collect();
        let metadata = pod.metadata.clone().unwrap_or_default();
        self.job(spec, metadata.labels, metadata.annotations, target, self.by_fence())
    }

    fn container(&self, one: &Container) -> Value {
        let mut env: Vec<Value> = one.env.iter().map(|set| json!({ "name": set.name, "value": set.value })).collect();
        let by_annotation = format!("metadata.annotations['{}']", annotations::TARGET_NODE);
        env.push(json!({ "name": environment::NODE, "valueFrom": { "fieldRef": { "fieldPath": by_annotation } } }));
        env.push(json!({ "name": environment::FENCE_UID, "value": self.fence.as_str() }));
        if let Some(uid) = &self.node_uid {
            env.push(json!({ "name": environment::NODE_UID, "value": uid.as_str() }));
        }
        let resources = one.resources.clone().unwrap_or_default();
        let mut container = json!({
            "name": one.name,
            "image": one.image,
            "env": env,
            "envFrom": one.env_from_config_maps.iter().map(|name| json!({ "configMapRef": { "name": name } })).collect::<Vec<_>>(),
            "securityContext": restricted(),
            "resources": { "requests": resources.requests, "limits": resources.limits },
            "volumeMounts": one.volume_mounts.iter()
                .map(|mount| json!({ "name": mount.name, "mountPath": mount.mount_path })).collect::<Vec<_>>(),
            // What it writes there on purpose is told. Its log is not: nobody could take the secrets out of it (I7).
            "terminationMessagePolicy": "File",
        });
        for (field, words) in [("command", &one.command), ("args", &one.args)] {
            if !words.is_empty() {
                container[field] = json!(words);
            }
        }
        container
    }

    /// A Job around a pod.
    fn job(
        &self,
        mut spec: Value,
        mut marked: BTreeMap<String, String>,
        mut noted: BTreeMap<String, String>,
        target: &Target,
        owner: Owner<'_>,
    ) -> Result<Job, String> {
        if !self.placement.possible {
            return Err(format!("{}: no node is left that could run it", target.template));
        }
        let (label, value) = owner.label();
        let ours = [(label.to_owned(), value), (labels::MANAGED_BY.to_owned(), FIELD_MANAGER.to_owned())];
        let ours = BTreeMap::from(ours);
        marked.extend(ours.clone());
        noted.insert(annotations::TARGET_NODE.to_owned(), self.node.to_string());
        spec["restartPolicy"] = json!("Never");
        spec["terminationGracePeriodSeconds"] = json!(GRACE.as_millis() / 1000);
        spec["affinity"] = self.affinity();
        spec["enableServiceLinks"] = json!(false);
        if let Some(class) = owner.priority() {
            spec["priorityClassName"] = json!(class);
        }
        let whole = JOB_START + target.timeout + GRACE;
        let deadline = whole.as_millis().div_ceil(1000);
        // In the pod as well: its kubelet keeps to it even where nobody can reach it any more.
        spec["activeDeadlineSeconds"] = json!(deadline);
        let job = json!({
            "metadata": {
                "namespace": self.context.namespace,
                "labels": ours,
                "annotations": { annotations::TARGET_NODE: self.node.as_str() },
                "ownerReferences": [owner.reference()],
            },
            "spec": {
                "completions": 1,
                "parallelism": 1,
                "backoffLimit": 0,
                "podReplacementPolicy": "Failed",
                "activeDeadlineSeconds": deadline,
                "ttlSecondsAfterFinished": owner.kept().as_millis() / 1000,
                "template": { "metadata": { "labels": marked, "annotations": noted }, "spec": spec },
            },
        });
        serde_json::from_value(job).map_err(|why| format!("{}: no Job can be made of it: {why}", target.template))
    }

    /// Never on the target, nor on a node that is in trouble itself; rather in another failure domain.
    fn affinity(&self) -> Value {
        let not_on = |node: &palisade_core::ident::NodeName| json!({ "key": "metadata.name", "operator": "NotIn", "values": [node.as_str()] });
        let never: Vec<Value> = self.placement.never.iter().map(not_on).collect();
        let rather: Vec<Value> = (self.placement.away_from.iter())
            .map(|(key, value)| {
                // A node that does not say where it is, is not known to be elsewhere.
                let elsewhere = [
                    json!({ "key": key, "operator": "Exists" }),
                    json!({ "key": key, "operator": "NotIn", "values": [value] }),
                ];
                json!({ "weight": 100, "preference": { "matchExpressions": elsewhere } })
            })
            .collect();
        json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{ "matchFields": never }] },
            "preferredDuringSchedulingIgnoredDuringExecution": rather,
        } })
    }
}

fn secrets_of(target: &Target) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut secrets: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for value in target.parameters.values() {
        if let Parameter::Secret { name, key } = value {
            secrets.entry(name).or_default().insert(key);
        }
    }
    secrets
}

fn restricted() -> Value {
    json!({
        "allowPrivilegeEscalation": false,
        "readOnlyRootFilesystem": true,
        "capabilities": { "drop": ["ALL"] },
    })
}

fn nobody() -> Value {
    json!({
        "runAsNonRoot": true,
        "runAsUser": NOBODY,
        "runAsGroup": NOBODY,
        // So that the files of Secrets can be read.
        "fsGroup": NOBODY,
        "seccompProfile": { "type": "RuntimeDefault" },
    })
}

fn volume(volume: &Volume) -> Value {
    let name = &volume.name;
    if let Some(secret) = &volume.secret {
        json!({ "name": name, "secret": { "secretName": secret.secret_name } })
    } else if let Some(map) = &volume.config_map {
        json!({ "name": name, "configMap": { "name": map.name } })
    } else {
        let limit = volume.empty_dir.as_ref().and_then(|dir| dir.size_limit.as_ref());
        json!({ "name": name, "emptyDir": limit.map_or_else(|| json!({}), |limit| json!({ "sizeLimit": limit })) })
    }
}
