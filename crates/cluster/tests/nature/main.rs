//! Stories of the cluster's nature, in virtual time: what Kubernetes alone makes of dead, silent and hanging machines.
//!
//! The figures are those of a real control plane, where one was measured.

#![forbid(unsafe_code)]
// A test may fail loudly, and so may what it calls.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod bmc;
mod boots;
mod controllers;
mod determinism;
mod jobs;
mod power;
mod programs;
mod storage;
mod swarm;
mod world;
mod zones;
