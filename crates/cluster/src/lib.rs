//! The embedded cluster: Kubernetes in memory, for the demo and for tests in virtual time.
//!
//! Promise: on a current-thread runtime with paused time, the same calls give the same bytes. No dice, no wall clock,
//! no order that differs from run to run.
//! Never here: the operator. It meets this cluster as it meets any other, through a `kube::Client`.
//!
//! | room | is |
//! |---|---|
//! | [`clock`] | the cluster's own time |
//! | [`api`] | the API server and what etcd holds |

#![forbid(unsafe_code)]

pub mod api;
pub mod clock;
