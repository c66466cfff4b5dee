//! Install: what makes a bare cluster the one of the stories: the SAN's class, Palisade's kinds, account and rights, and how
//! to reach every machine's BMC.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::Client;
use palisade_api::names;
use serde_json::{Value, json};

use crate::bmc::{Bmc, USER};
use crate::lab::Lab;
use crate::objects::{apply, documents, replace};
use crate::papers::Papers;

/// As users deploy it.
const DEPLOY: &str = include_str!("../../../deploy/palisade.yaml");
/// The name of Palisade's account.
pub const ACCOUNT: &str = "palisade";
/// The driver of the SAN.
pub const DRIVER: &str = "lab.palisade.dev";

/// The FenceTemplate and the FenceConfig of a fresh installation.
pub const CONFIGURED: [&str; 2] = ["bmc", "bare-metal"];

/// Installs everything but the operator's Deployment.
pub async fn everything(lab: &Lab, client: &Client) -> Result<()> {
    for crd in palisade_api::crds() {
        apply(client, &serde_json::to_value(crd)?).await?;
    }
    for object in deploy()? {
        if object["kind"] != "Deployment" {
            apply(client, &object).await?;
        }
    }
    for object in storage() {
        apply(client, &object).await?;
    }
    established(client).await?;
    configuration(lab, client).await
}

/// Palisade's own configuration: policy, template, config and the BMCs' Secrets, as a fresh installation has them.
pub async fn configuration(lab: &Lab, client: &Client) -> Result<()> {
    let authority = fs::read_to_string(Papers::of(lab.run()).bmc_ca())?;
    let mut addresses = serde_json::Map::new();
    for machine in lab.machines() {
        let name = format!("bmc-{}", machine.name());
        let login = json!({ "username": USER, "password": Bmc::of(lab.run(), machine).password(), "ca": authority });
        let metadata = json!({ "name": name, "namespace": names::SYSTEM_NAMESPACE });
        apply(client, &json!({ "apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": login }))
            .await?;
        let address = lab.run().bmc_address(machine.index()).to_string();
        addresses.insert(machine.name().to_owned(), json!({ "ip": address }));
    }
    let ours = |kind: &str, name: &str, spec: Value| {
        let version = format!("{}/{}", names::GROUP, names::VERSION);
        json!({ "apiVersion": version, "kind": kind, "metadata": { "name": name }, "spec": spec })
    };
    let keys = json!({ "username": "username", "password": "password", "ca": "ca" });
    let template = json!({
        "native": { "driver": "redfish" }, "secretRef": { "name": "bmc-{node}", "keys": keys },
        "timeout": "10s", "proves": { "class": "Power" },
    });
    let method = json!({ "name": "bmc", "template": CONFIGURED[0], "perNode": addresses });
    let levels = json!({ "levels": [{ "name": "bmc", "methods": [method] }] });
    replace(client, &ours("FenceTemplate", CONFIGURED[0], template)).await?;
    replace(client, &ours("FenceConfig", CONFIGURED[1], json!({ "nodeSelector": {}, "powerManagement": levels })))
        .await?;
    // One lab tells many stories, and its nodes fail in most of them: that must not look like a node that flaps.
    let policy = json!({ "mode": "Enforce", "flap": { "count": 100 } });
    replace(client, &ours("FencePolicy", names::POLICY_NAME, policy)).await
}

/// The Deployment, for those who want Palisade to run in the cluster itself.
pub fn deployment() -> Result<Value> {
    deploy()?
        .into_iter()
        .find(|object| object["kind"] == "Deployment")
        .context("deploy/palisade.yaml has no Deployment")
}

/// Starts Palisade in the cluster, as users do, and waits until it is ready.
pub async fn deployed(client: &Client) -> Result<()> {
    let deployment = deployment()?;
    apply(client, &deployment).await?;
    let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
    for _look in 0..600 {
        let status = crate::objects::api(client, &deployment)?.get(name).await?.data["status"].clone();
        if status["readyReplicas"].as_u64() >= deployment["spec"]["replicas"].as_u64() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("Palisade's Deployment does not get ready; look at its pods with kubectl -n {}", names::SYSTEM_NAMESPACE)
}

/// A kubeconfig of Palisade's own account, with its rights and no more.
pub async fn account(lab: &Lab, client: &Client) -> Result<PathBuf> {
    let path = format!("/api/v1/namespaces/{}/serviceaccounts/{ACCOUNT}/token", names::SYSTEM_NAMESPACE);
    let asked = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": { "expirationSeconds": 86_400 },
    });
    let request =
        http::Request::post(path).header("content-type", "application/json").body(asked.to_string().into_bytes())?;
    let answer: Value = client.request(request).await.context("no token for Palisade's account")?;
    let Some(token) = answer.pointer("/status/token").and_then(Value::as_str) else {
        bail!("the API server gave no token for Palisade's account");
    };
    Papers::of(lab.run()).write_kubeconfig("palisade", token)
}

/// Every object of `deploy/palisade.yaml`.
pub fn deploy() -> Result<Vec<Value>> {
    documents(DEPLOY)
}

fn storage() -> [Value; 2] {
    let class = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": { "name": "standard" },
        "provisioner": DRIVER, "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    });
    let driver = json!({
        "apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": { "name": DRIVER },
        "spec": { "attachRequired": true, "podInfoOnMount": false, "fsGroupPolicy": "None" },
    });
    [class, driver]
}

/// A kind that was just defined is served a moment later.
async fn established(client: &Client) -> Result<()> {
    for _look in 0..100 {
        let path = format!("/apis/{}/{}/fencepolicies", names::GROUP, names::VERSION);
        if client.request_text(http::Request::get(path).body(Vec::new())?).await.is_ok() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    bail!("Palisade's kinds were defined, but the API server does not serve them")
}
