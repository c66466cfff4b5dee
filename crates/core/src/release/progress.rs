//! Release / progress: mark, verify, remove, group by group.
//!
//! Promise (I1, I2): a pod is removed only when every member of its group is marked and the isolation was read back by
//! this very process in a series that began after the last of these marks was seen. A read from before a mark, or by
//! an earlier process, counts for nothing: somebody may have switched the machine on in between.
//! Promise (I4): what is sent carries UID and, for the mark, the version that was decided on.

use std::collections::BTreeMap;

use super::lanes::{claims, may_go};
use crate::effect::{Effect, MarkPod, RemovePod, Unpublish};
use crate::fence::{Fence, Release, ReleaseState};
use crate::ident::Uid;
use crate::isolate::{plugs_behind, read_for};
use crate::observe::{Access, Deletion, Memory, NodeLive, NodeSeen, Observations, PodSeen, ReadId};
use crate::prove::{Basis, Class, Coverage, Judged, Proof, Scope, cover, judge};
use crate::reason::automaton::{MoveReason, WaitReason};
use crate::snapshot::Ready;
use crate::time::{Span, Tick};

/// How the started releases go on.
pub(crate) enum Progress {
    /// Do this.
    Do(Vec<Effect>, WaitReason),
    /// Wait for what has been asked for.
    Wait(WaitReason),
    /// Every started group is removed, or held by something that is not ours to move.
    Settled,
}

/// How far the started releases have visibly come, where the record does not say so yet.
pub(crate) fn caught_up(fence: &Fence, seen: &Observations) -> Option<(Vec<Release>, MoveReason)> {
    let pods: BTreeMap<_, _> = seen.pods.as_ref()?.iter().map(|pod| (&pod.pod.uid, pod)).collect();
    ratchet(fence, &pods).or_else(|| renew_bases(fence, &pods, seen))
}

/// One step for the started groups. `may_start`: groups in which nothing is marked yet may be marked.
pub(crate) fn progress(
    fence: &Fence,
    memory: &mut Memory,
    seen: &Observations,
    may_start: bool,
    now: Tick,
) -> Progress {
    let (Some(pods), NodeSeen::There(node)) = (&seen.pods, &seen.node) else {
        return Progress::Do(vec![Effect::ListPods], WaitReason::AwaitingPods);
    };
    let pods: BTreeMap<_, _> = pods.iter().map(|pod| (&pod.pod.uid, pod)).collect();
    let mut groups: BTreeMap<u32, Vec<&Release>> = BTreeMap::new();
    for release in &fence.releases {
        groups.entry(release.group).or_default().push(release);
    }
    let mut doing =
        Doing { fence, memory: &*memory, seen, node, now, effects: Vec::new(), wait: None, wants_read: None };
    for group in groups.values() {
        doing.group(group, &pods, may_start);
    }
    let Doing { mut effects, wait, wants_read, .. } = doing;
    if let Some(basis) = wants_read {
        effects.extend(ask_for_read(fence, memory, seen, &basis, now));
    }
    match (effects.is_empty(), wait) {
        (true, None) => Progress::Settled,
        (true, Some(wait)) => Progress::Wait(wait),
        (false, wait) => Progress::Do(effects, wait.unwrap_or(WaitReason::AwaitingMark)),
    }
}

/// The read that a basis needs: its devices, or the Node itself where only a sign of life could speak against it.
fn ask_for_read(fence: &Fence, memory: &mut Memory, seen: &Observations, basis: &Basis, now: Tick) -> Option<Effect> {
    let classes = classes(fence, basis);
    if classes.iter().any(|class| class_is_read(*class)) {
        read_for(fence, memory, seen, &classes, now)
    } else {
        Some(Effect::ReadNode)
    }
}

/// Releases that have visibly come further than the record says.
fn ratchet(fence: &Fence, pods: &BTreeMap<&Uid, &PodSeen>) -> Option<(Vec<Release>, MoveReason)> {
    let further = |release: &Release| match (pods.get(&release.pod.uid).map(|pod| pod.deletion), release.state) {
        (None, ReleaseState::Intended | ReleaseState::Marked) => Some(ReleaseState::Removed),
        (Some(Deletion::Marked | Deletion::Forced), ReleaseState::Intended) => Some(ReleaseState::Marked),
        (None, ReleaseState::Removed | ReleaseState::Detached) | (Some(_), _) => None,
    };
    let first = fence.releases.iter().find(|release| further(release).is_some())?;
    let pod = first.pod.to_string();
    let gone = further(first) == Some(ReleaseState::Removed);
    let why = if gone { MoveReason::PodGone { pod } } else { MoveReason::PodMarked { pod } };
    let mut releases = fence.releases.clone();
    for release in &mut releases {
        release.state = further(release).unwrap_or(release.state);
    }
    Some((releases, why))
}

/// After a proof ended and another took its place, unfinished releases have to stand on the new one.
fn renew_bases(
    fence: &Fence,
    pods: &BTreeMap<&Uid, &PodSeen>,
    seen: &Observations,
) -> Option<(Vec<Release>, MoveReason)> {
    if fence.releases.iter().all(|release| release.state >= ReleaseState::Removed || release.basis.stands(fence)) {
        return None;
    }
    let mut releases = fence.releases.clone();
    let mut renewed = 0;
    for release in releases.iter_mut().filter(|release| release.state < ReleaseState::Removed) {
        let Some(pod) = pods.get(&release.pod.uid).filter(|_| !release.basis.stands(fence)) else { continue };
        // A mark cannot be undone, so who is marked is not asked again whether it may go: only whether it is covered.
        let basis = match (release.state, cover(fence, pod, seen)) {
            (ReleaseState::Marked, Coverage::Node(basis) | Coverage::Volumes(basis)) => Some(basis),
            (ReleaseState::Intended, _) => may_go(fence, pod, seen).ok().map(|(_, basis)| basis),
            (ReleaseState::Marked | ReleaseState::Removed | ReleaseState::Detached, _) => None,
        };
        if let Some(basis) = basis {
            release.basis = basis;
            renewed += 1;
        }
    }
    (renewed > 0).then_some((releases, MoveReason::ReleaseIntended { pods: renewed }))
}

struct Doing<'a> {
    fence: &'a Fence,
    memory: &'a Memory,
    seen: &'a Observations,
    node: &'a NodeLive,
    now: Tick,
    effects: Vec<Effect>,
    wait: Option<WaitReason>,
    wants_read: Option<Basis>,
}

impl Doing<'_> {
    fn group(&mut self, group: &[&Release], pods: &BTreeMap<&Uid, &PodSeen>, may_start: bool) {
        if !group.iter().all(|release| release.state >= ReleaseState::Removed || release.basis.stands(self.fence)) {
            // I2: what it stood on is gone. Whoever is marked stays marked; nobody is removed.
            return;
        }
        if let Some(other) = self.joined(group) {
            // I1: the group is not whole any more; whoever joined it could start here beside the replacement.
            self.wait.get_or_insert(WaitReason::GroupJoined { by: other });
            return;
        }
        let unmarked: Vec<_> = group.iter().filter(|release| release.state == ReleaseState::Intended).collect();
        if !unmarked.is_empty() {
            if may_start || unmarked.len() < group.len() {
                for release in unmarked {
                    self.mark(release, pods);
                }
            }
            return;
        }
        let there: Vec<_> = group.iter().filter(|release| release.state == ReleaseState::Marked).collect();
        let removable: Vec<_> = there
            .iter()
            .filter_map(|release| Some((*release, *pods.get(&release.pod.uid)?)))
            // What has grace zero already and is still there is held by a finalizer: sent, and not ours to move.
            .filter(|(_, pod)| pod.deletion == Deletion::Marked)
            .collect();
        if removable.is_empty() {
            return;
        }
        if removable.iter().all(|(release, _)| self.ready_to_remove(release, group)) {
            let remove = removable.iter().map(|(release, _)| Effect::RemovePod(RemovePod { pod: release.pod.clone() }));
            self.effects.extend(remove);
            self.wait = Some(WaitReason::AwaitingRemoval);
        }
    }

    /// A pod of the node that was not planned with the group and shares a claim with it.
    fn joined(&self, group: &[&Release]) -> Option<String> {
        let started = |pod: &PodSeen| group.iter().any(|release| release.pod.uid == pod.pod.uid);
        let single = |pod: &PodSeen| {
            let volumes = claims(pod).filter_map(|name| self.seen.volumes.get(name));
            let mut single = volumes.filter(|volume| volume.access != Access::ReadWriteMany);
            single.any(|volume| group.iter().any(|release| release.volumes.contains(&volume.name)))
        };
        let mut others = self.seen.pods.iter().flatten().filter(|pod| !pod.completed && !started(pod));
        others.find(|pod| single(pod)).map(|pod| pod.pod.to_string())
    }

    fn mark(&mut self, release: &Release, pods: &BTreeMap<&Uid, &PodSeen>) {
        let Some(pod) = pods.get(&release.pod.uid) else { return };
        self.wait.get_or_insert(WaitReason::AwaitingMark);
        // For an owner that replaces a terminating pod the mark is the release: read back immediately before it.
        if release.mark_releases && !self.read_recently(release) {
            self.wants_read.get_or_insert(release.basis.clone());
            return;
        }
        self.effects.push(Effect::MarkPod(MarkPod {
            pod: release.pod.clone(),
            resource_version: pod.resource_version.clone(),
            grace: pod.grace.max(1),
            send_before: self.mark_before(release),
        }));
    }

    /// When the newest series was last sampled, by its slowest plug. Its answer may have been seen much later.
    fn sampled(&self) -> Option<Tick> {
        let (_, reads, answered) = self.memory.last_read.as_ref()?;
        let sampled = reads.iter().filter_map(|read| read.samples.last()).map(|sample| sample.began).min()?;
        Some(sampled.min(*answered))
    }

    /// Until when a mark may be sent. Where it is the release, the time runs from the read-back that allows it.
    fn mark_before(&self, release: &Release) -> Tick {
        let read = self.sampled().filter(|_| release.mark_releases);
        read.unwrap_or(self.now) + self.seen.settings.send_window
    }

    /// Step 2 of a release: everything that it stands on was seen in force after the last mark of its group.
    fn ready_to_remove(&mut self, release: &Release, group: &[&Release]) -> bool {
        let marks: Option<Vec<_>> = group
            .iter()
            .filter(|other| other.state == ReleaseState::Marked)
            .map(|other| self.memory.marks.get(&other.pod.uid).copied())
            .collect();
        let Some(marks) = marks else { return false };
        let after = marks.iter().map(|(read, _)| *read).max().unwrap_or_default();
        self.wait.get_or_insert(WaitReason::AwaitingReadBack);
        let mut ready = true;
        for volume in release.basis.unpublish() {
            let proven = self.fence.proofs_in_force().any(|proof| *proof.scope() == Scope::Volume(volume.clone()));
            if !proven {
                let call = Unpublish { pod: release.pod.clone(), volume: volume.clone() };
                self.effects.push(Effect::Unpublish(call));
                ready = false;
            }
        }
        if !verified(self.fence, self.memory, self.seen, &release.basis, after) {
            self.wants_read.get_or_insert(release.basis.clone());
            ready = false;
        }
        ready && self.grace_over(release)
    }

    /// On a node that lives the pod gets its normal grace first; force comes only after it.
    fn grace_over(&self, release: &Release) -> bool {
        if self.node.lease_silent || self.node.ready != Ready::True {
            return true;
        }
        let pod = self.seen.pods.iter().flatten().find(|pod| pod.pod.uid == release.pod.uid);
        let grace = pod.map_or(0, |pod| u64::from(pod.grace));
        let marked = self.memory.marks.get(&release.pod.uid).map(|(_, at)| *at);
        marked.is_some_and(|at| self.now >= at + Span::secs(grace))
    }

    /// Whether the newest series began after the release was on record, shows the isolation in force, and is no older than a
    /// send window: no machine boots and starts its pods in that time.
    fn read_recently(&self, release: &Release) -> bool {
        let basis = &release.basis;
        let Some(after) = self.memory.intended.get(&release.pod.uid) else { return false };
        let recent = self.sampled().is_some_and(|at| self.now <= at + self.seen.settings.send_window);
        let nothing_to_read = classes(self.fence, basis).iter().all(|class| !class_is_read(*class));
        (recent || nothing_to_read) && verified(self.fence, self.memory, self.seen, basis, *after)
    }
}

fn classes(fence: &Fence, basis: &Basis) -> Vec<Class> {
    fence.proofs.iter().filter(|proof| basis.proofs().contains(&proof.id())).map(Proof::class).collect()
}

/// Whether a class is read back from a device or provider; the others speak through the Node or the driver.
const fn class_is_read(class: Class) -> bool {
    match class {
        Class::Power | Class::Storage | Class::Network => true,
        Class::Driver | Class::Confirmed | Class::Kdump => false,
    }
}

/// Whether everything that `basis` names was seen in force in a series numbered `after` or later.
fn verified(fence: &Fence, memory: &Memory, seen: &Observations, basis: &Basis, after: ReadId) -> bool {
    basis.stands(fence)
        && classes(fence, basis).into_iter().all(|class| match class {
            Class::Power | Class::Storage | Class::Network => {
                let Some((plugs, stable_off)) = plugs_behind(fence, &seen.settings, class) else { return false };
                memory
                    .last_read
                    .as_ref()
                    .is_some_and(|(id, reads, _)| *id >= after && judge(reads, &plugs, stable_off) == Judged::Off)
            }
            Class::Driver => true,
            // A person vouched until the first sign of life; a Node read from a cache could hide one.
            Class::Confirmed => matches!(&seen.node, NodeSeen::There(node) if node.live),
            Class::Kdump => seen.kdump_proves && matches!(&seen.node, NodeSeen::There(node) if node.live),
        })
}
