//! Conformance: small behaviours of a Kubernetes API that the operator counts on, each asserted by the same text on every cluster.
//!
//! Promise: a check knows nothing but a client. What it finds on the embedded cluster it finds on a real one, or the embedded one
//! is wrong; a difference that was found stays here as the check that found it.
//! Never: leaves anything behind, but for the Events that controllers write, or touches what another check made.
//!
//! | table | needs |
//! |---|---|
//! | [`all`] | an API server, and the controller manager for service accounts |
//! | [`controllers`] | the controller manager as well, and minutes: Nodes without a machine, kept alive by the check |
//! | [`run_bad_objects`] | our kinds alone: the table of bad objects of `crates/api`, each refused for its reason |

mod answer;
mod bad;
mod bench;
mod checks;
mod controllers;
mod lines;
mod objects;
mod places;
mod run;

use std::fmt;

use futures_util::future::BoxFuture;

pub use self::bench::Bench;
pub use self::run::{Outcome, Report, prepare, run, run_bad_objects, run_controllers};

/// How a check ends: as it should, or with what was found instead.
type Told<T = ()> = Result<T, String>;

/// One behaviour.
#[derive(Clone, Copy)]
pub struct Check {
    /// What it is about.
    pub group: &'static str,
    /// Its name, once in its group.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    run: for<'a> fn(&'a Bench) -> BoxFuture<'a, Told>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.group, self.name)
    }
}

/// Makes the table of a group from its functions: the name of each, and what it shows.
macro_rules! table {
    ($group:literal; $($run:ident: $about:literal;)+) => {
        pub(in crate::conformance) const TABLE: &[crate::conformance::Check] = &[$(crate::conformance::Check {
            group: $group,
            name: stringify!($run),
            about: $about,
            run: |bench| Box::pin($run(bench)),
        }),+];
    };
}
use table;

/// What an API server does.
pub fn all() -> Vec<Check> {
    checks::TABLES.concat()
}

/// What the controllers do, in their own time.
pub fn controllers() -> Vec<Check> {
    controllers::TABLES.concat()
}
