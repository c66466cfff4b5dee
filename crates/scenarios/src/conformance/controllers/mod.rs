//! Conformance / controllers: what Kubernetes' own controllers do, and when.
//!
//! A check makes its own Nodes, which have no machine, and speaks for their kubelets (`kubelet.rs`). Each bench has a zone of its
//! own with at least one node that lives: where a whole zone is silent, the controllers hold back.

mod attach;
mod detach;
mod garbage;
mod jobs;
mod kubelet;
mod node_lifecycle;
mod pod_gc;
mod taint_eviction;
mod workloads;

use super::Check;

pub(super) const TABLES: &[&[Check]] = &[
    node_lifecycle::TABLE,
    taint_eviction::TABLE,
    pod_gc::TABLE,
    workloads::TABLE,
    jobs::TABLE,
    attach::TABLE,
    detach::TABLE,
    garbage::TABLE,
];
