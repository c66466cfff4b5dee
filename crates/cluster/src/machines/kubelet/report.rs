//! What a kubelet writes into the API: the status of its Node and of its pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::Home;
use crate::{
    api::{Key, metadata},
    clock::seconds,
    machines::process::Exit,
    nature::Ctx,
    objects::{condition, is_finished, map_at, set_condition, text},
    truth::Name,
    volumes::DRIVER,
};

pub(super) fn node_status(node: &mut Value, home: &Home, boot: &Name, in_use: &BTreeSet<String>, ctx: &Ctx<'_>) {
    let now = ctx.api.now();
    let uuid = ctx.truth.look(|world| world.machines.get(&home.node).map(|machine| machine.uuid.clone()));
    let beat = seconds(now);
    let conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    for (kind, status, reason, message) in conditions {
        let said = [
            ("type", kind),
            ("status", status),
            ("reason", reason),
            ("message", message),
            ("lastHeartbeatTime", &beat),
        ];
        set_condition(node, now, &said);
    }
    let room = json!({"cpu": "8", "memory": "32Gi", "pods": home.pods.to_string()});
    let status = map_at(node, &["status"]);
    status["capacity"] = room.clone();
    status["allocatable"] = room;
    status["addresses"] =
        json!([{"type": "InternalIP", "address": home.address}, {"type": "Hostname", "address": home.node.as_ref()}]);
    status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": 10250}});
    status["nodeInfo"] = json!({
        "machineID": uuid, "systemUUID": uuid, "bootID": boot.as_ref(), "kernelVersion": "6.12.0",
        "osImage": "Palisade's embedded cluster", "operatingSystem": "linux", "architecture": "amd64",
        "containerRuntimeVersion": "embedded://1.0", "kubeletVersion": "v1.36.3", "kubeProxyVersion": "",
    });
    status["volumesInUse"] = json!(in_use);
}

/// What the driver's registrar says about a node.
pub(super) fn csi_node(node: &Value) -> Value {
    let name = metadata::name(node);
    json!({
        "metadata": {"name": name, "ownerReferences": [owned_by(node)]},
        "spec": {"drivers": [{"name": DRIVER, "nodeID": name, "topologyKeys": null}]},
    })
}

pub(super) fn owned_by(node: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "name": metadata::name(node), "uid": metadata::uid(node)})
}

/// Tells the API that a pod runs; says whether it took it.
pub(super) fn pod_runs(key: &Key, uid: &Name, restarts: u64, node: &Name, ctx: &Ctx<'_>) -> bool {
    let now = ctx.api.now();
    update(key, uid, ctx, |pod| {
        if condition(pod, "Initialized").is_none() {
            pod["status"]["startTime"] = seconds(now).into();
        }
        for kind in ["Initialized", "ContainersReady", "Ready"] {
            set_condition(pod, now, &[("type", kind), ("status", "True")]);
        }
        let started = seconds(now);
        let containers = containers(pod, |name, image| {
            json!({
                "name": name, "image": image, "imageID": "", "ready": true, "started": true,
                "restartCount": restarts, "state": {"running": {"startedAt": started}},
            })
        });
        let status = map_at(pod, &["status"]);
        status["phase"] = "Running".into();
        status["containerStatuses"] = containers;
        status["hostIP"] = node.as_ref().into();
    })
}

/// Tells the API that nobody has a pod's image: first that it could not be pulled, then that this takes a while.
pub(super) fn no_image(key: &Key, uid: &Name, missing: &str, first: bool, ctx: &Ctx<'_>) {
    let now = ctx.api.now();
    update(key, uid, ctx, |pod| {
        if pod.pointer("/status/startTime").is_none() {
            pod["status"]["startTime"] = seconds(now).into();
        }
        set_condition(pod, now, &[("type", "Initialized"), ("status", "True")]);
        for kind in ["ContainersReady", "Ready"] {
            set_condition(pod, now, &[("type", kind), ("status", "False"), ("reason", "ContainersNotReady")]);
        }
        let never = crate::objects::items(pod, "/spec/containers")
            .any(|container| text(container, "/image") == missing && text(container, "/imagePullPolicy") == "Never");
        let (reason, message) = match (never, first) {
            (true, _) => {
                ("ErrImageNeverPull", format!("Container image \"{missing}\" is not present with pull policy of Never"))
            }
            (false, true) => ("ErrImagePull", format!("failed to pull and unpack image \"{missing}\": not found")),
            (false, false) => ("ImagePullBackOff", format!("Back-off pulling image \"{missing}\"")),
        };
        let containers = containers(pod, |name, image| {
            json!({
                "name": name, "image": image, "imageID": "", "ready": false, "started": false,
                "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}},
            })
        });
        map_at(pod, &["status"])["containerStatuses"] = containers;
    });
}

/// Tells the API how a pod ended: what it said about that, and whether it was ended because it took too long.
pub(super) fn pod_ended(key: &Key, uid: &Name, exit: Exit, last_words: &str, overdue: bool, ctx: &Ctx<'_>) {
    let now = ctx.api.now();
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Terminated => 143,
        Exit::Killed | Exit::Power => 137,
    };
    update(key, uid, ctx, |pod| {
        if is_finished(pod) {
            // A last word stands.
            return;
        }
        // A server that ends as it is told to has not failed; a pod that was to come to an end of its own has.
        let told = exit == Exit::Terminated && text(pod, "/spec/restartPolicy") == "Always";
        let phase = if !overdue && (told || exit == Exit::Code(0)) { "Succeeded" } else { "Failed" };
        for kind in ["ContainersReady", "Ready"] {
            let reason = if phase == "Failed" { "PodFailed" } else { "PodCompleted" };
            set_condition(pod, now, &[("type", kind), ("status", "False"), ("reason", reason)]);
        }
        let finished = seconds(now);
        let restarts = pod.pointer("/status/containerStatuses/0/restartCount").cloned().unwrap_or(json!(0));
        let started = pod.pointer("/status/containerStatuses/0/state/running/startedAt").cloned();
        let reason = if code == 0 { "Completed" } else { "Error" };
        let mut end = json!({"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished});
        if !last_words.is_empty() {
            end["message"] = last_words.into();
        }
        let containers = containers(pod, |name, image| {
            json!({
                "name": name, "image": image, "imageID": "", "ready": false, "started": false,
                "restartCount": restarts, "state": {"terminated": end},
            })
        });
        let status = map_at(pod, &["status"]);
        status["phase"] = phase.into();
        status["containerStatuses"] = containers;
        if overdue {
            status["reason"] = "DeadlineExceeded".into();
            status["message"] = "Pod was active on the node longer than the specified deadline".into();
        }
    });
}

fn update(key: &Key, uid: &Name, ctx: &Ctx<'_>, change: impl FnOnce(&mut Value)) -> bool {
    let same = |pod: &Value| metadata::uid(pod) == &**uid;
    if !ctx.api.get(key).is_some_and(|pod| same(&pod)) {
        // Nobody is there to be told.
        return true;
    }
    ctx.api.update(key, change).is_ok()
}

fn containers(pod: &Value, show: impl Fn(&str, &str) -> Value) -> Value {
    let all = crate::objects::items(pod, "/spec/containers");
    all.map(|container| show(text(container, "/name"), text(container, "/image"))).collect()
}
