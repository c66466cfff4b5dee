//! Vet / workload: only nodes with `StatefulSet` members or single-writer volumes need fencing to recover (001).
//!
//! Promise: a node is not switched off for pods that Kubernetes moves by itself, unless policy or a person says so.
//! Never: takes pods that were not listed for pods that are not there.

use super::{Case, Gate, Source};
use crate::policy::WorkloadRule;
use crate::reason::vet::HoldReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let (WorkloadRule::StatefulOnly, Some(node)) = (case.policy.workload, case.node) else {
        return Gate::Open;
    };
    match case.claim.source {
        // Who asks for a node by name has other reasons than its pods. This costs availability at most.
        Source::Admin => return Gate::Open,
        Source::Lease | Source::Condition | Source::Event | Source::Storage | Source::External => {}
    }
    match node.workload {
        Some(pods) if pods.statefulset_pods > 0 || pods.single_writer_pods > 0 => Gate::Open,
        Some(_) => case.hold(HoldReason::NoStatefulWorkload),
        None => case.hold(HoldReason::WorkloadUnknown),
    }
}
