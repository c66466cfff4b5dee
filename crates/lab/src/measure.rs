//! Measure: how long the main job takes on the lab, run after run, and what Kubernetes alone does.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use palisade_scenarios::failover::{Split, failover, table};
use palisade_scenarios::look::Look;
use palisade_scenarios::stories::{DATA, FIRST, database, database_alone, things};
use palisade_scenarios::world::{Kind, Link, Told, World};
use serde_json::json;

use crate::install::CONFIGURED;
use crate::lab::Lab;
use crate::world::LabWorld;

/// Longer than the five minutes after which Kubernetes evicts, and than everything that follows from it by itself.
const ALONE: u64 = 480;

/// For how many seconds a node is watched on after its agent's lie was found out.
const WATCHED: u64 = 40;

/// How a node fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Fault {
    /// It loses its power.
    Power,
    /// It loses its way to the API server and to its peers, and goes on writing.
    Partition,
}

/// By what it is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The silence of its lease, as without any configuration.
    Lease,
    /// The control plane's word that it is not Ready, alone.
    Ready,
}

/// By what it is switched off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Device {
    /// The native driver of Redfish.
    Redfish,
    /// The native driver of IPMI.
    Ipmi,
    /// `fence_ipmilan` in a Job, read back by the native driver of IPMI.
    Agent,
    /// `fence_ipmilan` in a Job, read back by itself.
    AgentAlone,
    /// An agent in a Job that says yes to everything and does nothing, read back by itself; always for a node that is cut off and goes
    /// on writing. It is no failover that is measured, but that there is none.
    Liar,
}

impl Device {
    /// Has the nodes of a fresh lab switched off by this.
    async fn configure(self, world: &mut LabWorld) -> Told {
        if self == Self::Redfish {
            return Ok(());
        }
        let login = json!({ "name": "bmc-{node}", "keys": { "username": "username", "password": "password" } });
        let spec = json!({
            "native": { "driver": "ipmi" }, "parameters": { "cipher": "3" }, "secretRef": login,
            "timeout": "10s", "proves": { "class": "Power" },
        });
        world.create(Kind::Template, json!({ "metadata": { "name": "ipmi" }, "spec": spec })).await?;
        let mut spec = json!({
            "agent": { "name": "fence_ipmilan" }, "parameters": { "lanplus": "1", "cipher": "3" }, "secretRef": login,
            "timeout": "40s", "proves": { "class": "Power", "hibernation": "Impossible" },
        });
        if self == Self::Liar {
            spec["agent"] = json!({ "name": "fence_liar" });
            spec["parameters"] = json!({});
        }
        if self == Self::Agent {
            spec["readBack"] = json!({ "template": "ipmi" });
        }
        world.create(Kind::Template, json!({ "metadata": { "name": "agent" }, "spec": spec })).await?;
        let config = world.get(Kind::Config, CONFIGURED[1]).unwrap_or_default();
        let mut levels = config["spec"]["powerManagement"]["levels"].clone();
        levels[0]["methods"][0]["template"] = json!(if self == Self::Ipmi { "ipmi" } else { "agent" });
        world.patch(Kind::Config, CONFIGURED[1], json!({ "spec": { "powerManagement": { "levels": levels } } })).await
    }
}

/// Fails a node under a database so many times, and says how long each part took.
pub async fn failovers(lab: &Lab, fault: Fault, by: By, device: Device, runs: u32) -> Result<Vec<Split>> {
    let mut world = LabWorld::over(lab).await?;
    let mut splits = Vec::new();
    for run in 1..=runs {
        let bites = world.two_writers().len();
        world.fresh(FIRST).await?;
        device.configure(&mut world).await.map_err(told)?;
        if by == By::Ready {
            world.create(Kind::Remedy, things::ready_only()).await.map_err(told)?;
        }
        database(&mut world).await.map_err(told)?;
        // At another moment of the lease's interval each time, which is ten seconds.
        tokio::time::sleep(Duration::from_millis(u64::from(run) * 3_700 % 10_000)).await;
        let fail = async |world: &mut LabWorld, node: &str| match fault {
            Fault::Power => world.power_off(node).await,
            Fault::Partition => {
                world.cut(node, Link::Api).await?;
                world.cut(node, Link::Peers).await
            }
        };
        let split = failover(&mut world, "db-0", 300, fail).await.map_err(told)?;
        // Whoever was taken over from would write again within moments.
        tokio::time::sleep(Duration::from_secs(3)).await;
        if let Some(bite) = world.two_writers().get(bites) {
            bail!("two writers in run {run}: {bite}");
        }
        println!("run {run} of {runs}: {split}");
        splits.push(split);
    }
    Ok(splits)
}

/// Has an agent that lies switch off a node that is cut off and goes on writing, so many times: its lie is found out, nothing moves, and
/// nobody writes beside the node.
pub async fn lies(lab: &Lab, runs: u32) -> Result<()> {
    let mut world = LabWorld::over(lab).await?;
    let mut seconds = 0;
    for run in 1..=runs {
        let bites = world.two_writers().len();
        world.fresh(FIRST).await?;
        Device::Liar.configure(&mut world).await.map_err(told)?;
        let home = database(&mut world).await.map_err(told)?;
        let uid = world.uid_of("db-0");
        world.cut(&home, Link::Api).await.map_err(told)?;
        world.cut(&home, Link::Peers).await.map_err(told)?;
        let found_out = |world: &dyn Look| {
            let fence = world.get(Kind::Fence, &home).unwrap_or_default();
            // Whoever says on in one breath with the success, or cannot say how it stands.
            let reason = fence["status"]["reason"].as_str().unwrap_or_default().to_owned();
            ["MethodRetried", "StepRetried", "StillOn", "PowerUnknown", "CallUnknown"].contains(&reason.as_str())
        };
        let after = world.run_until(180, "the agent's lie is found out", found_out).await.map_err(told)?;
        let stays = |world: &dyn Look| {
            let alone = world.writers_of(DATA).iter().all(|node| *node == home);
            alone && world.uid_of("db-0") == uid && world.node_of("db-0") == home
        };
        world.hold_for(WATCHED, "db-0 stays, and nobody writes beside it", stays).await.map_err(told)?;
        let doubled = world.two_writers().len() - bites;
        seconds += doubled;
        println!("run {run} of {runs}: found out after {} s, {doubled} times two writers", after.as_secs());
    }
    println!("\nan agent that lies, {runs} runs: {seconds} times two writers");
    if seconds == 0 { Ok(()) } else { bail!("two writers") }
}

/// The same failure with nobody but Kubernetes there: says what became of the pod.
pub async fn alone(lab: &Lab) -> Result<String> {
    let mut world = LabWorld::over(lab).await?;
    let home = database_alone(&mut world).await.map_err(told)?;
    let uid = world.uid_of("db-0");
    world.power_off(&home).await.map_err(told)?;
    let stuck = |world: &dyn Look| world.uid_of("db-0") == uid && world.node_of("db-0") == home;
    world.hold_for(ALONE, "the pod stays where it is", stuck).await.map_err(told)?;
    let marked = world.pod("db-0").is_some_and(|pod| pod.metadata.deletion_timestamp.is_some());
    let how = if marked { "Terminating" } else { "not even Terminating" };
    Ok(format!("Kubernetes alone: {ALONE} s after {home} lost its power, db-0 is still bound to it and {how}"))
}

/// Prints what was measured.
pub fn show(splits: &[Split]) {
    println!("\n{}", table(splits));
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn told(why: palisade_scenarios::world::Broken) -> anyhow::Error {
    anyhow!("{why}")
}
