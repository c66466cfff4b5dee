//! What stands between a client and the API server: a network, and an API server that may lag behind.
//!
//! A simulation implements [`Wire`] and so decides, call by call and event by event, what gets through, when, and what
//! the caller hears of it. [`Direct`] is the wire of a cluster in which nothing ever breaks.

use std::time::Duration;

use futures_util::future::{self, BoxFuture, FutureExt};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{
    kinds::Kind,
    path::Verb,
    store::{Actor, Key},
};

/// One request, as the wire sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Whose request.
    pub actor: Actor,
    /// What for.
    pub verb: Verb,
    /// Of which kind; nothing for discovery.
    pub kind: Option<Kind>,
    /// About which object; nothing if it is about many, or about a new one without a name yet.
    pub key: Option<Key>,
    /// `status`, `eviction`, …; empty for the object itself.
    pub subresource: String,
    /// What a write insists on.
    pub guard: Guard,
}

/// What a write insists on: the preconditions of a deletion, the metadata of an update or a patch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// It names the object's UID.
    pub uid: bool,
    /// It names the object's version.
    pub version: bool,
    /// It deletes at once, without a time to end.
    pub at_once: bool,
}

impl Guard {
    /// What the body of a request insists on. A JSON patch is not looked into: nobody here sends one that destroys.
    pub(crate) fn of(verb: Verb, body: &[u8]) -> Self {
        let insists: Insists = match verb {
            Verb::Delete | Verb::Update | Verb::Patch => serde_json::from_slice(body).unwrap_or_default(),
            Verb::Get | Verb::List | Verb::Watch | Verb::Create | Verb::DeleteCollection => return Self::default(),
        };
        let names = if verb == Verb::Delete { insists.preconditions } else { insists.metadata }.unwrap_or_default();
        let at_once = insists.grace == Some(0);
        Self { uid: names.uid.is_some(), version: names.version.is_some(), at_once }
    }
}

/// As much of a body as [`Guard`] looks at; the rest is not even read.
#[derive(Default, Deserialize)]
struct Insists {
    preconditions: Option<Names>,
    metadata: Option<Names>,
    #[serde(rename = "gracePeriodSeconds")]
    grace: Option<i64>,
}

#[derive(Default, Deserialize)]
struct Names {
    uid: Option<IgnoredAny>,
    #[serde(rename = "resourceVersion")]
    version: Option<IgnoredAny>,
}

impl Call {
    /// Whether the store may change.
    pub fn is_write(&self) -> bool {
        self.verb.is_write()
    }
}

/// What becomes of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fate {
    /// How long it takes to the API server.
    pub there: Duration,
    /// What happens to it.
    pub course: Course,
    /// How long the answer takes back.
    pub back: Duration,
    /// What the API server knows that it reaches.
    pub view: View,
}

/// What happens to a request on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Course {
    /// It is served.
    #[default]
    Served,
    /// It never arrives: the caller sees a broken connection.
    Unreachable,
    /// It never arrives: somebody on the way answers with this code, such as 429, 500 or 503.
    Answered(u16),
    /// It is served, and the answer is lost: the caller sees a broken connection and knows nothing.
    ReplyLost,
    /// It is served, and no answer ever comes, nor does the connection break: the caller waits for as long as it likes.
    Hangs,
}

/// What an API server knows. Writes are always committed to the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    /// Everything.
    #[default]
    Live,
    /// What there was after this revision: reads and watches begin there.
    At(u64),
}

/// Something that a watch is about to tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The revision that it brings the watcher to.
    pub revision: u64,
    /// The object; nothing for a bookmark or an error.
    pub key: Option<Key>,
    /// When it came to pass: a wire with a latency counts from here, or delays would add up from event to event.
    pub at: Timestamp,
}

/// What becomes of an event of a watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// It arrives.
    Deliver,
    /// The stream ends without it.
    End,
}

/// The network.
pub trait Wire: Send + Sync {
    /// Decides about a request when it is sent.
    fn carry(&self, _call: &Call) -> Fate {
        Fate::default()
    }

    /// Decides about an event when the server has it: to delay or hold it is to take that long for the answer.
    /// Events of a stream never overtake each other.
    fn deliver(&self, _watch: &Call, _notice: &Notice) -> BoxFuture<'static, Delivery> {
        future::ready(Delivery::Deliver).boxed()
    }

    /// Ends when the stream of a watch breaks. Asked once, when the watch begins.
    fn cut(&self, _watch: &Call) -> BoxFuture<'static, ()> {
        future::pending().boxed()
    }
}

/// Everything arrives at once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Direct;

impl Wire for Direct {}
