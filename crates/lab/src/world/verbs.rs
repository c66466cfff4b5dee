//! World / verbs: what happens to the lab.

use std::time::{Duration, Instant};

use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use palisade_api::names;
use palisade_cluster::machines::bmc::Behaviour;
use palisade_scenarios::look::Look;
use palisade_scenarios::world::{Agent, Bmc, Broken, Kind, Link, Told, World};
use serde_json::{Value, json};

use super::sights::api;
use super::{LabWorld, Operator};
use crate::control_plane::Part;
use crate::{bmc, image, install, network, objects};

/// A new operator watches for so long before it believes what it sees.
const SETTLED: Duration = Duration::from_secs(90);

impl World for LabWorld {
    async fn power_off(&mut self, node: &str) -> Told {
        self.lab.machine(node).and_then(crate::machine::Machine::off).map_err(broken)
    }

    async fn cut_feed(&mut self, node: &str) -> Told {
        self.bmc(node, Bmc::Unreachable).await?;
        self.power_off(node).await
    }

    async fn restore_feed(&mut self, node: &str) -> Told {
        self.bmc(node, Bmc::Honest).await?;
        // As the embedded machines: they start when the feed is back.
        self.outside_on(node).await
    }

    async fn outside_on(&mut self, node: &str) -> Told {
        self.lab.machine(node).and_then(crate::machine::Machine::on).map_err(broken)
    }

    async fn hibernate(&mut self, _node: &str) -> Told {
        Err(Broken("the lab's machines cannot hibernate".to_owned()))
    }

    async fn cut(&mut self, node: &str, link: Link) -> Told {
        network::cut(self.lab.run(), node, theirs(link)?).map_err(broken)
    }

    async fn heal(&mut self, node: &str, link: Link) -> Told {
        network::heal(self.lab.run(), node, theirs(link)?).map_err(broken)
    }

    async fn kubelet_hang(&mut self, node: &str) -> Told {
        self.lab.machine(node).map(crate::machine::Machine::hang_kubelet).map_err(broken)
    }

    async fn kubelet_resume(&mut self, node: &str) -> Told {
        self.lab.machine(node).map(crate::machine::Machine::resume_kubelet).map_err(broken)
    }

    async fn kubelet_restart(&mut self, node: &str) -> Told {
        self.lab.machine(node).and_then(crate::machine::Machine::restart_kubelet).map_err(broken)
    }

    async fn bmc(&mut self, node: &str, behaves: Bmc) -> Told {
        let behaviour = match behaves {
            Bmc::Honest => Behaviour::Honest,
            Bmc::Slow(seconds) => Behaviour::Slow(Duration::from_secs(seconds)),
            Bmc::Silent => Behaviour::Silent,
            Bmc::Unreachable => Behaviour::Unreachable,
            Bmc::Refuses => Behaviour::Refuses(503),
            Bmc::AcceptsOnly => Behaviour::AcceptsOnly,
            Bmc::SaysOff => Behaviour::SaysOff,
            Bmc::Late(seconds) => Behaviour::Late(Duration::from_secs(seconds)),
            Bmc::LosesReply => Behaviour::LosesReply,
            Bmc::ShowsFor(millis) => Behaviour::ShowsFor(Duration::from_millis(millis)),
            Bmc::Flaps(millis) => Behaviour::Flaps(Duration::from_millis(millis)),
        };
        let machine = self.lab.machine(node).map_err(broken)?;
        bmc::Bmc::of(self.lab.run(), machine).set(&behaviour).map_err(broken)
    }

    async fn agent(&mut self, _behaves: Agent) -> Told {
        Err(Broken("the lab cannot change its agents yet".to_owned()))
    }

    async fn api_down(&mut self) -> Told {
        self.lab.plane().kill(Part::ApiServer).map_err(broken)
    }

    async fn api_up(&mut self) -> Told {
        self.lab.plane().start(Part::ApiServer).map_err(broken)?;
        self.lab.plane().wait(&self.client).await.map_err(broken)
    }

    async fn operator_start(&mut self, name: &str) -> Told {
        if self.operators.contains_key(name) && self.lab.operator(name).process().is_some() {
            return Ok(());
        }
        self.lab.start_operator(name, &self.account).map_err(broken)?;
        self.operators.insert(name.to_owned(), Operator { since: Instant::now(), node: None });
        Ok(())
    }

    async fn operator_start_on(&mut self, name: &str, node: &str) -> Told {
        let pod = operator_pod(name, node).map_err(broken)?;
        objects::apply(&self.client, &pod).await.map_err(broken)?;
        self.operators.insert(name.to_owned(), Operator { since: Instant::now(), node: Some(node.to_owned()) });
        Ok(())
    }

    async fn operator_crash(&mut self, name: &str) -> Told {
        match self.operators.remove(name) {
            None => Ok(()),
            Some(Operator { node: None, .. }) => self.lab.operator(name).kill().map_err(broken),
            Some(Operator { node: Some(_), .. }) => self.forget_operator_pod(name).await,
        }
    }

    async fn operator_stop(&mut self, name: &str) -> Told {
        match self.operators.remove(name) {
            None => Ok(()),
            Some(Operator { node: None, .. }) => {
                let daemon = self.lab.operator(name);
                let stopped = tokio::task::spawn_blocking(move || daemon.stop(Duration::from_secs(20)));
                stopped.await.map_err(|why| Broken(why.to_string()))?.map_err(broken)
            }
            Some(Operator { node: Some(_), .. }) => self.forget_operator_pod(name).await,
        }
    }

    async fn create(&mut self, kind: Kind, mut object: Value) -> Told {
        let (group, word) = kind.words();
        let version = if group == names::GROUP { names::VERSION } else { "v1" };
        object["apiVersion"] = if group.is_empty() { version.into() } else { format!("{group}/{version}").into() };
        object["kind"] = word.into();
        let object: DynamicObject = serde_json::from_value(object).map_err(|why| Broken(why.to_string()))?;
        let made = api(&self.client, kind).create(&PostParams::default(), &object).await.map_err(refused)?;
        let name = made.metadata.name.unwrap_or_default();
        self.sights.until_seen(kind, &name, made.metadata.resource_version.as_deref()).await;
        Ok(())
    }

    async fn patch(&mut self, kind: Kind, name: &str, patch: Value) -> Told {
        let patched = api(&self.client, kind).patch(name, &PatchParams::default(), &Patch::Merge(patch)).await;
        let version = patched.map_err(refused)?.metadata.resource_version;
        self.sights.until_seen(kind, name, version.as_deref()).await;
        Ok(())
    }

    async fn delete(&mut self, kind: Kind, name: &str) -> Told {
        api(&self.client, kind).delete(name, &DeleteParams::background()).await.map(drop).map_err(refused)
    }

    async fn delete_alone(&mut self, kind: Kind, name: &str) -> Told {
        let alone = DeleteParams { propagation_policy: Some(PropagationPolicy::Orphan), ..DeleteParams::default() };
        api(&self.client, kind).delete(name, &alone).await.map(drop).map_err(refused)
    }

    async fn forbid_deletion(&mut self, _kind: Kind, _name: &str, _forbidden: bool) -> Told {
        Err(Broken("the lab has no admission rule of this sort".to_owned()))
    }

    async fn daemon_set(&mut self, name: &str) -> Told {
        let labels = json!({ "app": name });
        let pod = json!({
            "metadata": { "labels": labels },
            "spec": { "containers": [{ "name": "main", "image": image::WRITER, "imagePullPolicy": "Never" }] },
        });
        let set = json!({
            "metadata": { "name": name },
            "spec": { "selector": { "matchLabels": labels }, "template": pod },
        });
        self.create(Kind::DaemonSet, set).await
    }

    async fn settle(&mut self) {
        let youngest = self.operators.values().map(|operator| operator.since.elapsed()).min().unwrap_or(SETTLED);
        tokio::time::sleep(SETTLED.saturating_sub(youngest)).await;
    }

    async fn run_for(&mut self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    async fn run_until(&mut self, seconds: u64, what: &str, mut so: impl FnMut(&dyn Look) -> bool) -> Told<Duration> {
        let (begin, limit) = (Instant::now(), Duration::from_secs(seconds));
        let mut sights = self.sights.clone();
        loop {
            if so(self) {
                return Ok(begin.elapsed());
            }
            if begin.elapsed() > limit {
                return Err(Broken(format!("not within {seconds} s: {what}")));
            }
            sights.change().await;
        }
    }

    async fn hold_for(&mut self, seconds: u64, what: &str, mut so: impl FnMut(&dyn Look) -> bool) -> Told {
        let begin = Instant::now();
        let mut sights = self.sights.clone();
        while begin.elapsed() < Duration::from_secs(seconds) {
            if !so(self) {
                return Err(Broken(format!("no longer so after {:?}: {what}", begin.elapsed())));
            }
            sights.change().await;
        }
        Ok(())
    }

    fn refused_deletions(&self) -> usize {
        0
    }

    fn two_writers(&self) -> Vec<String> {
        self.san.bites()
    }
}

impl LabWorld {
    async fn forget_operator_pod(&self, name: &str) -> Told {
        let pods: kube::Api<DynamicObject> = objects::api(
            &self.client,
            &json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "namespace": names::SYSTEM_NAMESPACE } }),
        )
        .map_err(broken)?;
        match pods.delete(name, &DeleteParams::default().grace_period(0)).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(why) => Err(refused(why)),
        }
    }
}

/// The Deployment's own pod, bound to a node.
fn operator_pod(name: &str, node: &str) -> anyhow::Result<Value> {
    let mut pod = install::deployment()?["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"]["name"] = name.into();
    pod["metadata"]["namespace"] = names::SYSTEM_NAMESPACE.into();
    pod["spec"]["nodeName"] = node.into();
    pod["spec"]["restartPolicy"] = "Always".into();
    Ok(pod)
}

fn theirs(link: Link) -> Told<network::Link> {
    match link {
        Link::Api => Ok(network::Link::Api),
        Link::Peers => Ok(network::Link::Peers),
        Link::Storage => {
            Err(Broken("the lab's SAN is a directory of the host; its way to a machine cannot be cut".to_owned()))
        }
        Link::Devices => Err(Broken("the lab's machines share their way to the BMCs with the host".to_owned())),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn broken(why: anyhow::Error) -> Broken {
    Broken(format!("{why:#}"))
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn refused(why: kube::Error) -> Broken {
    Broken(why.to_string())
}
