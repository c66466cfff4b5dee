//! Release / detach: free the volumes of removed pods, by the attach/detach controller's own hand.
//!
//! Promise (I2): `volumesInUse` is edited only while the lease is silent (late, under a power proof), in the version of a live read that shows the
//! proof's UID and boot; an entry that comes back means that a kubelet lives, and ends all edits of this fence.
//! Never: deletes an attachment that is being deleted already (its driver has the word), before the nudge, or without having
//! read device and Node again since: somebody may have switched the machine on, and a new pod may run there.

use std::collections::BTreeSet;

use super::verify::{Verify, classes};
use crate::effect::{DeleteAttachment, DetachVolumes, Effect, NodeGuard};
use crate::fence::{Detach, Fence, Release, ReleaseState};
use crate::ident::VolumeName;
use crate::isolate::read_for;
use crate::observe::{AttachmentSeen, Memory, NodeLive, NodeSeen, Observations};
use crate::planted::{self, Bug};
use crate::prove::{Basis, Class, Proof};
use crate::reason::automaton::{MoveReason, WaitReason};
use crate::time::Tick;

/// How detaching goes on.
pub(crate) enum Detaching {
    /// Write down the fence as it stands now.
    Record(Box<Fence>, MoveReason),
    /// Do this.
    Do(Vec<Effect>, WaitReason),
    /// Nothing is left to free.
    Settled,
}

/// One step towards free volumes.
pub(crate) fn detach(fence: &Fence, memory: &mut Memory, seen: &Observations, now: Tick) -> Detaching {
    let removed: Vec<&Release> =
        fence.releases.iter().filter(|release| release.state == ReleaseState::Removed).collect();
    if removed.is_empty() {
        return Detaching::Settled;
    }
    let (NodeSeen::There(node), Some(attachments), Some(_)) = (&seen.node, &seen.attachments, &seen.pods) else {
        return Detaching::Do(vec![Effect::ListPods], WaitReason::AwaitingPods);
    };
    let free = free_volumes(&removed, seen);
    let waiting: Vec<&AttachmentSeen> = attachments.iter().filter(|seen| free.contains(&seen.volume)).collect();
    if let Some(step) = edit(fence, memory, node, &free, seen, now) {
        return step;
    }
    if let Some(done) = detached(fence, &waiting) {
        return done;
    }
    let effects = by_hand(fence, memory, node, &waiting, seen, now);
    let refused = waiting.iter().find_map(|seen| seen.detach_error.as_deref());
    let wait =
        refused.map_or(WaitReason::AwaitingDetach, |error| WaitReason::DriverRefuses { error: error.to_owned() });
    Detaching::Do(effects, wait)
}

/// Volumes of removed pods that no pod object of the node refers to any more.
fn free_volumes(removed: &[&Release], seen: &Observations) -> BTreeSet<VolumeName> {
    let mut free: BTreeSet<VolumeName> = removed.iter().flat_map(|release| release.volumes.iter().cloned()).collect();
    for pod in seen.pods.iter().flatten().filter(|pod| !pod.completed) {
        for name in super::lanes::claims(pod) {
            if let Some(volume) = seen.volumes.get(name) {
                free.remove(&volume.name);
            }
        }
    }
    free
}

/// Releases whose attachments are gone, as the record does not say yet.
fn detached(fence: &Fence, waiting: &[&AttachmentSeen]) -> Option<Detaching> {
    let mut next = fence.clone();
    let mut why = None;
    for release in next.releases.iter_mut().filter(|release| release.state == ReleaseState::Removed) {
        let held = waiting.iter().any(|seen| release.volumes.contains(&seen.volume));
        if !held {
            release.state = ReleaseState::Detached;
            why.get_or_insert(MoveReason::PodDetached { pod: release.pod.to_string() });
        }
    }
    why.map(|why| Detaching::Record(Box::new(next), why))
}

/// The edit of `volumesInUse`: intent, patch, seen out, and the one thing that forbids it.
fn edit(
    fence: &Fence,
    memory: &mut Memory,
    node: &NodeLive,
    free: &BTreeSet<VolumeName>,
    seen: &Observations,
    now: Tick,
) -> Option<Detaching> {
    let Detach::Edits { done, adding } = &fence.detach else { return None };
    let record = |detach: Detach, why| Some(Detaching::Record(Box::new(Fence { detach, ..fence.clone() }), why));
    if !done.is_disjoint(&node.volumes_in_use) {
        return record(Detach::Forbidden, MoveReason::DetachForbidden);
    }
    let of_this_boot = |proof: &&Proof| proof.target().uid == node.uid && Some(&proof.target().boot) == node.boot();
    if planted::is(Bug::EditsWhileAlive) {
        let volumes: BTreeSet<_> = free.intersection(&node.volumes_in_use).cloned().collect();
        let boot = node.boot()?.clone();
        let patch = DetachVolumes { node: guard(node), boot, volumes };
        return Some(Detaching::Do(vec![Effect::DetachVolumes(patch)], WaitReason::AwaitingDetach));
    }
    let target = fence.proofs_in_force().find(of_this_boot)?.target();
    let off = fence.proofs_in_force().filter(of_this_boot).any(|proof| proof.class() == Class::Power);
    if !node.is_quiet(off) {
        return None;
    }
    if adding.is_empty() {
        let adding: BTreeSet<_> = free.intersection(&node.volumes_in_use).cloned().collect();
        if adding.is_empty() {
            return None;
        }
        let volumes = u32::try_from(adding.len()).unwrap_or(u32::MAX);
        return record(Detach::Edits { done: done.clone(), adding }, MoveReason::DetachIntended { volumes });
    }
    if node.read.is_none_or(|read| read.id < memory.phase_read) {
        return Some(Detaching::Do(memory.look(seen, now).into_iter().collect(), WaitReason::AwaitingNode));
    }
    let still: BTreeSet<_> = adding.intersection(&node.volumes_in_use).cloned().collect();
    if still.is_empty() {
        let done = done.union(adding).cloned().collect();
        let volumes = u32::try_from(adding.len()).unwrap_or(u32::MAX);
        return record(Detach::Edits { done, adding: BTreeSet::new() }, MoveReason::VolumesOut { volumes });
    }
    let patch = DetachVolumes { node: guard(node), boot: target.boot.clone(), volumes: still };
    Some(Detaching::Do(vec![Effect::DetachVolumes(patch)], WaitReason::AwaitingDetach))
}

/// What the controller leaves behind: first a nudge, then, under a proof in force, our own hand.
fn by_hand(
    fence: &Fence,
    memory: &mut Memory,
    node: &NodeLive,
    waiting: &[&AttachmentSeen],
    seen: &Observations,
    now: Tick,
) -> Vec<Effect> {
    let patience = seen.settings.detach_patience;
    let mut effects = Vec::new();
    for attachment in waiting.iter().filter(|seen| !seen.deleting) {
        let uid = &attachment.attachment.uid;
        let (since, nudged) = *memory.awaited.entry(uid.clone()).or_insert((now, None));
        if now < since + patience {
            continue;
        }
        let Some(nudged) = nudged else {
            memory.awaited.insert(uid.clone(), (now, Some(memory.next_read)));
            if !effects.iter().any(|effect| matches!(effect, Effect::TouchNode(_))) {
                effects.push(Effect::TouchNode(guard(node)));
            }
            continue;
        };
        // The attachment goes as a pod goes: only right after Node and device were read, both after the nudge.
        let Some(basis) = proven(fence, node, attachment) else { continue };
        let verify = Verify { fence, memory: &*memory, seen, node, now };
        let missing = verify.lately(basis, nudged);
        let send_before = verify.send_before(basis);
        if missing.nothing() {
            let attachment = attachment.attachment.clone();
            effects.push(Effect::DeleteAttachment(DeleteAttachment { attachment, send_before }));
            continue;
        }
        if missing.look {
            effects.extend(memory.look(seen, now));
        }
        if missing.read_back {
            effects.extend(read_for(fence, memory, seen, &classes(fence, basis), now));
        }
    }
    effects
}

/// What the release of the attachment's pod stands on, if it still does, on the very Node and boot that it speaks of.
fn proven<'a>(fence: &'a Fence, node: &NodeLive, attachment: &AttachmentSeen) -> Option<&'a Basis> {
    let target = fence.target.as_ref()?;
    let same_life = target.uid == node.uid && Some(&target.boot) == node.boot();
    let released = |release: &&Release| {
        release.state == ReleaseState::Removed
            && release.attachments.contains(&attachment.attachment)
            && release.basis.stands(fence)
    };
    fence.releases.iter().find(released).map(|release| &release.basis).filter(|_| same_life)
}

fn guard(node: &NodeLive) -> NodeGuard {
    NodeGuard { uid: node.uid.clone(), resource_version: node.resource_version.clone() }
}
