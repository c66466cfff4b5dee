//! Release / progress: mark, verify, remove, group by group.
//!
//! Promise (I1, I2): a pod is removed only when every member of its group is marked and this very process has then, in reads
//! that began after the last of these marks was seen, read the isolation back *and* found the Node to be the same object.
//! A read from before a mark, or by an earlier process, counts for nothing: somebody may have switched the machine on in
//! between, or another machine may have taken over the name and started the pod while it was not marked.
//! Promise (I4): what is sent carries UID and, for the mark, the version that was decided on.

use std::collections::BTreeMap;

use super::lanes::{claims, may_go};
use super::verify::{Missing, Verify, classes};
use crate::effect::{Effect, MarkPod, RemovePod, Unpublish};
use crate::fence::{Fence, Release, ReleaseState};
use crate::ident::Uid;
use crate::isolate::read_for;
use crate::observe::{Access, Deletion, Memory, NodeLive, NodeSeen, Observations, PodSeen, ReadId};
use crate::planted::{self, Bug};
use crate::prove::{Basis, Class, Coverage, Scope, cover};
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
        Doing { fence, memory: &*memory, seen, node, now, effects: Vec::new(), wait: None, wants: Wants::default() };
    for group in groups.values() {
        doing.group(group, &pods, may_start);
    }
    let Doing { mut effects, wait, wants, .. } = doing;
    if let Some(basis) = wants.read_back {
        effects.extend(read_for(fence, memory, seen, &classes(fence, &basis), now));
    }
    if wants.look {
        effects.extend(memory.look(seen, now));
    }
    match (effects.is_empty(), wait) {
        (true, None) => Progress::Settled,
        (true, Some(wait)) => Progress::Wait(wait),
        (false, wait) => Progress::Do(effects, wait.unwrap_or(WaitReason::AwaitingMark)),
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
    wants: Wants,
}

/// What has to be read before anything more can go.
#[derive(Default)]
struct Wants {
    /// The devices or providers behind this basis.
    read_back: Option<Basis>,
    /// The Node.
    look: bool,
}

impl Doing<'_> {
    fn group(&mut self, group: &[&Release], pods: &BTreeMap<&Uid, &PodSeen>, may_start: bool) {
        if !group.iter().all(|release| release.state >= ReleaseState::Removed || release.basis.stands(self.fence)) {
            // I2: what it stood on is gone. Whoever is marked stays marked; nobody is removed.
            return;
        }
        if let Some(other) = self.joined(group).filter(|_| !planted::is(Bug::HalfAGroup)) {
            // I1: the group is not whole any more; whoever joined it could start here beside the replacement.
            self.wait.get_or_insert(WaitReason::GroupJoined { by: other });
            return;
        }
        if planted::is(Bug::NoMark) {
            return self.remove_unmarked(group, pods);
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

    /// A bug on purpose: what is read back is never marked.
    fn remove_unmarked(&mut self, group: &[&Release], pods: &BTreeMap<&Uid, &PodSeen>) {
        for release in group.iter().filter(|release| pods.contains_key(&release.pod.uid)) {
            let missing = self.verify().since(&release.basis, ReadId::default());
            if self.nothing(missing, &release.basis) {
                self.effects.push(Effect::RemovePod(RemovePod { pod: release.pod.clone() }));
            }
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
            return;
        }
        self.effects.push(Effect::MarkPod(MarkPod {
            pod: release.pod.clone(),
            resource_version: pod.resource_version.clone(),
            grace: pod.grace,
            send_before: self.mark_before(release),
        }));
    }

    /// Until when a mark may be sent. Where it is the release, the time runs from the reads that allow it.
    fn mark_before(&self, release: &Release) -> Tick {
        let window = self.now + self.seen.settings.fresh;
        if release.mark_releases { self.verify().send_before(&release.basis) } else { window }
    }

    fn verify(&self) -> Verify<'_> {
        Verify { fence: self.fence, memory: self.memory, seen: self.seen, node: self.node, now: self.now }
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
        let after = if planted::is(Bug::ReadBackBeforeMark) { ReadId::default() } else { after };
        let contradicted = self.verify().contradicted();
        let wait = if contradicted { WaitReason::KubeletContradicts } else { WaitReason::AwaitingReadBack };
        self.wait.get_or_insert(wait);
        let mut ready = true;
        for volume in release.basis.unpublish() {
            let proven = self.fence.proofs_in_force().any(|proof| *proof.scope() == Scope::Volume(volume.clone()));
            if !proven {
                let call = Unpublish { pod: release.pod.clone(), volume: volume.clone() };
                self.effects.push(Effect::Unpublish(call));
                ready = false;
            }
        }
        let missing = self.verify().since(&release.basis, after);
        ready &= self.nothing(missing, &release.basis);
        ready && self.grace_over(release)
    }

    /// Whether nothing is missing; asks for whatever is.
    fn nothing(&mut self, missing: Missing, basis: &Basis) -> bool {
        self.wants.look |= missing.look;
        if missing.read_back {
            self.wants.read_back.get_or_insert(basis.clone());
        }
        missing.nothing()
    }

    /// On a node that lives the pod gets its normal grace first; force comes only after it.
    fn grace_over(&self, release: &Release) -> bool {
        let off = self.fence.proofs_in_force().any(|proof| proof.class() == Class::Power);
        if self.node.is_quiet(off) || self.node.ready != Ready::True {
            return true;
        }
        let pod = self.seen.pods.iter().flatten().find(|pod| pod.pod.uid == release.pod.uid);
        let grace = pod.map_or(0, |pod| u64::from(pod.grace));
        let marked = self.memory.marks.get(&release.pod.uid).map(|(_, at)| *at);
        marked.is_some_and(|at| self.now >= at + Span::secs(grace))
    }

    /// Whether Node and isolation were read after the release was on record, and lately.
    fn read_recently(&mut self, release: &Release) -> bool {
        let Some(after) = self.memory.intended.get(&release.pod.uid).copied() else { return false };
        let missing = self.verify().lately(&release.basis, after);
        self.nothing(missing, &release.basis)
    }
}
