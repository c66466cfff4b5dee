//! Id: a name of a volume or a node that is safe as the name of a file.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize};

/// The longest string that CSI allows where it says nothing else.
const LONGEST: usize = 128;
/// How much of a volume's name goes into its ID; the rest is room for a number.
const KEPT: usize = 100;

/// An ID. There is none that leads out of its directory, and none that is hidden in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Id(String);

impl Id {
    /// The ID that this is; nothing if no volume and no node can be called so.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let fits = (1..=LONGEST).contains(&text.len()) && !text.starts_with('.') && text.chars().all(is_plain);
        fits.then(|| Self(text.to_owned()))
    }

    /// An ID that looks like this name, and that nobody has.
    pub(crate) fn like(name: &str, taken: impl Fn(&Self) -> bool) -> Self {
        let plain: String = name.chars().take(KEPT).map(|one| if is_plain(one) { one } else { '-' }).collect();
        let plain = if plain.starts_with('.') || plain.is_empty() { format!("v{plain}") } else { plain };
        let first = Self(plain.clone());
        if !taken(&first) {
            return first;
        }
        let mut number: u64 = 2;
        loop {
            let next = Self(format!("{plain}-{number}"));
            if !taken(&next) {
                return next;
            }
            number += 1;
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_plain(one: char) -> bool {
    one.is_ascii_alphanumeric() || matches!(one, '-' | '_' | '.')
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        Self::read(&text).ok_or_else(|| serde::de::Error::custom(format!("{text:?} is no ID")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_out_of_the_directory() {
        for text in ["", ".", "..", "../state", "a/b", "/etc", ".hidden", "a b", "é", "a\0"] {
            assert_eq!(Id::read(text), None, "{text:?}");
        }
        assert!(Id::read(&"a".repeat(LONGEST)).is_some() && Id::read(&"a".repeat(LONGEST + 1)).is_none());
    }

    #[test]
    fn a_name_stays_readable_and_an_id_is_given_once() {
        let free = |_: &Id| false;
        assert_eq!(Id::like("pvc-1a2b", free).as_str(), "pvc-1a2b");
        assert_eq!(Id::like("../a b/é", free).as_str(), "v..-a-b--");
        assert_eq!(Id::like("db", |id| id.as_str() == "db" || id.as_str() == "db-2").as_str(), "db-3");
        let long = Id::like(&"x".repeat(500), |id| id.as_str().len() == KEPT);
        assert_eq!(Id::read(long.as_str()), Some(long));
    }
}
