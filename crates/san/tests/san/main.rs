//! The SAN over real sockets, in a directory of its own for each test.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod controller;
mod node;
mod processes;
mod provision;
mod world;
