//! Agent / secret: a value that nobody prints.
//!
//! Promise (I7): whatever is printed of it, by accident or in a panic, shows nothing, not even how long it is.

use std::fmt;

/// A value that nobody prints.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the agent's standard input and for nothing else.
    pub(super) fn value(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_secret_is_printed() {
        assert_eq!(format!("{:?}", Some(Secret::new("canary"))), "Some(***)");
    }
}
