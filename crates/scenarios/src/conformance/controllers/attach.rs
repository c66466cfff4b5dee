//! Attach: how a volume comes to the node of a pod.

use serde_json::{Value, json};

use super::kubelet::{register, register_as, running, seconds, while_alive};
use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::pod_on;
use crate::conformance::places::{ATTACHMENTS, CLAIMS, VOLUMES, at};
use crate::conformance::{Told, table};

table! { "attach";
    attachment_comes: "a pod with a CSI volume gets a VolumeAttachment for its node, under a name that can be foretold";
    node_lists_it: "an attachment that is attached is listed by the node, under the name of the volume";
    node_that_is_not_served: "a node without the annotation gets none";
    one_node_at_a_time: "a volume for one node is not attached to a second while the first has it";
    deleted_by_hand: "an attachment that somebody deletes comes back, and not at once";
}

/// The driver of the checks' volumes: nobody runs it, so that the check is its attacher.
const DRIVER: &str = "nobody.palisade.dev";

/// A volume for one node, and a bound claim of the same name.
pub(super) async fn volume(bench: &Bench) -> Told<String> {
    let name = bench.name("v");
    let modes = json!(["ReadWriteOnce"]);
    let volume = json!({"metadata": {"name": name}, "spec": {
        "capacity": {"storage": "1Gi"}, "accessModes": modes, "storageClassName": "",
        "csi": {"driver": DRIVER, "volumeHandle": name}, "claimRef": {"namespace": "default", "name": name},
    }});
    bench.make(VOLUMES, volume).await?;
    let claim = json!({"metadata": {"name": name}, "spec": {"accessModes": modes, "storageClassName": "",
        "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}});
    let claim = bench.make(CLAIMS, claim).await?;
    bench.until(&claim.path, seconds(60), |claim| text(claim, "/status/phase") == "Bound").await?;
    Ok(name)
}

/// The name under which a node lists it.
pub(super) fn unique(volume: &str) -> String {
    format!("kubernetes.io/csi/{DRIVER}^{volume}")
}

/// A pod with this volume, on a node.
pub(super) async fn pod_with(bench: &Bench, word: &str, volume: &str, node: &Made) -> Told<Made> {
    let mut pod = pod_on(&bench.name(word), node.name());
    pod["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": volume}}]);
    running(bench, pod).await
}

/// The attachment of a volume to a node, as soon as there is one.
pub(super) async fn attachment(bench: &Bench, volume: &str, node: &Made, limit: u64) -> Told<Made> {
    let of = |list: &Value| {
        let is = |item: &&Value| {
            text(item, "/spec/source/persistentVolumeName") == volume && text(item, "/spec/nodeName") == node.name()
        };
        items(list, "/items").find(is).cloned()
    };
    let list = bench.until(ATTACHMENTS, seconds(limit), |list| of(list).is_some()).await?;
    Ok(bench.remember(ATTACHMENTS, of(&list).unwrap_or_default()))
}

/// The same, attached: the check speaks for the attacher.
pub(super) async fn attached(bench: &Bench, volume: &str, node: &Made) -> Told<Made> {
    let made = attachment(bench, volume, node, 30).await?;
    bench.merge(&made.status(), &json!({"status": {"attached": true}})).await?.is(200)?;
    let name = unique(volume);
    let lists = |node: &Value| items(node, "/status/volumesAttached").any(|listed| listed["name"] == name.as_str());
    bench.until(&node.path, seconds(30), lists).await?;
    Ok(made)
}

async fn attachment_comes(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let volume = volume(bench).await?;
        pod_with(bench, "p", &volume, &node).await?;
        let made = attachment(bench, &volume, &node, 30).await?;
        same("attacher", text(&made.object, "/spec/attacher"), DRIVER)?;
        let digits = made.name().strip_prefix("csi-").unwrap_or_default();
        let hex = digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        must(hex, || format!("its name is {}", made.name()))?;
        same("status", &made.object["status"], &json!({"attached": false}))
    })
    .await
}

async fn node_lists_it(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let volume = volume(bench).await?;
        pod_with(bench, "p", &volume, &node).await?;
        attached(bench, &volume, &node).await.map(drop)
    })
    .await
}

async fn node_that_is_not_served(bench: &Bench) -> Told {
    let node = register_as(bench, "n", false).await?;
    while_alive(bench, &[&node], async {
        let volume = volume(bench).await?;
        pod_with(bench, "p", &volume, &node).await?;
        match attachment(bench, &volume, &node, 20).await {
            Ok(made) => Err(format!("there is {}", made.name())),
            Err(_) => Ok(()),
        }
    })
    .await
}

async fn one_node_at_a_time(bench: &Bench) -> Told {
    let (first, second) = (register(bench, "n").await?, register(bench, "o").await?);
    while_alive(bench, &[&first, &second], async {
        let volume = volume(bench).await?;
        let pod = pod_with(bench, "p", &volume, &first).await?;
        let held = attached(bench, &volume, &first).await?;
        pod_with(bench, "q", &volume, &second).await?;
        if attachment(bench, &volume, &second, 15).await.is_ok() {
            return Err("the volume is attached to both".to_owned());
        }
        bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
        bench.until(&held.path, seconds(60), Value::is_null).await?;
        attachment(bench, &volume, &second, 150).await.map(drop)
    })
    .await
}

async fn deleted_by_hand(bench: &Bench) -> Told {
    let node = register(bench, "n").await?;
    while_alive(bench, &[&node], async {
        let volume = volume(bench).await?;
        pod_with(bench, "p", &volume, &node).await?;
        let made = attached(bench, &volume, &node).await?;
        bench.delete(&made.path, &json!({})).await?.is(200)?;
        bench.gone(&made.path).await?;
        bench.until(&at(ATTACHMENTS, made.name()), seconds(150), |again| !again.is_null()).await.map(drop)
    })
    .await
}
