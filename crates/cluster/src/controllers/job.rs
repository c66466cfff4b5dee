//! Jobs, plain and Indexed: pods that run to their end.
//!
//! Promise: a pod is counted before it may vanish: each bears the tracking finalizer, which only this controller takes
//! away. A pod that is being deleted counts as failed and is replaced at once (`podReplacementPolicy:
//! TerminatingOrFailed`, upstream's default).
//! Promise: a Job says `FailureTarget` or `SuccessCriteriaMet` as soon as its end is decided, and `Failed` or `Complete`
//! only when the last of its pods has come to an end or is gone (upstream since 1.31): a pod on a node that nobody hears
//! keeps its Job from being over.
//! Left out: deadlines of single indexes, pod failure and success policies, time to live after the end.

mod tally;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use self::tally::{Pods, Tally};
use super::{WorkQueue, pod_from, tell};
use crate::{
    api::{Change, DeleteOptions, Key, Kind, Object, metadata},
    clock::seconds,
    nature::{Actor, Ctx, Hears, fetch},
    objects::{annotation, condition, controller, flag, list_at, map_at, number, says, set_condition, text},
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
    started: bool,
    /// When a Job may make its next pod.
    held: BTreeMap<Key, Duration>,
    /// When a Job will have been active for as long as it may be.
    deadlines: BTreeMap<Key, Duration>,
    /// Pods that bear our finalizer, and may have lost their Job.
    strays: BTreeSet<Key>,
}

impl Jobs {
    pub(crate) const HEARS: Hears = Hears::Kinds(&[Kind::JOB, Kind::POD]);
}

impl Actor for Jobs {
    fn notice(&mut self, change: &Change) -> bool {
        let tracked = change.key.kind == Kind::POD && change.new.as_ref().is_some_and(|pod| is_tracked(pod));
        if tracked {
            self.strays.insert(change.key.clone());
        }
        self.queue.notice_workload(Kind::JOB, change) || tracked
    }

    fn run(&mut self, ctx: &mut Ctx<'_>) -> Option<Duration> {
        if !std::mem::replace(&mut self.started, true) {
            self.strays.extend(ctx.api.list(Kind::POD).iter().map(|pod| Key::of(Kind::POD, pod)));
        }
        let due = self.held.iter().chain(&self.deadlines).filter(|(_, due)| **due <= ctx.now);
        let mut keys: BTreeSet<Key> = due.map(|(key, _)| key.clone()).collect();
        keys.extend(self.queue.take(Kind::JOB, ctx));
        for key in keys {
            self.deadlines.remove(&key);
            match ctx.api.get(&key).filter(|job| !is_over(job)) {
                Some(job) => self.reconcile(&key, &job, ctx),
                None => drop(self.held.remove(&key)),
            }
        }
        self.let_strays_go(ctx);
        self.held.values().chain(self.deadlines.values()).min().map(|due| due.saturating_sub(ctx.now))
    }
}

/// How a Job ends: whether well, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
struct End {
    well: bool,
    reason: String,
    message: String,
}

impl Jobs {
    fn reconcile(&mut self, key: &Key, job: &Value, ctx: &Ctx<'_>) {
        let pods = Pods::of(job, ctx);
        let mut tally = Tally::of(job, &pods);
        if tally.status.get("startTime").is_none() && !flag(job, "/spec/suspend") {
            tally.status["startTime"] = seconds(ctx.api.now()).into();
        }
        let end = decided(job).or_else(|| verdict(job, &tally, ctx));
        let closing = metadata::is_deleting(job);
        if end.as_ref().is_some_and(|end| !end.well) {
            tally.all_failed(&pods);
        }
        let stops = end.is_some() || flag(job, "/spec/suspend");
        let stopped = if stops { pods.active.len() } else { 0 };
        tally.show(&pods, stopped);

        // Only what is written down may vanish.
        if !write(key, &tally.uncounted(), end.as_ref().map(|end| (end, false)), ctx) {
            return;
        }
        pods.ended().for_each(|(key, pod)| let_go(key, pod, ctx));
        if closing || stops {
            pods.active.iter().chain(&pods.going).for_each(|(key, pod)| let_go(key, pod, ctx));
        }
        if stops {
            pods.active.iter().for_each(|(key, pod)| stop(key, pod, ctx));
        }
        let over = end.as_ref().filter(|_| tally.terminating == 0);
        write(key, &tally.counted(), over.map(|end| (end, true)), ctx);
        if let Some(end) = over {
            tell(ctx, job, !end.well, if end.well { "Completed" } else { &end.reason }, &end.message);
        }
        if end.is_none() && !closing && !flag(job, "/spec/suspend") {
            self.go_on(key, job, &pods, &tally, ctx);
        }
    }

    /// A Job that is not at its end makes what it lacks, unless it has to wait after a failure.
    fn go_on(&mut self, key: &Key, job: &Value, pods: &Pods, tally: &Tally, ctx: &Ctx<'_>) {
        if let Some(left) = time_left(job, &tally.status, ctx) {
            self.deadlines.insert(key.clone(), ctx.now + left);
        }
        if !tally.failed.is_empty() {
            let failures = u32::try_from(tally.failures()).unwrap_or(u32::MAX);
            let wait = BACKOFF.saturating_mul(2_u32.saturating_pow(failures.saturating_sub(1))).min(BACKOFF_LIMIT);
            self.held.insert(key.clone(), ctx.now + wait);
        }
        if self.held.get(key).is_some_and(|due| *due <= ctx.now) {
            self.held.remove(key);
        }
        if !self.held.contains_key(key) {
            make_missing(job, pods, tally, ctx);
        }
    }

    /// A pod whose Job is gone is counted by nobody.
    fn let_strays_go(&mut self, ctx: &Ctx<'_>) {
        for (key, pod) in fetch(ctx.api, &std::mem::take(&mut self.strays)) {
            let owner = controller(&pod).map(|owner| text(owner, "/uid"));
            if owner.is_none_or(|uid| ctx.index.with_uid(uid).is_none()) {
                let_go(&key, &pod, ctx);
            }
        }
    }
}

fn is_over(job: &Value) -> bool {
    says(job, "Complete") == "True" || says(job, "Failed") == "True"
}

/// The end that is on record already.
fn decided(job: &Value) -> Option<End> {
    let kind = ["FailureTarget", "SuccessCriteriaMet"].into_iter().find(|kind| says(job, kind) == "True")?;
    let said = condition(job, kind)?;
    let (reason, message) = (text(said, "/reason").to_owned(), text(said, "/message").to_owned());
    Some(End { well: kind == "SuccessCriteriaMet", reason, message })
}

fn verdict(job: &Value, tally: &Tally, ctx: &Ctx<'_>) -> Option<End> {
    let end =
        |well, reason: &str, message: &str| Some(End { well, reason: reason.to_owned(), message: message.to_owned() });
    if tally.successes() >= number(job, "/spec/completions").unwrap_or(1) {
        return end(true, "CompletionsReached", "Reached expected number of succeeded pods");
    }
    if tally.failures() > number(job, "/spec/backoffLimit").unwrap_or(6) {
        return end(false, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    }
    if time_left(job, &tally.status, ctx)? == Duration::ZERO {
        return end(false, "DeadlineExceeded", "Job was active longer than specified deadline");
    }
    None
}

/// How long a Job may still be active; nothing if for ever.
fn time_left(job: &Value, status: &Value, ctx: &Ctx<'_>) -> Option<Duration> {
    let limit = i64::try_from(number(job, "/spec/activeDeadlineSeconds")?).ok()?;
    let began: Timestamp = text(status, "/startTime").parse().ok()?;
    let left = SignedDuration::from_secs(limit).saturating_sub(ctx.api.now().duration_since(began));
    Some(Duration::try_from(left).unwrap_or_default())
}

/// Writes the status, and how it ends: that this is decided, or that it is over. Says whether that could be written.
fn write(key: &Key, status: &Value, end: Option<(&End, bool)>, ctx: &Ctx<'_>) -> bool {
    let now = ctx.api.now();
    let written = ctx.api.update(key, |job| {
        let conditions = job.pointer("/status/conditions").cloned();
        job["status"] = status.clone();
        if let Some(conditions) = conditions {
            job["status"]["conditions"] = conditions;
        }
        let Some((end, over)) = end else { return };
        let kind = match (end.well, over) {
            (true, false) => "SuccessCriteriaMet",
            (true, true) => "Complete",
            (false, false) => "FailureTarget",
            (false, true) => "Failed",
        };
        let said = [("type", kind), ("status", "True"), ("reason", &*end.reason), ("message", &*end.message)];
        set_condition(job, now, &said);
        if kind == "Complete" {
            job["status"]["completionTime"] = seconds(now).into();
        }
    });
    written.is_ok()
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

/// A Job that wants to see its pods gone before it replaces them.
fn waits(job: &Value) -> bool {
    text(job, "/spec/podReplacementPolicy") == "Failed"
}

fn make_missing(job: &Value, pods: &Pods, tally: &Tally, ctx: &Ctx<'_>) {
    let parallelism = number(job, "/spec/parallelism").unwrap_or(1);
    let active = (pods.active.len() + if waits(job) { tally.terminating } else { 0 }) as u64;
    let left = number(job, "/spec/completions").map_or(parallelism, |all| all.saturating_sub(tally.successes()));
    let missing = parallelism.min(left).saturating_sub(active);
    if is_indexed(job) {
        let taken: BTreeSet<u64> =
            pods.active.iter().filter_map(|(_, pod)| index_of(pod)).chain(tally.indexes()).collect();
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

fn stop(key: &Key, pod: &Object, ctx: &Ctx<'_>) {
    drop(ctx.api.delete(key, &DeleteOptions { uid: Some(metadata::uid(pod).to_owned()), ..DeleteOptions::default() }));
}
