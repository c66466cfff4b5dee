//! Embedded / network: what stands between operators and the API server. Operators on a node share its links.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use palisade_cluster::api::wire::{Call, Course, Fate};
use palisade_cluster::api::{Key, Verb, Wire};
use tokio::sync::Notify;

/// One way to the API server and back: long enough that no two writes of one process share an instant.
const ONE_WAY: Duration = Duration::from_millis(1);

/// Who gets through.
#[derive(Clone, Default)]
pub(super) struct Network {
    state: Arc<Mutex<State>>,
    changed: Arc<Notify>,
}

#[derive(Default)]
struct State {
    down: bool,
    cut: BTreeSet<String>,
    /// What no operator may delete.
    kept: BTreeSet<Key>,
    refused: usize,
}

impl Network {
    /// The API server is gone, or back.
    pub(super) fn set_down(&self, down: bool) {
        self.lock().down = down;
        self.changed.notify_waiters();
    }

    /// An operator no longer gets through, or does again.
    pub(super) fn set_cut(&self, actor: &str, cut: bool) {
        if cut {
            self.lock().cut.insert(actor.to_owned());
        } else {
            self.lock().cut.remove(actor);
        }
        self.changed.notify_waiters();
    }

    /// An admission rule keeps this object, or no longer does.
    pub(super) fn forbid_deletion(&self, key: Key, forbidden: bool) {
        if forbidden {
            self.lock().kept.insert(key);
        } else {
            self.lock().kept.remove(&key);
        }
    }

    pub(super) fn refused_deletions(&self) -> usize {
        self.lock().refused
    }

    fn refuses(&self, call: &Call) -> bool {
        let mut state = self.lock();
        let kept = call.verb == Verb::Delete && call.key.as_ref().is_some_and(|key| state.kept.contains(key));
        state.refused += usize::from(kept);
        kept
    }

    fn is_cut(&self, actor: &str) -> bool {
        let state = self.lock();
        state.down || state.cut.contains(actor)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wire for Network {
    fn carry(&self, call: &Call) -> Fate {
        let course = if self.is_cut(call.actor.name()) {
            Course::Unreachable
        } else if self.refuses(call) {
            Course::Answered(403)
        } else {
            Course::Served
        };
        Fate { there: ONE_WAY, course, back: ONE_WAY, ..Fate::default() }
    }

    fn cut(&self, watch: &Call) -> BoxFuture<'static, ()> {
        let (network, actor) = (self.clone(), watch.actor.name().to_owned());
        async move {
            loop {
                let mut changed = std::pin::pin!(network.changed.notified());
                changed.as_mut().enable();
                if network.is_cut(&actor) {
                    return;
                }
                changed.await;
            }
        }
        .boxed()
    }
}
