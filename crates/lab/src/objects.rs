//! Objects: what an administrator applies to a cluster, by server-side apply, whatever its kind.

use std::path::Path;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::Value;

/// A client of whoever has this kubeconfig. Nothing is tried again behind our back.
pub async fn client(kubeconfig: &Path) -> Result<Client> {
    Ok(Client::try_from(config(kubeconfig).await?)?)
}

/// The same with patience for watches that are silent for minutes.
pub async fn patient_client(kubeconfig: &Path) -> Result<Client> {
    let mut config = config(kubeconfig).await?;
    config.read_timeout = None;
    Ok(Client::try_from(config)?)
}

async fn config(kubeconfig: &Path) -> Result<kube::Config> {
    let file = kube::config::Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(config)
}

/// The way to an object's kind, in its namespace.
pub fn api(client: &Client, object: &Value) -> Result<Api<DynamicObject>> {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str).unwrap_or_default();
    let (group, version) = text("/apiVersion").split_once('/').unwrap_or(("", text("/apiVersion")));
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, text("/kind")));
    Ok(match text("/metadata/namespace") {
        "" => Api::all_with(client.clone(), &resource),
        namespace => Api::namespaced_with(client.clone(), namespace, &resource),
    })
}

/// Applies an object, as `kubectl apply --server-side --force-conflicts` does.
pub async fn apply(client: &Client, object: &Value) -> Result<()> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let params = PatchParams::apply("palisade-lab").force();
    let applied = api(client, object)?.patch(name, &params, &Patch::Apply(object)).await;
    applied.with_context(|| format!("{} {name} was not applied", object["kind"]))?;
    Ok(())
}

/// Makes an object exactly as it stands here, whatever was added to it meanwhile; its status is left alone.
pub async fn replace(client: &Client, object: &Value) -> Result<()> {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let all = api(client, object)?;
    let mut wanted: DynamicObject = serde_json::from_value(object.clone())?;
    wanted.metadata.resource_version = all.get_opt(name).await?.and_then(|there| there.metadata.resource_version);
    let params = PostParams::default();
    let replaced = match wanted.metadata.resource_version {
        Some(_) => all.replace(name, &params, &wanted).await,
        None => all.create(&params, &wanted).await,
    };
    replaced.map(drop).with_context(|| format!("{} {name} was not replaced", object["kind"]))
}

/// Every document of a YAML file.
pub fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).context("the manifests are no YAML")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}
