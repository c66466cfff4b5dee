//! Lengths of time as people write them: `300ms`, `5s`, `1m30s`, `720h`.
//!
//! Promise: one spelling in every kind, a length and never an instant, and no value that overflows.
//! Numbers without a unit are refused: whoever writes `5` would have to guess.

use std::{borrow::Cow, fmt, str::FromStr, time::Duration};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

/// One to four numbers with a unit. Six digits keep the sum far away from every overflow, ours and CEL's.
const PATTERN: &str = "^([0-9]{1,6}(ms|s|m|h)){1,4}$";
const LONGEST: usize = 16;

/// A length of time, to the millisecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    millis: u64,
}

/// A text that is no [`Span`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotASpan(String);

impl fmt::Display for NotASpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no length of time; write for example 500ms, 5s, 1m30s or 24h", self.0)
    }
}

impl std::error::Error for NotASpan {}

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self { millis: 0 };

    /// So many milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self { millis }
    }

    /// So many seconds.
    pub const fn from_secs(seconds: u32) -> Self {
        Self { millis: seconds as u64 * 1_000 }
    }

    /// So many minutes.
    pub const fn from_mins(minutes: u32) -> Self {
        Self { millis: minutes as u64 * 60_000 }
    }

    /// So many hours.
    pub const fn from_hours(hours: u32) -> Self {
        Self { millis: hours as u64 * 3_600_000 }
    }

    /// The length in milliseconds.
    pub const fn as_millis(self) -> u64 {
        self.millis
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        Self::from_millis(span.millis)
    }
}

impl FromStr for Span {
    type Err = NotASpan;

    fn from_str(text: &str) -> Result<Self, NotASpan> {
        let wrong = || NotASpan(text.chars().take(32).collect());
        if text.is_empty() || text.len() > LONGEST {
            return Err(wrong());
        }
        let (mut rest, mut millis, mut parts) = (text, 0, 0);
        while !rest.is_empty() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            parts += 1;
            if digits == 0 || digits > 6 || parts > 4 {
                return Err(wrong());
            }
            let number: u64 = rest[..digits].parse().map_err(|_| wrong())?;
            rest = &rest[digits..];
            let (unit, length) = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000)]
                .into_iter()
                .find(|(unit, _)| rest.starts_with(unit))
                .ok_or_else(wrong)?;
            rest = &rest[unit.len()..];
            millis += number * length;
        }
        Ok(Self { millis })
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.millis == 0 {
            return f.write_str("0s");
        }
        let mut rest = self.millis;
        for (unit, length) in [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
            let number = rest / length;
            rest %= length;
            if number > 0 {
                write!(f, "{number}{unit}")?;
            }
        }
        Ok(())
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Span {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Span".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 2, "maxLength": LONGEST, "pattern": PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use super::Span;

    #[test]
    fn reads_what_people_write() {
        for (text, millis) in [("0s", 0), ("300ms", 300), ("5s", 5_000), ("1m30s", 90_000), ("720h", 2_592_000_000)] {
            assert_eq!(text.parse::<Span>().map(Span::as_millis), Ok(millis), "{text}");
        }
    }

    #[test]
    fn refuses_what_could_be_misread() {
        for text in ["", "5", "s", "5 s", "-5s", "1.5s", "5d", "1234567s", "1h1h1h1h1h", "5s\n"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn writes_one_spelling() {
        for (text, written) in [("90s", "1m30s"), ("0ms", "0s"), ("3600s", "1h"), ("1h1ms", "1h1ms")] {
            assert_eq!(text.parse::<Span>().map(|span| span.to_string()).as_deref(), Ok(written));
        }
    }
}
