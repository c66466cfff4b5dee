//! Forbidden: what the API server does not let us do is said once, in the words of whoever can put it right, and once more when
//! it is allowed.
//!
//! Whoever asked is told "no" as by any other error, and tries again at its own pace; nothing here decides anything. A refusal
//! by an admission webhook or a quota is 403 as well, but it is about one object and not about our rights, and is left to
//! whoever asked. So is what is refused for a moment only: an API server that has just started knows no roles yet.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use kube::client::Body;
use tokio::sync::mpsc::UnboundedSender;
use tokio::time::Instant;

use crate::news::News;

/// What is refused for so long is refused.
const LASTS: Duration = Duration::from_secs(5);

/// What a request asks for, in the words of RBAC.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Asked {
    verb: &'static str,
    group: String,
    resource: String,
    namespace: Option<String>,
}

impl Asked {
    /// Of a request; nothing if it is about no resource.
    pub(crate) fn of<B>(request: &Request<B>) -> Option<Self> {
        let mut path = request.uri().path().trim_matches('/').split('/');
        let group = match path.next()? {
            "api" => String::new(),
            "apis" => path.next()?.to_owned(),
            _ => return None,
        };
        let _version = path.next()?;
        let mut rest: Vec<&str> = path.collect();
        let mut namespace = None;
        if rest.len() > 2 && rest.first() == Some(&"namespaces") {
            namespace = rest.get(1).map(|name| (*name).to_owned());
            rest.drain(..2);
        }
        let resource = match (rest.first()?, rest.get(2)) {
            (resource, Some(part)) => format!("{resource}/{part}"),
            (resource, None) => (*resource).to_owned(),
        };
        let watches = request.uri().query().is_some_and(|query| query.split('&').any(|part| part == "watch=true"));
        let verb = match (request.method(), rest.len() > 1) {
            (&Method::GET, true) => "get",
            (&Method::GET, false) if watches => "watch",
            (&Method::GET, false) => "list",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, _) => "delete",
            _ => return None,
        };
        Some(Self { verb, group, resource, namespace })
    }
}

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, namespace } = self;
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        match namespace {
            Some(namespace) => write!(f, " in the namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// What is not allowed, as far as it was tried.
#[derive(Clone)]
pub(crate) struct Forbidden {
    known: Arc<Mutex<BTreeMap<Asked, Refused>>>,
    news: UnboundedSender<News>,
}

#[derive(Clone, Copy)]
struct Refused {
    since: Instant,
    told: bool,
}

impl Forbidden {
    pub(crate) fn told_to(news: UnboundedSender<News>) -> Self {
        Self { known: Arc::default(), news }
    }

    #[cfg(test)]
    pub(crate) fn told_to_nobody() -> Self {
        Self::told_to(tokio::sync::mpsc::unbounded_channel().0)
    }

    /// Takes note of an answer, and passes it on as it is.
    pub(crate) async fn heed(
        &self,
        asked: Option<Asked>,
        answer: Response<Body>,
    ) -> Result<Response<Body>, tower::BoxError> {
        let Some(asked) = asked else { return Ok(answer) };
        if answer.status() != StatusCode::FORBIDDEN {
            if answer.status().is_success() && self.known().remove(&asked).is_some_and(|refused| refused.told) {
                let what = format!("the operator may {asked} again");
                tracing::info!(verb = asked.verb, resource = asked.resource, namespace = asked.namespace, "{what}");
                let _ = self.news.send(News::Allowed { what, now: true });
            }
            return Ok(answer);
        }
        let (parts, body) = answer.into_parts();
        let said = body.collect().await?.to_bytes();
        if is_about_rights(&said, asked.verb) && self.lasts(&asked) {
            let what = format!(
                "the operator may not {asked}; what needs it waits. Apply deploy/palisade.yaml of this version again, or \
                 grant it to the operator's service account"
            );
            tracing::error!(verb = asked.verb, resource = asked.resource, namespace = asked.namespace, "{what}");
            let _ = self.news.send(News::Allowed { what, now: false });
        }
        Ok(Response::from_parts(parts, Body::from(said)))
    }

    /// Whether it has been refused for long enough, and nobody was told yet.
    fn lasts(&self, asked: &Asked) -> bool {
        let mut known = self.known();
        let refused = known.entry(asked.clone()).or_insert_with(|| Refused { since: Instant::now(), told: false });
        let tell = !refused.told && refused.since.elapsed() >= LASTS;
        refused.told |= tell;
        tell
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<Asked, Refused>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As every API server puts it, whoever the authorizer is: `User "…" cannot delete resource "pods" …`.
fn is_about_rights(said: &[u8], verb: &str) -> bool {
    String::from_utf8_lossy(said).contains(&format!("cannot {verb} resource"))
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc::unbounded_channel;

    use super::*;

    fn asked(method: &str, uri: &str) -> String {
        let request = Request::builder().method(method).uri(uri).body(()).unwrap();
        Asked::of(&request).map_or("nothing".to_owned(), |asked| asked.to_string())
    }

    #[test]
    fn a_request_is_told_in_the_words_of_rbac() {
        for (method, uri, words) in [
            ("GET", "/api/v1/nodes?limit=100", "list nodes"),
            ("GET", "/api/v1/nodes?watch=true&timeoutSeconds=60", "watch nodes"),
            ("GET", "/api/v1/nodes/n1", "get nodes"),
            ("PATCH", "/api/v1/nodes/n1/status?", "patch nodes/status"),
            ("DELETE", "/api/v1/namespaces/db/pods/db-0", "delete pods in the namespace db"),
            ("PUT", "/apis/palisade.dev/v1alpha1/nodefences/n1/status", "update nodefences/status.palisade.dev"),
            (
                "POST",
                "/apis/coordination.k8s.io/v1/namespaces/palisade-system/leases",
                "create leases.coordination.k8s.io in the namespace palisade-system",
            ),
            ("GET", "/version", "nothing"),
        ] {
            assert_eq!(asked(method, uri), words, "{method} {uri}");
        }
    }

    async fn heard(forbidden: &Forbidden, status: u16, said: &str) {
        let request = Request::delete("/api/v1/namespaces/db/pods/db-0").body(()).unwrap();
        let answer = Response::builder().status(status).body(Body::from(said.as_bytes().to_vec())).unwrap();
        let passed = forbidden.heed(Asked::of(&request), answer).await.unwrap();
        assert_eq!(passed.status().as_u16(), status);
        assert_eq!(passed.into_body().collect().await.unwrap().to_bytes(), said.as_bytes());
    }

    const NO: &str =
        r#"{"message": "pods \"db-0\" is forbidden: User \"x\" cannot delete resource \"pods\" in API group \"\""}"#;

    #[tokio::test(start_paused = true)]
    async fn an_api_server_that_has_just_started_is_given_a_moment() {
        let (sender, mut news) = unbounded_channel();
        let forbidden = Forbidden::told_to(sender);
        heard(&forbidden, 403, NO).await;
        tokio::time::advance(LASTS / 2).await;
        heard(&forbidden, 403, NO).await;
        heard(&forbidden, 200, "{}").await;
        tokio::time::advance(LASTS).await;
        heard(&forbidden, 403, NO).await;
        assert!(news.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_missing_right_is_told_once_and_once_more_when_it_is_given() {
        let (sender, mut news) = unbounded_channel();
        let forbidden = Forbidden::told_to(sender);
        for _ in 0..4 {
            heard(&forbidden, 403, NO).await;
            tokio::time::advance(LASTS / 2).await;
        }
        heard(&forbidden, 403, r#"{"message": "admission webhook \"w\" denied the request"}"#).await;
        heard(&forbidden, 200, "{}").await;
        heard(&forbidden, 200, "{}").await;
        let mut told = Vec::new();
        while let Ok(News::Allowed { what, now }) = news.try_recv() {
            told.push((what.split(';').next().unwrap_or_default().to_owned(), now));
        }
        let words = |text: &str, now| {
            (format!("the operator may {text} in the namespace db{}", if now { " again" } else { "" }), now)
        };
        assert_eq!(told, [words("not delete pods", false), words("delete pods", true)]);
    }
}
