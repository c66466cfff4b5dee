//! Capability: how a PersistentVolume may be used, in CSI's words. As external-attacher has it.

use k8s_openapi::api::core::v1::PersistentVolumeSpec;
use palisade_csi::messages::volume::{AccessMode, AccessType, BlockVolume, Mode, MountVolume, VolumeCapability};

/// What a volume is formatted with if nobody says.
const USUAL_FS: &str = "ext4";

/// How a PersistentVolume may be used, or why that cannot be said. `tells_writers`: the driver tells one workload on a node
/// from many (`SINGLE_NODE_MULTI_WRITER`).
pub(crate) fn of(spec: &PersistentVolumeSpec, tells_writers: bool) -> Result<VolumeCapability, &'static str> {
    let access_type = if spec.volume_mode.as_deref() == Some("Block") {
        AccessType::Block(BlockVolume {})
    } else {
        let fs_type = spec.csi.as_ref().and_then(|csi| csi.fs_type.as_deref()).filter(|fs_type| !fs_type.is_empty());
        AccessType::Mount(MountVolume {
            fs_type: fs_type.unwrap_or(USUAL_FS).to_owned(),
            mount_flags: spec.mount_options.clone().unwrap_or_default(),
            ..MountVolume::default()
        })
    };
    let mode = mode(spec.access_modes.as_deref().unwrap_or_default(), tells_writers)?;
    Ok(VolumeCapability { access_type: Some(access_type), access_mode: Some(AccessMode { mode: mode.into() }) })
}

fn mode(modes: &[String], tells_writers: bool) -> Result<Mode, &'static str> {
    let has = |wanted: &str| modes.iter().any(|mode| mode == wanted);
    let only = |wanted: &str| modes.iter().all(|mode| mode == wanted);
    if has("ReadWriteOncePod") {
        return match (only("ReadWriteOncePod"), tells_writers) {
            (false, _) => Err("ReadWriteOncePod does not go with another access mode"),
            (true, true) => Ok(Mode::SingleNodeSingleWriter),
            (true, false) => Ok(Mode::SingleNodeWriter),
        };
    }
    match (has("ReadWriteMany"), has("ReadOnlyMany"), has("ReadWriteOnce")) {
        (true, _, _) => Ok(Mode::MultiNodeMultiWriter),
        (false, true, true) => Err("CSI has no access mode that is ReadOnlyMany and ReadWriteOnce"),
        (false, true, false) => Ok(Mode::MultiNodeReaderOnly),
        (false, false, true) if tells_writers => Ok(Mode::SingleNodeMultiWriter),
        (false, false, true) => Ok(Mode::SingleNodeWriter),
        (false, false, false) => Err("the PersistentVolume has no access mode that is known"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn access_modes_are_mapped_as_external_attacher_maps_them() {
        let of = |modes: &[&str], tells_writers| {
            let modes: Vec<String> = modes.iter().map(|mode| (*mode).to_owned()).collect();
            mode(&modes, tells_writers).ok()
        };
        let table = [
            (&["ReadWriteOnce"][..], Some(Mode::SingleNodeWriter), Some(Mode::SingleNodeMultiWriter)),
            (&["ReadWriteOncePod"], Some(Mode::SingleNodeWriter), Some(Mode::SingleNodeSingleWriter)),
            (&["ReadOnlyMany"], Some(Mode::MultiNodeReaderOnly), Some(Mode::MultiNodeReaderOnly)),
            (&["ReadWriteMany"], Some(Mode::MultiNodeMultiWriter), Some(Mode::MultiNodeMultiWriter)),
            (&["ReadWriteOnce", "ReadWriteMany"], Some(Mode::MultiNodeMultiWriter), Some(Mode::MultiNodeMultiWriter)),
            (&["ReadWriteOnce", "ReadOnlyMany"], None, None),
            (&["ReadWriteOncePod", "ReadWriteOnce"], None, None),
            (&["Sometimes"], None, None),
            (&[], None, None),
        ];
        for (modes, simple, telling) in table {
            assert_eq!((of(modes, false), of(modes, true)), (simple, telling), "{modes:?}");
        }
    }

    #[test]
    fn a_file_system_is_ext4_unless_said_and_a_block_device_has_none() {
        let read = |value| -> PersistentVolumeSpec { serde_json::from_value(value).unwrap() };
        let mount = |spec: PersistentVolumeSpec| match of(&spec, false).unwrap().access_type {
            Some(AccessType::Mount(mount)) => mount,
            other => panic!("{other:?}"),
        };
        let csi = json!({"driver": "d", "volumeHandle": "v"});
        let plain = mount(read(json!({"accessModes": ["ReadWriteOnce"], "csi": csi, "mountOptions": ["noatime"]})));
        assert_eq!((plain.fs_type.as_str(), plain.mount_flags), ("ext4", vec!["noatime".to_owned()]));
        let xfs = json!({"driver": "d", "volumeHandle": "v", "fsType": "xfs"});
        assert_eq!(mount(read(json!({"accessModes": ["ReadWriteOnce"], "csi": xfs}))).fs_type, "xfs");
        let block = read(json!({"accessModes": ["ReadWriteOnce"], "csi": csi, "volumeMode": "Block"}));
        assert_eq!(of(&block, false).unwrap().access_type, Some(AccessType::Block(BlockVolume {})));
    }
}
