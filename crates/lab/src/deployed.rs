//! Deployed: Palisade as users deploy it, two replicas in the cluster that they look after.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, ListParams};
use kube::{Client, ResourceExt};
use palisade_api::names::SYSTEM_NAMESPACE;
use palisade_scenarios::stories::{FIRST, clean, database_alone, expect, moved, open_all, open_only};
use palisade_scenarios::world::{Broken, Told, World};

use crate::world::LabWorld;
use crate::{install, objects};

/// How long a new replica watches before it believes what it sees.
const SETTLED: u64 = 90;
/// The lease of the one that died runs out, whatever it may have sent comes to its end, and then the failover takes as long as any.
const WITHIN: u64 = 120;
const LEASE: &str = "palisade-leader";

/// The replica that leads runs on the very node that dies, beside the database. The other one has watched all along and takes over;
/// the database moves, the node comes back, and there are two replicas again.
pub(crate) async fn leader_dies_with_its_node(world: &mut LabWorld) -> Told {
    world.operator_stop(FIRST).await?;
    let client = world.lab().client().await.map_err(broken)?;
    install::deployed(&client).await.map_err(broken)?;
    let told = dies(world, &client).await;
    let gone = gone(&client).await;
    told.and(gone)
}

async fn dies(world: &mut LabWorld, client: &Client) -> Told {
    let home = home_of_the_leader(client).await?;
    open_only(world, &home).await?;
    let database = database_alone(world).await?;
    open_all(world).await?;
    expect(database == home, "the database is where the leader is")?;
    world.run_for(SETTLED).await;
    expect(home_of_the_leader(client).await? == home, "the leader is still there")?;
    world.power_off(&home).await?;
    moved(world, &home, WITHIN).await?;
    expect(home_of_the_leader(client).await? != home, "the other replica leads")?;
    clean(world, &home, 300).await?;
    install::deployed(client).await.map_err(broken)
}

async fn home_of_the_leader(client: &Client) -> Told<String> {
    let leases: Api<Lease> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    for _look in 0..150 {
        let holder = leases.get_opt(LEASE).await.map_err(refused)?.and_then(|lease| lease.spec?.holder_identity);
        let leads = |pod: &Pod| holder.as_ref().is_some_and(|holder| holder.starts_with(&pod.name_any()));
        if let Some(node) = pods(client).await?.into_iter().find(leads).and_then(|pod| pod.spec?.node_name) {
            return Ok(node);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Err(Broken("no replica of the Deployment leads".to_owned()))
}

/// Takes the Deployment away: the other stories have operators of their own.
async fn gone(client: &Client) -> Told {
    let deployment = install::deployment().map_err(broken)?;
    let name = deployment["metadata"]["name"].as_str().unwrap_or_default();
    let all = objects::api(client, &deployment).map_err(broken)?;
    all.delete(name, &DeleteParams::foreground()).await.map_err(refused)?;
    for _look in 0..300 {
        if pods(client).await?.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    Err(Broken("the pods of the Deployment do not go".to_owned()))
}

async fn pods(client: &Client) -> Told<Vec<Pod>> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), SYSTEM_NAMESPACE);
    let ours = ListParams::default().labels("app.kubernetes.io/name=palisade");
    pods.list(&ours).await.map(|list| list.items).map_err(refused)
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn broken(why: anyhow::Error) -> Broken {
    Broken(format!("{why:#}"))
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn refused(why: kube::Error) -> Broken {
    Broken(why.to_string())
}
