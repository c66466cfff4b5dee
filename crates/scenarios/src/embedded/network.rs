//! Embedded / network: what stands between operators and the API server. Operators on a node share its links.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use palisade_cluster::api::Wire;
use palisade_cluster::api::wire::{Call, Course, Fate};
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
        let course = if self.is_cut(call.actor.name()) { Course::Unreachable } else { Course::Served };
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
