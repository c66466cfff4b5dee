//! Stories of the cluster's nature, in virtual time: what Kubernetes alone makes of dead, silent and hanging machines.
//!
//! The figures are those of a real control plane, where one was measured.

mod bmc;
mod boots;
mod controllers;
mod determinism;
mod power;
mod storage;
mod world;
mod zones;
