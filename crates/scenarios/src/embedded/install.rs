//! Embedded / install: what an administrator applies: CRDs, the namespace, one FenceTemplate, one FenceConfig, and Secrets.

use std::sync::LazyLock;

use palisade_api::names;
use palisade_cluster::Cluster;
use palisade_cluster::api::Kind;
use serde_json::{Value, json};

/// The same for every world of a process: to make them from the types takes as long as a minute of virtual time.
static CRDS: LazyLock<Vec<Value>> =
    LazyLock::new(|| palisade_api::crds().iter().map(|crd| serde_json::to_value(crd).unwrap_or_default()).collect());

/// The CSI-independent part of an installation on bare metal: every node has a BMC that speaks Redfish.
pub(super) fn everything(cluster: &Cluster, nodes: usize) {
    for object in CRDS.iter() {
        create(cluster, Kind::CUSTOM_RESOURCE_DEFINITION, object.clone());
    }
    create(cluster, Kind::NAMESPACE, json!({ "metadata": { "name": names::SYSTEM_NAMESPACE } }));
    for number in 1..=nodes {
        let node = format!("n{number}");
        let Some((_, user, password)) = cluster.bmc(&node).login() else { continue };
        let secret = json!({
            "metadata": { "name": format!("bmc-{node}"), "namespace": names::SYSTEM_NAMESPACE },
            "stringData": { "username": user, "password": password },
            "data": { "username": base64(&user), "password": base64(&password) },
        });
        create(cluster, Kind::SECRET, secret);
    }
    ours(cluster, "FenceTemplate", template());
    ours(cluster, "FenceConfig", config());
    ours(cluster, "FencePolicy", json!({ "metadata": { "name": names::POLICY_NAME }, "spec": {} }));
}

fn template() -> Value {
    json!({
        "metadata": { "name": "bmc" },
        "spec": {
            "native": { "driver": "redfish" },
            "parameters": { "ip": "bmc-{node}" },
            "secretRef": { "name": "bmc-{node}", "keys": { "username": "username", "password": "password" } },
            "timeout": "10s",
            "proves": { "class": "Power" },
        },
    })
}

fn config() -> Value {
    json!({
        "metadata": { "name": "bare-metal" },
        "spec": {
            "nodeSelector": {},
            "powerManagement": { "levels": [{ "name": "bmc", "methods": [{ "name": "bmc", "template": "bmc" }] }] },
        },
    })
}

fn ours(cluster: &Cluster, kind: &str, mut object: Value) {
    object["apiVersion"] = format!("{}/{}", names::GROUP, names::VERSION).into();
    object["kind"] = kind.into();
    if let Some(kind) = cluster.api().kind(names::GROUP, kind) {
        create(cluster, kind, object);
    }
}

fn create(cluster: &Cluster, kind: Kind, object: Value) {
    let name = object["metadata"]["name"].clone();
    if let Err(why) = cluster.create(kind, object) {
        // An embedded world that cannot be installed is a mistake in this file, and every story would show it.
        eprintln!("the embedded world could not be installed: {name}: {why:?}");
    }
}

/// As the API server keeps Secrets.
pub(super) fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[usize::try_from(bits >> (18 - 6 * place) & 63).unwrap_or_default()];
            out.push(if place <= chunk.len() { char::from(letter) } else { '=' });
        }
    }
    out
}
