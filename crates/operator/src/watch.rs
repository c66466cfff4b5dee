//! Watch: one stream per kind, which lists and watches and passes on what it sees.
//!
//! An object that cannot be understood is reported by name and left out; the others go on. An error ends nothing: the watch
//! begins again a moment later, from a list.

use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{StreamExt, pin_mut};
use kube::api::{Api, ObjectMeta};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use palisade_core::ident::NodeName;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;

use crate::news::{News, NotUnderstood};
use crate::rights::NODE_LEASES;
use crate::said::{Said, brief, theme};
use crate::view::{Change, LeanNode, NodeFacts, Seen, seen_lease};

/// A watch that is silent for so long is begun anew: a dead connection is noticed by nobody else.
const TIMEOUT_SECONDS: u32 = 60;
/// A list comes in pages of so many objects: a page is in memory as it came, and a Node is 15 KB and more.
const PAGE: u32 = 100;
/// The pause after an error.
const PAUSE: Duration = Duration::from_secs(1);

/// All watches.
pub(crate) async fn all(client: &kube::Client, news: &UnboundedSender<News>) {
    let node = |node: LeanNode| {
        let facts = NodeFacts::read(&node);
        (NodeName::new(node.metadata.name.unwrap_or_default()), facts)
    };
    let leases = Api::namespaced(client.clone(), NODE_LEASES);
    let mut watches: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
    let node = move |object| understood(object, news).map(node);
    watches.push(Box::pin(run(Api::all(client.clone()), news, node, Seen::Node)));
    // Most of what is seen is a renewal. It has nothing that could be misunderstood, and the guard would double its price.
    watches.push(Box::pin(run(leases, news, |lease| Some(seen_lease(lease)), Seen::Lease)));
    watches.push(boxed(client, news, Seen::Request));
    watches.push(boxed(client, news, Seen::Fence));
    watches.push(boxed(client, news, Seen::Policy));
    watches.push(boxed(client, news, Seen::Config));
    watches.push(boxed(client, news, Seen::Template));
    watches.push(boxed(client, news, Seen::Remedy));
    while watches.next().await.is_some() {}
}

/// A watch of one of our own kinds, which are kept whole.
fn boxed<'a, K>(
    client: &kube::Client,
    news: &'a UnboundedSender<News>,
    seen: fn(Change<Box<K>>) -> Seen,
) -> BoxFuture<'a, ()>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let kept = move |object: DeserializeGuard<K>| understood(object, news).map(Box::new);
    Box::pin(run(Api::all(client.clone()), news, kept, seen))
}

/// Each object is reduced as it comes, so that a long list is never in memory as it came; nothing is left of one that is not
/// understood.
async fn run<K, T>(
    api: Api<K>,
    news: &UnboundedSender<News>,
    reduce: impl Fn(K) -> Option<T> + Send,
    seen: impl Fn(Change<T>) -> Seen + Send,
) where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
    T: Send,
{
    let config = watcher::Config::default().timeout(TIMEOUT_SECONDS).page_size(PAGE);
    let events = watcher::watcher(api, config);
    pin_mut!(events);
    let (mut listing, mut broken) = (Vec::new(), Said::default());
    while let Some(event) = events.next().await {
        if event.is_ok() && broken.is_over() {
            tracing::info!(kind = %K::kind(&()), "is watched again");
        }
        let change = match event {
            Ok(Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listing.extend(reduce(object));
                continue;
            }
            Ok(Event::InitDone) => Change::All(std::mem::take(&mut listing)),
            Ok(Event::Apply(object)) => match reduce(object) {
                Some(object) => Change::Set(object),
                None => continue,
            },
            Ok(Event::Delete(object)) => match reduce(object) {
                Some(object) => Change::Gone(object),
                None => continue,
            },
            Err(why) => {
                if theme(&why).is_some_and(|theme| broken.is_news(&theme)) {
                    tracing::warn!(kind = %K::kind(&()), why = brief(&why), "cannot be watched; it is tried again every second");
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if news.send(News::Seen(seen(change))).is_err() {
            return;
        }
    }
}

/// The object, or a report that it cannot be understood.
fn understood<K: kube::Resource<DynamicType = ()>>(
    object: DeserializeGuard<K>,
    news: &UnboundedSender<News>,
) -> Option<K> {
    match object.0 {
        Ok(object) => Some(object),
        Err(bad) => {
            let report = NotUnderstood {
                kind: K::kind(&()).into_owned(),
                namespace: bad.metadata.namespace.clone(),
                name: name(&bad.metadata),
                uid: bad.metadata.uid.clone().unwrap_or_default(),
                why: bad.error,
            };
            // Whoever no longer listens is on the way out.
            let _ = news.send(News::NotUnderstood(report));
            None
        }
    }
}

fn name(meta: &ObjectMeta) -> String {
    meta.name.clone().unwrap_or_default()
}
