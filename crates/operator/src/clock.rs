//! Clock: the operator's own time.
//!
//! Decisions are made by [`Tick`], which no other machine can move. The wall clock is for people only, and is handed in, so
//! that a simulation can tell a date.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use palisade_core::time::{Span, Tick};
use tokio::time::Instant;

/// The operator's time.
#[derive(Clone)]
pub struct Clock {
    start: Instant,
    wall: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

impl Clock {
    /// A clock that starts now. `wall` tells the date.
    pub fn new(wall: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { start: Instant::now(), wall: Arc::new(wall) }
    }

    /// Now, by our own clock.
    pub fn tick(&self) -> Tick {
        Tick::at_millis(u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// The date, for people.
    pub fn wall(&self) -> Timestamp {
        (self.wall)()
    }

    /// When that is, for a timer.
    pub fn instant(&self, at: Tick) -> Instant {
        self.start + Duration::from_millis(at.as_millis())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({})", self.tick())
    }
}

/// A span as a timer takes it.
pub(crate) const fn duration(span: Span) -> Duration {
    Duration::from_millis(span.as_millis())
}
