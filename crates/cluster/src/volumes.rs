//! From a pod to its volumes: claim, PersistentVolume, CSI handle.

use serde_json::Value;

use crate::{
    api::{Key, Kind, Store, metadata},
    objects::{flag, items, text},
    truth::Name,
};

/// The driver of the embedded storage system.
pub const DRIVER: &str = "csi.cluster.palisade.dev";

/// A volume of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PodVolume {
    /// The PersistentVolume's name.
    pub(crate) pv: String,
    pub(crate) driver: String,
    pub(crate) handle: Name,
    /// The name under which Nodes list it.
    pub(crate) unique: String,
    pub(crate) read_only: bool,
    /// Whether it may be attached to many nodes at once.
    pub(crate) many_nodes: bool,
    /// Whether it has to be attached at all.
    pub(crate) attachable: bool,
}

/// The attachment's object for a volume on a node.
pub(crate) fn attachment_name(handle: &str, driver: &str, node: &str) -> String {
    format!("csi-{}", crate::sha256::hex(format!("{handle}{driver}{node}").as_bytes()))
}

/// The CSI volumes of a pod; nothing if one of its claims is not bound yet.
pub(crate) fn of_pod(store: &Store, pod: &Value) -> Option<Vec<PodVolume>> {
    let mut volumes = Vec::new();
    for volume in items(pod, "/spec/volumes") {
        let name = text(volume, "/persistentVolumeClaim/claimName");
        if name.is_empty() {
            continue;
        }
        let claim = store.get(&Key::new(Kind::PERSISTENT_VOLUME_CLAIM, metadata::namespace(pod), name))?;
        if text(claim, "/status/phase") != "Bound" {
            return None;
        }
        let pv = store.get(&Key::cluster(Kind::PERSISTENT_VOLUME, text(claim, "/spec/volumeName")))?;
        if let Some(mut found) = of_pv(store, pv) {
            found.read_only |= flag(volume, "/persistentVolumeClaim/readOnly");
            volumes.push(found);
        }
    }
    Some(volumes)
}

/// The handles of a pod's volumes, as far as its claims are bound.
pub fn handles_of(store: &Store, pod: &Value) -> Vec<Name> {
    of_pod(store, pod).unwrap_or_default().into_iter().map(|volume| volume.handle).collect()
}

/// The volume that a PersistentVolume stands for; nothing if it is not one of a CSI driver.
pub(crate) fn of_pv(store: &Store, pv: &Value) -> Option<PodVolume> {
    let csi = pv.pointer("/spec/csi")?;
    let (driver, handle) = (text(csi, "/driver"), text(csi, "/volumeHandle"));
    let mode = |wanted: &str| items(pv, "/spec/accessModes").any(|mode| mode == wanted);
    let attachable = store
        .get(&Key::cluster(Kind::CSI_DRIVER, driver))
        .and_then(|driver| driver.pointer("/spec/attachRequired")?.as_bool())
        .unwrap_or(true);
    Some(PodVolume {
        pv: metadata::name(pv).to_owned(),
        driver: driver.to_owned(),
        handle: handle.into(),
        unique: unique_name(driver, handle),
        read_only: flag(csi, "/readOnly") || (mode("ReadOnlyMany") && !mode("ReadWriteMany") && !mode("ReadWriteOnce")),
        many_nodes: mode("ReadWriteMany") || mode("ReadOnlyMany"),
        attachable,
    })
}

/// The name under which Nodes list a CSI volume.
pub fn unique_name(driver: &str, handle: &str) -> String {
    format!("kubernetes.io/csi/{driver}^{handle}")
}
