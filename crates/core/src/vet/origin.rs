//! Vet / origin: a request is honoured only from the namespaces that the policy lists.
//!
//! Promise (I3): the right to create a request somewhere in the cluster is not the right to fence.
//! Never: knows a wildcard; an empty list honours nobody.

use super::{Case, Gate};
use crate::reason::vet::RejectReason;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let namespace = &case.claim.namespace;
    if case.policy.request_namespaces.contains(namespace) {
        return Gate::Open;
    }
    Gate::Refused(RejectReason::NamespaceNotAllowed { namespace: namespace.clone() })
}
