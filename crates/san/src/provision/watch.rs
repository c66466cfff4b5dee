//! Watch: claims, classes and volumes, as they come and go.

use std::time::Duration;

use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::Api;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

/// A watch that is silent for so long is begun anew: a dead connection is noticed by nobody else.
const TIMEOUT_SECONDS: u32 = 60;
/// The pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// What was seen of one kind.
#[derive(Debug)]
pub(super) enum Change<K> {
    /// These are all.
    All(Vec<K>),
    /// This one is so now.
    Set(K),
    /// This one is gone.
    Gone(K),
}

/// What was seen.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "it is on its way for a moment, and few are at a time")]
pub(super) enum News {
    Claims(Change<PersistentVolumeClaim>),
    Classes(Change<StorageClass>),
    Volumes(Change<PersistentVolume>),
}

/// All watches; they never end.
pub(super) async fn all(client: &kube::Client, news: &UnboundedSender<News>) {
    tokio::join!(
        follow(Api::all(client.clone()), news, News::Claims),
        follow(Api::all(client.clone()), news, News::Classes),
        follow(Api::all(client.clone()), news, News::Volumes),
    );
}

async fn follow<K>(api: Api<DeserializeGuard<K>>, news: &UnboundedSender<News>, tell: fn(Change<K>) -> News)
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher::watcher(api, watcher::Config::default().timeout(TIMEOUT_SECONDS));
    pin_mut!(events);
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        let change = match event {
            Ok(Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listing.extend(understood(object));
                continue;
            }
            Ok(Event::InitDone) => Some(Change::All(std::mem::take(&mut listing))),
            Ok(Event::Apply(object)) => understood(object).map(Change::Set),
            Ok(Event::Delete(object)) => understood(object).map(Change::Gone),
            Err(why) => {
                tracing::warn!(kind = %K::kind(&()), %why, "watch broke, it begins anew");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if let Some(change) = change
            && news.send(tell(change)).is_err()
        {
            return;
        }
    }
}

fn understood<K: kube::Resource<DynamicType = ()>>(object: DeserializeGuard<K>) -> Option<K> {
    match object.0 {
        Ok(object) => Some(object),
        Err(bad) => {
            let name = bad.metadata.name.unwrap_or_default();
            tracing::warn!(kind = %K::kind(&()), name, why = bad.error, "not understood, left out");
            None
        }
    }
}
