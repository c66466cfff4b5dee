//! Executor / job / follow: a Job is made, or found, and followed until it ends or its time is up.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions};
use palisade_core::resolve::call::Device as Target;
use palisade_core::settings::JOB_START;
use palisade_core::time::{Span, Tick};
use palisade_devices::Permit;

use super::owner::Owner;
use super::progress::ended_well;
use super::{Ended, Executor, Left, Progress, progress};
use crate::clock::duration;
use crate::context::Context;
use crate::effects::{conflict, gone};
use crate::said::brief;

/// What a Job may take besides its start and its call: to be told of the end.
const SLACK: Span = Span::secs(5);

impl Executor {
    /// Makes the Job, unless it is there, and follows it to its end. At the end of its time it is ended, and when `stop` is.
    pub(super) async fn run(
        &self,
        owner: Owner<'_>,
        job: Job,
        target: &Target,
        send_before: Tick,
        mut stop: impl Future<Output = ()> + Unpin,
    ) -> Ended {
        let begun = self.context.clock.tick();
        let ended = |left| Ended { left: Err(left), over: false, made: None, unbound: begun };
        let made = match self.made(owner, job, send_before).await {
            Ok(made) => made,
            // Not over: whoever wrote the call down before us may have made it.
            Err(Unmade::Not(why) | Unmade::NobodyKnows(why)) => return ended(why),
        };
        let name = made.name.as_str();
        let (start_by, end_by) = (begun + JOB_START, begun + JOB_START + target.timeout + SLACK);
        let mut unbound = begun;
        let mut last = Progress::Unbound { why: String::new() };
        let mut cut_short = false;
        loop {
            let mut seen_now = false;
            let stopped = tokio::time::timeout(duration(owner.look()), &mut stop).await.is_ok();
            let asked = self.context.clock.tick();
            match find(&self.context, owner, name).await {
                Ok(Some(Found { job, pods })) => {
                    seen_now = true;
                    cut_short = pods.iter().any(told_to_go);
                    last = progress(job.as_ref().filter(|job| owner.means(job, &made)), &pods);
                    if last == Progress::Orphaned {
                        end_pods(&self.context, &pods).await;
                    }
                }
                Ok(None) => tracing::debug!(job = name, "the API server is behind what it has told us"),
                Err(why) => tracing::debug!(job = name, why = brief(&why), "the Job could not be looked at"),
            }
            let late = match &last {
                Progress::Ended { exit, message, for_good } => {
                    let left = Left { exit: *exit, message: message.clone(), cut_short };
                    return Ended { left: Ok(left), over: *for_good, made: Some(made), unbound };
                }
                Progress::Gone | Progress::Orphaned => {
                    let over = last == Progress::Gone;
                    return Ended { over, ..ended(format!("the Job {name} was deleted before it had ended")) };
                }
                Progress::Unbound { .. } | Progress::Starting { .. } | Progress::Running if stopped => {
                    Some("nobody needs to know any more".to_owned())
                }
                Progress::Unbound { why } => {
                    // A look that failed says nothing of when its pod began.
                    if seen_now {
                        unbound = asked;
                    }
                    (asked > start_by).then(|| format!("no node took its pod in {JOB_START}{}", behind(why)))
                }
                Progress::Starting { why } => {
                    (asked > start_by).then(|| format!("its pod did not start in {JOB_START}{}", behind(why)))
                }
                Progress::Running => (asked > end_by).then(|| format!("its pod did not end in {}", target.timeout)),
            };
            if let Some(why) = late {
                self.end(owner, &made).await;
                return Ended { unbound, made: Some(made), ..ended(why) };
            }
        }
    }

    /// The Job, made now or found.
    async fn made(&self, owner: Owner<'_>, job: Job, send_before: Tick) -> Result<Made, Unmade> {
        let jobs: Api<Job> = Api::namespaced(self.context.client.clone(), &self.context.namespace);
        self.permit(send_before).may_send().map_err(|late| Unmade::Not(late.0))?;
        match jobs.create(&PostParams::default(), &job).await {
            Ok(made) => {
                self.context.reached.told(made.resource_version().as_deref());
                Ok(Made::of(&made))
            }
            Err(why) if conflict(&why) => self.there_already(owner, job.metadata.name).await,
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429 => {
                Err(Unmade::Not(format!("the Job was refused: {}", status.message)))
            }
            // It may have been made all the same.
            Err(why) => match owner {
                Owner::Fence { .. } => {
                    let found = self.there_already(owner, job.metadata.name).await;
                    found.map_err(|_| Unmade::NobodyKnows(brief(&why)))
                }
                Owner::Check { .. } => Err(Unmade::NobodyKnows(brief(&why))),
            },
        }
    }

    /// A fence's Job is the one that was wanted, if it is this fence's. A check's is another check's, and nobody waits for it.
    async fn there_already(&self, owner: Owner<'_>, name: Option<String>) -> Result<Made, Unmade> {
        let name = name.ok_or_else(|| Unmade::NobodyKnows("the Job's name is not known".to_owned()))?;
        let found = find(&self.context, owner, &name).await.map_err(|why| Unmade::NobodyKnows(brief(&why)))?;
        let Some(found) = found.and_then(|found| found.job) else {
            return Err(Unmade::NobodyKnows(format!(
                "the Job {name} was not found among ours; if there is one that belongs to somebody else, delete it"
            )));
        };
        let made = Made::of(&found);
        match owner {
            Owner::Fence { .. } => Ok(made),
            Owner::Check { .. } => {
                self.end(owner, &made).await;
                Err(Unmade::Not("the Job of an earlier check was still there; it was told to go".to_owned()))
            }
        }
    }

    /// Ends a Job with everything that it has made. Whether that worked is seen by whoever needs to know.
    pub(super) async fn end(&self, owner: Owner<'_>, made: &Made) {
        let jobs: Api<Job> = Api::namespaced(self.context.client.clone(), &self.context.namespace);
        match jobs.delete(&made.name, &going(owner, made.uid.clone())).await {
            Ok(_) => {}
            Err(why) if gone(&why) || conflict(&why) => {}
            Err(why) => {
                tracing::info!(
                    job = made.name,
                    why = brief(&why),
                    "the Job was not ended; it is tried again before it matters"
                );
            }
        }
    }
}

/// A Job that was made.
pub(super) struct Made {
    pub(super) name: String,
    pub(super) uid: Option<String>,
}

impl Made {
    fn of(job: &Job) -> Self {
        Self { name: job.name_any(), uid: job.uid() }
    }
}

enum Unmade {
    Not(String),
    NobodyKnows(String),
}

/// Whether somebody told a pod to go, or its kubelet did away with it: then it is called failed, however its containers ended.
fn told_to_go(pod: &Pod) -> bool {
    let failed = pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Failed");
    pod.metadata.deletion_timestamp.is_some() || (failed && ended_well(pod))
}

fn behind(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

/// A Job as the API server has it, and its pods.
pub(crate) struct Found {
    pub(crate) job: Option<Job>,
    pub(crate) pods: Vec<Pod>,
}

/// A Job and its pods, from the API server itself; none: it is behind what it has told us, and says nothing of now. Lists and not
/// gets: they say how far the API server was, which alone tells a Job that is gone from one that it has not heard of.
///
/// Pods of a fence are found by the name of their Job: whoever deletes that may leave them behind, and even without an owner.
pub(crate) async fn find(context: &Context, owner: Owner<'_>, name: &str) -> kube::Result<Option<Found>> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.namespace);
    let (label, value) = owner.label();
    let its_own = ListParams::default().labels(&format!("{label}={value}"));
    let list = jobs.list(&its_own).await?;
    if context.reached.is_beyond(list.metadata.resource_version.as_deref()) {
        return Ok(None);
    }
    let job = list.items.into_iter().find(|job| job.name_any() == name && owner.has(job));
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &context.namespace);
    let list = pods.list(&its_own).await?;
    if context.reached.is_beyond(list.metadata.resource_version.as_deref()) {
        return Ok(None);
    }
    let uid = job.as_ref().and_then(ResourceExt::uid);
    let pods = list.items.into_iter().filter(|pod| owner.made(pod, name, uid.as_deref())).collect();
    Ok(Some(Found { job, pods }))
}

/// Tells pods to go that no Job is there for: nobody else may ever do it. One that has no node yet is gone at once.
pub(crate) async fn end_pods(context: &Context, pods: &[Pod]) {
    let api: Api<Pod> = Api::namespaced(context.client.clone(), &context.namespace);
    for pod in pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        // One that has changed since may have ended; it is looked at again.
        let exactly = Preconditions { uid: pod.uid(), resource_version: pod.resource_version() };
        let params = DeleteParams { preconditions: Some(exactly), ..DeleteParams::default() };
        match api.delete(&pod.name_any(), &params).await {
            Ok(_) => {}
            Err(why) if gone(&why) || conflict(&why) => {}
            Err(why) => tracing::info!(
                pod = pod.name_any(),
                why = brief(&why),
                "a pod whose Job is gone was not ended; it is tried again before it matters"
            ),
        }
    }
}

/// Tells a Job to go, after all that it has made. True: there is none any more.
pub(crate) async fn end(context: &Context, owner: Owner<'_>, found: &Job) -> kube::Result<bool> {
    if found.metadata.deletion_timestamp.is_some() {
        return Ok(false);
    }
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.namespace);
    match jobs.delete(&found.name_any(), &going(owner, found.uid())).await {
        Ok(_) => Ok(false),
        Err(why) if gone(&why) => Ok(true),
        Err(why) => Err(why),
    }
}

fn going(owner: Owner<'_>, uid: Option<String>) -> DeleteParams {
    DeleteParams {
        propagation_policy: Some(owner.goes()),
        preconditions: Some(Preconditions { uid, resource_version: None }),
        ..DeleteParams::default()
    }
}
