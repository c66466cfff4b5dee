//! Watch: attachments, volumes and nodes of one driver, as they come and go.
//!
//! An object that cannot be understood is reported by name and left out; the others go on. An error ends nothing: the watch
//! begins again a moment later, from a list.

use std::time::Duration;

use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::{CSINode, VolumeAttachment};
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use crate::view::{Change, NodeEntry};

/// A watch that is silent for so long is begun anew: a dead connection is noticed by nobody else.
const TIMEOUT_SECONDS: u32 = 60;
/// The pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// What was seen.
#[derive(Debug)]
pub(crate) enum News {
    Attachments(Change<VolumeAttachment>),
    Volumes(Change<PersistentVolume>),
    Nodes(Change<NodeEntry>),
}

/// All watches; they never end.
pub(crate) async fn all(client: &kube::Client, driver: &str, news: &UnboundedSender<News>) {
    let attachment = |attachment: VolumeAttachment| (attachment.spec.attacher == driver).then(|| lean(attachment));
    let volume = |volume: PersistentVolume| {
        let csi = volume.spec.as_ref().and_then(|spec| spec.csi.as_ref());
        csi.is_some_and(|csi| csi.driver == driver).then(|| lean(volume))
    };
    let node = |node: CSINode| Some(NodeEntry { node_id: node_id(&node, driver), node: node.name_any() });
    tokio::join!(
        follow(Api::all(client.clone()), news, attachment, News::Attachments),
        follow(Api::all(client.clone()), news, volume, News::Volumes),
        follow(Api::all(client.clone()), news, node, News::Nodes),
    );
}

/// The ID that a driver has on a node.
pub(crate) fn node_id(node: &CSINode, driver: &str) -> Option<String> {
    node.spec.drivers.iter().find(|one| one.name == driver).map(|one| one.node_id.clone())
}

/// Without what nobody here reads.
fn lean<K: Resource>(mut object: K) -> K {
    object.meta_mut().managed_fields = None;
    object
}

async fn follow<K, T>(
    api: Api<DeserializeGuard<K>>,
    news: &UnboundedSender<News>,
    reduce: impl Fn(K) -> Option<T>,
    tell: fn(Change<T>) -> News,
) where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher::watcher(api, watcher::Config::default().timeout(TIMEOUT_SECONDS));
    pin_mut!(events);
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        let reduced = |object| understood(object).and_then(&reduce);
        let change = match event {
            Ok(Event::Init) => {
                listing.clear();
                None
            }
            Ok(Event::InitApply(object)) => {
                listing.extend(reduced(object));
                None
            }
            Ok(Event::InitDone) => Some(Change::All(std::mem::take(&mut listing))),
            Ok(Event::Apply(object)) => reduced(object).map(Change::Set),
            Ok(Event::Delete(object)) => reduced(object).map(Change::Gone),
            Err(why) => {
                tracing::warn!(kind = %K::kind(&()), %why, "watch broke, it begins anew");
                tokio::time::sleep(PAUSE).await;
                None
            }
        };
        if let Some(change) = change
            && news.send(tell(change)).is_err()
        {
            return;
        }
    }
}

fn understood<K: Resource<DynamicType = ()>>(object: DeserializeGuard<K>) -> Option<K> {
    match object.0 {
        Ok(object) => Some(object),
        Err(bad) => {
            let name = bad.metadata.name.unwrap_or_default();
            tracing::error!(kind = %K::kind(&()), name, why = bad.error, "not understood, left out");
            None
        }
    }
}
