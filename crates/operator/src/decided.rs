//! Decided: what was seen and what was decided, for whoever listens to the target `palisade::decided` at debug level: the
//! timeline of a simulation, a log that has to explain a night.
//!
//! Promise: names are those of `core`; nothing is worked out while nobody listens; nothing is decided here.

use std::fmt;

use palisade_core::Decision;
use palisade_core::detect::Finding;
use palisade_core::effect::Effect;
use palisade_core::fence::Fence;
use palisade_core::ident::NodeName;
use palisade_core::observe::{LedgerSeen, ReadAnswer};
use palisade_core::policy::Policy;
use palisade_core::request::{RequestEffect, Step};
use palisade_core::snapshot::{Snapshot, WitnessKind, WitnessWord};
use palisade_core::time::Tick;
use palisade_core::vet::{Claim, Gate, walk};
use tracing::{Level, Span, debug};

use crate::effects::Outcome;

/// What a listener asks for.
const TARGET: &str = "palisade::decided";

/// In it, everything that is told is told by this replica.
pub(crate) fn by(identity: &str) -> Span {
    tracing::debug_span!(target: TARGET, "operator", by = identity)
}

/// Put into words only when somebody writes them down.
struct Brief<F>(F);

impl<F: Fn() -> String> fmt::Display for Brief<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&(self.0)())
    }
}

fn listened_to() -> bool {
    tracing::enabled!(target: TARGET, Level::DEBUG)
}

/// What `core` decided for a fence.
pub(crate) fn fence(fence: &Fence, decision: &Decision) {
    if !listened_to() {
        return;
    }
    let node = fence.node.as_str();
    for effect in &decision.effects {
        if let Effect::Record { fence: next, why } = effect {
            let (from, to, reason) = (fence.phase.name(), next.phase.name(), why.name());
            if from != to {
                debug!(target: TARGET, kind = "transition", what = to, node, from, reason, said = %why);
            }
            debug!(target: TARGET, kind = "effect", what = effect.name(), node, reason, said = %why);
        } else {
            debug!(target: TARGET, kind = "effect", what = effect.name(), node, said = about(effect));
        }
    }
    if let Some(why) = &decision.waits {
        debug!(target: TARGET, kind = "wait", what = why.name(), node, said = %why);
    }
}

/// What an effect is about, for people.
fn about(effect: &Effect) -> String {
    match effect {
        Effect::Record { why, .. } => why.brief(),
        Effect::TakeSlot { grant } | Effect::GiveSlotBack { grant } => format!("slot {grant}"),
        Effect::EndJobs(calls) | Effect::TellJobsToGo(calls) => format!("{} Jobs", calls.len()),
        Effect::CallDevice(call) => format!("{:?} by {}", call.action, call.method),
        Effect::ReadBack(read) => {
            let methods: Vec<String> = read.plugs.iter().map(|(method, _)| method.to_string()).collect();
            methods.join(", ")
        }
        Effect::PatchNode(patch) => format!("{:?}", patch.change),
        Effect::MarkPod(mark) => mark.pod().to_string(),
        Effect::Unpublish(unpublish) => format!("{} of {}", unpublish.volume(), unpublish.pod()),
        Effect::RemovePod(remove) => remove.pod().to_string(),
        Effect::DetachVolumes(detach) => {
            let volumes: Vec<String> = detach.volumes().iter().map(ToString::to_string).collect();
            volumes.join(", ")
        }
        Effect::DeleteAttachment(delete) => delete.attachment().name.to_string(),
        Effect::Close { end, .. } => format!("{end:?}"),
        Effect::ReadLedger | Effect::ReadNode(_) | Effect::ListPods | Effect::TouchNode(_) | Effect::DeleteNode(_) => {
            String::new()
        }
    }
}

/// What came of what was decided for a fence, as far as it tells something new.
pub(crate) fn came(node: &NodeName, outcome: &Outcome) {
    if !listened_to() {
        return;
    }
    let (what, said) = match outcome {
        Outcome::Node(_, Some(facts), _) => {
            let boot = facts.boot.as_ref().map(ToString::to_string).unwrap_or_default();
            ("Node", format!("Ready={:?}, boot {boot}", facts.ready))
        }
        Outcome::Node(_, None, _) => ("Node", "gone".to_owned()),
        Outcome::Ledger(LedgerSeen::Unknown) => ("ledger", "could not be read".to_owned()),
        Outcome::Ledger(LedgerSeen::Absent) => ("ledger", "no slot of ours".to_owned()),
        Outcome::Ledger(LedgerSeen::Present { grant }) => ("ledger", format!("slot {grant} is ours")),
        Outcome::NoSlot(why) => ("ledger", format!("no free slot: {why}")),
        Outcome::JobsOver(over) => ("Jobs", format!("{} are over", over.len())),
        Outcome::Listed(seen) => ("list", format!("{} pods, {} attachments", seen.pods.len(), seen.attachments.len())),
        Outcome::RecordLost(Some(_)) => ("record", "another than ours stands there".to_owned()),
        Outcome::RecordLost(None) => ("record", "the fence is gone".to_owned()),
        // The write itself is seen by everybody, and what failed is logged.
        Outcome::Recorded(_)
        | Outcome::NodeWritten(_)
        | Outcome::Told
        | Outcome::Relist
        | Outcome::Closed
        | Outcome::NotYet
        | Outcome::Failed { .. }
        | Outcome::Nothing => return,
    };
    debug!(target: TARGET, kind = "saw", what, node = node.as_str(), said);
}

/// What a device showed.
pub(crate) fn read(node: &NodeName, answer: &ReadAnswer) {
    if !listened_to() {
        return;
    }
    for plug in &answer.plugs {
        let samples: Vec<String> = plug.samples.iter().map(|sample| format!("{:?}", sample.seen)).collect();
        let said = format!("{}: {}", plug.method, samples.join(", "));
        debug!(target: TARGET, kind = "saw", what = "read-back", node = node.as_str(), said);
    }
}

/// What a witness said.
pub(crate) fn witness(node: &NodeName, kind: WitnessKind, word: WitnessWord) {
    if !listened_to() {
        return;
    }
    let said = match word {
        WitnessWord::Alive => "alive",
        WitnessWord::Silent => "silent",
        WitnessWord::Unknown => "unknown",
    };
    debug!(target: TARGET, kind = "witness", what = kind.to_string(), node = node.as_str(), said);
}

/// What a rule finds of a node.
pub(crate) fn finding(node: &NodeName, rule: &str, finding: &Finding) {
    if !listened_to() {
        return;
    }
    let (what, node) = (finding.name(), node.as_str());
    match finding {
        // The word of almost every look at almost every node.
        Finding::Quiet => debug!(target: TARGET, kind = "detect", what, node, rule),
        Finding::Watching { .. } | Finding::Claim { .. } => {
            debug!(target: TARGET, kind = "detect", what, node, rule, said = %Brief(|| finding.brief()));
        }
    }
}

/// What every gate says of a request that waits.
pub(crate) fn gates(claim: &Claim, view: &Snapshot, policy: &Policy, now: Tick) {
    if !listened_to() {
        return;
    }
    let node = claim.target.as_str();
    for (gate, answer) in walk(claim, view, policy, now) {
        let what = gate.name();
        match answer {
            Gate::Open => debug!(target: TARGET, kind = "gate", what, node, answer = "open"),
            Gate::Closed { why, .. } => {
                debug!(target: TARGET, kind = "gate", what, node, answer = "closed", reason = why.name(), said = %Brief(|| why.brief()));
            }
            Gate::Refused(why) => {
                debug!(target: TARGET, kind = "gate", what, node, answer = "refused", reason = why.name(), said = %Brief(|| why.brief()));
            }
        }
    }
}

/// What was decided for a request.
pub(crate) fn request(step: &Step) {
    if !listened_to() {
        return;
    }
    let node = step.request.node.as_str();
    for effect in &step.effects {
        if let RequestEffect::WriteStatus(status) = effect {
            let (what, reason) = (status.phase.name(), status.why.name());
            debug!(target: TARGET, kind = "answer", what, node, reason, said = status.why.brief());
        }
        debug!(target: TARGET, kind = "request-effect", what = effect.name(), node);
    }
}
