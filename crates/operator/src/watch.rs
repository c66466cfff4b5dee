//! Watch: one task per kind, which lists and watches and passes on what it sees.
//!
//! An object that cannot be understood is reported by name and left out; the others go on. An error ends nothing: the watch
//! begins again a moment later, from a list.

use std::time::Duration;

use futures_util::{StreamExt, pin_mut};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ObjectMeta};
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, Event};
use palisade_api::{FenceConfig, FencePolicy, FenceTemplate, NodeFence, NodeFencingRequest, NodeRemedy};
use palisade_core::ident::NodeName;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinSet;

use crate::news::{News, NotUnderstood};
use crate::view::{Change, NodeFacts, Seen, seen_lease};

/// A watch that is silent for so long is begun anew: a dead connection is noticed by nobody else.
const TIMEOUT_SECONDS: u32 = 60;
/// The pause after an error.
const PAUSE: Duration = Duration::from_secs(1);
/// Where kubelets keep their leases.
const NODE_LEASES: &str = "kube-node-lease";

/// Starts all watches.
pub(crate) fn start(client: &kube::Client, news: &UnboundedSender<News>, tasks: &mut JoinSet<()>) {
    let node = |node: Node| (NodeName::new(name(&node.metadata)), NodeFacts::read(&node));
    tasks.spawn(run(Api::all(client.clone()), news.clone(), move |change| Seen::Node(map(change, node))));
    let lease = |lease: Lease| (NodeName::new(name(&lease.metadata)), seen_lease(&lease));
    let leases = Api::namespaced(client.clone(), NODE_LEASES);
    tasks.spawn(run(leases, news.clone(), move |change| Seen::Lease(map(change, lease))));
    tasks.spawn(run(Api::<_>::all(client.clone()), news.clone(), |change| {
        Seen::Request(map(change, Box::<NodeFencingRequest>::new))
    }));
    tasks.spawn(run(Api::all(client.clone()), news.clone(), |change| Seen::Fence(map(change, Box::<NodeFence>::new))));
    tasks.spawn(run(Api::all(client.clone()), news.clone(), |change| {
        Seen::Policy(map(change, Box::<FencePolicy>::new))
    }));
    tasks.spawn(run(Api::all(client.clone()), news.clone(), |change| {
        Seen::Config(map(change, Box::<FenceConfig>::new))
    }));
    tasks.spawn(run(Api::all(client.clone()), news.clone(), |change| {
        Seen::Template(map(change, Box::<FenceTemplate>::new))
    }));
    tasks
        .spawn(run(Api::all(client.clone()), news.clone(), |change| Seen::Remedy(map(change, Box::<NodeRemedy>::new))));
}

async fn run<K>(api: Api<DeserializeGuard<K>>, news: UnboundedSender<News>, seen: impl Fn(Change<K>) -> Seen + Send)
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let config = watcher::Config::default().timeout(TIMEOUT_SECONDS);
    let events = watcher::watcher(api, config);
    pin_mut!(events);
    let mut listing = Vec::new();
    while let Some(event) = events.next().await {
        let change = match event {
            Ok(Event::Init) => {
                listing.clear();
                continue;
            }
            Ok(Event::InitApply(object)) => {
                listing.extend(understood(object, &news));
                continue;
            }
            Ok(Event::InitDone) => Change::All(std::mem::take(&mut listing)),
            Ok(Event::Apply(object)) => match understood(object, &news) {
                Some(object) => Change::Set(object),
                None => continue,
            },
            Ok(Event::Delete(object)) => match understood(object, &news) {
                Some(object) => Change::Gone(object),
                None => continue,
            },
            Err(why) => {
                tracing::warn!(kind = %K::kind(&()), %why, "watch broke, it begins anew");
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

fn map<T, U>(change: Change<T>, make: impl Fn(T) -> U) -> Change<U> {
    match change {
        Change::All(all) => Change::All(all.into_iter().map(make).collect()),
        Change::Set(one) => Change::Set(make(one)),
        Change::Gone(one) => Change::Gone(make(one)),
    }
}

fn name(meta: &ObjectMeta) -> String {
    meta.name.clone().unwrap_or_default()
}
