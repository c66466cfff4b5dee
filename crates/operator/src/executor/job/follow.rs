//! Executor / job / follow: a Job is made, or found, and followed until it ends or its time is up.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams, ListParams, PostParams, Preconditions, PropagationPolicy};
use palisade_api::names::labels;
use palisade_core::ident::Uid;
use palisade_core::resolve::call::Device as Target;
use palisade_core::settings::JOB_START;
use palisade_core::time::{Span, Tick};
use palisade_devices::Permit;
use tokio::time::sleep;

use super::{Ended, Executor, Left, Progress, progress};
use crate::clock::duration;
use crate::context::Context;
use crate::effects::{conflict, gone};
use crate::said::brief;
use crate::view::version;

/// How often a Job is looked at.
const LOOK: Span = Span::millis(500);
/// What a Job may take besides its start and its call: to be told of the end.
const SLACK: Span = Span::secs(5);

impl Executor {
    /// Makes the Job, unless it is there, and follows it to its end. At the end of its time it is ended.
    pub(super) async fn run(&self, job: Job, target: &Target, send_before: Tick) -> Ended {
        let begun = self.context.clock.tick();
        let ended = |left| Ended { left: Err(left), over: false, name: None, unbound: begun };
        let made = match self.made(job, send_before).await {
            Ok(made) => made,
            Err(Made::Not(why)) => return Ended { over: true, ..ended(why) },
            Err(Made::NobodyKnows(why)) => return ended(why),
        };
        let (name, since) = (made.name_any(), version_of(&made.metadata.resource_version));
        let known = Some(name.clone());
        let name = name.as_str();
        let (start_by, end_by) = (begun + JOB_START, begun + JOB_START + target.timeout + SLACK);
        let mut unbound = begun;
        let mut last = Progress::Unbound { why: String::new() };
        loop {
            sleep(duration(LOOK)).await;
            let asked = self.context.clock.tick();
            match find(&self.context, &self.fence, name).await {
                // A list from before it was made says nothing of it.
                Ok(found) if found.version >= since => last = progress(found.job.as_ref(), &found.pods),
                Ok(_) => tracing::debug!(job = name, "the API server is behind what it has told us"),
                Err(why) => tracing::debug!(job = name, why = brief(&why), "the Job could not be looked at"),
            }
            let late = match &last {
                Progress::Ended { exit, message, for_good } => {
                    let left = Left { exit: *exit, message: message.clone() };
                    return Ended { left: Ok(left), over: *for_good, name: known, unbound };
                }
                Progress::Gone => {
                    return Ended { over: true, ..ended(format!("the Job {name} was deleted before it had ended")) };
                }
                Progress::Unbound { why } => {
                    unbound = asked;
                    (asked > start_by).then(|| format!("no node took its pod in {JOB_START}{}", behind(why)))
                }
                Progress::Starting { why } => {
                    (asked > start_by).then(|| format!("its pod did not start in {JOB_START}{}", behind(why)))
                }
                Progress::Running => (asked > end_by).then(|| format!("its pod did not end in {}", target.timeout)),
            };
            if let Some(why) = late {
                self.end(name).await;
                return Ended { unbound, name: known, ..ended(why) };
            }
        }
    }

    /// The Job, made now or found.
    async fn made(&self, job: Job, send_before: Tick) -> Result<Job, Made> {
        let jobs: Api<Job> = Api::namespaced(self.context.client.clone(), &self.context.namespace);
        self.permit(send_before).may_send().map_err(|late| Made::Not(late.0))?;
        match jobs.create(&PostParams::default(), &job).await {
            Ok(made) => Ok(made),
            Err(why) if conflict(&why) => self.ours(&jobs, job.metadata.name).await,
            Err(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429 => {
                Err(Made::Not(format!("the Job was refused: {}", status.message)))
            }
            // It may have been made all the same.
            Err(why) => self.ours(&jobs, job.metadata.name).await.map_err(|_| Made::NobodyKnows(brief(&why))),
        }
    }

    /// Whether the Job of this name is this fence's.
    async fn ours(&self, jobs: &Api<Job>, name: Option<String>) -> Result<Job, Made> {
        let name = name.ok_or_else(|| Made::NobodyKnows("the Job's name is not known".to_owned()))?;
        let found = jobs.get_opt(&name).await.map_err(|why| Made::NobodyKnows(brief(&why)))?;
        let found = found.ok_or_else(|| Made::NobodyKnows(format!("the Job {name} was not found again")))?;
        let ours = found.owner_references().iter().any(|owner| owner.uid == self.fence.as_str());
        if ours {
            Ok(found)
        } else {
            Err(Made::Not(format!("there is a Job {name} that belongs to somebody else; delete it")))
        }
    }

    /// Ends a Job with everything that it has made. Whether that worked is seen by whoever needs to know.
    pub(super) async fn end(&self, name: &str) {
        if let Err(why) = end(&self.context, &self.fence, name).await {
            tracing::info!(job = name, why = brief(&why), "the Job was not ended; it is tried again before it matters");
        }
    }
}

enum Made {
    Not(String),
    NobodyKnows(String),
}

fn behind(why: &str) -> String {
    if why.is_empty() { String::new() } else { format!(": {why}") }
}

/// A Job of a fence as the API server has it, and its pods.
pub(crate) struct Found {
    pub(crate) job: Option<Job>,
    pub(crate) pods: Vec<Pod>,
    /// How far the API server was when it said so.
    version: u64,
}

/// A Job of this fence and its pods, from the API server itself. A list and not a get: it says how far the API server was, which
/// alone tells a Job that is gone from one that it has not heard of.
pub(crate) async fn find(context: &Context, fence: &Uid, name: &str) -> kube::Result<Found> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.namespace);
    let of_fence = ListParams::default().labels(&format!("{}={fence}", labels::FENCE_UID));
    let list = jobs.list(&of_fence).await?;
    let version = version_of(&list.metadata.resource_version);
    let Some(job) = list.items.into_iter().find(|job| job.name_any() == name) else {
        return Ok(Found { job: None, pods: Vec::new(), version });
    };
    let pods: Api<Pod> = Api::namespaced(context.client.clone(), &context.namespace);
    let uid = job.uid().unwrap_or_default();
    let its = |pod: &Pod| pod.owner_references().iter().any(|owner| owner.uid == uid);
    let pods = pods.list(&of_fence).await?.items.into_iter().filter(its).collect();
    Ok(Found { job: Some(job), pods, version })
}

fn version_of(text: &Option<String>) -> u64 {
    version(text.as_deref().unwrap_or_default())
}

/// Tells a Job of this fence to go, after all that it has made. True: there is none.
pub(crate) async fn end(context: &Context, fence: &Uid, name: &str) -> kube::Result<bool> {
    let jobs: Api<Job> = Api::namespaced(context.client.clone(), &context.namespace);
    let Some(found) = jobs.get_opt(name).await? else { return Ok(true) };
    let ours = found.owner_references().iter().any(|owner| owner.uid == fence.as_str());
    if !ours || found.metadata.deletion_timestamp.is_some() {
        return Ok(!ours);
    }
    let params = DeleteParams {
        // It is gone when its pods are: nothing else could tell that they can do nothing more.
        propagation_policy: Some(PropagationPolicy::Foreground),
        preconditions: Some(Preconditions { uid: found.uid(), resource_version: None }),
        ..DeleteParams::default()
    };
    match jobs.delete(name, &params).await {
        Ok(_) => Ok(false),
        Err(why) if gone(&why) => Ok(true),
        Err(why) => Err(why),
    }
}
