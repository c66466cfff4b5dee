//! Trace: what each actor saw, decided and did, line by line, with virtual time and a number that can be replayed to.
//!
//! Promise: the same seed gives the same lines with the same numbers. What does not matter to a reader (renewals, heartbeats,
//! a look that finds what the last one found) is no line and has no number.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use palisade_cluster::Cluster;
use palisade_cluster::api::Kind;
use palisade_cluster::truth::{self, Event, Name, Truth, What, World};
use tokio::sync::Notify;

use crate::moment;
use crate::oracle::Oracle;
use crate::words;

/// What an actor did in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Did {
    /// Something goes wrong, or is mended.
    Fault,
    /// It happened, by the truth.
    Happened,
    /// It wrote to the API.
    Wrote,
    /// A request of it did not get through, or its answer did not.
    Lost,
    /// It saw something.
    Saw,
    /// It decided something.
    Decided,
    /// It logged something.
    Logged,
    /// A promise was broken.
    Broken,
}

impl Did {
    /// One word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Fault => "FAULT",
            Self::Happened => "happened",
            Self::Wrote => "wrote",
            Self::Lost => "lost",
            Self::Saw => "saw",
            Self::Decided => "decided",
            Self::Logged => "logged",
            Self::Broken => "BROKEN",
        }
    }
}

/// One line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Line {
    /// Its number: what `--until` takes.
    pub number: u64,
    /// When, since the cluster began.
    pub at: Duration,
    /// Who.
    pub actor: String,
    /// Did what.
    pub did: Did,
    /// The node that it is about; empty if none.
    pub node: String,
    /// In words.
    pub text: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { number, at, actor, did, text, .. } = self;
        write!(f, "{number:>6} {:>9.3}  {actor:<16} {:<8} {text}", at.as_secs_f64(), did.word())
    }
}

/// What a word that is said again and again tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// Nobody has spoken of this before.
    First,
    /// It is another word than the last.
    Changed,
    /// Nothing.
    Known,
}

/// The trace of one run, in the hands of everybody who adds to it.
#[derive(Clone, Default)]
pub(crate) struct Trace(Arc<Shared>);

#[derive(Default)]
struct Shared {
    book: Mutex<Book>,
    ended: Notify,
}

#[derive(Default)]
struct Book {
    /// Nothing is a line before the world is there.
    scene: Option<Scene>,
    lines: Vec<Line>,
    /// The last line that is wanted.
    until: Option<u64>,
    /// The truth right after it.
    then: Vec<String>,
    /// The newest write.
    revision: u64,
    hash: truth::Trace,
    reached: BTreeMap<String, u64>,
    /// The last word on something that is told only when it changes.
    known: BTreeMap<u64, u64>,
    /// Which pod a process belongs to, by UID.
    pods: BTreeMap<Name, Name>,
    broken: Vec<(u64, String)>,
}

#[derive(Clone)]
struct Scene {
    cluster: Cluster,
    oracle: Oracle,
    kinds: Arc<BTreeMap<Kind, String>>,
}

/// What is left of a trace when the run is over.
pub(crate) struct Closed {
    pub(crate) lines: Vec<Line>,
    pub(crate) hash: u64,
    pub(crate) reached: BTreeMap<String, u64>,
    /// What was broken, and by which line.
    pub(crate) broken: Vec<(u64, String)>,
    /// The truth at the end, or right after the last line that was wanted.
    pub(crate) truth: Vec<String>,
    /// The newest write of that instant.
    pub(crate) revision: u64,
}

impl Trace {
    /// A trace that ends after so many lines, if it says so.
    pub(crate) fn until(last: Option<u64>) -> Self {
        let trace = Self::default();
        trace.book().until = last;
        trace
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From here on everything that happens in the cluster is in the trace. The oracle has looked at it before.
    pub(crate) fn follow(&self, cluster: &Cluster, oracle: &Oracle) {
        let kinds = cluster.api().read(|store| {
            store.registry().all().map(|definition| (definition.kind, definition.name.to_string())).collect()
        });
        self.book().scene = Some(Scene { cluster: cluster.clone(), oracle: oracle.clone(), kinds: Arc::new(kinds) });
        let trace = self.clone();
        cluster.truth().on_event(Box::new(move |world, event| trace.happened(world, event)));
        let trace = self.clone();
        cluster.api().on_write(Box::new(move |store, change| {
            trace.book().revision = change.revision;
            let kind = store.registry().get(change.key.kind).map(|definition| definition.name.clone());
            let Some(written) = words::write(kind.as_deref().unwrap_or_default(), change) else {
                return trace.ask_the_oracle(None);
            };
            for key in written.reached {
                trace.reached(key);
            }
            trace.add(None, change.by.name(), Did::Wrote, &written.node, written.text);
        }));
    }

    fn happened(&self, world: &World, event: &Event) {
        let pod = {
            let mut book = self.book();
            if let What::Started { node, pod } = &event.what
                && let Some(process) = world.machines.get(node).and_then(|machine| machine.processes.get(pod))
            {
                book.pods.insert(Name::clone(pod), Name::clone(&process.of));
            }
            words::pod_of(&event.what)
                .map(|uid| book.pods.get(uid).map_or_else(|| uid.to_string(), ToString::to_string))
        };
        let node = event.what.node().map(ToString::to_string).unwrap_or_default();
        let (actor, text) = words::event(&event.what, &pod.unwrap_or_default());
        self.add(Some(world), &actor, Did::Happened, &node, text);
    }

    /// Adds a line. Whoever holds the truth hands it in.
    pub(crate) fn add(&self, world: Option<&World>, actor: &str, did: Did, node: &str, text: String) {
        {
            let mut book = self.book();
            let Some(scene) = &book.scene else { return };
            let number = 1 + u64::try_from(book.lines.len()).unwrap_or(u64::MAX);
            if book.until.is_some_and(|last| number > last) {
                return;
            }
            let (at, truth) = (scene.cluster.elapsed(), scene.cluster.truth().clone());
            let line = Line { number, at, actor: actor.to_owned(), did, node: node.to_owned(), text };
            book.hash.add(&line);
            if did == Did::Broken {
                book.broken.push((number, line.text.clone()));
            }
            book.lines.push(line);
            if book.until == Some(number) {
                book.then = then(&truth, world);
                self.0.ended.notify_one();
            }
        }
        if did != Did::Broken {
            self.ask_the_oracle(world);
        }
    }

    /// What the oracle has found since it was last asked follows from the line before.
    pub(crate) fn ask_the_oracle(&self, world: Option<&World>) {
        let Some(oracle) = self.book().scene.as_ref().map(|scene| scene.oracle.clone()) else { return };
        let known = self.book().broken.len();
        for what in oracle.found().into_iter().skip(known) {
            self.add(world, "oracle", Did::Broken, "", what);
        }
    }

    /// Counts something that a run can come to.
    pub(crate) fn reached(&self, key: String) {
        *self.book().reached.entry(key).or_default() += 1;
    }

    /// What a word on something tells, by the hashes of both.
    pub(crate) fn news(&self, about: u64, word: u64) -> News {
        match self.book().known.insert(about, word) {
            None => News::First,
            Some(known) if known == word => News::Known,
            Some(_) => News::Changed,
        }
    }

    /// The name of a kind.
    pub(crate) fn kind(&self, kind: Option<Kind>) -> String {
        let named = |kind| self.book().scene.as_ref().and_then(|scene| scene.kinds.get(&kind).cloned());
        kind.and_then(named).unwrap_or_default()
    }

    /// Ends right after the last line that is wanted; never, if all are.
    pub(crate) async fn ended(&self) {
        self.0.ended.notified().await;
    }

    /// Closes the book.
    pub(crate) fn close(&self) -> Closed {
        let mut book = self.book();
        let mut book = std::mem::take(&mut *book);
        let truth = book.scene.take().map(|scene| scene.cluster.truth().clone());
        if book.then.is_empty() {
            book.then = truth.map(|truth| then(&truth, None)).unwrap_or_default();
        }
        Closed {
            lines: book.lines,
            hash: book.hash.hash(),
            reached: book.reached,
            broken: book.broken,
            truth: book.then,
            revision: book.revision,
        }
    }
}

fn then(truth: &Truth, world: Option<&World>) -> Vec<String> {
    world.map_or_else(|| truth.look(moment::truth), moment::truth)
}
