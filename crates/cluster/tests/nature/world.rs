//! Words that the stories share.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use palisade_cluster::{
    Cluster, Shape,
    api::{Key, Kind, Object, metadata},
    machines::{bmc::NoRoute, redfish},
    workloads::Claim,
};
use serde_json::{Value, json};

pub(crate) fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

/// What a Node's Ready condition says.
pub(crate) fn ready(cluster: &Cluster, node: &str) -> String {
    let node = cluster.node(node).unwrap();
    let conditions = node["status"]["conditions"].as_array().unwrap();
    conditions.iter().find(|c| c["type"] == "Ready").unwrap()["status"].as_str().unwrap().to_owned()
}

pub(crate) fn has_taint(cluster: &Cluster, node: &str, key: &str, effect: &str) -> bool {
    let node = cluster.node(node).unwrap();
    let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
    taints.iter().any(|taint| taint["key"] == key && taint["effect"] == effect)
}

pub(crate) fn taint(cluster: &Cluster, node: &str, key: &str, effect: &str) {
    let taint = json!({"key": key, "effect": effect});
    let key = Key::cluster(Kind::NODE, node);
    let add = |node: &mut Value| match node["spec"]["taints"].as_array_mut() {
        Some(taints) => taints.push(taint),
        None => node["spec"]["taints"] = json!([taint]),
    };
    cluster.api().update(&key, add).unwrap();
}

pub(crate) fn uid(cluster: &Cluster, pod: &str) -> String {
    cluster.pod(pod).map(|pod| metadata::uid(&pod).to_owned()).unwrap_or_default()
}

pub(crate) fn is_marked(cluster: &Cluster, pod: &str) -> bool {
    cluster.pod(pod).is_some_and(|pod| metadata::is_deleting(&pod))
}

/// The attachments of a node.
pub(crate) fn attachments(cluster: &Cluster, node: &str) -> Vec<Object> {
    let all = cluster.api().list(Kind::VOLUME_ATTACHMENT);
    all.into_iter().filter(|attachment| attachment["spec"]["nodeName"] == node).collect()
}

pub(crate) fn listed(cluster: &Cluster, node: &str, field: &str) -> usize {
    cluster.node(node).unwrap()["status"][field].as_array().map_or(0, Vec::len)
}

/// A cluster with one database that runs, its node, and its volume.
pub(crate) async fn with_db(shape: &Shape) -> (Cluster, String, String) {
    let cluster = Cluster::up(shape).await;
    cluster.stateful_set("db", 1, Claim::ReadWriteOnce).unwrap();
    cluster.run_until(seconds(60), |c| c.is_ready("db-0")).await.expect("db-0 becomes ready");
    let node = cluster.node_of("db-0");
    let volume = cluster.volume_of("data-db-0").unwrap().to_string();
    (cluster, node, volume)
}

/// Asks a node's BMC for something, with its password.
pub(crate) async fn ask(
    cluster: &Cluster,
    node: &str,
    path: &str,
    body: Option<Value>,
) -> Result<Response<Bytes>, NoRoute> {
    let (host, user, password) = cluster.bmc(node).login().unwrap();
    let network = cluster.bmcs();
    let sessions = format!("https://{host}/redfish/v1/SessionService/Sessions");
    let login = json!({"UserName": user, "Password": password}).to_string();
    let session = network.call(Request::post(sessions).body(login.into()).unwrap()).await?;
    let token = session.headers()["x-auth-token"].clone();
    let request = Request::builder().uri(format!("https://{host}{path}")).header("x-auth-token", token);
    let request = match body {
        Some(body) => request.method("POST").body(body.to_string().into()).unwrap(),
        None => request.body(Bytes::new()).unwrap(),
    };
    network.call(request).await
}

/// What a node's BMC says about its power.
pub(crate) async fn power_state(cluster: &Cluster, node: &str) -> Result<String, NoRoute> {
    let answer = ask(cluster, node, &redfish::system_path(node), None).await?;
    let system: Value = serde_json::from_slice(answer.body()).unwrap();
    Ok(system["PowerState"].as_str().unwrap().to_owned())
}

/// Tells a node's BMC to reset it; the HTTP code of the answer.
pub(crate) async fn reset(cluster: &Cluster, node: &str, how: &str) -> Result<u16, NoRoute> {
    let path = format!("{}/Actions/ComputerSystem.Reset", redfish::system_path(node));
    Ok(ask(cluster, node, &path, Some(json!({"ResetType": how}))).await?.status().as_u16())
}
