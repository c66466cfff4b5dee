//! A SAN in a directory, served on sockets; and short words for what tests ask of it.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use palisade_csi::messages::controller::{
    ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest, CreateVolumeRequest, DeleteVolumeRequest,
};
use palisade_csi::messages::volume::{CapacityRange, Mode, VolumeCapability};
use palisade_csi::{Client, Code, Request, Status};
use palisade_san::What;
use tokio::task::JoinHandle;

/// Long enough for a machine that has much else to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct World {
    pub(crate) dir: PathBuf,
    pub(crate) controller: Client,
    tasks: Vec<JoinHandle<()>>,
}

impl World {
    /// A SAN that knows n1 and n2, and its controller.
    pub(crate) async fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("palisade-san-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let controller = Client::new(&dir.join("controller.sock"));
        let mut world = Self { dir, controller, tasks: Vec::new() };
        for node in ["n1", "n2"] {
            palisade_san::register_node(&world.san(), node).unwrap();
        }
        let (san, socket) = (world.san(), world.dir.join("controller.sock"));
        world.run(async move {
            palisade_san::serve_controller(&san, &socket, std::future::pending()).await.unwrap();
        });
        let ready = palisade_csi::messages::identity::ProbeRequest {};
        until("the controller answers", async || world.controller.call(ready, PATIENCE).await.ok()).await;
        world
    }

    /// The driver on a node.
    pub(crate) async fn node(&mut self, id: &'static str) -> Client {
        let (san, socket) = (self.san(), self.dir.join(format!("{id}.sock")));
        let (registration, client) = (self.dir.join(format!("{id}-reg.sock")), Client::new(&socket));
        self.run(async move {
            let stop = std::future::pending();
            palisade_san::serve_node(&san, &socket, id, Some(&registration), stop).await.unwrap();
        });
        let ready = palisade_csi::messages::identity::ProbeRequest {};
        until("the node answers", async || client.call(ready, PATIENCE).await.ok()).await;
        client
    }

    pub(crate) fn run(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.push(tokio::spawn(task));
    }

    pub(crate) fn san(&self) -> PathBuf {
        self.dir.join("san")
    }

    pub(crate) async fn ask<R: Request>(&self, request: R) -> Result<R::Reply, Status> {
        self.controller.call(request, PATIENCE).await
    }

    pub(crate) async fn refused<R: Request>(&self, request: R) -> (Code, String) {
        let why = self.ask(request).await.expect_err("it should be refused");
        (why.code(), why.message().to_owned())
    }

    /// Makes a volume and gives its ID.
    pub(crate) async fn volume(&self, name: &str) -> String {
        self.ask(create(name)).await.unwrap().volume.unwrap().volume_id
    }

    pub(crate) async fn publish(&self, volume: &str, node: &str) {
        self.ask(publish(volume, node)).await.unwrap();
    }

    pub(crate) async fn unpublish(&self, volume: &str, node: &str) {
        self.ask(unpublish(volume, node)).await.unwrap();
    }

    /// Which nodes have a volume, by the truth.
    pub(crate) fn holders(&self, volume: &str) -> Vec<String> {
        palisade_san::published(&self.san()).unwrap().remove(volume).unwrap_or_default()
    }

    /// What happened to a volume, in a word each, with the node where there is one.
    pub(crate) fn history(&self, volume: &str) -> Vec<(What, Option<String>)> {
        let all = palisade_san::events(&self.san()).unwrap().into_iter();
        all.filter(|event| event.volume.as_deref() == Some(volume)).map(|event| (event.what, event.node)).collect()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

pub(crate) fn create(name: &str) -> CreateVolumeRequest {
    CreateVolumeRequest {
        name: name.to_owned(),
        capacity_range: Some(CapacityRange { required_bytes: 1 << 20, limit_bytes: 0 }),
        volume_capabilities: vec![VolumeCapability::mount(Mode::SingleNodeWriter)],
        ..CreateVolumeRequest::default()
    }
}

pub(crate) fn delete(volume: &str) -> DeleteVolumeRequest {
    DeleteVolumeRequest { volume_id: volume.to_owned(), ..DeleteVolumeRequest::default() }
}

pub(crate) fn publish(volume: &str, node: &str) -> ControllerPublishVolumeRequest {
    publish_as(volume, node, Mode::SingleNodeWriter)
}

pub(crate) fn publish_as(volume: &str, node: &str, mode: Mode) -> ControllerPublishVolumeRequest {
    ControllerPublishVolumeRequest {
        volume_id: volume.to_owned(),
        node_id: node.to_owned(),
        volume_capability: Some(VolumeCapability::mount(mode)),
        ..ControllerPublishVolumeRequest::default()
    }
}

pub(crate) fn unpublish(volume: &str, node: &str) -> ControllerUnpublishVolumeRequest {
    ControllerUnpublishVolumeRequest {
        volume_id: volume.to_owned(),
        node_id: node.to_owned(),
        ..ControllerUnpublishVolumeRequest::default()
    }
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
