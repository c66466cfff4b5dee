//! Release / plan: the batch that may go now, and why each other pod stays.
//!
//! Promise (I2): a release is only ever planned on a [`Basis`](crate::prove::Basis) that stands now.
//! Promise (I1): groups whole or not at all; one member that may not go holds all.

use std::collections::{BTreeMap, BTreeSet};

use super::groups::groups;
use super::lanes::{Lane, may_go};
use crate::fence::{Fence, Release, ReleaseState};
use crate::ident::{AttachmentRef, PodRef, VolumeName};
use crate::observe::{Deletion, Observations, Owner, PodSeen};
use crate::prove::{Basis, Scope};
use crate::reason::release::KeepReason;

/// What may go now, and what stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReleasePlan {
    /// To be recorded as Intended.
    pub start: Vec<Release>,
    /// The rest, each with its reason.
    pub kept: Vec<Kept>,
}

/// A pod that stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// Which.
    pub pod: PodRef,
    /// Why.
    pub why: KeepReason,
}

/// How many pods the record of one fence holds, and how many volumes each: the bounds of the schema.
pub const PODS_ON_RECORD: u32 = 250;
/// How many volumes, and how many attachments, the record of one pod holds.
pub const VOLUMES_ON_RECORD: u32 = 16;
/// How many proofs the record of one fence holds. Each volume that a driver has to fence gets one.
const PROOFS_ON_RECORD: u32 = 32;

/// What the record of a fence has room for.
struct Room {
    pods: u32,
    proofs: u32,
    /// Volumes whose driver is going to prove something, or has.
    promised: BTreeSet<VolumeName>,
}

impl Room {
    fn left_by(fence: &Fence) -> Self {
        let promised: BTreeSet<VolumeName> =
            fence.releases.iter().flat_map(|release| release.basis.unpublish().iter().cloned()).collect();
        let proven =
            |volume: &&VolumeName| fence.proofs.iter().any(|proof| *proof.scope() == Scope::Volume((*volume).clone()));
        let to_come = promised.iter().filter(|volume| !proven(volume)).count();
        Self {
            pods: PODS_ON_RECORD.saturating_sub(count(fence.releases.len())),
            proofs: PROOFS_ON_RECORD.saturating_sub(count(fence.proofs.len() + to_come)),
            promised,
        }
    }

    /// Volumes of these bases that need a proof of their own, and have none yet.
    fn more(&self, bases: &[Basis]) -> BTreeSet<VolumeName> {
        let volumes = bases.iter().flat_map(|basis| basis.unpublish().iter().cloned());
        volumes.filter(|volume| !self.promised.contains(volume)).collect()
    }

    fn take(&mut self, pods: usize, bases: &[Basis]) {
        let more = self.more(bases);
        self.pods = self.pods.saturating_sub(count(pods));
        self.proofs = self.proofs.saturating_sub(count(more.len()));
        self.promised.extend(more);
    }
}

/// Plans the release of everything on the node that has no release yet.
pub fn plan(fence: &Fence, pods: &[PodSeen], seen: &Observations) -> ReleasePlan {
    let started: BTreeMap<_, u32> = fence.releases.iter().map(|release| (&release.pod.uid, release.group)).collect();
    let group_of = groups(pods, seen);
    let mut members: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (index, group) in group_of.iter().enumerate() {
        members.entry(*group).or_default().push(index);
    }
    let mut next_group = fence.releases.iter().map(|release| release.group.saturating_add(1)).max().unwrap_or(0);
    let mut pace_left = pace_left(seen);
    let attached = attached(seen);
    let mut room = Room::left_by(fence);
    let mut plan = ReleasePlan::default();
    for indexes in members.values() {
        let group: Vec<&PodSeen> = indexes.iter().map(|index| &pods[*index]).collect();
        if group.iter().all(|pod| started.contains_key(&pod.pod.uid)) {
            let held = group.iter().filter(|pod| pod.deletion == Deletion::Forced && pod.finalizers);
            plan.kept.extend(held.map(|pod| Kept { pod: pod.pod.clone(), why: KeepReason::HeldByFinalizer }));
            continue;
        }
        match judge_group(fence, &group, seen, &attached, pace_left, &room) {
            Ok(bases) => {
                pace_left = pace_left.map(|left| left.saturating_sub(count(group.len())));
                room.take(group.len(), &bases);
                // Who joins a group that is on its way goes with it, or the group would be removed without it.
                let joins = group.iter().find_map(|pod| started.get(&pod.pod.uid).copied());
                let number = joins.unwrap_or(next_group);
                next_group = next_group.max(number.saturating_add(1));
                let fresh = group.iter().zip(bases).filter(|(pod, _)| !started.contains_key(&pod.pod.uid));
                plan.start.extend(fresh.map(|(pod, basis)| intend(pod, number, basis, seen, &attached)));
            }
            Err(kept) => plan.kept.extend(kept),
        }
    }
    plan
}

/// How many pods may still go by the policy's pace; `None`: as many as there are.
fn pace_left(seen: &Observations) -> Option<u32> {
    seen.release.pace.map(|pace| pace.count.saturating_sub(seen.released_lately))
}

fn judge_group(
    fence: &Fence,
    group: &[&PodSeen],
    seen: &Observations,
    attached: &Attached<'_>,
    pace_left: Option<u32>,
    room: &Room,
) -> Result<Vec<Basis>, Vec<Kept>> {
    let judged: Vec<Result<(Lane, Basis), KeepReason>> = group.iter().map(|pod| may_go(fence, pod, seen)).collect();
    let holder = group.iter().zip(&judged).find(|(_, judged)| judged.is_err()).map(|(pod, _)| pod.pod.to_string());
    if let Some(by) = holder {
        let keep = |(pod, judged): (&&PodSeen, Result<_, KeepReason>)| Kept {
            pod: pod.pod.clone(),
            why: judged.err().unwrap_or(KeepReason::GroupHeld { by: by.clone() }),
        };
        return Err(group.iter().zip(judged).map(keep).collect());
    }
    if let Some(limit) = paced(group.len(), seen, pace_left) {
        let keep = |pod: &&PodSeen| Kept { pod: pod.pod.clone(), why: KeepReason::Paced { limit } };
        return Err(group.iter().map(keep).collect());
    }
    let bases: Vec<Basis> = judged.into_iter().flatten().map(|(_, basis)| basis).collect();
    if let Some(limit) = beyond_the_record(group, &bases, seen, attached, room) {
        let keep = |pod: &&PodSeen| Kept { pod: pod.pod.clone(), why: KeepReason::TooMuchToRecord { limit } };
        return Err(group.iter().map(keep).collect());
    }
    Ok(bases)
}

/// I5: what does not fit into the record could not be intended there, so it is not done.
fn beyond_the_record(
    group: &[&PodSeen],
    bases: &[Basis],
    seen: &Observations,
    attached: &Attached<'_>,
    room: &Room,
) -> Option<u32> {
    if count(group.len()) > room.pods {
        return Some(PODS_ON_RECORD);
    }
    if count(room.more(bases).len()) > room.proofs {
        return Some(PROOFS_ON_RECORD);
    }
    let too_many = |pod: &&PodSeen| {
        let volumes: BTreeSet<_> = super::volumes_of(pod, seen).collect();
        let attachments: usize = volumes.iter().filter_map(|volume| attached.get(*volume)).map(Vec::len).sum();
        count(volumes.len().max(attachments)) > VOLUMES_ON_RECORD
    };
    group.iter().any(too_many).then_some(VOLUMES_ON_RECORD)
}

/// The attachments of each volume: looked up once per pod, so indexed once per plan.
type Attached<'a> = BTreeMap<&'a VolumeName, Vec<&'a AttachmentRef>>;

fn attached(seen: &Observations) -> Attached<'_> {
    let mut by_volume = Attached::new();
    for seen in seen.attachments.iter().flatten() {
        by_volume.entry(&seen.volume).or_default().push(&seen.attachment);
    }
    by_volume
}

/// The limit that holds a group back. A group larger than the limit goes when nothing else went lately: it cannot be cut.
fn paced(size: usize, seen: &Observations, pace_left: Option<u32>) -> Option<u32> {
    let (pace, left) = (seen.release.pace?, pace_left?);
    let too_large_ever = count(size) > pace.count && left == pace.count && pace.count > 0;
    (count(size) > left && !too_large_ever).then_some(pace.count)
}

fn count(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn intend(pod: &PodSeen, group: u32, basis: Basis, seen: &Observations, attached: &Attached<'_>) -> Release {
    let volumes: BTreeSet<VolumeName> = super::volumes_of(pod, seen).cloned().collect();
    let attachments =
        volumes.iter().filter_map(|volume| attached.get(volume)).flatten().map(|seen| (*seen).clone()).collect();
    Release {
        pod: pod.pod.clone(),
        group,
        basis,
        mark_releases: pod.owner != Owner::StatefulSet && pod.deletion == Deletion::No,
        volumes,
        attachments,
        state: ReleaseState::Intended,
    }
}
