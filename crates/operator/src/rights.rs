//! Rights: everything that the operator has to be allowed, and which file needs it.
//!
//! Promise: this is all of it. `deploy/palisade.yaml` grants exactly this (a test compares them), `palisade operator` asks for
//! exactly this before it starts, and whoever adds a request to the code adds a line here.
//! Never: a wildcard; Secrets outside of the operator's own namespace; a right that only a bug on purpose would use.

/// One right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    /// API group; empty for Kubernetes' core.
    pub group: &'static str,
    /// Resource, with its subresource where it is one: `nodes/status`.
    pub resource: &'static str,
    /// Verbs.
    pub verbs: &'static [&'static str],
    /// Where.
    pub place: Place,
    /// The one object that it is about, if it is one.
    pub name: Option<&'static str>,
    /// The file of this crate's `src` that needs it.
    pub needed_by: &'static str,
}

/// Where a right is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the whole cluster, or of a kind that has no namespace.
    Cluster,
    /// In the operator's own namespace.
    OwnNamespace,
    /// Where kubelets keep their leases.
    NodeLeases,
}

/// The namespace of [`Place::NodeLeases`].
pub const NODE_LEASES: &str = "kube-node-lease";

impl Right {
    /// Whether the operator can do without it: an Event that is lost changes nothing.
    pub fn is_dispensable(&self) -> bool {
        self.resource == "events"
    }

    /// Its resource and subresource apart.
    pub fn parts(&self) -> (&'static str, Option<&'static str>) {
        self.resource.split_once('/').map_or((self.resource, None), |(resource, part)| (resource, Some(part)))
    }
}

const OURS: &str = palisade_api::names::GROUP;
const CORE: &str = "";

/// All of them.
pub const ALL: &[Right] = &[
    // What is watched.
    cluster(CORE, "nodes", &["list", "watch"], "watch.rs"),
    Right { place: Place::NodeLeases, ..cluster("coordination.k8s.io", "leases", &["list", "watch"], "watch.rs") },
    cluster(OURS, "nodefencingrequests", &["list", "watch"], "watch.rs"),
    cluster(OURS, "nodefences", &["list", "watch"], "watch.rs"),
    cluster(OURS, "fencepolicies", &["list", "watch"], "watch.rs"),
    cluster(OURS, "fenceconfigs", &["list", "watch"], "watch.rs"),
    cluster(OURS, "fencetemplates", &["list", "watch"], "watch.rs"),
    cluster(OURS, "noderemedies", &["list", "watch"], "watch.rs"),
    // The life of a request and of a fence.
    own(OURS, "nodefencingrequests", &["create"], "requests.rs"),
    cluster(OURS, "nodefencingrequests", &["delete"], "requests.rs"),
    cluster(OURS, "nodefencingrequests/status", &["update"], "requests.rs"),
    cluster(OURS, "nodefences", &["get", "create", "patch"], "requests.rs"),
    cluster(OURS, "nodefences", &["get"], "effects/record.rs"),
    cluster(OURS, "nodefences/status", &["update"], "effects/record.rs"),
    cluster(OURS, "nodefencingrequests", &["get"], "effects/close.rs"),
    cluster(OURS, "nodefences", &["patch", "delete"], "effects/close.rs"),
    cluster(CORE, "nodes", &["get", "patch"], "executor/mod.rs"),
    // The budget.
    cluster(OURS, "fencepolicies", &["get"], "effects/ledger.rs"),
    cluster(OURS, "fencepolicies/status", &["update"], "effects/ledger.rs"),
    cluster(OURS, "fencepolicies", &["get"], "bookkeeping.rs"),
    cluster(OURS, "fencepolicies/status", &["update"], "bookkeeping.rs"),
    cluster(OURS, "nodefences", &["get", "list"], "bookkeeping.rs"),
    cluster(OURS, "fencepolicies", &["create"], "run/chores.rs"),
    // What objects say of themselves.
    cluster(OURS, "fencepolicies/status", &["patch"], "accept.rs"),
    cluster(OURS, "fenceconfigs/status", &["patch"], "accept.rs"),
    cluster(OURS, "fencetemplates/status", &["patch"], "accept.rs"),
    cluster(OURS, "noderemedies/status", &["patch"], "accept.rs"),
    cluster(CORE, "events", &["create"], "events.rs"),
    // The Node: quarantine, cordon, volumesInUse, and its end where somebody wants that.
    cluster(CORE, "nodes", &["get", "patch", "delete"], "effects/node.rs"),
    Right { place: Place::NodeLeases, ..cluster("coordination.k8s.io", "leases", &["list"], "effects/node.rs") },
    cluster(CORE, "nodes/status", &["patch"], "effects/volumes.rs"),
    // Release.
    cluster(CORE, "pods", &["list"], "workload.rs"),
    cluster(CORE, "pods", &["list", "delete"], "effects/pods.rs"),
    cluster(CORE, "pods/status", &["patch"], "effects/pods.rs"),
    cluster(CORE, "persistentvolumeclaims", &["get"], "effects/pods.rs"),
    cluster(CORE, "persistentvolumes", &["get"], "effects/volumes.rs"),
    cluster("storage.k8s.io", "volumeattachments", &["list", "delete"], "effects/volumes.rs"),
    // Isolate: passwords of devices; Jobs of agents and of users' pods; what is done to the Node, and the drain of one that lives.
    own(CORE, "secrets", &["get"], "secrets.rs"),
    own("batch", "jobs", &["create", "list", "delete"], "executor/job/follow.rs"),
    cluster(CORE, "pods", &["list", "delete"], "executor/job/follow.rs"),
    cluster(CORE, "nodes", &["get", "patch"], "executor/builtin.rs"),
    cluster(CORE, "pods", &["list"], "executor/builtin.rs"),
    cluster(CORE, "pods/eviction", &["create"], "executor/builtin.rs"),
    // Which replica acts. An object that is not there yet cannot be named.
    own("coordination.k8s.io", "leases", &["create"], "leader.rs"),
    Right { name: Some(crate::leader::LEASE), ..own("coordination.k8s.io", "leases", &["get", "update"], "leader.rs") },
];

const fn cluster(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    needed_by: &'static str,
) -> Right {
    Right { group, resource, verbs, place: Place::Cluster, name: None, needed_by }
}

const fn own(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    needed_by: &'static str,
) -> Right {
    Right { place: Place::OwnNamespace, ..cluster(group, resource, verbs, needed_by) }
}
