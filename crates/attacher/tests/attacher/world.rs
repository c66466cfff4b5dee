//! A small cluster, a SAN, and an attacher between them; and short words for what tests do to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use palisade_cluster::api::{Api, DeleteOptions, Key, Kind, Object, Server, Settings};
use palisade_cluster::clock::Clock;
use palisade_csi::Client;
use palisade_csi::messages::controller::CreateVolumeRequest;
use palisade_csi::messages::volume::{Mode, VolumeCapability};
use palisade_san::DRIVER;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub(crate) const FINALIZER: &str = "external-attacher/lab-palisade-dev";
/// Long enough for a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(30);

/// A directory of its own for each test, gone at its end.
pub(crate) struct Place(PathBuf);

impl Place {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("palisade-attacher-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.0.join("csi.sock")
    }

    pub(crate) fn san(&self) -> PathBuf {
        self.0.join("san")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A task that ends with the test.
pub(crate) struct Running(pub(crate) JoinHandle<()>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.abort();
    }
}

pub(crate) struct World {
    pub(crate) api: Api,
    pub(crate) place: Place,
    running: Vec<Running>,
}

impl World {
    /// Nodes n1 and n2, whose IDs at the SAN are id-n1 and id-n2; the SAN's controller, and the attacher.
    pub(crate) fn new() -> Self {
        let mut world = Self::without_attacher();
        world.serve_san();
        world.attach_for();
        for node in ["n1", "n2"] {
            world.register(node, &format!("id-{node}"));
        }
        world
    }

    pub(crate) fn without_attacher() -> Self {
        let clock = Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
        let api = Api::new(clock, &Settings::default()).acting_as("test");
        Self { api, place: Place::new(), running: Vec::new() }
    }

    pub(crate) fn serve_san(&mut self) {
        let (san, socket) = (self.place.san(), self.place.socket());
        self.run(async move {
            palisade_san::serve_controller(&san, &socket, std::future::pending()).await.unwrap();
        });
    }

    pub(crate) fn attach_for(&mut self) {
        let (client, socket) = (Server::new(self.api.clone()).client("attacher"), self.place.socket());
        self.run(async move { palisade_attacher::run(client, &socket, std::future::pending()).await.unwrap() });
    }

    pub(crate) fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.running.push(Running(tokio::spawn(task)));
    }

    /// The driver is on a node, under that ID.
    pub(crate) fn register(&self, node: &str, id: &str) {
        palisade_san::register_node(&self.place.san(), id).unwrap();
        let object = json!({"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "metadata": {"name": node},
            "spec": {"drivers": [{"name": DRIVER, "nodeID": id, "topologyKeys": null}]}});
        self.api.create(Kind::CSI_NODE, object).unwrap();
    }

    pub(crate) fn unregister(&self, node: &str) {
        self.api.delete(&Key::cluster(Kind::CSI_NODE, node), &DeleteOptions::default()).unwrap();
    }

    /// A volume at the SAN, and a PersistentVolume for it of the same name.
    pub(crate) async fn volume(&self, name: &str) {
        self.make(name).await;
        self.persistent_volume(name, name);
    }

    /// A volume at the SAN.
    pub(crate) async fn make(&self, name: &str) {
        let request = CreateVolumeRequest {
            name: name.to_owned(),
            volume_capabilities: vec![VolumeCapability::mount(Mode::SingleNodeWriter)],
            ..CreateVolumeRequest::default()
        };
        let client = Client::new(&self.place.socket());
        until("the SAN makes a volume", async || client.call(request.clone(), PATIENCE).await.ok()).await;
    }

    pub(crate) fn persistent_volume(&self, name: &str, handle: &str) {
        let object = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
            "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"},
            "csi": {"driver": DRIVER, "volumeHandle": handle}}});
        self.api.create(Kind::PERSISTENT_VOLUME, object).unwrap();
    }

    /// The attach/detach controller wants a volume on a node.
    pub(crate) fn want(&self, attachment: &str, volume: &str, node: &str) {
        self.want_of(DRIVER, attachment, volume, node);
    }

    pub(crate) fn want_of(&self, driver: &str, attachment: &str, volume: &str, node: &str) {
        let object = json!({"apiVersion": "storage.k8s.io/v1", "kind": "VolumeAttachment",
            "metadata": {"name": attachment},
            "spec": {"attacher": driver, "nodeName": node, "source": {"persistentVolumeName": volume}}});
        self.api.create(Kind::VOLUME_ATTACHMENT, object).unwrap();
    }

    /// The attach/detach controller does not want it there any more.
    pub(crate) fn unwant(&self, attachment: &str) {
        self.api.delete(&key(attachment), &DeleteOptions::default()).unwrap();
    }

    pub(crate) fn attachment(&self, name: &str) -> Option<Object> {
        self.api.get(&key(name))
    }

    pub(crate) async fn attached(&self, name: &str) -> Object {
        let attached = |object: &Object| object["status"]["attached"] == true;
        until(&format!("{name} is attached"), async || self.attachment(name).filter(attached)).await
    }

    pub(crate) async fn detached(&self, name: &str) {
        until(&format!("{name} is gone"), async || self.attachment(name).is_none().then_some(())).await;
    }

    /// The message of an error that the attachment has some time.
    pub(crate) async fn error(&self, name: &str, way: &str) -> String {
        let what = format!("{name} has an {way}");
        until(&what, async || Some(self.attachment(name)?["status"][way]["message"].as_str()?.to_owned())).await
    }

    /// Which nodes have a volume, by the SAN's own truth.
    pub(crate) fn holders(&self, volume: &str) -> Vec<String> {
        truth(&self.place.san()).remove(volume).unwrap_or_default()
    }

    pub(crate) fn change(&self, name: &str, change: impl FnOnce(&mut Value)) {
        self.api.update(&key(name), change).unwrap();
    }
}

pub(crate) fn truth(san: &Path) -> BTreeMap<String, Vec<String>> {
    palisade_san::published(san).unwrap()
}

fn key(name: &str) -> Key {
    Key::cluster(Kind::VOLUME_ATTACHMENT, name)
}

/// Waits until there is something.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("in vain: {what}"))
}
