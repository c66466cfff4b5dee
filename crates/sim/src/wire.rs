//! Wire: what the network, and API servers that lag behind, do to the operators' requests and watches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use palisade_cluster::Shape;
use palisade_cluster::api::wire::{Call, Course, Delivery, Fate, Notice, View};
use palisade_cluster::api::{Key, Kind, Verb, Wire};
use palisade_cluster::dice::Dice;
use tokio::time::Instant;

use crate::oracle::Oracle;
use crate::plan::Losses;

/// How long something lasts that lasts until it is mended.
const FOR_LONG: Duration = Duration::from_hours(24);

/// A wire that loses things.
#[derive(Clone)]
pub(crate) struct Lossy {
    state: Arc<Mutex<State>>,
}

struct State {
    /// When the cluster began, by our clock and by its own.
    begun: (Instant, Timestamp),
    dice: Dice,
    losses: Losses,
    dark_until: Option<Instant>,
    frozen_until: Option<Instant>,
    /// The revision at which the server that the operators reach stands still, and until when.
    old: Option<(u64, Instant)>,
    /// How much later watches of a kind tell.
    lags: BTreeMap<Kind, Duration>,
    /// What a webhook lets nobody delete, and until when.
    protected: BTreeMap<Key, Instant>,
    oracle: Option<Oracle>,
}

impl State {
    fn now(&self) -> Timestamp {
        let (instant, stamp) = self.begun;
        stamp.checked_add(instant.elapsed()).unwrap_or(stamp)
    }
}

impl Lossy {
    /// Has to be made at the instant at which the cluster begins.
    pub(crate) fn new(seed: u64, losses: Losses) -> Self {
        let state = State {
            begun: (Instant::now(), Shape::default().epoch),
            dice: Dice::new(seed, "wire"),
            losses,
            dark_until: None,
            frozen_until: None,
            old: None,
            lags: BTreeMap::new(),
            protected: BTreeMap::new(),
            oracle: None,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whatever is sent, somebody looks on.
    pub(crate) fn show(&self, oracle: Oracle) {
        self.with(|state| state.oracle = Some(oracle));
    }

    /// Nothing gets through for a while.
    pub(crate) fn go_dark(&self, time: Duration) {
        self.with(|state| state.dark_until = state.dark_until.max(Some(Instant::now() + time)));
    }

    /// Nothing gets through until somebody mends it.
    pub(crate) fn stay_dark(&self) {
        self.go_dark(FOR_LONG);
    }

    /// Everything gets through again.
    pub(crate) fn light(&self) {
        self.with(|state| state.dark_until = None);
    }

    /// Watches tell nothing for a while.
    pub(crate) fn freeze(&self, time: Duration) {
        self.with(|state| state.frozen_until = state.frozen_until.max(Some(Instant::now() + time)));
    }

    /// What watches of this kind tell comes later.
    pub(crate) fn lag(&self, kind: Kind, by: Duration) {
        self.with(|state| state.lags.insert(kind, by));
    }

    /// The operators reach a server that knows nothing after this revision, for a while.
    pub(crate) fn grow_old(&self, revision: u64, time: Duration) {
        self.freeze(time);
        self.with(|state| state.old = Some((revision, Instant::now() + time)));
    }

    /// A webhook refuses to let this be deleted for a while.
    pub(crate) fn protect(&self, key: Key, time: Duration) {
        self.with(|state| state.protected.insert(key, Instant::now() + time));
    }

    /// From here on nothing is lost.
    pub(crate) fn mend(&self) {
        self.with(|state| {
            state.losses = Losses { latency: 5, ..Losses::default() };
            (state.dark_until, state.frozen_until, state.old) = (None, None, None);
            state.lags.clear();
            state.protected.clear();
        });
    }
}

impl Wire for Lossy {
    fn carry(&self, call: &Call) -> Fate {
        self.with(|state| {
            if let Some(oracle) = &state.oracle {
                oracle.call(call);
            }
            let losses = state.losses;
            let latency = |dice: &mut Dice| Duration::from_micros(300 + dice.below(1 + losses.latency * 1000));
            let dark = state.dark_until.is_some_and(|until| Instant::now() < until);
            let throw = state.dice.below(1000);
            let protected = call.key.as_ref().and_then(|key| state.protected.get(key));
            let refused = call.verb == Verb::Delete && protected.is_some_and(|until| Instant::now() < *until);
            let course = if refused {
                Course::Answered(500)
            } else if dark || throw < losses.lost {
                Course::Unreachable
            } else if throw < losses.lost + losses.errors {
                Course::Answered([500, 503, 429][usize::try_from(throw % 3).unwrap_or(0)])
            } else if throw < losses.lost + losses.errors + losses.replies {
                Course::ReplyLost
            } else if throw < losses.lost + losses.errors + losses.replies + losses.hangs {
                Course::Hangs
            } else {
                Course::Served
            };
            // Writes are always committed to the truth; reads and watches are as old as the server.
            let reads = matches!(call.verb, Verb::Get | Verb::List | Verb::Watch);
            let view = match state.old {
                Some((revision, until)) if reads && Instant::now() < until => View::At(revision),
                _ => View::Live,
            };
            Fate { there: latency(&mut state.dice), course, back: latency(&mut state.dice), view }
        })
    }

    fn deliver(&self, watch: &Call, notice: &Notice) -> BoxFuture<'static, Delivery> {
        let (wire, kind, happened) = (self.clone(), watch.kind, notice.at);
        async move {
            loop {
                let (wait, latency, breaks) = wire.with(|state| {
                    let latest = state.dark_until.max(state.frozen_until);
                    // Counted from when it happened, or the lags of a stream would add up.
                    let age = Duration::try_from(state.now().duration_since(happened)).unwrap_or_default();
                    let lag = kind.and_then(|kind| state.lags.get(&kind)).copied().unwrap_or_default();
                    let lag = lag.saturating_sub(age);
                    let latency = Duration::from_micros(200 + state.dice.below(1 + state.losses.latency * 500));
                    let breaks = state.dice.below(1000) < state.losses.broken;
                    (latest.filter(|until| *until > Instant::now()), latency + lag, breaks)
                });
                if let Some(until) = wait {
                    tokio::time::sleep_until(until).await;
                    continue;
                }
                tokio::time::sleep(latency).await;
                // What was on its way when the wire went dark does not come through it either.
                if wire.with(|state| state.dark_until.is_some_and(|until| until > Instant::now())) {
                    continue;
                }
                return if breaks { Delivery::End } else { Delivery::Deliver };
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use palisade_cluster::api::Actor;
    use palisade_cluster::api::wire::Guard;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn nothing_comes_through_a_dark_wire() {
        let wire = Lossy::new(1, Losses::default());
        wire.lag(Kind::NODE, Duration::from_secs(13));
        let watch = Call {
            actor: Actor::new("palisade-0"),
            verb: Verb::Watch,
            kind: Some(Kind::NODE),
            key: None,
            subresource: String::new(),
            guard: Guard::default(),
        };
        let at = wire.with(|state| state.now());
        let event = wire.deliver(&watch, &Notice { revision: 1, key: None, at });
        let begun = Instant::now();
        let darkness = async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            wire.go_dark(Duration::from_secs(25));
        };
        // On its way before the wire went dark, and due while it is.
        let ((), delivery) = futures_util::future::join(darkness, event).await;
        assert_eq!(delivery, Delivery::Deliver);
        assert!(begun.elapsed() >= Duration::from_secs(30), "{:?}", begun.elapsed());
    }
}
