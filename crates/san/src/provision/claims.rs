//! Claims: what a claim asks of us, and what a PersistentVolume leaves to us. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::ResourceExt;
use palisade_csi::messages::controller::CreateVolumeRequest;
use palisade_csi::messages::volume::{self as csi, CapacityRange, Mode, VolumeCapability};
use serde_json::{Value, json};

use super::quantity;
use crate::DRIVER;

/// Who made a PersistentVolume; the PersistentVolume controller leaves it to us then.
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";
/// Where the scheduler wants to put the first pod that uses a claim.
const SELECTED_NODE: &str = "volume.kubernetes.io/selected-node";

/// What a claim asks of us.
#[derive(Debug)]
pub(super) enum Wish {
    /// Nothing.
    Nothing,
    /// A volume.
    Volume(Box<CreateVolumeRequest>),
    /// Something that we cannot give.
    Impossible(String),
}

/// What a claim asks of us; `class` is the one that it names, if that is there.
pub(super) fn wish(claim: &PersistentVolumeClaim, class: Option<&StorageClass>) -> Wish {
    let (Some(spec), Some(class)) = (&claim.spec, class) else { return Wish::Nothing };
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending");
    let bound = spec.volume_name.as_deref().is_some_and(|name| !name.is_empty());
    if class.provisioner != DRIVER || phase != "Pending" || bound || claim.metadata.deletion_timestamp.is_some() {
        return Wish::Nothing;
    }
    let waits = class.volume_binding_mode.as_deref() == Some("WaitForFirstConsumer");
    if waits && !claim.annotations().contains_key(SELECTED_NODE) {
        return Wish::Nothing;
    }
    if spec.volume_mode.as_deref() == Some("Block") {
        return Wish::Impossible("this SAN has directories, no block devices".to_owned());
    }
    if spec.selector.is_some() || spec.data_source.is_some() || spec.data_source_ref.is_some() {
        return Wish::Impossible("a selector or a data source is more than this SAN can do".to_owned());
    }
    let asked = spec.resources.as_ref().and_then(|resources| resources.requests.as_ref()?.get("storage"));
    let Some(required_bytes) = asked.and_then(|asked| quantity::bytes(&asked.0)) else {
        return Wish::Impossible(format!("{:?} is no size", asked.map_or("", |asked| &asked.0)));
    };
    let modes = spec.access_modes.clone().unwrap_or_default();
    let Some(volume_capabilities) = modes.iter().map(|mode| capability(mode)).collect::<Option<Vec<_>>>() else {
        return Wish::Impossible(format!("access modes {modes:?} are not offered"));
    };
    Wish::Volume(Box::new(CreateVolumeRequest {
        name: name_for(claim),
        capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
        volume_capabilities,
        parameters: class.parameters.clone().unwrap_or_default(),
        ..CreateVolumeRequest::default()
    }))
}

/// The name of the volume and of the PersistentVolume for a claim.
pub(super) fn name_for(claim: &PersistentVolumeClaim) -> String {
    format!("pvc-{}", claim.uid().unwrap_or_default())
}

fn capability(mode: &str) -> Option<VolumeCapability> {
    let mode = match mode {
        "ReadWriteOnce" | "ReadWriteOncePod" => Mode::SingleNodeWriter,
        "ReadOnlyMany" => Mode::MultiNodeReaderOnly,
        "ReadWriteMany" => Mode::MultiNodeMultiWriter,
        _ => return None,
    };
    Some(VolumeCapability::mount(mode))
}

/// The PersistentVolume for a claim, over the volume that was made.
pub(super) fn volume_for(claim: &PersistentVolumeClaim, class: &StorageClass, made: &csi::Volume) -> Value {
    let spec = claim.spec.clone().unwrap_or_default();
    let mut attributes: BTreeMap<&str, &str> = BTreeMap::new();
    attributes.extend(made.volume_context.iter().map(|(key, value)| (key.as_str(), value.as_str())));
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name_for(claim), "annotations": {PROVISIONED_BY: DRIVER}},
        "spec": {
            "accessModes": spec.access_modes,
            "capacity": {"storage": made.capacity_bytes.to_string()},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": claim.name_any(),
                "namespace": claim.namespace(),
                "uid": claim.uid(),
            },
            "csi": {"driver": DRIVER, "volumeHandle": made.volume_id, "volumeAttributes": attributes},
            "mountOptions": class.mount_options,
            "persistentVolumeReclaimPolicy": class.reclaim_policy.as_deref().unwrap_or("Delete"),
            "storageClassName": class.name_any(),
            "volumeMode": "Filesystem",
        },
    })
}

/// The volume that a PersistentVolume leaves behind for us to destroy, if it does.
pub(super) fn left_behind(volume: &PersistentVolume) -> Option<&str> {
    let (spec, status) = (volume.spec.as_ref()?, volume.status.as_ref()?);
    let csi = spec.csi.as_ref().filter(|csi| csi.driver == DRIVER)?;
    let ours = volume.annotations().get(PROVISIONED_BY).is_some_and(|by| by == DRIVER);
    let released = status.phase.as_deref() == Some("Released");
    let delete = spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete");
    (ours && released && delete).then_some(csi.volume_handle.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    fn class(binding: &str) -> StorageClass {
        read(json!({"metadata": {"name": "san"}, "provisioner": DRIVER, "parameters": {"fast": "yes"},
            "volumeBindingMode": binding}))
    }

    fn claim(change: impl FnOnce(&mut Value)) -> PersistentVolumeClaim {
        let mut claim = json!({"metadata": {"name": "data-db-0", "namespace": "shop", "uid": "u1"},
            "spec": {"storageClassName": "san", "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "2Gi"}}},
            "status": {"phase": "Pending"}});
        change(&mut claim);
        read(claim)
    }

    #[test]
    fn a_pending_claim_of_our_class_gets_a_volume_named_after_it() {
        let Wish::Volume(request) = wish(&claim(|_| {}), Some(&class("Immediate"))) else { panic!("no volume") };
        assert_eq!((request.name.as_str(), request.parameters["fast"].as_str()), ("pvc-u1", "yes"));
        assert_eq!(request.capacity_range.unwrap().required_bytes, 2 << 30);
        assert_eq!(request.volume_capabilities, [VolumeCapability::mount(Mode::SingleNodeWriter)]);
    }

    #[test]
    fn who_waits_for_a_pod_or_is_not_ours_gets_none() {
        let nothing = |claim: PersistentVolumeClaim, class: Option<StorageClass>| {
            assert!(matches!(wish(&claim, class.as_ref()), Wish::Nothing), "{claim:?}");
        };
        nothing(claim(|_| {}), None);
        nothing(claim(|_| {}), Some(StorageClass { provisioner: "other".to_owned(), ..class("Immediate") }));
        nothing(claim(|claim| claim["status"]["phase"] = "Bound".into()), Some(class("Immediate")));
        nothing(claim(|claim| claim["spec"]["volumeName"] = "pv1".into()), Some(class("Immediate")));
        nothing(claim(|_| {}), Some(class("WaitForFirstConsumer")));
        let chosen = claim(|claim| claim["metadata"]["annotations"] = json!({SELECTED_NODE: "n1"}));
        assert!(matches!(wish(&chosen, Some(&class("WaitForFirstConsumer"))), Wish::Volume(_)));
    }

    #[test]
    fn what_we_cannot_give_is_said() {
        for (path, value) in [
            ("/spec/volumeMode", json!("Block")),
            ("/spec/accessModes", json!(["ReadWriteTwice"])),
            ("/spec/resources/requests/storage", json!("much")),
        ] {
            let odd = claim(|claim| {
                let (parent, key) = path.rsplit_once('/').unwrap();
                claim.pointer_mut(parent).unwrap()[key] = value;
            });
            assert!(matches!(wish(&odd, Some(&class("Immediate"))), Wish::Impossible(_)), "{path}");
        }
    }

    #[test]
    fn only_a_released_volume_of_ours_is_left_behind() {
        let made = csi::Volume { volume_id: "v1".to_owned(), capacity_bytes: 7, ..csi::Volume::default() };
        let mut value = volume_for(&claim(|_| {}), &class("Immediate"), &made);
        value["status"] = json!({"phase": "Released"});
        let is = |change: &dyn Fn(&mut Value)| {
            let mut value = value.clone();
            change(&mut value);
            left_behind(&read::<PersistentVolume>(value)).map(ToOwned::to_owned)
        };
        assert_eq!(is(&|_| {}).as_deref(), Some("v1"));
        assert_eq!(is(&|volume| volume["status"]["phase"] = "Bound".into()), None);
        assert_eq!(is(&|volume| volume["spec"]["persistentVolumeReclaimPolicy"] = "Retain".into()), None);
        assert_eq!(is(&|volume| volume["spec"]["csi"]["driver"] = "other".into()), None);
        assert_eq!(is(&|volume| volume["metadata"]["annotations"] = json!({})), None);
    }
}
