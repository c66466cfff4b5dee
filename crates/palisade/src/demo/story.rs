//! Demo / story: writes to the API and events of the truth become lines that a person can follow.
//!
//! Pure: the same write gives the same line. What is not told here is left out on purpose: heartbeats, bookkeeping, and
//! words that only repeat the line before.

mod holds;
mod nature;
mod palisade;
mod words;
mod workload;

use std::time::Duration;

use serde_json::Value;

use super::split::Mark;

pub(super) use holds::Holds;
pub(super) use nature::of_event;

/// Which part of the story a line belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    /// What happened to the world.
    World,
    /// What Palisade saw.
    Seen,
    /// What it decided.
    Decided,
    /// What it waits for, and why.
    Held,
    /// What it did.
    Done,
    /// What it proved.
    Proven,
    /// What it gave up.
    Released,
    /// What Kubernetes does by itself.
    Kubernetes,
    /// How the pod moves.
    Moved,
    /// How the node returns.
    Returned,
    /// Who writes.
    Writes,
}

impl Room {
    /// One word.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::World => "world",
            Self::Seen => "seen",
            Self::Decided => "decided",
            Self::Held => "held",
            Self::Done => "done",
            Self::Proven => "proven",
            Self::Released => "released",
            Self::Kubernetes => "kubernetes",
            Self::Moved => "moved",
            Self::Returned => "returned",
            Self::Writes => "writes",
        }
    }
}

/// One line of the story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Beat {
    /// When, since the cluster began.
    pub(super) at: Duration,
    /// Which part of the story.
    pub(super) room: Room,
    /// What.
    pub(super) text: String,
    /// The part of the failover that it completes.
    pub(super) mark: Option<Mark>,
    /// The request to which it is the answer.
    pub(super) answers: Option<String>,
}

/// Whom the story is about.
#[derive(Clone, Debug, Default)]
pub(super) struct Cast {
    /// The node on which the database ran.
    pub(super) home: String,
    /// The database's pod.
    pub(super) pod: String,
    /// Its PersistentVolume.
    pub(super) pv: String,
    /// The same in the storage system.
    pub(super) volume: String,
}

/// A write to the API.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written<'a> {
    /// When, since the cluster began.
    pub(super) at: Duration,
    /// By whom.
    pub(super) by: &'a str,
    /// To which object.
    pub(super) name: &'a str,
    /// What was there; nothing if it is new.
    pub(super) old: Option<&'a Value>,
    /// What is there; nothing if it is gone.
    pub(super) new: Option<&'a Value>,
}

impl<'a> Written<'a> {
    /// What kind of object it is.
    pub(super) fn kind(&self) -> &'a str {
        self.new.or(self.old).map(|object| text(object, "/kind")).unwrap_or_default()
    }

    /// A text before and after, if it changed.
    fn changed(&self, path: &str) -> Option<&'a str> {
        let (old, new) = (self.old.map(|old| text(old, path)).unwrap_or_default(), text(self.new?, path));
        (old != new).then_some(new)
    }

    fn beat(&self, room: Room, text: impl Into<String>) -> Beat {
        Beat::new(self.at, room, text)
    }

    /// What a request is told.
    fn answer(&self, room: Room, text: impl Into<String>) -> Beat {
        Beat { answers: Some(self.name.to_owned()), ..self.beat(room, text) }
    }
}

impl Beat {
    /// A line that is no milestone.
    pub(super) fn new(at: Duration, room: Room, text: impl Into<String>) -> Self {
        Self { at, room, text: text.into(), mark: None, answers: None }
    }

    /// The same, as a milestone.
    fn marks(self, mark: Mark) -> Self {
        Self { mark: Some(mark), ..self }
    }

    /// The same, as a milestone if it is about the node that matters.
    fn marks_if(self, so: bool, mark: Mark) -> Self {
        if so { self.marks(mark) } else { self }
    }
}

/// The lines of a batch of writes, in their order.
pub(super) fn of_writes(writes: &[Written<'_>], cast: &Cast) -> Vec<Beat> {
    let lines = |write: &Written<'_>| match write.kind() {
        "NodeFencingRequest" => palisade::request(write, cast),
        "NodeFence" => palisade::fence(write, cast),
        "Node" => workload::node(write),
        "Pod" if write.name == cast.pod => workload::pod(write, cast),
        "VolumeAttachment" => workload::attachment(write, cast),
        _ => Vec::new(),
    };
    writes.iter().flat_map(lines).collect()
}

fn text<'a>(object: &'a Value, path: &str) -> &'a str {
    object.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

fn list<'a>(object: &'a Value, path: &str) -> &'a [Value] {
    object.pointer(path).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// Whether a node or a pod says that it is ready.
fn ready(object: &Value) -> &str {
    let condition = list(object, "/status/conditions").iter().find(|condition| condition["type"] == "Ready");
    condition.map(|condition| text(condition, "/status")).unwrap_or_default()
}
