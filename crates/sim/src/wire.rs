//! Wire: what the network does to the operators' requests and watches.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use palisade_cluster::api::Wire;
use palisade_cluster::api::wire::{Call, Course, Delivery, Fate, Notice};
use palisade_cluster::dice::Dice;
use tokio::time::Instant;

use crate::faults::Losses;

/// A wire that loses things.
#[derive(Clone)]
pub(crate) struct Lossy {
    state: Arc<Mutex<State>>,
}

struct State {
    dice: Dice,
    losses: Losses,
    dark_until: Option<Instant>,
    frozen_until: Option<Instant>,
}

impl Lossy {
    pub(crate) fn new(seed: u64, losses: Losses) -> Self {
        let dice = Dice::new(seed, "wire");
        Self { state: Arc::new(Mutex::new(State { dice, losses, dark_until: None, frozen_until: None })) }
    }

    fn with<T>(&self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Nothing gets through for a while.
    pub(crate) fn go_dark(&self, time: Duration) {
        self.with(|state| state.dark_until = Some(Instant::now() + time));
    }

    /// Watches tell nothing for a while.
    pub(crate) fn freeze(&self, time: Duration) {
        self.with(|state| state.frozen_until = Some(Instant::now() + time));
    }

    /// From here on nothing is lost.
    pub(crate) fn mend(&self) {
        self.with(|state| {
            state.losses = Losses { latency: 5, ..Losses::default() };
            (state.dark_until, state.frozen_until) = (None, None);
        });
    }
}

impl Wire for Lossy {
    fn carry(&self, _call: &Call) -> Fate {
        self.with(|state| {
            let losses = state.losses;
            let latency = |dice: &mut Dice| Duration::from_micros(300 + dice.below(1 + losses.latency * 1000));
            let dark = state.dark_until.is_some_and(|until| Instant::now() < until);
            let throw = state.dice.below(1000);
            let course = if dark || throw < losses.lost {
                Course::Unreachable
            } else if throw < losses.lost + losses.errors {
                Course::Answered([500, 503, 429][usize::try_from(throw % 3).unwrap_or(0)])
            } else if throw < losses.lost + losses.errors + losses.replies {
                Course::ReplyLost
            } else {
                Course::Served
            };
            Fate { there: latency(&mut state.dice), course, back: latency(&mut state.dice), ..Fate::default() }
        })
    }

    fn deliver(&self, _watch: &Call, _notice: &Notice) -> BoxFuture<'static, Delivery> {
        let wire = self.clone();
        async move {
            loop {
                let (wait, latency) = wire.with(|state| {
                    let latest = state.dark_until.max(state.frozen_until);
                    let latency = Duration::from_micros(200 + state.dice.below(1 + state.losses.latency * 500));
                    (latest.filter(|until| *until > Instant::now()), latency)
                });
                if let Some(until) = wait {
                    tokio::time::sleep_until(until).await;
                } else {
                    tokio::time::sleep(latency).await;
                    return Delivery::Deliver;
                }
            }
        }
        .boxed()
    }
}
