//! Executor / job / owner: whose a Job is: a fence's, or a check's.
//!
//! Promise: the two share no name, no owner and no label, so whoever looks for the Jobs of a fence never finds that of a check, and
//! the other way round.
//! Promise: a check's Job has one name, whatever it checks. So there is never more than one, whoever believes to lead; and what a
//! crash has left behind is met by the next check, which ends it. Where no other comes, it goes with its template, or by itself.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::PropagationPolicy;
use palisade_api::names::{GROUP, VERSION, labels};
use palisade_core::ident::{NodeName, Uid};
use palisade_core::time::Span;
use serde_json::{Value, json};

use super::follow::Made;

/// The name of every check's Job.
pub(super) const CHECK: &str = "palisade-device-check";
/// On a check's Job and its pod: that it is one.
const CHECK_LABEL: &str = "palisade.dev/device-check";
/// How often a fence's Job is looked at. Nobody waits for a check.
const LOOK: Span = Span::millis(500);
const LOOK_AT_CHECK: Span = Span::secs(2);
/// How long a Job that has ended stays if nobody takes it away. A fence takes its Jobs with it: this is for fences that fail again and
/// again, several Jobs a minute, and what each said stays in `status.actions`. What a check said is read within seconds, or never.
const KEPT: Span = Span::mins(10);
const KEPT_OF_CHECK: Span = Span::mins(1);

/// Whose a Job is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Owner<'a> {
    /// A fence's.
    Fence {
        /// The node, after which a fence is named.
        node: &'a NodeName,
        /// The fence.
        uid: &'a Uid,
    },
    /// A check's. There is no fence, so it belongs to the template of the device.
    Check {
        /// The template's name.
        template: &'a str,
        /// The template.
        uid: &'a Uid,
    },
}

impl Owner<'_> {
    /// The label by which its Jobs and their pods are found.
    pub(super) fn label(self) -> (&'static str, String) {
        match self {
            Self::Fence { uid, .. } => (labels::FENCE_UID, uid.to_string()),
            Self::Check { .. } => (CHECK_LABEL, "true".to_owned()),
        }
    }

    /// With whom its Jobs go.
    pub(super) fn reference(self) -> Value {
        let (kind, name, uid) = match self {
            Self::Fence { node, uid } => ("NodeFence", node.as_str(), uid),
            Self::Check { template, uid } => ("FenceTemplate", template, uid),
        };
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": kind,
            "name": name,
            "uid": uid.as_str(),
            "controller": true,
            "blockOwnerDeletion": false,
        })
    }

    /// Whether a Job is its, whatever the name says. Of checks there is one for all templates.
    pub(super) fn has(self, job: &Job) -> bool {
        match self {
            Self::Fence { uid, .. } => job.owner_references().iter().any(|owner| owner.uid == uid.as_str()),
            Self::Check { .. } => job.labels().contains_key(CHECK_LABEL),
        }
    }

    /// Whether a pod is of the Job of this name. Of a check's only by its owner: all of them share a name, and nobody waits for one that
    /// was left behind.
    pub(super) fn made(self, pod: &Pod, job: &str, uid: Option<&str>) -> bool {
        let owned = uid.is_some_and(|uid| pod.owner_references().iter().any(|owner| owner.uid == uid));
        match self {
            Self::Fence { .. } => owned || pod.labels().get(labels::JOB_NAME).is_some_and(|name| name == job),
            Self::Check { .. } => owned,
        }
    }

    /// Whether a Job of its is the one that was made: no two calls of fences share a name, and all checks do.
    pub(super) fn means(self, job: &Job, made: &Made) -> bool {
        match self {
            Self::Fence { .. } => true,
            Self::Check { .. } => job.uid() == made.uid,
        }
    }

    /// A fence must not wait for room on a node. A check would put somebody out of it every few seconds.
    pub(super) const fn priority(self) -> Option<&'static str> {
        match self {
            Self::Fence { .. } => Some("system-cluster-critical"),
            Self::Check { .. } => None,
        }
    }

    /// A fence's Job is gone when its pods are: nothing else could tell that they can do nothing more. What a check's pod does, it may
    /// do; and one on a node that has died must not keep the name.
    pub(super) const fn goes(self) -> PropagationPolicy {
        match self {
            Self::Fence { .. } => PropagationPolicy::Foreground,
            Self::Check { .. } => PropagationPolicy::Background,
        }
    }

    /// How long a Job stays after its end.
    pub(super) const fn kept(self) -> Span {
        match self {
            Self::Fence { .. } => KEPT,
            Self::Check { .. } => KEPT_OF_CHECK,
        }
    }

    /// How often a Job is looked at.
    pub(super) const fn look(self) -> Span {
        match self {
            Self::Fence { .. } => LOOK,
            Self::Check { .. } => LOOK_AT_CHECK,
        }
    }
}
