//! A share or a number of nodes: `40%` or `3`.
//!
//! Promise: a bare number is always a count and a percentage always says so; nothing is rounded here.

use std::{borrow::Cow, fmt, str::FromStr};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error as _};

const PATTERN: &str = "^((100|[0-9]{1,2})%|[0-9]{1,5})$";

/// So many nodes, or so many of a hundred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Portion {
    /// A percentage, 0 to 100.
    Percent(u8),
    /// A number of nodes.
    Count(u32),
}

/// A text that is no [`Portion`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPortion(String);

impl fmt::Display for NotAPortion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is neither a percentage such as 40% nor a count such as 3", self.0)
    }
}

impl std::error::Error for NotAPortion {}

impl FromStr for Portion {
    type Err = NotAPortion;

    fn from_str(text: &str) -> Result<Self, NotAPortion> {
        let wrong = || NotAPortion(text.chars().take(32).collect());
        let (digits, percent) = text.strip_suffix('%').map_or((text, false), |digits| (digits, true));
        if digits.is_empty() || digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong());
        }
        if !percent {
            return digits.parse().map(Self::Count).map_err(|_| wrong());
        }
        match digits.parse::<u8>() {
            Ok(number @ 0..=100) if digits.len() <= 3 => Ok(Self::Percent(number)),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Portion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Percent(number) => write!(f, "{number}%"),
            Self::Count(number) => write!(f, "{number}"),
        }
    }
}

impl Serialize for Portion {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Portion {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Cow::<'de, str>::deserialize(from)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for Portion {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Portion".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": 5, "pattern": PATTERN })
    }
}

#[cfg(test)]
mod tests {
    use super::Portion;

    #[test]
    fn tells_a_share_from_a_count() {
        assert_eq!("40%".parse(), Ok(Portion::Percent(40)));
        assert_eq!("100%".parse(), Ok(Portion::Percent(100)));
        assert_eq!("3".parse(), Ok(Portion::Count(3)));
    }

    #[test]
    fn refuses_the_rest() {
        for text in ["", "%", "101%", "-1", "0.4", "40 %", "40%%", "123456", "0040%"] {
            assert!(text.parse::<Portion>().is_err(), "{text}");
        }
    }
}
