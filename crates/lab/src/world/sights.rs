//! World / sights: every object of the kinds that stories speak of, kept by watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{StreamExt, pin_mut};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, Event};
use palisade_cluster::machines::machine::Switch;
use palisade_scenarios::look::Look;
use palisade_scenarios::world::{Kind, Power, Switched};
use serde_json::Value;
use tokio::sync::watch;

use super::LabWorld;
use crate::bmc::Bmc;

const KINDS: [Kind; 17] = [
    Kind::Node,
    Kind::Pod,
    Kind::Claim,
    Kind::PersistentVolume,
    Kind::StatefulSet,
    Kind::ReplicaSet,
    Kind::DaemonSet,
    Kind::Job,
    Kind::Event,
    Kind::Secret,
    Kind::Definition,
    Kind::Policy,
    Kind::Config,
    Kind::Template,
    Kind::Remedy,
    Kind::Request,
    Kind::Fence,
];

/// A kind by its word, and its objects by name.
type Objects = BTreeMap<&'static str, BTreeMap<String, Value>>;

/// What the API shows, as of a moment ago.
#[derive(Clone)]
pub(super) struct Sights {
    objects: Arc<Mutex<Objects>>,
    changed: watch::Receiver<u64>,
}

impl Sights {
    /// Watches from now on; everything has been listed once when this returns.
    pub(super) async fn through(client: &Client) -> Self {
        let objects: Arc<Mutex<Objects>> = Arc::default();
        let (sender, changed) = watch::channel(0);
        let sender = Arc::new(sender);
        for kind in KINDS {
            tokio::spawn(follow(client.clone(), kind, Arc::clone(&objects), Arc::clone(&sender)));
        }
        let sights = Self { objects, changed };
        while sights.objects.lock().unwrap_or_else(PoisonError::into_inner).len() < KINDS.len() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        sights
    }

    /// Waits until something has changed, or a moment has passed: power and writers change without the API.
    pub(super) async fn change(&mut self) {
        let _moment = tokio::time::timeout(Duration::from_millis(100), self.changed.changed()).await;
    }

    /// Waits until a version of an object has been seen, or a later one.
    pub(super) async fn until_seen(&mut self, kind: Kind, name: &str, version: Option<&str>) {
        let wanted: u64 = version.and_then(|version| version.parse().ok()).unwrap_or(0);
        for _look in 0..50 {
            let seen = self.get(kind, name).and_then(|object| {
                object.pointer("/metadata/resourceVersion").and_then(Value::as_str)?.parse::<u64>().ok()
            });
            // Gone again is seen as well, but nobody can tell it from not yet there: the wait is short.
            if seen.is_some_and(|seen| seen >= wanted) {
                return;
            }
            self.change().await;
        }
    }

    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).get(kind.words().1)?.get(name).cloned()
    }

    pub(super) fn list(&self, kind: Kind) -> Vec<Value> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(kind.words().1).map(|of| of.values().cloned().collect()).unwrap_or_default()
    }
}

/// The way to a kind, in the namespace where stories keep it.
pub(super) fn api(client: &Client, kind: Kind) -> Api<DynamicObject> {
    let (group, word) = kind.words();
    let version = if group == palisade_api::names::GROUP { palisade_api::names::VERSION } else { "v1" };
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, word));
    match kind.home() {
        "" => Api::all_with(client.clone(), &resource),
        home => Api::namespaced_with(client.clone(), home, &resource),
    }
}

async fn follow(client: Client, kind: Kind, objects: Arc<Mutex<Objects>>, changed: Arc<watch::Sender<u64>>) {
    let events = watcher::watcher(api(&client, kind), watcher::Config::default().timeout(60));
    pin_mut!(events);
    let mut listing = BTreeMap::new();
    while let Some(event) = events.next().await {
        let word = kind.words().1;
        let all = || objects.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Ok(Event::Init) => listing.clear(),
            Ok(Event::InitApply(object)) => {
                listing.extend(named(&object));
                continue;
            }
            Ok(Event::InitDone) => {
                all().insert(word, std::mem::take(&mut listing));
            }
            Ok(Event::Apply(object)) => all().entry(word).or_default().extend(named(&object)),
            Ok(Event::Delete(object)) => {
                all().entry(word).or_default().remove(object.metadata.name.as_deref().unwrap_or_default());
            }
            // The API is away, perhaps on purpose.
            Err(_) => tokio::time::sleep(Duration::from_millis(300)).await,
        }
        changed.send_modify(|count| *count += 1);
    }
}

fn named(object: &DynamicObject) -> Option<(String, Value)> {
    Some((object.metadata.name.clone()?, serde_json::to_value(object).ok()?))
}

impl LabWorld {
    /// How everything stands, for whoever has to find out why a story did not go as told.
    pub fn how_it_stands(&self) -> String {
        let fence = |node: &String| {
            let status = self.fence_of(node).and_then(|fence| fence.status);
            status.map(|status| format!(", {:?}: {}", status.phase, status.message)).unwrap_or_default()
        };
        let node = |node: String| {
            let ready = if self.node_is_ready(&node) { "Ready" } else { "not Ready" };
            format!("{node} {:?}, {ready}{}", self.power_of(&node), fence(&node))
        };
        let pod = |pod: Value| {
            let name = pod["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            let marked = if pod["metadata"]["deletionTimestamp"].is_null() { "" } else { ", marked" };
            format!("{name} on {}, {}{marked}", self.node_of(&name), pod["status"]["phase"])
        };
        let request = |request: Value| {
            let status = &request["status"];
            format!("{} {} {} {}", request["spec"]["nodeName"], status["phase"], status["reason"], status["message"])
        };
        let nodes = self.nodes().into_iter().map(node);
        let pods = self.list(Kind::Pod).into_iter().map(pod);
        let requests = self.list(Kind::Request).into_iter().map(request);
        let all: Vec<String> = nodes.chain(pods).chain(requests).collect();
        format!("as it stands:\n      {}", all.join("\n      "))
    }
}

impl Look for LabWorld {
    fn get(&self, kind: Kind, name: &str) -> Option<Value> {
        self.sights.get(kind, name)
    }

    fn list(&self, kind: Kind) -> Vec<Value> {
        self.sights.list(kind)
    }

    fn power_of(&self, node: &str) -> Power {
        if self.lab.machine(node).is_ok_and(crate::machine::Machine::is_on) { Power::On } else { Power::Off }
    }

    fn writers_of(&self, claim: &str) -> Vec<String> {
        let text = |object: Option<Value>, path: &str| {
            object.and_then(|object| Some(object.pointer(path)?.as_str()?.to_owned())).unwrap_or_default()
        };
        let volume = text(self.get(Kind::Claim, claim), "/spec/volumeName");
        let handle = text(self.get(Kind::PersistentVolume, &volume), "/spec/csi/volumeHandle");
        self.san.writers(&handle)
    }

    fn commands_to(&self, node: &str) -> Vec<Switched> {
        let said = |switch| match switch {
            Switch::On => Switched::On,
            Switch::ForceOff | Switch::GracefulOff => Switched::Off,
            Switch::Restart => Switched::Cycle,
        };
        let machine = self.lab.machine(node);
        machine
            .map(|machine| Bmc::of(self.lab.run(), machine).log().into_iter().map(said).collect())
            .unwrap_or_default()
    }

    fn boots_of(&self, node: &str) -> u32 {
        self.lab.machine(node).map_or(0, crate::machine::Machine::boots)
    }

    fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }
}
