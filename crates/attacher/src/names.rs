//! Names: what we write onto objects of Kubernetes.

/// Where an attachment keeps the node ID for which the volume was published. External-attacher's name for it.
pub(crate) const NODE_ID: &str = "csi.alpha.kubernetes.io/node-id";

/// Where an attachment keeps the driver's name for the volume.
pub(crate) const VOLUME_HANDLE: &str = "palisade.dev/volume-handle";

/// The finalizer of a driver's attacher, on VolumeAttachments and on PersistentVolumes. External-attacher's name for it, so
/// that either can take over from the other.
pub fn finalizer(driver: &str) -> String {
    let plain = |one: char| if one.is_ascii_alphanumeric() || one == '-' { one } else { '-' };
    let mut name: String = driver.chars().map(plain).collect();
    // A finalizer may not end so.
    if name.ends_with('-') {
        name.push('X');
    }
    format!("external-attacher/{name}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finalizer_is_called_as_external_attacher_calls_it() {
        assert_eq!(finalizer("lab.palisade.dev"), "external-attacher/lab-palisade-dev");
        assert_eq!(finalizer("Odd_driver."), "external-attacher/Odd-driver-X");
    }
}
