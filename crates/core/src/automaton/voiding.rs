//! Automaton / voiding: a proof ends when what it says is no longer certain.
//!
//! Promise (I6): by class. A sign of life ends power, confirmed and kdump; the device's or provider's own word ends power,
//! storage and network; a publish ends driver; another Node of the same name ends them all.

use super::{Next, Turn};
use crate::fence::{Fence, Phase};
use crate::isolate::plugs_behind;
use crate::observe::{Memory, NodeSeen};
use crate::prove::{Class, Judged, Proof, Scope, judge, sign_of_life};
use crate::reason::automaton::MoveReason;
use crate::reason::prove::ProofEnd;

/// Writes down the end of every proof that no longer stands.
pub(super) fn voided(turn: &Turn<'_>, memory: &Memory) -> Option<Next> {
    let fence = turn.fence;
    if matches!(fence.phase, Phase::Final(_)) {
        return None;
    }
    let ended: Vec<Option<ProofEnd>> =
        fence.proofs.iter().map(|proof| end_of(turn, memory, proof).filter(|_| proof.in_force_for(fence))).collect();
    let (first, end) = fence.proofs.iter().zip(&ended).find_map(|(proof, end)| Some((proof, end.as_ref()?)))?;
    let why = MoveReason::ProofVoided { class: first.class(), why: end.clone() };
    let mut next = fence.clone();
    for (proof, end) in next.proofs.iter_mut().zip(ended) {
        let Some(end) = end else { continue };
        if matches!(proof.class(), Class::Confirmed | Class::Kdump) {
            next.refuted = Some(proof.target().boot.clone());
        }
        proof.end(end);
    }
    Some(Next::Record(next, why))
}

fn end_of(turn: &Turn<'_>, memory: &Memory, proof: &Proof) -> Option<ProofEnd> {
    // A Node that is gone shows nothing; its proofs stand, and without it nothing is released.
    let NodeSeen::There(node) = &turn.seen.node else { return None };
    if node.uid != proof.target().uid {
        return Some(ProofEnd::AnotherNode);
    }
    let life = sign_of_life(proof.baseline(), &node.life).filter(|_| proof.class().ended_by_life());
    if let Some(sign) = life {
        return Some(ProofEnd::SignOfLife { sign });
    }
    match proof.class() {
        // A person's word is not read, and behind a pod's there may be a device that knows better.
        Class::Power | Class::Confirmed => read_on(turn, memory, proof).then_some(ProofEnd::ReadOn),
        Class::Storage | Class::Network => read_on(turn, memory, proof).then_some(ProofEnd::ReadUnfenced),
        Class::Driver => published_again(turn, proof).then_some(ProofEnd::PublishedAgain),
        Class::Kdump => None,
    }
}

/// The newest series shows a plug on. Unknown ends nothing: it only fails to confirm.
fn read_on(turn: &Turn<'_>, memory: &Memory, proof: &Proof) -> bool {
    let Some((plugs, _)) = plugs_behind(turn.fence, &turn.seen.settings, proof.class()) else { return false };
    let Some((_, reads, _)) = &memory.last_read else { return false };
    plugs.iter().any(|plug| judge(reads, std::slice::from_ref(plug), crate::time::Span::ZERO) == Judged::On)
}

/// The volume has an attachment to the node that was not there when it was released.
fn published_again(turn: &Turn<'_>, proof: &Proof) -> bool {
    let Scope::Volume(volume) = proof.scope() else { return false };
    let recorded =
        |uid| turn.fence.releases.iter().flat_map(|release| &release.attachments).any(|known| known.uid == uid);
    let attached = turn.seen.attachments.iter().flatten().filter(|seen| seen.volume == *volume);
    attached.into_iter().any(|seen| !recorded(seen.attachment.uid.clone()))
}

/// Whether a proof of this attempt was lost, and not given up by us.
pub(super) fn lost(fence: &Fence) -> Option<(Class, &ProofEnd)> {
    if fence.proofs_in_force().any(|proof| proof.class().whole_node()) {
        // The machine is off by now: whatever else was lost, nothing on it writes.
        return None;
    }
    let ours = fence.proofs.iter().filter(|proof| proof.attempt() == fence.attempt);
    ours.filter_map(|proof| Some((proof.class(), proof.ended()?))).find(|(_, end)| match end {
        ProofEnd::SignOfLife { .. }
        | ProofEnd::ReadOn
        | ProofEnd::ReadUnfenced
        | ProofEnd::PublishedAgain
        | ProofEnd::AnotherNode => true,
        ProofEnd::OnIntended | ProofEnd::LiftIntended => false,
    })
}
