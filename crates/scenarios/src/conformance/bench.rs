//! Conformance / bench: the place at which one check works: a client, names of its own, and a broom.

use std::fmt::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use http::{Method, Request, header};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::{Answer, text, version};
use super::lines::Lines;
use super::places::at;
use super::{Check, Told};

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";
const JSON_PATCH: &str = "application/json-patch+json";
/// How often a check looks that waits for a controller.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// Where a check works.
pub struct Bench {
    client: Client,
    prefix: String,
    /// Paths of what was made, to be removed in the end.
    made: Mutex<Vec<String>>,
}

impl fmt::Debug for Bench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// An object that a check made, as it was when it was made.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) path: String,
    pub(super) object: Value,
}

impl Made {
    pub(super) fn name(&self) -> &str {
        text(&self.object, "/metadata/name")
    }

    pub(super) fn uid(&self) -> &str {
        text(&self.object, "/metadata/uid")
    }

    pub(super) fn version(&self) -> &str {
        text(&self.object, "/metadata/resourceVersion")
    }

    /// Its status, as it is written apart.
    pub(super) fn status(&self) -> String {
        format!("{}/status", self.path)
    }
}

impl Bench {
    /// A bench whose objects all begin with this prefix.
    pub(super) fn new(client: Client, prefix: String) -> Self {
        Self { client, prefix, made: Mutex::default() }
    }

    /// Plays one check and cleans up after it, however it ends.
    pub(super) async fn play(&self, check: &Check, patience: Duration) -> Told {
        let played = tokio::time::timeout(patience, (check.run)(self)).await;
        self.clean().await;
        played.unwrap_or_else(|_| Err(format!("not over after {patience:?}")))
    }

    /// A name that no other check has.
    pub(super) fn name(&self, word: &str) -> String {
        format!("{}-{word}", self.prefix)
    }

    /// Makes an object, and remembers to remove it.
    pub(super) async fn make(&self, place: &str, object: Value) -> Told<Made> {
        let object = self.post(place, &object).await?.is(201)?;
        Ok(self.remember(place, object))
    }

    /// Remembers to remove an object that came about by another way.
    pub(super) fn remember(&self, place: &str, object: Value) -> Made {
        let path = at(place, text(&object, "/metadata/name"));
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Made { path, object }
    }

    /// An object as it is now.
    pub(super) async fn read(&self, path: &str) -> Told<Value> {
        self.get(path).await?.is(200)
    }

    /// An object has to be gone.
    pub(super) async fn gone(&self, path: &str) -> Told {
        self.get(path).await?.refused(404, "NotFound").map(drop)
    }

    /// An object has to be there in the version in which it was.
    pub(super) async fn untouched(&self, path: &str, was: &Value) -> Told {
        let now = self.read(path).await?;
        super::answer::same("resourceVersion", version(&now), version(was))
    }

    /// Waits until an object is as wanted; says what it was last if it never is. Null stands for one that is gone.
    pub(super) async fn until(&self, path: &str, limit: Duration, so: impl Fn(&Value) -> bool) -> Told<Value> {
        let end = Instant::now() + limit;
        loop {
            let answer = self.get(path).await?;
            let object = if answer.code == 404 { Value::Null } else { answer.is(200)? };
            if so(&object) {
                return Ok(object);
            }
            if Instant::now() >= end {
                return Err(format!("{path} is not as wanted after {limit:?}: {object}"));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// An object has to be as wanted for all this time.
    pub(super) async fn holds(&self, path: &str, time: Duration, so: impl Fn(&Value) -> bool) -> Told {
        let begin = Instant::now();
        match self.until(path, time, |object| !so(object)).await {
            Ok(object) => Err(format!("{path} was not as wanted after {:?}: {object}", begin.elapsed())),
            Err(_) => Ok(()),
        }
    }

    pub(super) async fn get(&self, path: &str) -> Told<Answer> {
        self.send(Method::GET, path, JSON, JSON, Vec::new()).await
    }

    /// GET in another form, such as a table.
    pub(super) async fn get_as(&self, path: &str, accept: &str) -> Told<Answer> {
        self.send(Method::GET, path, JSON, accept, Vec::new()).await
    }

    pub(super) async fn post(&self, path: &str, object: &Value) -> Told<Answer> {
        self.send(Method::POST, path, JSON, JSON, bytes(object)).await
    }

    pub(super) async fn put(&self, path: &str, object: &Value) -> Told<Answer> {
        self.send(Method::PUT, path, JSON, JSON, bytes(object)).await
    }

    /// A merge patch.
    pub(super) async fn merge(&self, path: &str, changes: &Value) -> Told<Answer> {
        self.send(Method::PATCH, path, MERGE, JSON, bytes(changes)).await
    }

    /// A JSON patch.
    pub(super) async fn patch(&self, path: &str, operations: &Value) -> Told<Answer> {
        self.send(Method::PATCH, path, JSON_PATCH, JSON, bytes(operations)).await
    }

    pub(super) async fn delete(&self, path: &str, options: &Value) -> Told<Answer> {
        self.send(Method::DELETE, path, JSON, JSON, bytes(options)).await
    }

    /// Any request at all.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        media: &str,
        accept: &str,
        body: Vec<u8>,
    ) -> Told<Answer> {
        let asked = format!("{method} {path}");
        let response = self.request(method, path, media, accept, body).await?;
        let (parts, body) = response.into_parts();
        let body = body.collect_bytes().await.map_err(|why| format!("{asked}: {why}"))?;
        // What is not JSON, such as `404 page not found`, is compared as text.
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| json!(String::from_utf8_lossy(&body)));
        Ok(Answer { asked, code: parts.status.as_u16(), headers: parts.headers, body })
    }

    /// A watch; the query is added to the place.
    pub(super) async fn watch(&self, place: &str, query: &str) -> Told<Lines> {
        self.watch_as(place, query, JSON).await
    }

    /// A watch in another form.
    pub(super) async fn watch_as(&self, place: &str, query: &str, accept: &str) -> Told<Lines> {
        let path = format!("{place}?watch=true&{query}");
        let response = self.request(Method::GET, &path, JSON, accept, Vec::new()).await?;
        let code = response.status().as_u16();
        if code != 200 {
            let body = response.into_body().collect_bytes().await.unwrap_or_default();
            return Err(format!("GET {path}: wanted 200, got {code} {}", String::from_utf8_lossy(&body)));
        }
        Ok(Lines::of(response.into_body()))
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        media: &str,
        accept: &str,
        body: Vec<u8>,
    ) -> Told<http::Response<Body>> {
        let asked = format!("{method} {path}");
        let request = Request::builder().method(method).uri(path).header(header::ACCEPT, accept);
        let request = request.header(header::CONTENT_TYPE, media).body(Body::from(body));
        let request = request.map_err(|why| format!("{asked}: {why}"))?;
        self.client.send(request).await.map_err(|why| format!("{asked}: {}", whole(&why)))
    }

    /// Removes what was made, last first, without asking anybody's finalizers.
    pub(super) async fn clean(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for path in made.iter().rev() {
            // Gone already, or refused: the next run has other names.
            let _ = self.merge(path, &json!({"metadata": {"finalizers": null}})).await;
            let at_once = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
            let _ = self.delete(path, &at_once).await;
        }
    }
}

fn bytes(value: &Value) -> Vec<u8> {
    if value.is_null() { Vec::new() } else { value.to_string().into_bytes() }
}

/// An error with everything behind it.
fn whole(error: &dyn std::error::Error) -> String {
    let mut told = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        let _ = write!(told, ": {error}");
        behind = error.source();
    }
    told
}
