//! What a client sees of the embedded API server: stories through a real `kube::Client`, in virtual time.

#![forbid(unsafe_code)]
// A test may fail loudly, and so may what it calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod custom;
mod deletion;
mod determinism;
mod eviction;
mod lists;
mod objects;
mod watches;
mod wires;
mod world;
mod writes;
