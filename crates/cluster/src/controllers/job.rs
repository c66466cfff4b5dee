//! Jobs, plain and Indexed: pods that run to their end.
//!
//! Promise: a pod is counted before it may vanish: each bears the tracking finalizer, which only this controller takes
//! away. A pod that is being deleted counts as failed and is replaced at once (`podReplacementPolicy:
//! TerminatingOrFailed`, upstream's default).
//! Left out: deadlines of single indexes, pod failure and success policies, time to live after the end.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{WorkQueue, pod_from, pods_of, tell};
use crate::{
    api::{Change, DeleteOptions, Key, Kind, Object, metadata},
    clock::seconds,
    nature::{Actor, Ctx, Hears},
    objects::{annotation, flag, is_finished, is_ready, list_at, map_at, number, says, set_condition, text},
};

const TRACKING: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// The first wait after a failure; doubled each time, up to [`BACKOFF_LIMIT`].
const BACKOFF: Duration = Duration::from_secs(10);
const BACKOFF_LIMIT: Duration = Duration::from_mins(10);

/// The controller.
#[derive(Default)]
pub(crate) struct Jobs {
    queue: WorkQueue,
    /// When a Job may make its next pod.
    held: BTreeMap<Key, Duration>,
}

impl Jobs {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::JOB, Kind::POD]);
}

impl Actor for Jobs {
    fn notice(&mut self, change: &Change) -> bool {
        self.queue.notice_workload(Kind::JOB, change)
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        let due = self.held.iter().filter(|(_, due)| **due <= ctx.now).map(|(key, _)| key.clone());
        let mut keys: BTreeSet<Key> = due.collect();
        keys.extend(self.queue.take(Kind::JOB, ctx));
        for key in keys {
            if let Some(job) = ctx.api.get(&key) {
                self.reconcile(&key, &job, ctx);
            } else {
                self.held.remove(&key);
            }
        }
        self.held.values().map(|due| due.saturating_sub(ctx.now)).min()
    }
}

/// A Job's pods, sorted.
#[derive(Default)]
struct Pods {
    active: Vec<(Key, Object)>,
    succeeded: Vec<(Key, Object)>,
    failed: Vec<(Key, Object)>,
}

impl Pods {
    fn of(job: &Value, ctx: &Ctx<'_>) -> Self {
        let mut sorted = Self::default();
        for (key, pod) in pods_of(job, ctx) {
            let place = match text(&pod, "/status/phase") {
                "Succeeded" => &mut sorted.succeeded,
                "Failed" => &mut sorted.failed,
                _ if metadata::is_deleting(&pod) => &mut sorted.failed,
                _ => &mut sorted.active,
            };
            place.push((key, pod));
        }
        sorted
    }
}

impl Jobs {
    fn reconcile(&mut self, key: &Key, job: &Value, ctx: &Ctx<'_>) {
        let pods = Pods::of(job, ctx);
        let mut status = job.get("status").cloned().unwrap_or_else(|| json!({}));
        if status.get("startTime").is_none() && !flag(job, "/spec/suspend") {
            status["startTime"] = seconds(ctx.api.now()).into();
        }
        let failed_now = count(&mut status, job, &pods);
        let over = says(job, "Complete") == "True" || says(job, "Failed") == "True";
        let end = if over { None } else { verdict(job, &status, ctx) };
        let terminating = pods.failed.iter().filter(|(_, pod)| !is_finished(pod)).count();
        let stays = !over && end.is_none() && !metadata::is_deleting(job);
        status["terminating"] = terminating.into();
        status["active"] = if stays { pods.active.len() } else { 0 }.into();
        status["ready"] = pods.active.iter().filter(|(_, pod)| is_ready(pod)).count().into();
        let written = ctx.api.update(key, |job| {
            job["status"] = status.clone();
            if let Some((kind, reason, message)) = end {
                let now = ctx.api.now();
                set_condition(
                    job,
                    now,
                    &[("type", kind), ("status", "True"), ("reason", reason), ("message", message)],
                );
                if kind == "Complete" {
                    job["status"]["completionTime"] = seconds(now).into();
                }
            }
        });
        // Only what is written down may vanish.
        if written.is_ok() {
            pods.succeeded.iter().chain(&pods.failed).for_each(|(key, pod)| let_go(key, pod, ctx));
        }
        if failed_now > 0 {
            let failures = u32::try_from(number(&status, "/failed").unwrap_or_default()).unwrap_or(u32::MAX);
            let wait = BACKOFF.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(BACKOFF_LIMIT);
            self.held.insert(key.clone(), ctx.now + wait);
        }
        if self.held.get(key).is_some_and(|due| *due <= ctx.now) {
            self.held.remove(key);
        }
        if stays && !flag(job, "/spec/suspend") {
            if !self.held.contains_key(key) {
                make_missing(job, &status, &pods, terminating, ctx);
            }
        } else {
            pods.active.iter().for_each(|(key, pod)| stop(key, pod, ctx));
        }
    }
}

fn verdict(job: &Value, status: &Value, ctx: &Ctx<'_>) -> Option<(&'static str, &'static str, &'static str)> {
    let (succeeded, failed) =
        (number(status, "/succeeded").unwrap_or_default(), number(status, "/failed").unwrap_or_default());
    let wanted = number(job, "/spec/completions");
    if succeeded >= wanted.unwrap_or(1) {
        return Some(("Complete", "CompletionsReached", "Reached expected number of succeeded pods"));
    }
    if failed > number(job, "/spec/backoffLimit").unwrap_or(6) {
        return Some(("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit"));
    }
    let began: Option<Timestamp> = text(status, "/startTime").parse().ok();
    let limit = number(job, "/spec/activeDeadlineSeconds");
    let ran = began.map(|began| ctx.api.now().duration_since(began).as_secs());
    if let (Some(ran), Some(limit)) = (ran, limit)
        && u64::try_from(ran).unwrap_or_default() >= limit
    {
        return Some(("Failed", "DeadlineExceeded", "Job was active longer than specified deadline"));
    }
    None
}

/// Counts pods that ended and were not counted before; says how many of them failed.
fn count(status: &mut Value, job: &Value, pods: &Pods) -> usize {
    let uncounted = |pods: &[(Key, Object)]| -> Vec<Object> {
        pods.iter().filter(|(_, pod)| is_tracked(pod)).map(|(_, pod)| pod.clone()).collect()
    };
    let (succeeded, failed) = (uncounted(&pods.succeeded), uncounted(&pods.failed));
    if is_indexed(job) {
        let mut done = completed(status);
        done.extend(succeeded.iter().filter_map(|pod| index_of(pod)));
        status["succeeded"] = done.len().into();
        let names: Vec<String> = done.iter().map(u64::to_string).collect();
        if !names.is_empty() {
            status["completedIndexes"] = names.join(",").into();
        }
    } else {
        add(status, "succeeded", succeeded.len());
    }
    add(status, "failed", failed.len());
    failed.len()
}

fn add(status: &mut Value, field: &str, more: usize) {
    let before = status.get(field).and_then(Value::as_u64).unwrap_or_default();
    if more > 0 {
        status[field] = (before + more as u64).into();
    }
}

fn is_indexed(job: &Value) -> bool {
    text(job, "/spec/completionMode") == "Indexed"
}

fn is_tracked(pod: &Value) -> bool {
    metadata::finalizers(pod).any(|name| name == TRACKING)
}

fn index_of(pod: &Value) -> Option<u64> {
    annotation(pod, INDEX).parse().ok()
}

fn completed(status: &Value) -> BTreeSet<u64> {
    text(status, "/completedIndexes").split(',').filter_map(|index| index.parse().ok()).collect()
}

fn make_missing(job: &Value, status: &Value, pods: &Pods, terminating: usize, ctx: &Ctx<'_>) {
    let parallelism = number(job, "/spec/parallelism").unwrap_or(1);
    let succeeded = number(status, "/succeeded").unwrap_or_default();
    // A Job that wants to see its pods gone counts those that are going, too.
    let waits = text(job, "/spec/podReplacementPolicy") == "Failed";
    let active = (pods.active.len() + if waits { terminating } else { 0 }) as u64;
    let left = number(job, "/spec/completions").map_or(parallelism, |all| all.saturating_sub(succeeded));
    let missing = parallelism.min(left).saturating_sub(active);
    if is_indexed(job) {
        let taken: BTreeSet<u64> =
            pods.active.iter().filter_map(|(_, pod)| index_of(pod)).chain(completed(status)).collect();
        let all = number(job, "/spec/completions").unwrap_or_default();
        let free = (0..all).filter(|index| !taken.contains(index));
        for index in free.take(usize::try_from(missing).unwrap_or(usize::MAX)) {
            make(job, Some(index), ctx);
        }
    } else {
        (0..missing).for_each(|_| make(job, None, ctx));
    }
}

fn make(job: &Value, index: Option<u64>, ctx: &Ctx<'_>) {
    let mut pod = pod_from(job);
    let stem = metadata::name(job);
    pod["metadata"]["generateName"] = index.map_or(format!("{stem}-"), |index| format!("{stem}-{index}-")).into();
    pod["metadata"]["finalizers"] = json!([TRACKING]);
    if let Some(index) = index {
        map_at(&mut pod, &["metadata", "annotations"])[INDEX] = index.to_string().into();
        map_at(&mut pod, &["metadata", "labels"])[INDEX] = index.to_string().into();
        pod["spec"]["hostname"] = format!("{stem}-{index}").into();
    }
    if let Ok(pod) = ctx.api.create(Kind::POD, pod) {
        tell(ctx, job, false, "SuccessfulCreate", &format!("Created pod: {}", metadata::name(&pod)));
    }
}

fn let_go(key: &Key, pod: &Value, ctx: &Ctx<'_>) {
    if is_tracked(pod) {
        // Gone already: then nothing holds it.
        drop(ctx.api.update(key, |pod| {
            if let Some(finalizers) = list_at(pod, &["metadata", "finalizers"]) {
                finalizers.retain(|name| name != TRACKING);
            }
        }));
    }
}

fn stop(key: &Key, pod: &Value, ctx: &Ctx<'_>) {
    let_go(key, pod, ctx);
    drop(ctx.api.delete(key, &DeleteOptions { uid: Some(metadata::uid(pod).to_owned()), ..DeleteOptions::default() }));
}
