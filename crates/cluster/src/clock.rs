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
}

impl Clock {
    /// A clock that shows `epoch` now.
    pub fn starting_at(epoch: Timestamp) -> Self {
        Self { epoch, start: Instant::now() }
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
        self.start.elapsed()
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
}
