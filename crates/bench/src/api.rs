//! Api: how many requests the embedded API serves in a second, through a `kube::Client`, on one core.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams};
use palisade_cluster::api::{Api, Kind, Server, Settings};
use palisade_cluster::clock::Clock;
use serde_json::json;

use crate::clock::{date, per_second};
use crate::scale::population;
use crate::table::Figure;

const NODES: u32 = 20;
/// As many as a kubelet takes by default.
const PODS_PER_NODE: u32 = 110;
const LENGTH: Duration = Duration::from_secs(3);

pub(crate) fn measure() -> Result<Vec<Figure>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let _inside = runtime.enter();
    let store = Api::new(Clock::starting_at(date()), &Settings::default());
    for number in 1..=NODES {
        create(&store, Kind::NODE, population::node(number))?;
    }
    for number in 0..NODES * PODS_PER_NODE {
        create(&store, Kind::POD, population::pod(number, NODES))?;
    }
    let client = Server::new(store).client("bench");
    let nodes: kube::Api<Node> = kube::Api::all(client.clone());
    let pods: kube::Api<Pod> = kube::Api::all(client.clone());
    let maps: kube::Api<ConfigMap> = kube::Api::namespaced(client, "default");
    let figure = |what: &str, each: f64| Figure::new(format!("api: {what}"), each, "/s");

    let get = per_second(LENGTH, || runtime.block_on(nodes.get("n1")).map(drop))?;
    let of_node = ListParams::default().fields("spec.nodeName=n1");
    let found = runtime.block_on(pods.list(&of_node))?.items.len();
    anyhow::ensure!(found == PODS_PER_NODE as usize, "n1 has {found} pods");
    let list = per_second(LENGTH, || runtime.block_on(pods.list(&of_node)).map(drop))?;
    let mut beat = 0_u64;
    let patch = per_second(LENGTH, || {
        beat += 1;
        let label = Patch::Merge(json!({"metadata": {"labels": {"beat": beat.to_string()}}}));
        runtime.block_on(nodes.patch("n1", &PatchParams::default(), &label)).map(drop)
    })?;
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some("m".to_owned()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    let pairs = per_second(LENGTH, || {
        runtime.block_on(async {
            maps.create(&PostParams::default(), &map).await?;
            maps.delete("m", &DeleteParams::default()).await.map(drop)
        })
    })?;
    Ok(vec![
        figure("get a node", get),
        figure("list the 110 pods of a node, of 2,200", list),
        figure("patch a node", patch),
        figure("create and delete an object (requests)", pairs * 2.0),
    ])
}

fn create(store: &Api, kind: Kind, object: serde_json::Value) -> Result<()> {
    store.create(kind, object).map(drop).map_err(|why| anyhow!("{}", why.message)).context("the cluster is made")
}
