//! Operator / allowed: may it do what it has to do?
//!
//! The API server is asked about each right of [`rights::ALL`], as `kubectl auth can-i` does. With one that is missing a fence
//! could stop half-way, with a machine off and its pods where they were; so it is not even begun.

use k8s_openapi::api::authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec};
use kube::Client;
use kube::api::{Api, PostParams};
use palisade_operator::rights::{self, NODE_LEASES, Place, Right};

use super::ready::Missing;

pub(super) async fn everything(client: &Client, namespace: &str) -> Result<(), Missing> {
    let reviews: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let (mut denied, mut lost) = (Vec::new(), Vec::new());
    let mut asked: Vec<ResourceAttributes> = Vec::new();
    for right in rights::ALL {
        for verb in right.verbs {
            let about = attributes(right, verb, namespace);
            // Several files need the same.
            if asked.contains(&about) {
                continue;
            }
            let spec = SelfSubjectAccessReviewSpec { resource_attributes: Some(about.clone()), ..Default::default() };
            let review = SelfSubjectAccessReview { spec, ..Default::default() };
            let allowed = match reviews.create(&PostParams::default(), &review).await {
                Ok(answer) => answer.status.is_some_and(|status| status.allowed),
                Err(kube::Error::Api(status)) if status.code == 404 || status.code == 403 => {
                    tracing::warn!("what the operator may do cannot be asked ({}); it will show", status.message);
                    return Ok(());
                }
                Err(why) => {
                    let why = anyhow::Error::from(why);
                    return Err(Missing(format!("the API server does not say what the operator may do: {why:#}")));
                }
            };
            if !allowed {
                let list = if right.is_dispensable() { &mut lost } else { &mut denied };
                list.push(words(right, verb, namespace));
            }
            asked.push(about);
        }
    }
    if !lost.is_empty() {
        tracing::warn!("the operator may not {}; people will not be told by Events", lost.join(", "));
    }
    if denied.is_empty() {
        return Ok(());
    }
    Err(Missing(format!(
        "the operator may not {}; nothing is done before it may. Apply deploy/palisade.yaml of this version, whose roles grant \
         it, or bind them to the account that is used",
        denied.join(", ")
    )))
}

fn place(right: &Right, namespace: &str) -> Option<String> {
    match right.place {
        Place::Cluster => None,
        Place::OwnNamespace => Some(namespace.to_owned()),
        Place::NodeLeases => Some(NODE_LEASES.to_owned()),
    }
}

fn attributes(right: &Right, verb: &str, namespace: &str) -> ResourceAttributes {
    let (resource, part) = right.parts();
    ResourceAttributes {
        group: Some(right.group.to_owned()),
        resource: Some(resource.to_owned()),
        subresource: part.map(ToOwned::to_owned),
        verb: Some(verb.to_owned()),
        namespace: place(right, namespace),
        name: right.name.map(ToOwned::to_owned),
        ..ResourceAttributes::default()
    }
}

fn words(right: &Right, verb: &str, namespace: &str) -> String {
    let group = if right.group.is_empty() { String::new() } else { format!(".{}", right.group) };
    let place = place(right, namespace).map(|place| format!(" in {place}")).unwrap_or_default();
    format!("{verb} {}{group}{place}", right.resource)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use kube::client::Body;
    use serde_json::{Value, json};

    use super::*;

    /// A cluster that allows everything but this; and everything that was asked.
    fn cluster(denies: fn(&Value) -> bool) -> (Client, Arc<Mutex<Vec<Value>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&asked);
        let service = tower::service_fn(move |request: http::Request<Body>| {
            let noted = Arc::clone(&noted);
            async move {
                let body = request.into_body().collect_bytes().await?;
                let mut review: Value = serde_json::from_slice(&body)?;
                let about = review["spec"]["resourceAttributes"].clone();
                review["status"] = json!({ "allowed": !denies(&about) });
                noted.lock().unwrap().push(about);
                Ok::<_, tower::BoxError>(http::Response::new(Body::from(review.to_string().into_bytes())))
            }
        });
        (Client::new(service, "default"), asked)
    }

    #[tokio::test]
    async fn whoever_may_everything_is_asked_each_thing_once() {
        let (client, asked) = cluster(|_| false);
        assert!(everything(&client, "palisade-system").await.is_ok());
        let mut asked: Vec<String> = asked.lock().unwrap().iter().map(ToString::to_string).collect();
        let all = asked.len();
        asked.sort();
        asked.dedup();
        assert_eq!(asked.len(), all);
        assert!(asked.iter().any(|one| one.contains("secrets") && one.contains("palisade-system")), "{asked:?}");
    }

    #[tokio::test]
    async fn what_is_missing_is_named_with_the_way_out() {
        let (client, _) = cluster(|about| {
            (about["resource"] == "pods" && about["verb"] == "delete")
                || (about["resource"] == "nodes" && about["subresource"] == "status")
                || about["resource"] == "secrets"
        });
        let Err(Missing(said)) = everything(&client, "fencing").await else { panic!("it is not allowed") };
        for words in ["patch nodes/status", "delete pods", "get secrets in fencing", "deploy/palisade.yaml"] {
            assert!(said.contains(words), "no {words:?} in: {said}");
        }
    }

    #[tokio::test]
    async fn events_alone_hold_nobody_up() {
        let (client, _) = cluster(|about| about["resource"] == "events");
        assert!(everything(&client, "palisade-system").await.is_ok());
    }
}
