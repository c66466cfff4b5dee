//! Events: what people see with `kubectl describe`. Best effort: an Event that is lost changes nothing.

use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::api::{Api, ObjectMeta, PostParams};
use palisade_api::names;
use tokio::sync::mpsc::UnboundedSender;

use crate::context::Context;
use crate::news::News;

/// The longest message that the API server takes.
const LONGEST: usize = 1024;

/// Whether somebody has to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Normal,
    Warning,
}

/// Tells people about an object, once it is polled.
pub(crate) fn tell(
    context: &Context,
    news: &UnboundedSender<News>,
    about: ObjectReference,
    tone: Tone,
    reason: &str,
    message: &str,
) -> impl Future<Output = ()> + Send + 'static + use<> {
    // Events of cluster-scoped objects live in `default`, as kubectl describe looks for them there.
    let namespace = about.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let now = Time(context.clock.wall());
    let event = Event {
        metadata: ObjectMeta {
            generate_name: Some(format!("{}.", about.name.clone().unwrap_or_default())),
            namespace: Some(namespace.clone()),
            ..ObjectMeta::default()
        },
        involved_object: about,
        type_: Some(if tone == Tone::Warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(reason.to_owned()),
        message: Some(message.chars().take(LONGEST).collect()),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        count: Some(1),
        source: Some(EventSource { component: Some(names::FIELD_MANAGER.to_owned()), ..EventSource::default() }),
        reporting_component: Some(names::FIELD_MANAGER.to_owned()),
        ..Event::default()
    };
    let (events, news): (Api<Event>, _) = (Api::namespaced(context.client.clone(), &namespace), news.clone());
    async move {
        if events.create(&PostParams::default(), &event).await.is_ok() {
            let _ = news.send(News::Answered);
        }
    }
}

/// Refers to an object of ours or of Kubernetes.
pub(crate) fn about<K: kube::Resource<DynamicType = ()>>(object: &K) -> ObjectReference {
    object.object_ref(&())
}
