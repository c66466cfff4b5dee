//! Nature's clockwork: one task that lets every actor act when it is due.
//!
//! Promise: actors run one after the other, ordered by the time at which they are due and then by the order in which
//! they asked; no actor waits inside. So a run depends on the seed and on what others write, and on nothing else.
//!
//! An actor is what an informer and its work queue are upstream: [`Actor::notice`] is the event handler and says
//! whether there is work; [`Actor::run`] is the worker and says when it wants to look again by itself.
//! [`Index`] is the informers' shared cache.

mod index;

pub(crate) use index::{Index, claims, fetch};

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use crate::{
    api::{Api, Change, Kind},
    clock::Clock,
    dice::Dice,
    machines::program::{Runner, Shelf},
    truth::{Daemon, DaemonState, Event, Truth, What},
};

/// What an actor has in hand while it acts.
pub(crate) struct Ctx<'a> {
    pub(crate) api: &'a Api,
    pub(crate) truth: &'a Truth,
    pub(crate) index: &'a Index,
    pub(crate) dice: &'a mut Dice,
    /// Who lets programs run.
    pub(crate) runner: &'a mut Runner,
    /// Since the cluster began.
    pub(crate) now: Duration,
}

/// Somebody who acts by itself: a controller, a kubelet.
pub(crate) trait Actor: Send {
    /// Hears of a write; says whether that is a reason to run.
    fn notice(&mut self, change: &Change) -> bool;

    /// Feels something happen in nature; says whether that is a reason to run.
    fn feel(&mut self, _event: &Event) -> bool {
        false
    }

    /// Acts; says how long it can wait until the next look. The first run after a start knows nothing yet.
    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration>;
}

/// Which writes an actor hears of.
pub(crate) enum Hears {
    Kinds(&'static [Kind]),
    Everything,
}

/// Makes an actor without memory.
type Maker = Box<dyn Fn() -> Box<dyn Actor> + Send>;

/// An actor's place in the clockwork.
struct Seat {
    actor: Box<dyn Actor>,
    maker: Maker,
    /// The daemon that it is part of; a kubelet is part of none.
    daemon: Option<Daemon>,
    api: Api,
    dice: Dice,
    due: Option<(Duration, u64)>,
    /// It was due while its daemon stood still.
    owed: bool,
}

/// How long a write takes to reach those who watch, in milliseconds.
const WATCH_LATENCY: (u64, u64) = (2, 12);
/// How long a daemon takes from its start to its first work, in milliseconds.
const DAEMON_START: (u64, u64) = (1_500, 4_000);

/// The clockwork.
pub(crate) struct Nature {
    api: Api,
    truth: Truth,
    clock: Clock,
    index: Index,
    seats: Vec<Seat>,
    hearing: BTreeMap<Kind, Vec<usize>>,
    hearing_all: Vec<usize>,
    queue: BTreeSet<(Duration, u64, usize)>,
    asked: u64,
    heard: u64,
    felt: usize,
    seed: u64,
    runner: Runner,
}

impl Nature {
    pub(crate) fn new(api: Api, truth: Truth, seed: u64, shelf: Shelf) -> Self {
        let clock = api.clock().clone();
        Self {
            runner: Runner::new(shelf, truth.clone(), clock.clone()),
            index: Index::build(&api),
            heard: api.revision(),
            felt: 0,
            api,
            truth,
            clock,
            seats: Vec::new(),
            hearing: BTreeMap::new(),
            hearing_all: Vec::new(),
            queue: BTreeSet::new(),
            asked: 0,
            seed,
        }
    }

    /// Gives an actor a seat. It first acts within its daemon's start.
    pub(crate) fn seat(&mut self, name: &str, daemon: Option<Daemon>, hears: &Hears, maker: Maker) {
        let id = self.seats.len();
        match hears {
            Hears::Kinds(kinds) => {
                for kind in *kinds {
                    self.hearing.entry(*kind).or_default().push(id);
                }
            }
            Hears::Everything => self.hearing_all.push(id),
        }
        let dice = Dice::new(self.seed, name);
        let api = self.api.acting_as(name);
        self.seats.push(Seat { actor: maker(), maker, daemon, api, dice, due: None, owed: false });
        self.wake(id, Duration::ZERO);
    }

    /// Runs until the task is dropped.
    pub(crate) async fn run(mut self) {
        let mut writes = self.api.subscribe();
        let happened = self.truth.notify();
        loop {
            let mut event = std::pin::pin!(happened.notified());
            event.as_mut().enable();
            self.turn();
            let next = self.next_due();
            let clock = self.clock.clone();
            let sleep = async {
                match next {
                    Some(due) => clock.sleep_until(due).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = writes.changed() => {}
                () = event => {}
                () = sleep => {}
            }
        }
    }

    fn next_due(&self) -> Option<Duration> {
        let actor = self.queue.first().map(|(due, _, _)| *due);
        [actor, self.truth.next_later()].into_iter().flatten().min()
    }

    /// Lets everything happen that is due.
    fn turn(&mut self) {
        if self.truth.next_later().is_some_and(|due| due <= self.clock.elapsed()) {
            self.truth.act(|_| ());
        }
        self.listen();
        while let Some(&(due, asked, id)) = self.queue.first().filter(|(due, _, _)| *due <= self.clock.elapsed()) {
            self.queue.remove(&(due, asked, id));
            self.seats[id].due = None;
            self.let_act(id);
            self.listen();
        }
    }

    fn let_act(&mut self, id: usize) {
        if !self.may_act(id) {
            self.seats[id].owed = true;
            return;
        }
        let now = self.clock.elapsed();
        let seat = &mut self.seats[id];
        seat.owed = false;
        let (api, truth, index, runner) = (&seat.api, &self.truth, &self.index, &mut self.runner);
        let mut ctx = Ctx { api, truth, index, dice: &mut seat.dice, runner, now };
        if let Some(wait) = seat.actor.run(&mut ctx) {
            // Whoever asks for "at once" gets the next instant, so that time cannot stand still.
            self.wake(id, wait.max(Duration::from_millis(1)));
        }
    }

    fn may_act(&self, id: usize) -> bool {
        let Some(daemon) = self.seats[id].daemon else { return true };
        let up = |daemon| self.truth.look(|world| world.daemon(daemon) == DaemonState::Running);
        up(daemon) && up(Daemon::ApiServer)
    }

    /// Tells everybody of what was written and what happened since the last time.
    fn listen(&mut self) {
        self.listen_to_writes();
        self.listen_to_nature();
    }

    fn listen_to_writes(&mut self) {
        if self.api.revision() == self.heard {
            return;
        }
        let Ok(changes) = self.api.changes_since(self.heard) else {
            // Somebody forgot the past before we read it: start over, as an informer does after 410.
            self.index = Index::build(&self.api);
            self.heard = self.api.revision();
            (0..self.seats.len()).for_each(|id| self.start_over(id, Duration::ZERO));
            return;
        };
        for change in changes {
            self.heard = change.revision;
            self.index.take_in(&change);
            let hearing = self.hearing.get(&change.key.kind).into_iter().flatten();
            let ids: Vec<usize> = hearing.chain(&self.hearing_all).copied().collect();
            for id in ids {
                if self.seats[id].actor.notice(&change) {
                    let latency = self.seats[id].dice.millis(WATCH_LATENCY.0, WATCH_LATENCY.1);
                    self.wake(id, latency);
                }
            }
        }
    }

    fn listen_to_nature(&mut self) {
        let felt = self.felt;
        let events: Vec<Event> = self.truth.look(|world| world.events.get(felt..).unwrap_or_default().to_vec());
        self.felt += events.len();
        for event in events {
            if let What::Daemon { daemon, is } = event.what {
                self.daemon_changes(daemon, is);
            }
            for id in 0..self.seats.len() {
                if self.seats[id].actor.feel(&event) {
                    self.wake(id, Duration::ZERO);
                }
            }
        }
    }

    fn daemon_changes(&mut self, daemon: Daemon, is: DaemonState) {
        for id in 0..self.seats.len() {
            let seat = &self.seats[id];
            let (part_of_it, owed) = (seat.daemon == Some(daemon), seat.owed);
            match is {
                DaemonState::Down if part_of_it => {
                    let latency = self.seats[id].dice.millis(DAEMON_START.0, DAEMON_START.1);
                    self.start_over(id, latency);
                }
                DaemonState::Running if owed => {
                    // Those who come back do not all work in the same instant.
                    let latency = self.seats[id].dice.millis(DAEMON_START.0, DAEMON_START.1);
                    self.wake(id, latency);
                }
                DaemonState::Down | DaemonState::Running | DaemonState::Paused => {}
            }
        }
    }

    fn start_over(&mut self, id: usize, wait: Duration) {
        let seat = &mut self.seats[id];
        seat.actor = (seat.maker)();
        seat.owed = true;
        self.wake(id, wait);
    }

    /// An actor is due after that time, unless it is due before.
    fn wake(&mut self, id: usize, wait: Duration) {
        let due = self.clock.elapsed() + wait;
        if let Some((earlier, asked)) = self.seats[id].due {
            if earlier <= due {
                return;
            }
            self.queue.remove(&(earlier, asked, id));
        }
        self.asked += 1;
        self.queue.insert((due, self.asked, id));
        self.seats[id].due = Some((due, self.asked));
    }
}
