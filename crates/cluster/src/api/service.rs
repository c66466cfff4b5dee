//! The API server: from an HTTP request to an HTTP answer, over a wire.
//!
//! A [`Server`] gives `kube::Client`s that reach it in process, without a socket and without a thread. All work is done
//! in the caller's task: a panic in here unwinds through the call that caused it.

use std::{
    convert::Infallible,
    io,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::{
    StreamExt,
    future::{BoxFuture, FutureExt},
};
use http::{Request, Response, StatusCode, header, request::Parts};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use serde_json::Value;

use super::{
    discovery,
    handle::Api,
    path::{Place, Query, Verb},
    read::{self, Page},
    render::{self, Form},
    status::Status,
    store::{Actor, Key},
    watch::Watch,
    wire::{Call, Course, Direct, Guard, View, Wire},
    write::{self, Written},
};

/// The body of an answer: all at once, or line by line.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// An API server over a store.
#[derive(Clone)]
pub struct Server {
    api: Api,
    wire: Arc<dyn Wire>,
}

impl Server {
    /// A server that everybody reaches at once.
    pub fn new(api: Api) -> Self {
        Self::over(api, Arc::new(Direct))
    }

    /// A server at the other end of a wire.
    pub fn over(api: Api, wire: Arc<dyn Wire>) -> Self {
        Self { api, wire }
    }

    /// What it serves.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// A client for somebody. Has to be called inside a tokio runtime.
    pub fn client(&self, actor: &str) -> kube::Client {
        kube::Client::new(self.connection(actor), "default")
    }

    /// The same one layer below, for those who put layers of their own between.
    pub fn connection(&self, actor: &str) -> Connection {
        Connection { server: self.clone(), actor: Actor::new(actor) }
    }

    /// Serves one request. An error means that the connection broke, and that the caller knows nothing.
    pub(crate) async fn handle(&self, actor: Actor, parts: Parts, body: Bytes) -> io::Result<Response<Body>> {
        let asked = self.understand(actor, &parts, &body);
        let fate = self.wire.carry(&asked.call);
        pause(fate.there).await;
        match fate.course {
            Course::Unreachable => return Err(io::ErrorKind::ConnectionRefused.into()),
            Course::Answered(code) => return Ok(refused(&Status::from_code(code))),
            Course::Served | Course::ReplyLost | Course::Hangs => {}
        }
        let answer = asked.serve(self, fate.view, &parts, &body).await;
        pause(fate.back).await;
        if fate.course == Course::Hangs {
            return std::future::pending().await;
        }
        if fate.course == Course::ReplyLost {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(answer.unwrap_or_else(|status| refused(&status)))
    }

    /// What a request is about; of one that is about nothing, at least whose it is.
    fn understand(&self, actor: Actor, parts: &Parts, body: &[u8]) -> Asked {
        let query = Query::read(parts.uri.query());
        let mut call =
            Call { actor, verb: Verb::Get, kind: None, key: None, subresource: String::new(), guard: Guard::default() };
        let read = self.api.read(|store| Place::read(store.registry(), parts.uri.path())).transpose();
        let place = read.and_then(|place| {
            if let Some(place) = &place {
                call.verb = place.verb(&parts.method, &query)?;
                call.kind = Some(place.served.definition.kind);
                call.key = (!place.name.is_empty()).then(|| place.key());
                call.subresource.clone_from(&place.subresource);
                call.guard = Guard::of(call.verb, body);
            }
            Ok(place)
        });
        Asked { call, query, place }
    }
}

/// A request, as far as it was understood.
struct Asked {
    call: Call,
    query: Query,
    /// Nothing: discovery.
    place: Result<Option<Place>, Status>,
}

impl Asked {
    async fn serve(self, server: &Server, view: View, parts: &Parts, body: &[u8]) -> Result<Response<Body>, Status> {
        let Self { call, query, place } = self;
        let api = server.api.in_hands_of(call.actor.clone());
        let head = |name| parts.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let Some(place) = place? else {
            let page = api.read(|store| discovery::page(store.registry(), parts.uri.path(), &query));
            return page.map(|page| answer(StatusCode::OK, render::bytes(&page))).ok_or_else(Status::no_such_page);
        };
        let form = Form::read(head(header::ACCEPT), query.text("includeObject"));
        let show = |object: &Value| form.one(&place.served, object, api.now());
        let written = match call.verb {
            Verb::Get => {
                let object = read::get(&api, view, &place, &query).await?;
                return Ok(answer(StatusCode::OK, show(&object)));
            }
            Verb::List => {
                let page = read::list(&api, view, &place, &query).await?;
                return Ok(answer(StatusCode::OK, form.many(&place.served, &page, api.now())));
            }
            Verb::Watch => {
                let wire = Arc::clone(&server.wire);
                let watch = Watch::begin(api, view, &place, &query, form, wire, call).await?;
                let frames = watch.lines().map(|line| Ok(Frame::data(line)));
                return Ok(with_body(StatusCode::OK, StreamBody::new(frames).boxed_unsync()));
            }
            Verb::DeleteCollection => {
                let items = write::delete_collection(&api, &place, &query, body)?;
                let page = Page { items, revision: api.revision(), more: None, remaining: None };
                return Ok(answer(StatusCode::OK, form.many(&place.served, &page, api.now())));
            }
            Verb::Create => write::create(&api, &place, &query, body)?,
            Verb::Update => write::update(&api, &place, &query, body)?,
            Verb::Patch => write::patch(&api, &place, &query, head(header::CONTENT_TYPE), body)?,
            Verb::Delete => write::delete(&api, &place, &query, body)?,
        };
        Ok(match &written {
            Written::Created(object, warnings) => warned(answer(StatusCode::CREATED, show(object)), warnings),
            Written::Done(object, warnings) => warned(answer(StatusCode::OK, show(object)), warnings),
            Written::Deleted(deleted) => answer(StatusCode::OK, show(deleted.object())),
            Written::Success(status) => {
                let code = status["code"].as_u64().and_then(|code| u16::try_from(code).ok()).unwrap_or(200);
                answer(StatusCode::from_u16(code).unwrap_or_default(), render::bytes(status))
            }
        })
    }
}

async fn pause(length: std::time::Duration) {
    if !length.is_zero() {
        tokio::time::sleep(length).await;
    }
}

fn refused(status: &Status) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut answer = answer(code, render::bytes(&status.to_value()));
    let wait = status.details.retry_after_seconds;
    if wait > 0 {
        answer.headers_mut().insert(header::RETRY_AFTER, wait.into());
    }
    answer
}

/// Adds warnings as RFC 7234 has them, with the code that means nothing in particular.
fn warned(mut answer: Response<Body>, warnings: &[String]) -> Response<Body> {
    for warning in warnings {
        if let Ok(value) = header::HeaderValue::from_str(&format!("299 - {warning:?}")) {
            answer.headers_mut().append(header::WARNING, value);
        }
    }
    answer
}

fn answer(code: StatusCode, body: Vec<u8>) -> Response<Body> {
    with_body(code, Full::new(Bytes::from(body)).boxed_unsync())
}

fn with_body(code: StatusCode, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = code;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

/// One actor's way to the server.
#[derive(Clone)]
pub struct Connection {
    server: Server,
    actor: Actor,
}

impl tower::Service<Request<kube::client::Body>> for Connection {
    type Response = Response<Body>;
    type Error = tower::BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<kube::client::Body>) -> Self::Future {
        // Nothing happens before the first poll, which is the caller's: kube drives this function in a task of its own,
        // where a panic would only be seen as "buffer's worker closed".
        let Self { server, actor } = self.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            // What was sent is on its way, whatever becomes of its sender.
            match tokio::spawn(async move { server.handle(actor, parts, body).await }).await {
                Ok(answer) => Ok(answer?),
                Err(why) if why.is_panic() => std::panic::resume_unwind(why.into_panic()),
                Err(why) => Err(why.into()),
            }
        }
        .boxed()
    }
}

/// Where a call goes, for traces: `patch nodes/n1`.
impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.actor, self.verb.word())?;
        if let Some(Key { namespace, name, .. }) = &self.key {
            write!(f, " {namespace}/{name}")?;
        }
        if self.subresource.is_empty() { Ok(()) } else { write!(f, "/{}", self.subresource) }
    }
}
