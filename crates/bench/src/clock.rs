//! Clock: real time, which is what a benchmark is about. No decision of the product depends on it.

use std::time::{Duration, Instant};

use jiff::Timestamp;

/// Now.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// The date.
#[expect(clippy::disallowed_methods, reason = "the edge of the system: what comes after takes it as an argument")]
pub(crate) fn date() -> Timestamp {
    Timestamp::now()
}

/// How often something can be done in a second, tried for about `length`.
pub(crate) fn per_second<E>(length: Duration, mut act: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    let (begun, mut times) = (now(), 0_u32);
    while begun.elapsed() < length {
        act()?;
        times += 1;
    }
    Ok(f64::from(times) / begun.elapsed().as_secs_f64())
}
