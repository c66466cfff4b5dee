//! Claims get volumes, and volumes that claims left behind go: against the embedded API.

use palisade_cluster::api::{Api, Key, Kind, Object, Server, Settings};
use palisade_cluster::clock::Clock;
use palisade_san::DRIVER;
use serde_json::{Value, json};

use crate::world::{World, publish, until};

struct Provisioned {
    world: World,
    api: Api,
}

impl Provisioned {
    async fn new() -> Self {
        let clock = Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
        let api = Api::new(clock, &Settings::default()).acting_as("test");
        let mut world = World::new().await;
        let (client, socket) = (Server::new(api.clone()).client("provisioner"), world.dir.join("controller.sock"));
        world.run(async move { palisade_san::provision::run(client, &socket, std::future::pending()).await });
        Self { world, api }
    }

    fn class(&self, name: &str, provisioner: &str) {
        let object = json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name},
            "provisioner": provisioner, "mountOptions": ["noatime"]});
        self.api.create(Kind::STORAGE_CLASS, object).unwrap();
    }

    fn claim(&self, name: &str, class: &str, mode: &str) -> String {
        let object = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"accessModes": [mode], "storageClassName": class, "resources": {"requests": {"storage": "3Mi"}}},
            "status": {"phase": "Pending"}});
        let made = self.api.create(Kind::PERSISTENT_VOLUME_CLAIM, object).unwrap();
        format!("pvc-{}", made["metadata"]["uid"].as_str().unwrap())
    }

    fn volume(&self, name: &str) -> Option<Object> {
        self.api.get(&Key::cluster(Kind::PERSISTENT_VOLUME, name))
    }

    async fn made(&self, name: &str) -> Object {
        until("a PersistentVolume is made", async || self.volume(name)).await
    }

    /// What the PersistentVolume controller does when a claim is gone.
    fn release(&self, name: &str) {
        let key = Key::cluster(Kind::PERSISTENT_VOLUME, name);
        self.api.update(&key, |volume| volume["status"] = json!({"phase": "Released"})).unwrap();
    }
}

#[tokio::test]
async fn a_claim_of_our_class_gets_one_volume() {
    let with = Provisioned::new().await;
    with.class("other", "csi.example.com");
    let not_ours = with.claim("other", "other", "ReadWriteOnce");
    let early = with.claim("early", "san", "ReadWriteOnce");
    with.class("san", DRIVER);
    let late = with.claim("late", "san", "ReadWriteMany");
    let volume = with.made(&early).await;
    let spec = &volume["spec"];
    assert_eq!(spec["csi"]["driver"], DRIVER);
    assert_eq!(spec["csi"]["volumeHandle"], Value::from(early.as_str()));
    assert_eq!((&spec["claimRef"]["name"], &spec["claimRef"]["namespace"]), (&json!("early"), &json!("default")));
    assert_eq!(spec["persistentVolumeReclaimPolicy"], "Delete");
    assert_eq!((&spec["storageClassName"], &spec["mountOptions"]), (&json!("san"), &json!(["noatime"])));
    assert_eq!(spec["capacity"]["storage"], "3145728");
    assert_eq!(with.made(&late).await["spec"]["accessModes"], json!(["ReadWriteMany"]));
    assert!(with.volume(&not_ours).is_none());
    let volumes = palisade_san::published(&with.world.san()).unwrap();
    assert_eq!(volumes.len(), 2, "one for each claim of ours: {volumes:?}");
}

#[tokio::test]
async fn a_released_volume_is_destroyed_but_not_while_a_node_has_it() {
    let with = Provisioned::new().await;
    with.class("san", DRIVER);
    let name = with.claim("data", "san", "ReadWriteOnce");
    with.made(&name).await;
    with.world.ask(publish(&name, "n1")).await.unwrap();
    with.release(&name);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    assert!(with.volume(&name).is_some() && with.world.san().join("volumes").join(&name).is_dir());
    with.world.unpublish(&name, "n1").await;
    until("the volume goes", async || with.volume(&name).is_none().then_some(())).await;
    assert!(palisade_san::published(&with.world.san()).unwrap().is_empty());
}

#[tokio::test]
async fn a_volume_that_is_to_be_kept_is_kept() {
    let with = Provisioned::new().await;
    with.class("san", DRIVER);
    let kept = with.claim("kept", "san", "ReadWriteOnce");
    with.made(&kept).await;
    let key = Key::cluster(Kind::PERSISTENT_VOLUME, &kept);
    with.api.update(&key, |volume| volume["spec"]["persistentVolumeReclaimPolicy"] = "Retain".into()).unwrap();
    with.release(&kept);
    let after = with.claim("after", "san", "ReadWriteOnce");
    with.made(&after).await;
    assert!(with.volume(&kept).is_some());
}
