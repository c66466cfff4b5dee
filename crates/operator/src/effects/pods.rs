//! Effects / pods: what runs on a node is listed, marked and removed.
//!
//! Pods are listed on demand, by `spec.nodeName`: there is no watch on all pods.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodCondition, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, Preconditions};
use palisade_core::effect::{MarkPod, RemovePod};
use palisade_core::ident::{PodRef, ResourceVersion, Uid};
use palisade_core::observe::{AttachmentSeen, Deletion, Mount, Owner, PodSeen, VolumeSeen};
use palisade_core::planted::{self, Bug};
use serde_json::json;

use super::{Hand, Outcome, conflict, gone};

/// What was listed of a node, live.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) pods: Vec<PodSeen>,
    /// The conditions of each pod: what is patched beside them must not be lost.
    pub(crate) conditions: BTreeMap<Uid, Vec<PodCondition>>,
    pub(crate) volumes: BTreeMap<Box<str>, VolumeSeen>,
    pub(crate) attachments: Vec<AttachmentSeen>,
}

impl Hand {
    pub(super) async fn list(&mut self) -> kube::Result<Outcome> {
        let pods: Api<Pod> = Api::all(self.context.client.clone());
        let of_node = ListParams::default().fields(&format!("spec.nodeName={}", self.node));
        let found = pods.list(&of_node).await?.items;
        let mut listing = Listing::default();
        let claims = self.claims(&found).await?;
        for pod in &found {
            let uid = Uid::new(pod.uid().unwrap_or_default());
            let conditions = pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
            listing.conditions.insert(uid, conditions);
            listing.pods.push(pod_seen(pod, &claims, self.fence.creation_timestamp().as_ref()));
        }
        self.list_volumes(&mut listing).await?;
        let listing = std::sync::Arc::new(listing);
        self.listing = Some(std::sync::Arc::clone(&listing));
        Ok(Outcome::Listed(listing))
    }

    /// The volume behind each claim of these pods, by namespace and name.
    async fn claims(&self, pods: &[Pod]) -> kube::Result<BTreeMap<(String, String), Option<Box<str>>>> {
        let mut found = BTreeMap::new();
        for pod in pods {
            let namespace = pod.namespace().unwrap_or_default();
            for name in volumes_of(pod).iter().filter_map(|volume| claim_name(pod, volume)) {
                let key = (namespace.clone(), name);
                if found.contains_key(&key) {
                    continue;
                }
                let claims: Api<PersistentVolumeClaim> = Api::namespaced(self.context.client.clone(), &namespace);
                let claim = claims.get_opt(&key.1).await?;
                let volume = claim.and_then(|claim| claim.spec).and_then(|spec| spec.volume_name);
                found.insert(key, volume.map(Into::into));
            }
        }
        Ok(found)
    }

    pub(super) async fn mark(&mut self, mark: &MarkPod) -> kube::Result<Outcome> {
        if self.too_late(mark.send_before()) {
            let why = format!("{}: the time to mark it is over; it is decided anew", mark.pod());
            return Ok(Outcome::Failed { effect: "MarkPod", why });
        }
        let params = DeleteParams {
            grace_period_seconds: Some(mark.grace_seconds()),
            preconditions: Some(Preconditions {
                uid: Some(mark.pod().uid.to_string()),
                resource_version: Some(mark.resource_version().to_string()),
            }),
            ..DeleteParams::default()
        };
        self.delete(mark.pod(), &params).await
    }

    /// As the pod garbage collector does: told to have failed first, so that whoever counts pods understands; then gone.
    pub(super) async fn remove(&mut self, remove: &RemovePod) -> kube::Result<Outcome> {
        let pod = remove.pod();
        let mut conditions: Vec<PodCondition> =
            self.listing.as_ref().and_then(|listing| listing.conditions.get(&pod.uid)).cloned().unwrap_or_default();
        conditions.retain(|condition| condition.type_ != "DisruptionTarget");
        conditions.push(PodCondition {
            type_: "DisruptionTarget".to_owned(),
            status: "True".to_owned(),
            reason: Some("DeletionByPalisade".to_owned()),
            message: Some(
                "its node is proven to be cut off; the pod is removed so that its owner can make another".to_owned(),
            ),
            last_transition_time: Some(Time(self.context.clock.wall())),
            ..PodCondition::default()
        });
        let failed = json!({
            "metadata": { "uid": pod.uid.as_str() },
            "status": { "phase": "Failed", "conditions": conditions },
        });
        let pods = self.pods(pod);
        if let Err(why) = pods.patch_status(&pod.name, &PatchParams::default(), &Patch::Merge(failed)).await {
            tracing::debug!(%pod, %why, "its phase was not set; it is removed all the same");
        }
        let mut uid = pod.uid.to_string();
        if planted::is(Bug::DeletesTheSuccessor)
            && let Some(found) = pods.get_opt(&pod.name).await?
        {
            uid = found.uid().unwrap_or_default();
        }
        let params = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(Preconditions { uid: Some(uid), resource_version: None }),
            ..DeleteParams::default()
        };
        self.delete(pod, &params).await
    }

    async fn delete(&mut self, pod: &PodRef, params: &DeleteParams) -> kube::Result<Outcome> {
        let blind = DeleteParams { preconditions: None, ..params.clone() };
        let params = if planted::is(Bug::NoUidPrecondition) { &blind } else { params };
        match self.pods(pod).delete(&pod.name, params).await {
            Ok(_) => Ok(Outcome::Told),
            Err(why) if conflict(&why) || gone(&why) => Ok(Outcome::Relist),
            Err(why) => Err(why),
        }
    }

    fn pods(&self, pod: &PodRef) -> Api<Pod> {
        Api::namespaced(self.context.client.clone(), &pod.namespace)
    }
}

fn volumes_of(pod: &Pod) -> &[Volume] {
    pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default()
}

/// The claim behind a volume of a pod: named, or made for the pod alone.
fn claim_name(pod: &Pod, volume: &Volume) -> Option<String> {
    if let Some(claim) = &volume.persistent_volume_claim {
        return Some(claim.claim_name.clone());
    }
    volume.ephemeral.as_ref().map(|_| format!("{}-{}", pod.name_any(), volume.name))
}

fn pod_seen(pod: &Pod, claims: &BTreeMap<(String, String), Option<Box<str>>>, fenced: Option<&Time>) -> PodSeen {
    let (spec, status) = (pod.spec.clone().unwrap_or_default(), pod.status.clone().unwrap_or_default());
    let namespace = pod.namespace().unwrap_or_default();
    let mount = |volume: &Volume| match claim_name(pod, volume) {
        Some(name) => Mount::Claim {
            volume: claims.get(&(namespace.clone(), name)).cloned().flatten(),
            read_only: volume.persistent_volume_claim.as_ref().is_some_and(|claim| claim.read_only == Some(true)),
        },
        None => plain_mount(volume),
    };
    PodSeen {
        pod: PodRef {
            namespace: namespace.clone().into(),
            name: pod.name_any().into(),
            uid: Uid::new(pod.uid().unwrap_or_default()),
        },
        resource_version: ResourceVersion::new(pod.resource_version().unwrap_or_default()),
        owner: owner(pod),
        labels: pod.labels().clone(),
        grace: u32::try_from(spec.termination_grace_period_seconds.unwrap_or(30)).unwrap_or(30),
        deletion: match (&pod.metadata.deletion_timestamp, pod.metadata.deletion_grace_period_seconds) {
            (None, _) => Deletion::No,
            (Some(_), Some(0)) => Deletion::Forced,
            (Some(_), _) => Deletion::Marked,
        },
        finalizers: !pod.finalizers().is_empty(),
        completed: matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")),
        after_taint: after_taint(pod, fenced),
        mounts: volumes_of(pod).iter().map(mount).collect(),
        pdb_blocks: false,
    }
}

fn owner(pod: &Pod) -> Owner {
    if pod.annotations().contains_key("kubernetes.io/config.mirror") {
        return Owner::Static;
    }
    let controller = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    match controller.map(|owner| owner.kind.as_str()) {
        Some("StatefulSet") => Owner::StatefulSet,
        Some("DaemonSet") => Owner::DaemonSet,
        Some("Node") => Owner::Static,
        Some(_) => Owner::Replaces,
        None => Owner::Nobody,
    }
}

/// Created after the fence was, and so perhaps after our taint. Both stamps are the API server's own, where the taint's would
/// be by our wall clock; a pod that is wrongly called later only stays.
fn after_taint(pod: &Pod, fenced: Option<&Time>) -> bool {
    fenced.zip(pod.creation_timestamp()).is_some_and(|(fenced, created)| created.0 > fenced.0)
}

fn plain_mount(volume: &Volume) -> Mount {
    let network = volume.nfs.is_some()
        || volume.csi.is_some()
        || volume.iscsi.is_some()
        || volume.rbd.is_some()
        || volume.cephfs.is_some()
        || volume.glusterfs.is_some()
        || volume.fc.is_some()
        || volume.azure_disk.is_some()
        || volume.azure_file.is_some()
        || volume.aws_elastic_block_store.is_some()
        || volume.gce_persistent_disk.is_some()
        || volume.cinder.is_some()
        || volume.vsphere_volume.is_some()
        || volume.flex_volume.is_some()
        || volume.portworx_volume.is_some()
        || volume.quobyte.is_some()
        || volume.scale_io.is_some()
        || volume.storageos.is_some();
    if volume.host_path.is_some() {
        Mount::HostPath
    } else if network {
        Mount::InlineNetwork
    } else {
        Mount::Private
    }
}
