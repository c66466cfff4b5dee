//! Agenda: what is due when, what is under way, and how long to wait after a failure. Pure: the caller says what time it is.
//!
//! Promise: a case is in one pair of hands at a time. No more than so many are under way at once, and the one that waited
//! longest comes first; so a case whose driver hangs takes one place of many, and nobody's turn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

/// External-attacher's `--retry-interval-start` and `--retry-interval-max`.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How much may be under way. External-attacher has 10 workers; but a call that hangs costs us no thread.
const AT_ONCE: usize = 64;

/// Something to look after.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Case {
    /// A VolumeAttachment.
    Attachment(String),
    /// A PersistentVolume that is being deleted.
    Volume(String),
}

/// All cases that are due some time.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    cases: BTreeMap<Case, State>,
    order: BTreeSet<(Instant, Case)>,
    under_way: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// Due then; after a failure, with the pause that comes after the next one.
    Due(Instant, Duration),
    /// In somebody's hands; `again`: something has changed since.
    UnderWay { pause: Duration, again: bool },
}

impl Agenda {
    /// Something has changed: the case is due now, whatever failed before.
    pub(crate) fn wake(&mut self, case: &Case, now: Instant) {
        match self.cases.get_mut(case) {
            Some(State::UnderWay { again, .. }) => *again = true,
            Some(State::Due(at, _)) if *at <= now => {}
            Some(State::Due(..)) | None => self.due(case, now, FIRST_PAUSE),
        }
    }

    /// The same, unless it is in somebody's hands: who has it sees the change for himself.
    pub(crate) fn wake_idle(&mut self, case: &Case, now: Instant) {
        if !matches!(self.cases.get(case), Some(State::UnderWay { .. })) {
            self.wake(case, now);
        }
    }

    /// The case is nothing to look after any more.
    pub(crate) fn forget(&mut self, case: &Case) {
        if let Some(State::Due(at, _)) = self.cases.get(case).copied() {
            self.order.remove(&(at, case.clone()));
            self.cases.remove(case);
        }
    }

    /// The next case that is due, which is under way then.
    pub(crate) fn take(&mut self, now: Instant) -> Option<Case> {
        if self.under_way >= AT_ONCE || self.order.first().is_none_or(|(at, _)| *at > now) {
            return None;
        }
        let (_, case) = self.order.pop_first()?;
        let pause = match self.cases.get(&case) {
            Some(State::Due(_, pause) | State::UnderWay { pause, .. }) => *pause,
            None => FIRST_PAUSE,
        };
        self.cases.insert(case.clone(), State::UnderWay { pause, again: false });
        self.under_way += 1;
        Some(case)
    }

    /// The case is as it should be.
    pub(crate) fn done(&mut self, case: &Case, now: Instant) {
        if self.put_down(case).again {
            self.due(case, now, FIRST_PAUSE);
        }
    }

    /// It did not work. Says how long it waits now.
    pub(crate) fn failed(&mut self, case: &Case, now: Instant) -> Duration {
        let PutDown { pause, again } = self.put_down(case);
        let (wait, next) = if again { (Duration::ZERO, FIRST_PAUSE) } else { (pause, (pause * 2).min(LONGEST_PAUSE)) };
        self.due(case, now + wait, next);
        wait
    }

    /// When the next case is due, if there is room for it.
    pub(crate) fn first(&self) -> Option<Instant> {
        let room = self.under_way < AT_ONCE;
        self.order.first().filter(|_| room).map(|(at, _)| *at)
    }

    fn put_down(&mut self, case: &Case) -> PutDown {
        self.under_way = self.under_way.saturating_sub(1);
        match self.cases.remove(case) {
            Some(State::UnderWay { pause, again }) => PutDown { pause, again },
            Some(State::Due(..)) | None => PutDown { pause: FIRST_PAUSE, again: false },
        }
    }

    fn due(&mut self, case: &Case, at: Instant, pause: Duration) {
        self.forget(case);
        self.cases.insert(case.clone(), State::Due(at, pause));
        self.order.insert((at, case.clone()));
    }
}

struct PutDown {
    pause: Duration,
    again: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str) -> Case {
        Case::Attachment(name.to_owned())
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn the_pause_doubles_up_to_five_minutes_and_a_change_ends_it() {
        let (mut agenda, start) = (Agenda::default(), Instant::now());
        agenda.wake(&case("a"), start);
        let mut now = start;
        let mut waits = Vec::new();
        for _ in 0..11 {
            assert_eq!(agenda.take(now), Some(case("a")));
            let wait = agenda.failed(&case("a"), now);
            assert_eq!(agenda.take(now), None);
            waits.push(wait.as_secs());
            now += wait;
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        // A change while it waits: at once, and from the first pause on.
        let early = now - SECOND * 100;
        assert_eq!(agenda.take(early), None);
        agenda.wake(&case("a"), early);
        assert_eq!(agenda.take(early), Some(case("a")));
        assert_eq!(agenda.failed(&case("a"), early), SECOND);
    }

    #[test]
    fn a_case_is_in_one_pair_of_hands_and_a_change_meanwhile_is_not_lost() {
        let (mut agenda, now) = (Agenda::default(), Instant::now());
        agenda.wake(&case("a"), now);
        assert_eq!(agenda.take(now), Some(case("a")));
        agenda.wake(&case("a"), now);
        assert_eq!((agenda.take(now), agenda.first()), (None, None));
        agenda.done(&case("a"), now);
        assert_eq!(agenda.take(now), Some(case("a")));
        agenda.wake(&case("a"), now);
        assert_eq!(agenda.failed(&case("a"), now), Duration::ZERO);
        assert_eq!(agenda.take(now), Some(case("a")));
        agenda.done(&case("a"), now);
        assert_eq!((agenda.take(now), agenda.first(), agenda.under_way), (None, None, 0));
    }

    #[test]
    fn who_waited_longest_comes_first_and_not_too_many_are_under_way() {
        let (mut agenda, now) = (Agenda::default(), Instant::now());
        agenda.wake(&case("late"), now);
        agenda.wake(&case("later"), now + SECOND);
        agenda.wake(&case("early"), now - SECOND);
        assert_eq!((agenda.take(now), agenda.take(now)), (Some(case("early")), Some(case("late"))));
        assert_eq!((agenda.take(now), agenda.first()), (None, Some(now + SECOND)));
        agenda.forget(&case("later"));
        for number in 0..AT_ONCE {
            agenda.wake(&case(&number.to_string()), now);
        }
        let taken = std::iter::from_fn(|| agenda.take(now)).count();
        assert_eq!((taken, agenda.first()), (AT_ONCE - 2, None));
        agenda.done(&case("early"), now);
        assert!(agenda.take(now).is_some());
    }
}
