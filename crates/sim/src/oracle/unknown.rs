//! I6: a power proof is written only about a machine that lost its memory: one that was off a moment ago by the truth. A device
//! that lies alone, where no kubelet can be asked, cannot be unmasked, and is left out.

use std::collections::BTreeMap;
use std::time::Duration;

use palisade_api::NodeFence;
use palisade_api::fence::ProofClass;
use palisade_cluster::machines::bmc::Behaviour;
use palisade_cluster::machines::machine::{Link, Power};
use palisade_cluster::truth::{Event, Name, What, World};

use super::Seen;

/// How long ago the read-back may have been that a proof stands on: somebody may switch the machine on right after it.
const JUST_NOW: Duration = Duration::from_secs(30);

/// When each machine was last off.
#[derive(Default)]
pub(super) struct LastOff(BTreeMap<Name, Duration>);

impl LastOff {
    pub(super) fn event(&mut self, event: &Event) {
        if let What::Power { node, was: Power::Off, .. } = &event.what {
            self.0.insert(Name::clone(node), event.at);
        }
    }
}

pub(super) fn fence(seen: &mut Seen, node: &str, old: Option<&NodeFence>, new: &NodeFence, world: &World) {
    let known = |id: &str| {
        let before = old.and_then(|old| old.status.as_ref());
        before.is_some_and(|status| status.proofs.iter().any(|proof| proof.id == id))
    };
    let proofs = new.status.iter().flat_map(|status| &status.proofs);
    if !proofs.filter(|proof| proof.class == ProofClass::Power).any(|proof| !known(&proof.id)) {
        return;
    }
    let Some(machine) = world.machines.get(node) else { return };
    let alone = !machine.reaches(Link::Peers);
    let lies = alone && world.bmcs.get(node).is_some_and(|bmc| bmc.behaviour == Behaviour::SaysOff);
    let lately = seen.power.0.get(node).is_some_and(|at| *at + JUST_NOW > seen.now);
    if machine.power != Power::Off && !lately && !lies {
        let power = machine.power;
        seen.broken(format!("I6: a power proof of {node} was written, and the machine is {power:?}"));
    }
}
