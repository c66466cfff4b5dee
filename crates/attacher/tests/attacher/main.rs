//! The attacher between an API server and a SAN: the embedded API, and the lab's driver on a real socket.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]

mod attach;
mod detach;
mod drivers;
mod world;
