//! Request / record: how a request is written into `NodeFencingRequest.status`, and read back by the next process.
//!
//! Promise: what was written is read back as it was, reason and facts included, so that a restart writes nothing that
//! stands there already, and a lost fence stays known as lost. A status that cannot be read is an error that names the
//! field, never a guess: the request is left alone.
//! Never: touches conditions, actions, pods and stamps. Those are the shell's.

use std::collections::BTreeMap;
use std::fmt;

use palisade_api::Span as ApiSpan;
use palisade_api::fence::NodeFenceSpec;
use palisade_api::request as api;

use crate::ident::{NodeName, ResourceVersion, Uid};
use crate::reason::request::RequestReason;
use crate::request::{End, FenceResult, Life, Operation, Origin, Phase, Request, RequestStatus, Watched};
use crate::time::Span;

/// The schema's bound of a message and of a fact. The sentence is for people: its end may go, the write must not fail.
const LONGEST: usize = 1024;

/// A part of a status that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The field.
    pub field: &'static str,
    /// What stands there.
    pub value: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "status.{} of the NodeFencingRequest is {}, which this version does not understand; the request is left \
             alone: use the version that wrote it, or delete the request and make another",
            self.field, self.value
        )
    }
}

impl std::error::Error for Unreadable {}

fn unreadable<T>(field: &'static str, value: impl fmt::Debug) -> Result<T, Unreadable> {
    Err(Unreadable { field, value: format!("{value:?}") })
}

/// What the metadata says, and which node is meant: the spec may leave that to an annotation or to a Machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The request's UID.
    pub uid: Uid,
    /// The version that was read.
    pub resource_version: ResourceVersion,
    /// The node.
    pub node: NodeName,
}

/// The name of the rule behind a trigger: whoever files under it finds its own requests again.
pub fn rule_of(trigger: &api::Trigger) -> Box<str> {
    format!("{}/{}", trigger.remedy, trigger.threshold).into()
}

/// How far a fence goes.
pub const fn does(spec: &NodeFenceSpec) -> Operation {
    match (spec.stay_off, spec.power_step) {
        (true, _) => Operation::PowerOff,
        (false, true) => Operation::PowerStep,
        (false, false) => Operation::Fence,
    }
}

/// Writes what [`Request::step`] wants to have written.
pub fn write(said: &RequestStatus, status: &mut api::NodeFencingRequestStatus) {
    let why = &said.why;
    status.phase = match said.phase {
        Phase::Pending if held(why) => api::Phase::Held,
        Phase::Pending => api::Phase::Pending,
        Phase::Fencing => api::Phase::Admitted,
        Phase::Rejected => api::Phase::Rejected,
        Phase::Closed | Phase::Completed | Phase::Failed => api::Phase::Completed,
    };
    status.reason = Some(word(why).to_owned());
    status.message = clipped(&why.to_string());
    status.facts = facts(why);
    status.recheck = said.look_again.map(|span| ApiSpan::from_millis(span.as_millis()));
    status.verdict = verdict(why);
    // A request that is over says how. If its reason is none of an end, the API server refuses the status: better
    // than an answer that nobody gave.
    status.result = if status.phase == api::Phase::Completed { result(why) } else { None };
    status.waited_millis = millis(said.waited);
    status.ended_for_millis = millis(said.ended_for);
    status.node_uid = said.node_uid.as_ref().map(ToString::to_string);
    status.fence_uid = said.fence.as_ref().map(ToString::to_string);
}

fn millis(span: Span) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

fn clipped(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

/// Whether a request that waits does so at a gate.
const fn held(why: &RequestReason) -> bool {
    matches!(why, RequestReason::HeldByGate { .. } | RequestReason::DryRunVerdict { .. })
}

/// The word that `kubectl get` shows: of a gate, what it saw.
fn word(why: &RequestReason) -> &str {
    match why {
        RequestReason::HeldByGate { why, .. } | RequestReason::RejectedByGate { why, .. } => why,
        other => other.name(),
    }
}

/// The facts, without the one that is the word itself.
fn facts(why: &RequestReason) -> BTreeMap<String, String> {
    let all = why.facts().into_iter().filter(|(name, _)| *name != "why");
    all.map(|(name, value)| (name.to_owned(), clipped(&value))).collect()
}

fn verdict(why: &RequestReason) -> Option<api::Verdict> {
    let RequestReason::DryRunVerdict { verdict } = why else { return None };
    match &**verdict {
        "Admit" => Some(api::Verdict::WouldAdmit),
        "Hold" => Some(api::Verdict::WouldHold),
        "Reject" => Some(api::Verdict::WouldReject),
        // In words of its own: the message has them.
        _ => None,
    }
}

/// How a request ended, if this is the reason of an end.
const fn result(why: &RequestReason) -> Option<api::RequestResult> {
    Some(match why {
        RequestReason::Recovered => api::RequestResult::HealthyBefore,
        RequestReason::Withdrawn => api::RequestResult::Withdrawn,
        RequestReason::NodeGone { .. } => api::RequestResult::NodeGone,
        RequestReason::NodeReplaced { .. } => api::RequestResult::NodeReplaced,
        RequestReason::DryRunVerdict { .. } => api::RequestResult::DryRun,
        RequestReason::FenceEnded { result, .. } => match result {
            FenceResult::Untouched => api::RequestResult::HealthyBefore,
            FenceResult::Returned => api::RequestResult::Recovered,
            FenceResult::HeldOff => api::RequestResult::HeldOff,
            FenceResult::NodeDeleted => api::RequestResult::NodeGone,
            FenceResult::Stopped => api::RequestResult::Stopped,
            FenceResult::Failed { .. } => api::RequestResult::Failed,
        },
        RequestReason::FenceFailed { .. } => api::RequestResult::Failed,
        RequestReason::FenceLost { .. } => api::RequestResult::FenceLost,
        RequestReason::FenceAsked { .. }
        | RequestReason::Attaching { .. }
        | RequestReason::Attached { .. }
        | RequestReason::HeldByGate { .. }
        | RequestReason::RejectedByGate { .. }
        | RequestReason::EvidenceInDoubt { .. }
        | RequestReason::NodeNotRead { .. }
        | RequestReason::FenceNotRead { .. }
        | RequestReason::FenceEnding { .. }
        | RequestReason::FenceDoesLess { .. }
        | RequestReason::FenceOfPredecessor { .. }
        | RequestReason::FenceUnseen { .. } => return None,
    })
}

/// Reads a request back. One without a status yet is read with the default one.
pub fn read(
    identity: Identity,
    spec: &api::NodeFencingRequestSpec,
    status: &api::NodeFencingRequestStatus,
) -> Result<Request, Unreadable> {
    let Identity { uid, resource_version, node } = identity;
    let why = read_why(status)?;
    Ok(Request {
        uid,
        resource_version,
        node,
        node_uid: read_node_uid(spec, status)?,
        origin: spec.trigger.as_ref().map_or(Origin::Asker, |trigger| Origin::Detector { rule: rule_of(trigger) }),
        wants: match spec.operation {
            api::Operation::Fence => Operation::Fence,
            api::Operation::PowerStep => Operation::PowerStep,
            api::Operation::PowerOff => Operation::PowerOff,
        },
        life: read_life(status, why.as_ref())?,
        why,
        waited: Watched::resumed(read_millis("waitedMillis", status.waited_millis)?),
        ended_for: Watched::resumed(read_millis("endedForMillis", status.ended_for_millis)?),
    })
}

fn read_millis(field: &'static str, millis: i64) -> Result<Span, Unreadable> {
    u64::try_from(millis).map(Span::millis).or_else(|_| unreadable(field, millis))
}

/// The spec never changes, and a request is bound once: two different ones are somebody's mistake.
fn read_node_uid(
    spec: &api::NodeFencingRequestSpec,
    status: &api::NodeFencingRequestStatus,
) -> Result<Option<Uid>, Unreadable> {
    match (&spec.node_uid, &status.node_uid) {
        (Some(asked), Some(bound)) if asked != bound => unreadable("nodeUID", bound),
        (asked, bound) => Ok(bound.as_ref().or(asked.as_ref()).map(|uid| Uid::from(uid.as_str()))),
    }
}

fn read_life(status: &api::NodeFencingRequestStatus, why: Option<&RequestReason>) -> Result<Life, Unreadable> {
    let fence = status.fence_uid.as_deref().map(Uid::from);
    let its_fence = || fence.clone().map_or_else(|| unreadable("fenceUID", "missing"), Ok);
    match status.phase {
        api::Phase::Pending | api::Phase::Held => Ok(Life::Pending),
        api::Phase::Admitted => Ok(Life::Attached { fence: its_fence()? }),
        api::Phase::Rejected => Ok(Life::Ended(End::Rejected)),
        api::Phase::Completed => {
            let Some(why) = why else { return unreadable("reason", "missing") };
            let end = match why {
                RequestReason::FenceEnded { .. } => End::Completed { fence: its_fence()? },
                RequestReason::FenceFailed { .. } | RequestReason::FenceLost { .. } => {
                    End::Failed { fence: its_fence()? }
                }
                RequestReason::Recovered
                | RequestReason::Withdrawn
                | RequestReason::NodeGone { .. }
                | RequestReason::NodeReplaced { .. }
                | RequestReason::DryRunVerdict { .. } => End::Closed { fence },
                RequestReason::FenceAsked { .. }
                | RequestReason::Attaching { .. }
                | RequestReason::Attached { .. }
                | RequestReason::HeldByGate { .. }
                | RequestReason::RejectedByGate { .. }
                | RequestReason::EvidenceInDoubt { .. }
                | RequestReason::NodeNotRead { .. }
                | RequestReason::FenceNotRead { .. }
                | RequestReason::FenceEnding { .. }
                | RequestReason::FenceDoesLess { .. }
                | RequestReason::FenceOfPredecessor { .. }
                | RequestReason::FenceUnseen { .. } => return unreadable("reason", why.name()),
            };
            if status.result != result(why) {
                return unreadable("result", status.result);
            }
            Ok(Life::Ended(end))
        }
    }
}

fn read_why(status: &api::NodeFencingRequestStatus) -> Result<Option<RequestReason>, Unreadable> {
    let Some(word) = status.reason.as_deref() else {
        return match status.phase {
            // Nobody has looked at it yet.
            api::Phase::Pending => Ok(None),
            api::Phase::Held | api::Phase::Admitted | api::Phase::Rejected | api::Phase::Completed => {
                unreadable("reason", "missing")
            }
        };
    };
    let facts = Facts(&status.facts);
    Ok(Some(match (status.phase, word) {
        (api::Phase::Held, word) if word != "DryRunVerdict" => {
            RequestReason::HeldByGate { gate: facts.text("gate")?, why: word.into(), numbers: facts.text("numbers")? }
        }
        (api::Phase::Rejected, word) => RequestReason::RejectedByGate {
            gate: facts.text("gate")?,
            why: word.into(),
            numbers: facts.text("numbers")?,
        },
        (_, "FenceAsked") => RequestReason::FenceAsked { node: facts.node("node")? },
        (_, "Attaching") => RequestReason::Attaching { fence: facts.uid("fence")? },
        (_, "Attached") => RequestReason::Attached { fence: facts.uid("fence")? },
        (_, "DryRunVerdict") => RequestReason::DryRunVerdict { verdict: facts.text("verdict")? },
        (_, "EvidenceInDoubt") => RequestReason::EvidenceInDoubt { seen: facts.text("seen")? },
        (_, "NodeNotRead") => RequestReason::NodeNotRead { node: facts.node("node")? },
        (_, "FenceNotRead") => RequestReason::FenceNotRead { node: facts.node("node")? },
        (_, "FenceEnding") => RequestReason::FenceEnding { fence: facts.uid("fence")? },
        (_, "FenceDoesLess") => RequestReason::FenceDoesLess { fence: facts.uid("fence")? },
        (_, "FenceOfPredecessor") => {
            RequestReason::FenceOfPredecessor { fence: facts.uid("fence")?, of: facts.uid("of")? }
        }
        (_, "FenceUnseen") => RequestReason::FenceUnseen { fence: facts.uid("fence")? },
        (_, "Recovered") => RequestReason::Recovered,
        (_, "Withdrawn") => RequestReason::Withdrawn,
        (_, "NodeGone") => RequestReason::NodeGone { node: facts.node("node")? },
        (_, "NodeReplaced") => RequestReason::NodeReplaced {
            node: facts.node("node")?,
            asked: facts.uid("asked")?,
            found: facts.uid("found")?,
        },
        (_, "FenceEnded") => RequestReason::FenceEnded { fence: facts.uid("fence")?, result: facts.result()? },
        (_, "FenceFailed") => RequestReason::FenceFailed { fence: facts.uid("fence")?, cause: facts.text("cause")? },
        (_, "FenceLost") => RequestReason::FenceLost { fence: facts.uid("fence")? },
        (_, word) => return unreadable("reason", word),
    }))
}

/// The facts of a reason, each of which has to be there.
struct Facts<'a>(&'a BTreeMap<String, String>);

impl Facts<'_> {
    fn get(&self, name: &'static str) -> Result<&str, Unreadable> {
        let found = self.0.get(name).map(String::as_str);
        found.map_or_else(|| Err(Unreadable { field: "facts", value: format!("without `{name}`") }), Ok)
    }

    fn text(&self, name: &'static str) -> Result<Box<str>, Unreadable> {
        self.get(name).map(Into::into)
    }

    fn uid(&self, name: &'static str) -> Result<Uid, Unreadable> {
        self.get(name).map(Uid::from)
    }

    fn node(&self, name: &'static str) -> Result<NodeName, Unreadable> {
        self.get(name).map(NodeName::from)
    }

    /// How the fence of a completed request ended. One that failed has a reason of its own.
    fn result(&self) -> Result<FenceResult, Unreadable> {
        let word = self.get("result")?;
        let ends = [
            FenceResult::Returned,
            FenceResult::HeldOff,
            FenceResult::NodeDeleted,
            FenceResult::Stopped,
            FenceResult::Untouched,
        ];
        let found = ends.into_iter().find(|end| end.to_string() == word);
        found.map_or_else(|| unreadable("facts.result", word), Ok)
    }
}

#[cfg(test)]
mod tests;
