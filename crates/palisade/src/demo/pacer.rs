//! Demo / pacer: ties virtual time to real time.
//!
//! Under paused time everything that is due happens at once, and the clock jumps. The pacer lets it jump a short slice,
//! and then holds the thread until real time has caught up: nobody in the cluster can tell.
//! Promise: over a run the pace is exact, since what a slice took is taken off the wait; a machine that slept, or that is
//! too slow for the pace, is forgiven and never chased.

use std::time::{Duration, Instant};

/// A slice in real time: short enough for a smooth line and for kubectl, which is answered in between.
const SLICE: Duration = Duration::from_millis(20);
/// A slice in virtual time is never longer: a person who watches at a high speed still sees things in their order.
const LONGEST: Duration = Duration::from_millis(200);
/// More than this behind, and the pacer begins anew.
const FORGIVEN: Duration = Duration::from_millis(500);

/// Lets time pass at a pace.
pub(super) struct Pacer {
    rate: u32,
    begun: Instant,
    /// Where real time should be, since it began.
    due: Duration,
}

impl Pacer {
    /// A pace: so many virtual seconds in a real one.
    pub(super) fn at(rate: u32) -> Self {
        Self { rate: rate.max(1), begun: real_now(), due: Duration::ZERO }
    }

    /// Another pace from here on.
    pub(super) fn set_rate(&mut self, rate: u32) {
        if rate != self.rate {
            *self = Self::at(rate);
        }
    }

    /// How much virtual time may pass at once.
    pub(super) fn slice(&self) -> Duration {
        (SLICE * self.rate).min(LONGEST)
    }

    /// So much virtual time has passed: waits until it has in reality.
    pub(super) fn keep_up(&mut self, passed: Duration) {
        self.due += passed / self.rate;
        match rest(self.due, real_now().duration_since(self.begun)) {
            Some(rest) => hold(rest),
            None => *self = Self::at(self.rate),
        }
    }
}

/// How long to wait so that real time is where it should be; nothing if it is too far ahead for that.
fn rest(should: Duration, is: Duration) -> Option<Duration> {
    (is <= should + FORGIVEN).then(|| should.saturating_sub(is))
}

#[expect(clippy::disallowed_methods, reason = "the pacer is the one place that needs a real clock; it decides nothing")]
fn real_now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "nothing but a real wait can slow virtual time down")]
fn hold(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slice_took_is_taken_off_the_wait() {
        let ms = Duration::from_millis;
        assert_eq!(rest(ms(100), ms(93)), Some(ms(7)));
        assert_eq!(rest(ms(100), ms(130)), Some(ms(0)), "late: catch up with the next slices");
        assert_eq!(rest(ms(100), ms(700)), None, "far too late: begin anew");
    }

    #[test]
    fn virtual_time_passes_at_its_rate() {
        let real_begun = real_now();
        let mut pacer = Pacer::at(4);
        for _ in 0..5 {
            assert_eq!(pacer.slice(), SLICE * 4);
            pacer.keep_up(pacer.slice());
        }
        assert!(real_now().duration_since(real_begun) >= SLICE * 5);
    }

    #[test]
    fn a_slice_is_never_so_long_that_people_lose_the_order() {
        assert_eq!(Pacer::at(1000).slice(), LONGEST);
    }
}
