//! Isolate: cut a node off, one method at a time, and read back that it is cut off.
//!
//! Levels are alternatives, methods within a level all have to succeed, in series (001: "(network AND disk) OR power").

mod declared;
mod levels;
mod placement;

pub use placement::{Placement, placement};

pub(crate) use declared::{method_behind, vouched_for};
pub(crate) use levels::{RunNext, enter, plugs_behind, read_for, run_cut_off, run_restore, unplanned};
