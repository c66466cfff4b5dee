//! Effects / volumes: which volumes and attachments a node has, and how they come free.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Preconditions};
use palisade_core::effect::{DeleteAttachment, DetachVolumes};
use palisade_core::ident::{AttachmentRef, DriverName, Uid, VolumeName};
use palisade_core::observe::{Access, AttachmentSeen, Mount, VolumeSeen};
use serde_json::json;

use super::pods::Listing;
use super::{Hand, Outcome, conflict, gone};

impl Hand {
    /// The volumes behind the claims and the attachments of the node.
    pub(super) async fn list_volumes(&self, listing: &mut Listing) -> kube::Result<()> {
        let attachments: Api<VolumeAttachment> = Api::all(self.context.client.clone());
        let all = attachments.list(&ListParams::default()).await?.items;
        let ours: Vec<_> = all.into_iter().filter(|seen| seen.spec.node_name == self.node.as_str()).collect();
        let claimed = listing.pods.iter().flat_map(|pod| &pod.mounts).filter_map(|mount| match mount {
            Mount::Claim { volume, .. } => volume.clone(),
            Mount::HostPath | Mount::InlineNetwork | Mount::Private => None,
        });
        let attached = ours.iter().filter_map(|seen| seen.spec.source.persistent_volume_name.clone().map(Into::into));
        let wanted: BTreeSet<Box<str>> = claimed.chain(attached).collect();
        let volumes: Api<PersistentVolume> = Api::all(self.context.client.clone());
        for name in wanted {
            if let Some(volume) = volumes.get_opt(&name).await? {
                listing.volumes.insert(name, volume_seen(&volume));
            }
        }
        for seen in &ours {
            let behind = seen.spec.source.persistent_volume_name.as_deref();
            // An attachment whose volume is gone belongs to nobody's release.
            let Some(volume) = behind.and_then(|name| listing.volumes.get(name)) else { continue };
            listing.attachments.push(AttachmentSeen {
                attachment: AttachmentRef {
                    name: seen.name_any().into(),
                    uid: Uid::new(seen.uid().unwrap_or_default()),
                },
                volume: volume.name.clone(),
                deleting: seen.metadata.deletion_timestamp.is_some(),
                detach_error: seen
                    .status
                    .as_ref()
                    .and_then(|status| status.detach_error.as_ref())
                    .map(|error| error.message.clone().unwrap_or_default().into()),
            });
        }
        Ok(())
    }

    /// Takes volumes out of `volumesInUse`, in the version that the decision saw.
    pub(super) async fn detach(&mut self, detach: &DetachVolumes) -> kube::Result<Outcome> {
        let Some(facts) = &self.facts else { return Ok(Outcome::Nothing) };
        if facts.boot.as_ref() != Some(detach.boot()) {
            let why = "the node shows another boot than the one that is proven to be cut off".to_owned();
            return Ok(Outcome::Failed { effect: "DetachVolumes", why });
        }
        let left: Vec<&str> = facts
            .volumes_in_use
            .iter()
            .filter(|name| !detach.volumes().contains(*name))
            .map(VolumeName::as_str)
            .collect();
        let patch = json!({ "status": { "volumesInUse": left } });
        self.write_node(detach.node(), patch, Some("status")).await
    }

    pub(super) async fn delete_attachment(&mut self, delete: &DeleteAttachment) -> kube::Result<Outcome> {
        if self.too_late(delete.send_before()) {
            let why = format!("{}: the time to delete it is over; it is decided anew", delete.attachment());
            return Ok(Outcome::Failed { effect: "DeleteAttachment", why });
        }
        let attachments: Api<VolumeAttachment> = Api::all(self.context.client.clone());
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(delete.attachment().uid.to_string()),
                resource_version: None,
            }),
            ..DeleteParams::default()
        };
        match attachments.delete(&delete.attachment().name, &params).await {
            Ok(_) => Ok(Outcome::Told),
            Err(why) if conflict(&why) || gone(&why) => Ok(Outcome::Relist),
            Err(why) => Err(why),
        }
    }
}

fn volume_seen(volume: &PersistentVolume) -> VolumeSeen {
    let spec = volume.spec.clone().unwrap_or_default();
    let modes = spec.access_modes.unwrap_or_default();
    let has = |mode: &str| modes.iter().any(|known| known == mode);
    let access = if has("ReadWriteMany") {
        Access::ReadWriteMany
    } else if has("ReadWriteOnce") || has("ReadWriteOncePod") || modes.is_empty() {
        Access::Single
    } else {
        Access::ReadOnlyMany
    };
    let csi = spec.csi.as_ref();
    // As the kubelet and the attach/detach controller spell it.
    let name =
        csi.map_or_else(|| volume.name_any(), |csi| format!("kubernetes.io/csi/{}^{}", csi.driver, csi.volume_handle));
    VolumeSeen {
        name: VolumeName::new(name),
        access,
        local: spec.local.is_some() || spec.host_path.is_some(),
        driver: csi.map(|csi| DriverName::from(csi.driver.as_str())),
        driver_fences: false,
        provider: None,
        healthy: None,
    }
}
