//! News: everything that can happen to the operator, in one closed list. One loop takes them, one after the other.

use palisade_core::ident::NodeName;
use palisade_core::observe::{CallAnswer, ReadAnswer};
use palisade_core::preflight::{Answer, Key};
use palisade_core::snapshot::{WitnessKind, WitnessWord, WorkloadView};

use crate::effects::Outcome;
use crate::fences::Look;
use crate::leader::Term;
use crate::requests::RequestOutcome;
use crate::view::Seen;

/// Something happened.
#[derive(Debug)]
pub(crate) enum News {
    /// A watch shows something.
    Seen(Seen),
    /// A watch shows something that cannot be understood.
    NotUnderstood(NotUnderstood),
    /// We lead, or no longer do.
    Leads(Term),
    /// What a fence decided was done, as far as it went.
    Done {
        /// The node.
        node: NodeName,
        /// Who decided it.
        look: Look,
        /// What came of each effect, in order; the rest was not sent.
        outcomes: Vec<Outcome>,
    },
    /// A device call of a fence was answered.
    Called {
        /// The node.
        node: NodeName,
        /// The answer.
        answer: CallAnswer,
        /// In words, for people.
        told: String,
        /// It was made by a Job, and that is over.
        job_over: bool,
    },
    /// A series of reads was answered.
    Read {
        /// The node.
        node: NodeName,
        /// Who asked.
        look: Look,
        /// The answer.
        answer: ReadAnswer,
    },
    /// A witness spoke.
    Witness {
        /// Of this node.
        node: NodeName,
        /// Which.
        kind: WitnessKind,
        /// What it said.
        word: WitnessWord,
    },
    /// A device was asked before anybody needs it.
    Checked {
        /// Which.
        key: Key,
        /// What came of it.
        answer: Answer,
    },
    /// What was decided for requests was done.
    Requests(RequestOutcome),
    /// What runs on a node was listed; nothing: it could not be.
    Workload {
        /// The node.
        node: NodeName,
        /// What runs there.
        seen: Option<WorkloadView>,
    },
    /// The ledger was put in order, or not.
    Kept,
    /// What is said of configs, templates and remedies was written: all of it, or not.
    Accepted {
        /// All of it.
        all: bool,
    },
    /// The FencePolicy that is missing could not be made.
    NoPolicyMade,
    /// The API server refused something that the operator has to be allowed, or no longer refuses it.
    Allowed {
        /// What it is, in words.
        what: String,
        /// Whether it is allowed now.
        now: bool,
    },
    /// The API answered a call of ours that nobody waits for.
    Answered,
}

impl News {
    /// Whether this could not have come without an answer of the API server. What devices and kubelets say, and what failed,
    /// tells nothing about our own connection.
    pub(crate) fn api_answered(&self) -> bool {
        match self {
            Self::Seen(_) | Self::NotUnderstood(_) | Self::Allowed { .. } | Self::Answered => true,
            Self::Workload { seen, .. } => seen.is_some(),
            Self::Requests(outcome) => outcome.failed.is_none(),
            Self::Accepted { all } => *all,
            Self::Leads(_)
            | Self::Done { .. }
            | Self::Called { .. }
            | Self::Read { .. }
            | Self::Witness { .. }
            | Self::Checked { .. }
            | Self::NoPolicyMade
            | Self::Kept => false,
        }
    }
}

/// An object that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotUnderstood {
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) uid: String,
    pub(crate) why: String,
}
