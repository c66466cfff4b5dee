//! Reasons: why something was decided, with the numbers that it was decided from.
//!
//! One enum per room. Each variant has a name (condition, Event and metric), facts (log fields, golden tables) and a
//! sentence for a tired administrator, all declared in one place, so that no two channels tell different stories.

/// Declares an enum of reasons: a name, its facts and its sentence each.
macro_rules! reasons {
    ($(#[$meta:meta])* $vis:vis enum $Name:ident {
        $($Variant:ident $({ $($field:ident : $Type:ty),* $(,)? })? => $text:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[allow(missing_docs)] // the sentence of each variant is its documentation
        $vis enum $Name {
            $(#[doc = $text] $Variant $({ $($field: $Type),* })?),*
        }

        impl $Name {
            /// The names of all variants: a test demands a golden case for each.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($Variant)),*];

            /// The reason's name, as conditions, Events and metrics show it.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$Variant $({ $($field: _),* })? => stringify!($Variant)),* }
            }

            /// The numbers and names behind it, in the order of declaration.
            pub fn facts(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$Variant $({ $($field),* })? => vec![$($((stringify!($field), $field.to_string())),*)?]),*
                }
            }

            /// The name and its facts on one line, for tables and logs: `StormBrake down=5 allowed=4`.
            pub fn brief(&self) -> String {
                let mut line = self.name().to_owned();
                for (key, value) in self.facts() {
                    line.push_str(&format!(" {key}={value}"));
                }
                line
            }
        }

        impl std::fmt::Display for $Name {
            /// The sentence that people read.
            #[allow(unused_variables)] // not every fact has a place in its sentence
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self { $(Self::$Variant $({ $($field),* })? => write!(f, $text)),* }
            }
        }
    };
}

pub mod automaton;
pub mod detect;
pub mod prove;
pub mod recover;
pub mod release;
pub mod request;
pub mod vet;
