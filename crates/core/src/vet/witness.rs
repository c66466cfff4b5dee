//! Vet / witness: two missed renewals tell of a death early, if somebody else confirms it.
//!
//! Promise (I6): a claim from lease silence alone is admitted only when a witness that saw the node alive shortly
//! before confirms it, or when the control plane has lost the node too (Ready=Unknown). One missed renewal is enough where
//! the node's power device says off.
//! Never: counts the silence of a witness that never saw the node alive (a firewalled port is no evidence); takes
//! "power on" for life: a machine that hangs has power too.

use super::{Case, Gate, Source};
use crate::reason::vet::HoldReason;
use crate::snapshot::{NodeView, Ready, WitnessKind, WitnessView, WitnessWord};
use crate::time::Tick;

pub(super) fn gate(case: &Case<'_>) -> Gate {
    let (Source::Lease, Some(node)) = (case.claim.source, case.node) else {
        return Gate::Open;
    };
    if !node.lease_silent {
        match node.late_since {
            None => return case.hold(HoldReason::LeaseMoves),
            Some(_) if !node.says_off(case.policy.observer_fresh, case.now) => {
                return case.hold(HoldReason::LeaseOnlyLate);
            }
            Some(_) => {}
        }
    }
    // From here on the node is lost to the control plane as well. One that lives all the same is what fencing is for;
    // who would rather wait while it works sets `skipInUse`.
    if node.ready == Ready::Unknown {
        return Gate::Open;
    }
    let heard = Heard::of(case, node);
    match (heard.alive, heard.silent) {
        (Some(alive), Some(silent)) => case.hold(HoldReason::WitnessesDisagree { alive, silent }),
        (Some(witness), None) => case.hold(HoldReason::WitnessSeesAlive { witness }),
        (None, None) if case.policy.witness.required => {
            case.hold(HoldReason::NoWitness { asked: node.witnesses.len() })
        }
        (None, Some(_) | None) => Gate::Open,
    }
}

/// What the witnesses say, abstentions left out.
struct Heard {
    alive: Option<WitnessKind>,
    silent: Option<WitnessKind>,
}

enum Says {
    Alive,
    Silent,
    Nothing,
}

impl Heard {
    fn of(case: &Case<'_>, node: &NodeView) -> Self {
        let mut heard = Self { alive: None, silent: None };
        for witness in &node.witnesses {
            match says(case, node, witness) {
                Says::Alive => heard.alive = Some(witness.kind),
                Says::Silent => heard.silent = Some(witness.kind),
                Says::Nothing => {}
            }
        }
        heard
    }
}

fn says(case: &Case<'_>, node: &NodeView, witness: &WitnessView) -> Says {
    if case.age(witness.asked) > case.policy.observer_fresh {
        return Says::Nothing;
    }
    match (witness.says, witness.kind) {
        (WitnessWord::Alive, WitnessKind::KubeletPort | WitnessKind::StorageHeartbeat) => Says::Alive,
        (WitnessWord::Alive, WitnessKind::BmcPower) | (WitnessWord::Unknown, _) => Says::Nothing,
        (WitnessWord::Silent, WitnessKind::BmcPower) => Says::Silent,
        (WitnessWord::Silent, WitnessKind::KubeletPort | WitnessKind::StorageHeartbeat) => {
            if saw_it_alive(case, node, witness) { Says::Silent } else { Says::Nothing }
        }
    }
}

/// Whether the witness saw the node alive shortly before the silence began, or since.
fn saw_it_alive(case: &Case<'_>, node: &NodeView, witness: &WitnessView) -> bool {
    // A silence that is older than this process: whatever it saw alive since then, it saw during the silence.
    let began = node.last_renewal.unwrap_or(Tick::START);
    witness.last_alive.is_some_and(|alive| alive + case.policy.witness.trusted_for >= began)
}
