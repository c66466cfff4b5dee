//! Objects: what an administrator applies to a cluster, by server-side apply, whatever its kind.

use std::path::PathBuf;

use anyhow::{Context, Result};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use serde_json::Value;

/// A client of whoever has this kubeconfig. Nothing is tried again behind our back.
pub async fn client(kubeconfig: &PathBuf) -> Result<Client> {
    let file = kube::config::Kubeconfig::read_from(kubeconfig)
        .with_context(|| format!("cannot read {}", kubeconfig.display()))?;
    let mut config = kube::Config::from_custom_kubeconfig(file, &kube::config::KubeConfigOptions::default()).await?;
    config.default_retry = false;
    Ok(Client::try_from(config)?)
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

/// Every document of a YAML file.
pub fn documents(yaml: &str) -> Result<Vec<Value>> {
    let all: Vec<Value> = serde_saphyr::from_multiple(yaml).context("the manifests are no YAML")?;
    Ok(all.into_iter().filter(|document| !document.is_null()).collect())
}
