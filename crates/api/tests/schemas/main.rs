//! What the schemas promise: bounded, explained, and deaf to bad input.
//!
//! One subject per file. Golden files are rewritten with `UPDATE_GOLDEN=1 cargo test -p palisade-api` and reviewed as a diff.

#![forbid(unsafe_code)]
// A test may fail loudly, and so may what it calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bad;
mod checker;
mod columns;
mod cost;
mod defaults;
mod golden;
mod good;
mod moves;
mod reference;
mod structure;
mod walk;
