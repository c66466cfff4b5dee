//! Every name that Palisade writes on, or reads from, an object that others see: labels, taints, annotations, finalizers.
//!
//! Promise: each word stands here once. What we put on a foreign object begins with `palisade.dev/`, so that it can be
//! told apart, swept and removed; names of peers are only read, unless the item says otherwise.

/// The API group of our kinds.
pub const GROUP: &str = "palisade.dev";
/// The version of our kinds.
pub const VERSION: &str = "v1alpha1";
/// The API group of the `MachineDisruptionBudget`.
pub const BUDGET_GROUP: &str = "healthchecking.openshift.io";
/// Who we are in `managedFields`, events and `app.kubernetes.io/managed-by`.
pub const FIELD_MANAGER: &str = "palisade";
/// The namespace of a default installation.
pub const SYSTEM_NAMESPACE: &str = "palisade-system";
/// The one name that a `FencePolicy` may have.
pub const POLICY_NAME: &str = "cluster";
/// The remedy that means "fence the node as its `FenceConfig` says".
pub const REMEDY_FENCE: &str = "fence";

/// Labels.
pub mod labels {
    /// Opt-in of a pod to the pod lane.
    pub const FENCED: &str = "palisade.dev/fenced";
    /// The same opt-in as the StorageOS fencing controller knew it.
    pub const STORAGEOS_FENCED: &str = "storageos.com/fenced";
    /// The value of an opt-in.
    pub const FENCED_VALUE: &str = "true";
    /// On Jobs and their pods: UID of the `NodeFence` that they belong to. (A node's name may be too long for a label.)
    pub const FENCE_UID: &str = "palisade.dev/fence-uid";
    /// On every pod of a Job, by Kubernetes' Job controller: the Job's name.
    pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
    /// On Jobs and their pods: the attempt that they belong to.
    pub const ATTEMPT: &str = "palisade.dev/attempt";
    /// Kubernetes' own word for who looks after an object.
    pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
    /// On Machines with running OSDs, followed by the name of the `CephCluster`.
    pub const CEPH_FENCE_GROUP_PREFIX: &str = "fencegroup.rook.io/";
    /// A node that is not to be counted when many are down (Kubernetes).
    pub const EXCLUDE_DISRUPTION: &str = "node.kubernetes.io/exclude-disruption";
    /// A node that is not to be remediated (medik8s).
    pub const MEDIK8S_EXCLUDE: &str = "remediation.medik8s.io/exclude-from-remediation";
    /// The zone of a node.
    pub const ZONE: &str = "topology.kubernetes.io/zone";
    /// A control-plane node.
    pub const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
    /// A control-plane node, in the word of older clusters.
    pub const MASTER: &str = "node-role.kubernetes.io/master";
    /// A node with a member of etcd (Rancher).
    pub const ETCD: &str = "node-role.kubernetes.io/etcd";
}

/// Taints.
pub mod taints {
    /// Ours, effect `NoSchedule`; the value is the UID of the `NodeFence`.
    pub const QUARANTINE: &str = "palisade.dev/quarantine";
    /// Kubernetes' word for "pods here may be forced away". Written only if the policy says so; see `release.outOfService`.
    pub const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service";
    /// The prefix that no taint of a method may have.
    pub const KUBERNETES_PREFIX: &str = "node.kubernetes.io/";
    /// The cluster autoscaler is about to delete this node.
    pub const AUTOSCALER_DELETES: &str = "ToBeDeletedByClusterAutoscaler";
    /// The cluster autoscaler thinks about deleting this node.
    pub const AUTOSCALER_CANDIDATE: &str = "DeletionCandidateOfClusterAutoscaler";
    /// Karpenter is about to delete this node.
    pub const KARPENTER_DISRUPTED: &str = "karpenter.sh/disrupted";
    /// The same in the word of older versions.
    pub const KARPENTER_DISRUPTION: &str = "karpenter.sh/disruption";
    /// The node-maintenance-operator drains this node.
    pub const MEDIK8S_DRAIN: &str = "medik8s.io/drain";
    /// The same in the word of its predecessor.
    pub const KUBEVIRT_DRAIN: &str = "kubevirt.io/drain";
}

/// Annotations.
pub mod annotations {
    /// On a Node: people are at work on it. Its value is for people; `false` means no. People write it, we read it.
    pub const MAINTENANCE: &str = "palisade.dev/maintenance";
    /// On a Node: when the running remedy began.
    pub const REMEDY_STARTED: &str = "palisade.dev/remedy-started";
    /// On a Node: the Job that runs the remedy.
    pub const REMEDY_JOB: &str = "palisade.dev/remedy-job";
    /// On a Node: touched to make the attach/detach controller look again.
    pub const LOOK_AGAIN: &str = "palisade.dev/look-again";
    /// On a Node: UID of the `NodeFence` that cordoned it; only that cordon is ours to lift.
    pub const CORDONED_BY: &str = "palisade.dev/cordoned-by";
    /// On a Node: UID of the `NodeFence` that set the out-of-service taint.
    pub const OUT_OF_SERVICE_BY: &str = "palisade.dev/out-of-service-by";
    /// On a foreign remediator that we paused: the marker of our own entry.
    pub const PAUSED_BY: &str = "palisade.dev/paused-by";
    /// On a pod that runs a user's template: the node that is being remedied.
    pub const TARGET_NODE: &str = "palisade.dev/target-node";
    /// On a pod that calls a fence agent: what it is told to do.
    pub const ORDER: &str = "palisade.dev/order";
    /// Cluster API: do not remediate this.
    pub const CAPI_SKIP: &str = "cluster.x-k8s.io/skip-remediation";
    /// Cluster API: leave this alone.
    pub const CAPI_PAUSED: &str = "cluster.x-k8s.io/paused";
    /// medik8s: the node that a remediation is about.
    pub const MEDIK8S_NODE: &str = "remediation.medik8s.io/node-name";
    /// medik8s: the health check has given up on this remediation.
    pub const MEDIK8S_TIMED_OUT: &str = "remediation.medik8s.io/nhc-timed-out";
    /// medik8s: several templates of this kind may be used one after the other. Written on our request template.
    pub const MEDIK8S_MULTIPLE_TEMPLATES: &str = "remediation.medik8s.io/multiple-templates-support";
    /// Deckhouse: do not fence this node.
    pub const DECKHOUSE_NO_FENCING: &str = "node-manager.deckhouse.io/fencing-disable";
    /// Deckhouse: this node is being updated.
    pub const DECKHOUSE_UPDATE: &str = "update.node.deckhouse.io/approved";
    /// Deckhouse: this node is being updated, and may be disturbed for it.
    pub const DECKHOUSE_DISRUPTION: &str = "update.node.deckhouse.io/disruption-approved";
    /// kured: this node is rebooting.
    pub const KURED_REBOOT: &str = "weave.works/kured-reboot-in-progress";
    /// kube-fencing: whether this node may be fenced.
    pub const KUBE_FENCING: &str = "fencing/enabled";
    /// OpenShift's machine-config-operator: what it does to this node.
    pub const MACHINE_CONFIG_STATE: &str = "machineconfiguration.openshift.io/state";
}

/// Finalizers.
pub mod finalizers {
    /// On a `NodeFence`: deleting it means stop, and stop ends in recovery or in a visible hold.
    pub const RECOVER_FIRST: &str = "palisade.dev/recover-first";
}

/// What a pod of a user's template finds in its environment.
pub mod environment {
    /// The name of the node that is being remedied.
    pub const NODE: &str = "PALISADE_NODE";
    /// The UID of that Node.
    pub const NODE_UID: &str = "PALISADE_NODE_UID";
    /// The UID of the `NodeFence`.
    pub const FENCE_UID: &str = "PALISADE_FENCE_UID";
}

/// The name of the Job that makes one call of a fence: unique per fence, attempt and call, so that a second leader meets the first
/// one's Job instead of making another.
pub fn job_name(fence_uid: &str, attempt: u32, call: u32) -> String {
    format!("palisade-{fence_uid}-{attempt}-{call}")
}

/// How the names of Jobs begin that only look for a fence. They change nothing, so none of them is on record.
pub fn look_prefix(fence_uid: &str) -> String {
    format!("palisade-{fence_uid}-look-")
}

/// The attempt and the call in the name of a fence's Job.
pub fn call_of_job(fence_uid: &str, name: &str) -> Option<(u32, u32)> {
    let (attempt, call) =
        name.strip_prefix("palisade-")?.strip_prefix(fence_uid)?.strip_prefix('-')?.split_once('-')?;
    Some((attempt.parse().ok()?, call.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::{call_of_job, job_name};

    #[test]
    fn a_job_name_fits_into_a_label_and_is_read_back() {
        let uid = "0b5a4b36-5d8c-4c2b-9f5e-0123456789ab";
        let name = job_name(uid, 99_999_999, 99_999_999);
        assert!(name.len() <= 63, "{name}");
        assert_eq!(call_of_job(uid, &name), Some((99_999_999, 99_999_999)));
        assert_ne!(job_name(uid, 1, 11), job_name(uid, 11, 1));
        assert_eq!(call_of_job("another", &name), None);
        assert_eq!(call_of_job(uid, "palisade-x"), None);
    }
}
