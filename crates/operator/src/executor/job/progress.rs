//! Executor / job / progress: how far a Job has come, by what the API server shows of it and its pods.
//!
//! Promise (I6): a pod has ended only when its kubelet has said so, container by container. That its phase is Failed may be
//! somebody's guess: the control plane writes that for a node that it cannot reach.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerState, Pod};

/// How far a Job has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There is no such Job, and no pod of it that could still do something.
    Gone,
    /// There is no such Job any more, and a pod of it is left that may act.
    Orphaned,
    /// None of its pods has a node.
    Unbound {
        /// Why, as far as anybody says.
        why: String,
    },
    /// A pod has a node, and no container of it has begun.
    Starting {
        /// Why, as far as its kubelet says.
        why: String,
    },
    /// A container runs, or has run and others have not ended.
    Running,
    /// Every container of every pod has ended.
    Ended {
        /// The first exit code that is not zero; else zero.
        exit: i32,
        /// What the container that it belongs to has left.
        message: String,
        /// The Job itself has ended: it makes no other pod.
        for_good: bool,
    },
}

/// Says how far a Job has come.
pub(crate) fn progress(job: Option<&Job>, pods: &[Pod]) -> Progress {
    let ends: Vec<Vec<End>> = pods.iter().map(containers).collect();
    let over = ends.iter().all(|pod| !pod.is_empty() && pod.iter().all(End::is_over));
    let Some(job) = job else { return if over { Progress::Gone } else { Progress::Orphaned } };
    // A kubelet says that its containers have ended, and then how the pod as a whole has: only then it is known how.
    if !pods.is_empty() && over && pods.iter().all(is_settled) {
        let all = ends.into_iter().flatten().filter_map(End::over);
        let (exit, message) = all.fold((0, String::new()), |known, next| match known {
            (0, text) => {
                if next.0 != 0 || text.is_empty() {
                    next
                } else {
                    (0, text)
                }
            }
            failed => failed,
        });
        return Progress::Ended { exit, message, for_good: has_ended(job) };
    }
    if pods.iter().all(|pod| node_of(pod).is_none()) {
        return Progress::Unbound { why: pods.iter().find_map(unscheduled).unwrap_or_default() };
    }
    let begun = |pod: &Vec<End>| pod.iter().any(|end| !matches!(end, End::Waiting(_)));
    if ends.iter().any(begun) {
        return Progress::Running;
    }
    let why = ends.into_iter().flatten().find_map(|end| match end {
        End::Waiting(why) if !why.is_empty() => Some(why),
        _ => None,
    });
    Progress::Starting { why: why.unwrap_or_default() }
}

fn is_settled(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// Whether every container of a pod has ended with exit code 0.
pub(super) fn ended_well(pod: &Pod) -> bool {
    containers(pod).iter().all(|end| matches!(end, End::Over(0, _)))
}

/// Whether the Job makes no more pods.
fn has_ended(job: &Job) -> bool {
    let conditions = job.status.as_ref().and_then(|status| status.conditions.as_ref());
    let ends = |kind: &str| matches!(kind, "Complete" | "Failed");
    conditions.into_iter().flatten().any(|condition| ends(&condition.type_) && condition.status == "True")
}

enum End {
    Waiting(String),
    Runs,
    Over(i32, String),
}

impl End {
    fn is_over(&self) -> bool {
        matches!(self, Self::Over(..))
    }

    fn over(self) -> Option<(i32, String)> {
        match self {
            Self::Over(exit, message) => Some((exit, message)),
            Self::Waiting(_) | Self::Runs => None,
        }
    }
}

fn containers(pod: &Pod) -> Vec<End> {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let wanted = pod.spec.as_ref().map_or(0, |spec| spec.containers.len());
    let known: Vec<End> = statuses.into_iter().flatten().map(|status| end(status.state.as_ref())).collect();
    let missing = wanted.saturating_sub(known.len());
    known.into_iter().chain((0..missing).map(|_| End::Waiting(String::new()))).collect()
}

fn end(state: Option<&ContainerState>) -> End {
    let Some(state) = state else { return End::Waiting(String::new()) };
    if let Some(over) = &state.terminated {
        return End::Over(over.exit_code, over.message.clone().unwrap_or_default());
    }
    if state.running.is_some() {
        return End::Runs;
    }
    let waiting = state.waiting.as_ref();
    let words = [waiting.and_then(|state| state.reason.as_deref()), waiting.and_then(|state| state.message.as_deref())];
    End::Waiting(words.into_iter().flatten().collect::<Vec<_>>().join(": "))
}

fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref().filter(|node| !node.is_empty())
}

fn unscheduled(pod: &Pod) -> Option<String> {
    let conditions = pod.status.as_ref()?.conditions.as_ref()?;
    let known = conditions.iter().find(|condition| condition.type_ == "PodScheduled" && condition.status == "False")?;
    known.message.clone()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn job(ended: bool) -> Job {
        let conditions = if ended { json!([{ "type": "Complete", "status": "True" }]) } else { json!([]) };
        serde_json::from_value(json!({ "metadata": { "name": "j" }, "status": { "conditions": conditions } })).unwrap()
    }

    fn pod(node: &str, phase: &str, state: &Value) -> Pod {
        let statuses = if state.is_null() {
            json!([])
        } else {
            json!([{ "name": "act", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state }])
        };
        serde_json::from_value(json!({
            "spec": { "nodeName": node, "containers": [{ "name": "act" }] },
            "status": { "phase": phase, "containerStatuses": statuses,
                "conditions": [{ "type": "PodScheduled", "status": "False", "message": "0/3 nodes are available" }] },
        }))
        .unwrap()
    }

    fn of(node: &str, phase: &str, state: &Value) -> Progress {
        progress(Some(&job(false)), &[pod(node, phase, state)])
    }

    #[test]
    fn a_pod_without_a_node_has_not_begun_and_says_why() {
        assert_eq!(of("", "Pending", &Value::Null), Progress::Unbound { why: "0/3 nodes are available".into() });
        assert_eq!(progress(Some(&job(false)), &[]), Progress::Unbound { why: String::new() });
        assert_eq!(progress(None, &[]), Progress::Gone);
    }

    #[test]
    fn a_pod_that_outlives_its_job_may_act_until_its_kubelet_says_that_it_has_ended() {
        assert_eq!(progress(None, &[pod("", "Pending", &Value::Null)]), Progress::Orphaned);
        assert_eq!(progress(None, &[pod("n2", "Running", &json!({ "running": {} }))]), Progress::Orphaned);
        assert_eq!(progress(None, &[pod("n2", "Failed", &Value::Null)]), Progress::Orphaned);
        let ended = json!({ "terminated": { "exitCode": 0, "message": "m" } });
        assert_eq!(progress(None, &[pod("n2", "Succeeded", &ended)]), Progress::Gone);
    }

    #[test]
    fn an_image_that_is_missing_is_named() {
        let state = json!({ "waiting": { "reason": "ErrImageNeverPull", "message": "not present" } });
        assert_eq!(of("n2", "Pending", &state), Progress::Starting { why: "ErrImageNeverPull: not present".into() });
    }

    #[test]
    fn what_its_kubelet_has_not_called_terminated_has_not_ended_whatever_its_phase() {
        assert_eq!(of("n2", "Failed", &json!({ "running": {} })), Progress::Running);
        assert_eq!(of("n2", "Failed", &Value::Null), Progress::Starting { why: String::new() });
        let one_of_two = [
            pod("n2", "Succeeded", &json!({ "terminated": { "exitCode": 0, "message": "m" } })),
            pod("n3", "Running", &json!({ "running": {} })),
        ];
        assert_eq!(progress(Some(&job(true)), &one_of_two), Progress::Running);
    }

    #[test]
    fn a_pod_whose_containers_have_ended_has_not_ended_before_it_is_said_how() {
        let state = json!({ "terminated": { "exitCode": 0, "message": "m" } });
        assert_eq!(of("n2", "Running", &state), Progress::Running);
        assert!(matches!(of("n2", "Failed", &state), Progress::Ended { exit: 0, .. }));
    }

    #[test]
    fn the_end_of_a_pod_is_not_yet_the_end_of_its_job() {
        let ended = || pod("n2", "Failed", &json!({ "terminated": { "exitCode": 3, "message": "words" } }));
        let wanted = |for_good| Progress::Ended { exit: 3, message: "words".into(), for_good };
        assert_eq!(progress(Some(&job(false)), &[ended()]), wanted(false));
        assert_eq!(progress(Some(&job(true)), &[ended()]), wanted(true));
    }
}
