//! Time as data: instants of our own monotonic clock, and spans between them.
//!
//! Promise: nothing in `core` reads a clock. An instant means something only inside the process that took it,
//! so it cannot be written to the API; what survives a restart is a [`Span`] of time that somebody watched.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// An instant of this process's monotonic clock, in milliseconds since the process started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(u64);

/// A length of time in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Tick {
    /// The instant at which the process started.
    pub const START: Self = Self(0);

    /// The instant `millis` milliseconds after the process started.
    pub const fn at_millis(millis: u64) -> Self {
        Self(millis)
    }

    /// Milliseconds since the process started.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// How long ago `earlier` was; zero if it lies ahead (it then was not long ago at all).
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A span of milliseconds.
    pub const fn millis(millis: u64) -> Self {
        Self(millis)
    }

    /// A span of seconds.
    pub const fn secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000))
    }

    /// A span of minutes.
    pub const fn mins(mins: u64) -> Self {
        Self::secs(mins.saturating_mul(60))
    }

    /// The length in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.0
    }

    /// What is missing from this span once `passed` has gone by.
    #[must_use]
    pub const fn left_after(self, passed: Self) -> Self {
        Self(self.0.saturating_sub(passed.0))
    }

    /// This span `times` over; it stops at the longest span instead of wrapping around.
    #[must_use]
    pub const fn times(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Add<Span> for Tick {
    type Output = Self;
    fn add(self, span: Span) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl Add for Span {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Span {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self.left_after(other)
    }
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}", Span(self.0))
    }
}

impl fmt::Display for Span {
    /// The two largest units, exact: `90s` is `1m30s`, 1500 ms is `1s500ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        let units = [(3_600_000, "h"), (60_000, "m"), (1_000, "s"), (1, "ms")];
        let mut rest = self.0;
        for (size, unit) in units {
            if rest >= size {
                write!(f, "{}{unit}", rest / size)?;
                rest %= size;
            }
        }
        Ok(())
    }
}

/// Why a text is not a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotASpan(String);

impl fmt::Display for NotASpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is not a length of time; write for example 500ms, 5s, 3m, 1h or 1m30s", self.0)
    }
}

impl std::error::Error for NotASpan {}

impl FromStr for Span {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let wrong = || NotASpan(text.to_owned());
        let mut total: u64 = 0;
        let mut rest = text;
        if rest.is_empty() {
            return Err(wrong());
        }
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let letters = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
            let size: u64 = match &rest[..letters] {
                "ms" => 1,
                "s" => 1_000,
                "m" => 60_000,
                "h" => 3_600_000,
                _ => return Err(wrong()),
            };
            rest = &rest[letters..];
            total = number.checked_mul(size).and_then(|part| total.checked_add(part)).ok_or_else(wrong)?;
        }
        Ok(Self(total))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_reads_back_as_it_was_written() {
        for text in ["0s", "500ms", "5s", "3m", "1h", "1m30s", "1s500ms", "24h"] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_no_span_is_refused_with_the_text_named() {
        for text in ["", "5", "s", "-5s", "5 s", "5d", "1.5s", "99999999999999999999s", "18446744073709551615h", "5é"]
        {
            let said = text.parse::<Span>().map_err(|why| why.to_string());
            assert!(said.as_ref().is_err_and(|why| why.contains(&format!("`{text}`"))), "{text}: {said:?}");
        }
    }

    #[test]
    fn time_never_runs_below_zero_nor_past_the_end() {
        assert_eq!(Tick::START.since(Tick::at_millis(9)), Span::ZERO);
        assert_eq!(Span::secs(1) - Span::secs(2), Span::ZERO);
        assert_eq!(Tick::at_millis(u64::MAX) + Span::secs(1), Tick::at_millis(u64::MAX));
        assert_eq!(Span::secs(u64::MAX), Span::millis(u64::MAX));
    }
}
