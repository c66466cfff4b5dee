//! Hidden: requests that carry secrets are printed without them (I7).

use std::collections::BTreeMap;
use std::fmt;

/// What is shown in place of secrets: how many there are.
pub(crate) struct Hidden(usize);

impl Hidden {
    pub(crate) fn of(secrets: &BTreeMap<String, String>) -> Self {
        Self(secrets.len())
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hidden", self.0)
    }
}

/// `Debug` of a message that has a field `secrets`: all other fields, and how many secrets there are.
macro_rules! hides_secrets {
    ($($message:ident { $($field:ident),* $(,)? })*) => {
        $(impl std::fmt::Debug for $message {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($message))
                    $(.field(stringify!($field), &self.$field))*
                    .field("secrets", &$crate::messages::hidden::Hidden::of(&self.secrets))
                    .finish()
            }
        })*
    };
}
pub(crate) use hides_secrets;
