//! The embedded cluster: Kubernetes in memory, for the demo and for tests in virtual time.
//!
//! Promise: on a current-thread runtime with paused time, the same calls give the same bytes. No dice but those of the
//! seed, no wall clock, no order that differs from run to run.
//! Never here: the operator. It meets this cluster as it meets any other, through a `kube::Client`.
//!
//! | room | is |
//! |---|---|
//! | [`clock`] | the cluster's own time |
//! | [`api`] | the API server and what etcd holds |
//! | [`cluster`] | the whole, and the verbs in which stories are told |
//! | [`truth`] | what is, whatever anybody believes |
//! | [`machines`] | power, links, processes, kubelets, BMCs, PDUs |
//! | [`storage`] | volumes, whom they refuse, who writes |
//! | `nature` | the clockwork that lets everybody act |
//! | `controllers` | Kubernetes' built-in controllers |

#![forbid(unsafe_code)]

pub mod api;
pub mod clock;
pub mod cluster;
pub mod dice;
pub mod machines;
pub mod storage;
pub mod truth;
pub mod volumes;
pub mod workloads;

mod controllers;
mod nature;
mod objects;
mod sha256;

pub use cluster::{Cluster, Shape};
