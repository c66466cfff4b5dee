//! World / fresh: between two stories on one lab, everything is as after the installation.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use palisade_cluster::machines::bmc::Behaviour;
use palisade_scenarios::look::Look;
use palisade_scenarios::world::{Kind, World};
use serde_json::json;

use super::LabWorld;
use super::sights::api;
use crate::bmc::Bmc;
use crate::control_plane::Part;
use crate::{install, network};

/// What people make in stories, in the order in which it goes.
const MADE: [Kind; 6] = [Kind::StatefulSet, Kind::ReplicaSet, Kind::DaemonSet, Kind::Pod, Kind::Claim, Kind::Request];
/// How long a fence that a story left may take to end by itself.
const ENDS: u64 = 150;

impl LabWorld {
    /// Makes everything as after the installation, with one operator that has run for as long as it could.
    pub async fn fresh(&mut self, keep: &str) -> Result<()> {
        let run = self.lab.run();
        for part in Part::ALL {
            self.lab.plane().start(part)?;
        }
        self.lab.plane().wait(&self.client).await?;
        self.lab.fill_san(false)?;
        self.operator_start(keep).await.map_err(|why| anyhow::anyhow!("{why}"))?;
        for machine in self.lab.machines().to_vec() {
            network::heal(run, machine.name(), network::Link::Api)?;
            network::heal(run, machine.name(), network::Link::Peers)?;
            network::plug(run, machine.name(), true)?;
            Bmc::of(run, &machine).set(&Behaviour::Honest)?;
            machine.resume_kubelet();
            machine.hang_containerd(false);
            machine.on()?;
        }
        for kind in [Kind::Config, Kind::Template, Kind::Remedy] {
            self.delete_all(kind, &install::CONFIGURED).await?;
        }
        install::configuration(&self.lab, &self.client).await?;
        let others: Vec<String> = self.operators.keys().filter(|name| *name != keep).cloned().collect();
        for name in others {
            self.operator_crash(&name).await.map_err(|why| anyhow::anyhow!("{why}"))?;
        }
        for node in self.nodes() {
            let open = json!({ "spec": { "unschedulable": null } });
            api(&self.client, Kind::Node).patch(&node, &PatchParams::default(), &Patch::Merge(open)).await?;
        }
        for kind in MADE {
            self.delete_all(kind, &[]).await?;
        }
        let clean = |world: &dyn Look| {
            let fences = world.list(Kind::Fence);
            fences.is_empty() && world.nodes().iter().all(|node| world.node_is_clean(node))
        };
        if self.run_until(ENDS, "everything is clean", clean).await.is_err() {
            let nodes: Vec<String> = self.nodes().into_iter().filter(|node| !self.node_is_clean(node)).collect();
            bail!("after a story these nodes did not become clean: {}", nodes.join(", "));
        }
        // A fence that has just ended leaves its request behind.
        self.delete_all(Kind::Request, &[]).await?;
        let gone = |world: &dyn Look| MADE.iter().all(|kind| world.list(*kind).is_empty());
        self.run_until(ENDS, "what the story made is gone", gone).await.map_err(|why| anyhow::anyhow!("{why}"))?;
        for machine in self.lab.machines() {
            Bmc::of(run, machine).forget();
            machine.forget_boots()?;
        }
        Ok(())
    }

    /// Deletes all objects of a kind but these.
    async fn delete_all(&self, kind: Kind, keep: &[&str]) -> Result<()> {
        let params =
            DeleteParams { grace_period_seconds: (kind == Kind::Pod).then_some(1), ..DeleteParams::background() };
        let all = api(&self.client, kind);
        for object in all.list(&ListParams::default()).await?.items {
            let name = object.metadata.name.unwrap_or_default();
            if keep.contains(&name.as_str()) {
                continue;
            }
            if object
                .metadata
                .finalizers
                .is_some_and(|finalizers| finalizers.iter().any(|one| one.starts_with("example.com")))
            {
                let none = json!({ "metadata": { "finalizers": null } });
                all.patch(&name, &PatchParams::default(), &Patch::Merge(none)).await?;
            }
            match all.delete(&name, &params).await {
                Ok(_) => {}
                Err(kube::Error::Api(status)) if status.code == 404 => {}
                Err(why) => return Err(why).with_context(|| format!("{} {name} cannot be deleted", kind.words().1)),
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        Ok(())
    }
}
