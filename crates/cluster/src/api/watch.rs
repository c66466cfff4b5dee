//! WATCH: changes as they happen, one line each.
//!
//! Promise: a watcher that starts at the revision of a list misses nothing and sees nothing twice; an object that leaves
//! the selection is deleted for it. If its past is forgotten it is told so (410) and has to list again.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{
    future::BoxFuture,
    stream::{self, Stream},
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    handle::{Api, Subscription},
    metadata,
    path::{Place, Query, Served},
    read::{Selection, bad_match, fresh_enough},
    render::{self, Form},
    status::Status,
    store::{Change, Key, Object},
    wire::{Call, Delivery, Notice, View, Wire},
};

/// Upstream takes a random time between 30 and 60 minutes; we take the middle.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(45);
/// As often as upstream's watch cache.
const BOOKMARKS_EVERY: Duration = Duration::from_mins(1);
/// So long before the end comes the last one, so that whoever comes back can go on from there.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// How a watch goes on after its beginning.
pub(crate) struct Watch {
    api: Api,
    served: Served,
    selection: Selection,
    form: Form,
    wire: Arc<dyn Wire>,
    call: Call,
    /// Everything up to here has been told or is in the queue.
    cursor: u64,
    queue: VecDeque<Line>,
    changes: Subscription,
    ends_at: Instant,
    bookmark_at: Option<Instant>,
    /// The version that the watcher has heard of last.
    told: u64,
    /// Whether a line has been written: the columns of a table are told once.
    began: bool,
    cut: BoxFuture<'static, ()>,
    over: bool,
}

/// Something to tell.
struct Line {
    word: &'static str,
    object: Object,
    notice: Notice,
}

/// What came to pass while there was nothing to tell.
enum Woken {
    Over,
    Bookmark,
    Changed,
}

impl Watch {
    pub(crate) async fn begin(
        api: Api,
        view: View,
        place: &Place,
        query: &Query,
        form: Form,
        wire: Arc<dyn Wire>,
        call: Call,
    ) -> Result<Self, Status> {
        let selection = Selection::read(place, query)?;
        let asked = query.number("resourceVersion")?.unwrap_or_default();
        let wants_state = match query.text("sendInitialEvents") {
            "" => asked == 0,
            "true" if query.text("resourceVersionMatch") != "NotOlderThan" => {
                return Err(bad_match("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"));
            }
            other => other == "true",
        };
        let bookmarks = query.flag("allowWatchBookmarks");
        let timeout = query.number("timeoutSeconds")?.map_or(DEFAULT_TIMEOUT, Duration::from_secs);
        // Subscribed before the first look, so that nothing falls between.
        let changes = api.subscribe_to(selection.kind);
        let mut watch = Self {
            cut: wire.cut(&call),
            served: place.served.clone(),
            cursor: asked,
            queue: VecDeque::new(),
            changes,
            ends_at: Instant::now() + timeout,
            bookmark_at: None,
            told: asked,
            began: false,
            over: false,
            api,
            selection,
            form,
            wire,
            call,
        };
        if bookmarks {
            watch.plan_bookmark();
        }
        if wants_state {
            let revision = fresh_enough(&watch.api, view, asked).await?;
            watch.tell_state(revision)?;
            if query.text("sendInitialEvents") == "true" && bookmarks {
                let mut line = watch.bookmark();
                let annotations = json!({"k8s.io/initial-events-end": "true"});
                metadata::set(Arc::make_mut(&mut line.object), "annotations", annotations);
                watch.queue.push_back(line);
            }
        }
        Ok(watch)
    }

    /// The lines, until the watch is over.
    pub(crate) fn lines(self) -> impl Stream<Item = Bytes> + Send {
        stream::unfold(self, |mut watch| async move { Some((watch.next().await?, watch)) })
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(line) = self.queue.pop_front() {
                return self.deliver(line).await;
            }
            if self.over {
                return None;
            }
            self.look();
            if !self.queue.is_empty() {
                continue;
            }
            match self.wait().await {
                Woken::Over => return None,
                Woken::Changed => {}
                Woken::Bookmark => {
                    self.plan_bookmark();
                    self.look();
                    // One that says nothing new is not sent.
                    if self.cursor > self.told {
                        let bookmark = self.bookmark();
                        self.queue.push_back(bookmark);
                    }
                }
            }
        }
    }

    /// The next one is due in a minute or shortly before the end, whichever comes first.
    fn plan_bookmark(&mut self) {
        let (now, last) = (Instant::now(), self.ends_at.checked_sub(LAST_BOOKMARK));
        self.bookmark_at = last.filter(|last| *last > now).map(|last| last.min(now + BOOKMARKS_EVERY));
    }

    async fn deliver(&mut self, line: Line) -> Option<Bytes> {
        self.told = self.told.max(line.notice.revision);
        let way = self.wire.deliver(&self.call, &line.notice);
        tokio::select! {
            biased;
            () = &mut self.cut => None,
            delivery = way => match delivery {
                Delivery::Deliver => Some(self.render(&line)),
                Delivery::End => None,
            },
            () = tokio::time::sleep_until(self.ends_at) => None,
        }
    }

    async fn wait(&mut self) -> Woken {
        let bookmark_at = self.bookmark_at.filter(|at| *at < self.ends_at);
        tokio::select! {
            biased;
            () = &mut self.cut => Woken::Over,
            _ = self.changes.changed() => Woken::Changed,
            () = tokio::time::sleep_until(bookmark_at.unwrap_or(self.ends_at)) => {
                if bookmark_at.is_some() { Woken::Bookmark } else { Woken::Over }
            }
        }
    }

    /// Puts everything that happened since into the queue.
    fn look(&mut self) {
        let Self { api, selection, cursor, queue, .. } = self;
        let looked = api.read(|store| {
            for change in store.log_after(*cursor)?.filter(|change| change.key.kind == selection.kind) {
                queue.extend(Line::of(selection, change));
            }
            // A watcher may know more than this API server; it hears of what comes after that.
            *cursor = store.revision().max(*cursor);
            Ok(())
        });
        if let Err(status) = looked {
            self.over = true;
            let notice = Notice { revision: self.cursor, key: None, at: self.api.now() };
            self.queue.push_back(Line { word: "ERROR", object: Status::to_value(&status).into(), notice });
        }
    }

    /// Everything that is there, as if it had just been added.
    fn tell_state(&mut self, revision: u64) -> Result<(), Status> {
        let objects = self.api.read(|store| self.selection.objects_at(store, revision))?;
        self.cursor = revision;
        let (kind, at) = (self.selection.kind, self.api.now());
        let line = |object: Object| {
            let notice = Notice { revision: metadata::revision(&object), key: Some(Key::of(kind, &object)), at };
            Line { word: "ADDED", object, notice }
        };
        self.queue.extend(objects.into_iter().map(line));
        Ok(())
    }

    fn bookmark(&self) -> Line {
        let object = json!({
            "kind": self.served.definition.name, "apiVersion": self.served.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string(), "creationTimestamp": null},
        });
        Line {
            word: "BOOKMARK",
            object: object.into(),
            notice: Notice { revision: self.cursor, key: None, at: self.api.now() },
        }
    }

    /// The type comes first, as upstream writes it: readers that stream need not buffer the object.
    fn render(&mut self, line: &Line) -> Bytes {
        let object = match line.word {
            "ERROR" | "BOOKMARK" if !matches!(self.form, Form::Table(_)) || line.word == "ERROR" => {
                render::bytes(&line.object)
            }
            _ => {
                let form =
                    if std::mem::replace(&mut self.began, true) { self.form.without_columns() } else { self.form };
                form.one(&self.served, &line.object, self.api.now())
            }
        };
        let mut text = format!("{{\"type\":\"{}\",\"object\":", line.word).into_bytes();
        text.extend(object);
        text.extend(b"}\n");
        text.into()
    }
}

impl Line {
    /// What a change is to somebody who sees only a part.
    fn of(selection: &Selection, change: &Change) -> Option<Self> {
        let seen = |object: &Option<Object>| object.clone().filter(|object| selection.selects(object));
        let (word, object) = match (seen(&change.old), seen(&change.new)) {
            (None, None) => return None,
            (None, Some(new)) => ("ADDED", new),
            (Some(_), Some(new)) => ("MODIFIED", new),
            (Some(old), None) => ("DELETED", as_of(&old, change.revision)),
        };
        let notice = Notice { revision: change.revision, key: Some(change.key.clone()), at: change.at };
        Some(Self { word, object, notice })
    }
}

/// A deleted object carries the revision of its deletion, so that a watcher can go on from there.
fn as_of(object: &Value, revision: u64) -> Object {
    let mut object = object.clone();
    metadata::set(&mut object, "resourceVersion", revision.to_string());
    object.into()
}
