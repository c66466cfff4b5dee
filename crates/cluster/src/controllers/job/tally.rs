//! Jobs / tally: which pods of a Job have ended, and which of them are counted.
//!
//! Promise: each pod is counted once. It is first listed in `uncountedTerminatedPods`, then loses its finalizer, and then is
//! a number: whoever reads the status in between neither misses it nor sees it twice.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{super::pods_of, index_of, is_indexed, is_tracked, waits};
use crate::{
    api::{Key, Object, metadata},
    nature::Ctx,
    objects::{is_finished, is_ready, number, text},
};

/// A Job's pods, sorted.
#[derive(Default)]
pub(super) struct Pods {
    pub(super) active: Vec<(Key, Object)>,
    pub(super) succeeded: Vec<(Key, Object)>,
    pub(super) failed: Vec<(Key, Object)>,
    /// On their way out, of a Job that waits until they are.
    pub(super) going: Vec<(Key, Object)>,
}

impl Pods {
    pub(super) fn of(job: &Value, ctx: &Ctx<'_>) -> Self {
        let mut sorted = Self::default();
        for (key, pod) in pods_of(job, ctx) {
            let place = match text(&pod, "/status/phase") {
                "Succeeded" => &mut sorted.succeeded,
                "Failed" => &mut sorted.failed,
                _ if metadata::is_deleting(&pod) && waits(job) => &mut sorted.going,
                _ if metadata::is_deleting(&pod) => &mut sorted.failed,
                _ => &mut sorted.active,
            };
            place.push((key, pod));
        }
        sorted
    }

    /// Those that count.
    pub(super) fn ended(&self) -> impl Iterator<Item = &(Key, Object)> {
        self.succeeded.iter().chain(&self.failed)
    }
}

/// How a Job stands.
pub(super) struct Tally {
    pub(super) status: Value,
    /// UIDs of pods that succeeded and are no number yet.
    succeeded: Vec<String>,
    /// UIDs of pods that failed and are no number yet.
    pub(super) failed: Vec<String>,
    /// Which indexes are done.
    done: Option<BTreeSet<u64>>,
    /// Pods that are on their way out.
    pub(super) terminating: usize,
}

impl Tally {
    pub(super) fn of(job: &Value, pods: &Pods) -> Self {
        let status = job.get("status").cloned().unwrap_or_else(|| json!({}));
        let done = is_indexed(job).then(|| {
            let mut done = completed(&status);
            let new = pods.succeeded.iter().filter(|(_, pod)| is_tracked(pod));
            done.extend(new.filter_map(|(_, pod)| index_of(pod)));
            done
        });
        let succeeded = if done.is_some() { Vec::new() } else { uncounted(&pods.succeeded) };
        let unfinished = pods.failed.iter().filter(|(_, pod)| !is_finished(pod)).count();
        let terminating = unfinished + pods.going.len();
        Self { status, succeeded, failed: uncounted(&pods.failed), done, terminating }
    }

    /// Of a Job that has failed, every pod has.
    pub(super) fn all_failed(&mut self, pods: &Pods) {
        self.failed.extend(uncounted(&pods.active));
        self.failed.extend(uncounted(&pods.going));
    }

    /// Pods that succeeded, all told.
    pub(super) fn successes(&self) -> u64 {
        let counted = || number(&self.status, "/succeeded").unwrap_or_default() + self.succeeded.len() as u64;
        self.done.as_ref().map_or_else(counted, |done| done.len() as u64)
    }

    /// Pods that failed, all told.
    pub(super) fn failures(&self) -> u64 {
        number(&self.status, "/failed").unwrap_or_default() + self.failed.len() as u64
    }

    /// The indexes that are done.
    pub(super) fn indexes(&self) -> impl Iterator<Item = u64> {
        self.done.iter().flatten().copied()
    }

    /// Takes down who is at work, of whom some are about to be stopped.
    pub(super) fn show(&mut self, pods: &Pods, stopped: usize) {
        let active = pods.active.len().saturating_sub(stopped);
        let ready = pods.active.iter().filter(|(_, pod)| is_ready(pod)).count();
        self.terminating += stopped;
        self.status["active"] = active.into();
        self.status["ready"] = ready.min(active).into();
        self.status["terminating"] = self.terminating.into();
    }

    /// The status in which ended pods are listed.
    pub(super) fn uncounted(&self) -> Value {
        let mut status = self.status.clone();
        status["uncountedTerminatedPods"] = json!({});
        for (field, uids) in [("succeeded", &self.succeeded), ("failed", &self.failed)] {
            if !uids.is_empty() {
                status["uncountedTerminatedPods"][field] = json!(uids);
            }
        }
        status
    }

    /// The status in which they are numbers.
    pub(super) fn counted(&self) -> Value {
        let mut status = self.status.clone();
        status["uncountedTerminatedPods"] = json!({});
        for (field, number) in [("succeeded", self.successes()), ("failed", self.failures())] {
            if number > 0 {
                status[field] = number.into();
            }
        }
        if let Some(done) = self.done.as_ref().filter(|done| !done.is_empty()) {
            status["completedIndexes"] = shown(done).into();
        }
        status
    }
}

fn uncounted(pods: &[(Key, Object)]) -> Vec<String> {
    pods.iter().filter(|(_, pod)| is_tracked(pod)).map(|(_, pod)| metadata::uid(pod).to_owned()).collect()
}

fn completed(status: &Value) -> BTreeSet<u64> {
    let mut done = BTreeSet::new();
    for stretch in text(status, "/completedIndexes").split(',') {
        let (first, last) = stretch.split_once('-').unwrap_or((stretch, stretch));
        if let (Ok(first), Ok(last)) = (first.parse::<u64>(), last.parse::<u64>()) {
            done.extend(first..=last);
        }
    }
    done
}

/// Indexes as upstream writes them: `0,2-4,6,7`.
fn shown(done: &BTreeSet<u64>) -> String {
    let mut stretches: Vec<(u64, u64)> = Vec::new();
    for index in done {
        match stretches.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => stretches.push((*index, *index)),
        }
    }
    let show = |(first, last): &(u64, u64)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    };
    stretches.iter().map(show).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_written_in_stretches_and_read_again() {
        for (indexes, written) in
            [(vec![], ""), (vec![0], "0"), (vec![0, 1], "0,1"), (vec![0, 2, 3, 4, 6, 7], "0,2-4,6,7")]
        {
            let indexes: BTreeSet<u64> = indexes.into_iter().collect();
            assert_eq!(shown(&indexes), written);
            assert_eq!(completed(&json!({"completedIndexes": written})), indexes);
        }
    }
}
