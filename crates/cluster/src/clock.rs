//! The cluster's time: a date to start from, and tokio's clock to go on by.
//!
//! Promise: under paused time the date moves only when virtual time does, so a run can be told again second by second.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// What time it is in the cluster.
#[derive(Clone, Debug)]
pub struct Clock {
    epoch: Timestamp,
    start: Instant,
    speed: u32,
}

impl Clock {
    /// A clock that shows `epoch` now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now(), speed: 1 }
    }

    /// The same clock, so many times faster than tokio's: a demo has no time to wait for a boot.
    #[must_use]
    pub fn at_speed(self, speed: u32) -> Self {
        Self { speed: speed.max(1), ..self }
    }

    /// The date and time in the cluster.
    pub fn now(&self) -> Timestamp {
        SignedDuration::try_from(self.elapsed())
            .ok()
            .and_then(|elapsed| self.epoch.checked_add(elapsed).ok())
            .unwrap_or(Timestamp::MAX)
    }

    /// How long the clock has been running.
    pub fn elapsed(&self) -> Duration {
        self.start.elapsed() * self.speed
    }

    /// Waits until the clock has been running for so long. Every wait of the cluster goes through here.
    pub async fn sleep_until(&self, elapsed: Duration) {
        // Rounded up, or a waiter could wake a hair too early and find nothing to do.
        let real = (elapsed + Duration::from_nanos(u64::from(self.speed) - 1)) / self.speed;
        tokio::time::sleep_until(self.start + real).await;
    }

    /// Waits for so long.
    pub async fn sleep(&self, time: Duration) {
        self.sleep_until(self.elapsed() + time).await;
    }
}

/// A date as Kubernetes writes it into `metadata`: whole seconds.
pub fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A date as Kubernetes writes it into Leases and Events: microseconds.
pub fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_date_follows_virtual_time() {
        let clock = Clock::starting_at("2026-03-01T12:00:00.25Z".parse().unwrap());
        tokio::time::sleep(Duration::from_secs(90)).await;
        assert_eq!(clock.elapsed(), Duration::from_secs(90));
        assert_eq!(seconds(clock.now()), "2026-03-01T12:01:30Z");
        assert_eq!(micros(clock.now()), "2026-03-01T12:01:30.250000Z");
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_clock_waits_less() {
        let clock = Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap()).at_speed(20);
        let begun = Instant::now();
        clock.sleep(Duration::from_mins(1)).await;
        assert_eq!(begun.elapsed(), Duration::from_secs(3));
        assert_eq!(clock.elapsed(), Duration::from_mins(1));
    }
}
