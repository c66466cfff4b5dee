//! Conformance / places: the paths that checks speak of. Everything with a namespace is in `default`.

pub(super) const NAMESPACES: &str = "/api/v1/namespaces";
pub(super) const NODES: &str = "/api/v1/nodes";
pub(super) const PODS: &str = "/api/v1/namespaces/default/pods";
pub(super) const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(super) const SECRETS: &str = "/api/v1/namespaces/default/secrets";
pub(super) const EVENTS: &str = "/api/v1/namespaces/default/events";
pub(super) const NEW_EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";
pub(super) const CLAIMS: &str = "/api/v1/namespaces/default/persistentvolumeclaims";
pub(super) const VOLUMES: &str = "/api/v1/persistentvolumes";
pub(super) const ATTACHMENTS: &str = "/apis/storage.k8s.io/v1/volumeattachments";
pub(super) const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
pub(super) const NODE_LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
pub(super) const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
pub(super) const STATEFUL_SETS: &str = "/apis/apps/v1/namespaces/default/statefulsets";
pub(super) const REPLICA_SETS: &str = "/apis/apps/v1/namespaces/default/replicasets";
pub(super) const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const OURS: &str = "/apis/palisade.dev/v1alpha1";
pub(super) const FENCES: &str = "/apis/palisade.dev/v1alpha1/nodefences";
pub(super) const TEMPLATES: &str = "/apis/palisade.dev/v1alpha1/fencetemplates";
pub(super) const CONFIGS: &str = "/apis/palisade.dev/v1alpha1/fenceconfigs";
pub(super) const POLICIES: &str = "/apis/palisade.dev/v1alpha1/fencepolicies";
pub(super) const REMEDIES: &str = "/apis/palisade.dev/v1alpha1/noderemedies";
pub(super) const REQUESTS: &str = "/apis/palisade.dev/v1alpha1/namespaces/default/nodefencingrequests";

/// The object of a name.
pub(super) fn at(place: &str, name: &str) -> String {
    format!("{place}/{name}")
}
