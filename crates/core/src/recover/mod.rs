//! Recover: let a node back in when it is clean, and undo what was done to it, in the right order.

mod checks;
mod lift;

pub use checks::{return_checks, returned};
pub(crate) use lift::{next_lift, not_lifting_yet};
