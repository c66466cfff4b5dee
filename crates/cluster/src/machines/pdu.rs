//! A PDU: outlets that feed machines.
//!
//! Promise: a machine with several supplies has power while one of them has; only when the last one goes is it off.

use std::collections::BTreeMap;

use crate::truth::{Name, What, World};

/// A PDU.
#[derive(Clone, Debug, Default)]
pub struct Pdu {
    /// Its outlets, and whether each is on.
    pub outlets: BTreeMap<u32, bool>,
    /// It accepts every command and does nothing.
    pub stuck: bool,
}

impl World {
    /// Feeds a machine from one more outlet.
    pub fn plug_in(&mut self, node: &str, pdu: &str, outlet: u32) {
        let pdu = Name::from(pdu);
        self.pdus.entry(Name::clone(&pdu)).or_default().outlets.insert(outlet, true);
        if let Some(machine) = self.machines.get_mut(node) {
            machine.supplies.push((pdu, outlet));
        }
    }

    /// Whether an outlet is on; nothing if there is none.
    pub fn outlet(&self, pdu: &str, outlet: u32) -> Option<bool> {
        self.pdus.get(pdu)?.outlets.get(&outlet).copied()
    }

    /// Switches an outlet; says whether the PDU accepted it.
    pub fn switch_outlet(&mut self, pdu: &str, outlet: u32, on: bool) -> bool {
        let Some(unit) = self.pdus.get_mut(pdu) else { return false };
        let stuck = unit.stuck;
        let Some(state) = unit.outlets.get_mut(&outlet) else { return false };
        if !stuck && *state != on {
            *state = on;
            self.happened(What::Outlet { pdu: Name::from(pdu), outlet, on });
            self.feed_anew();
        }
        true
    }

    fn feed_anew(&mut self) {
        let fed =
            |supplies: &[(Name, u32)]| supplies.iter().any(|(pdu, outlet)| self.outlet(pdu, *outlet) == Some(true));
        let plugged = self.machines.values().filter(|machine| !machine.supplies.is_empty());
        let changed: Vec<(Name, bool)> = plugged
            .map(|machine| (Name::clone(&machine.name), machine.fed, fed(&machine.supplies)))
            .filter(|(_, was, is)| was != is)
            .map(|(name, _, is)| (name, is))
            .collect();
        for (node, fed) in changed {
            if fed { self.feed_returns(&node) } else { self.feed_fails(&node) }
        }
    }
}
