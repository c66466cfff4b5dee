//! Asking: which witnesses have not answered yet, and how many are asked together.

use std::collections::BTreeSet;
use std::sync::Arc;

use palisade_core::ident::NodeName;
use palisade_core::snapshot::WitnessKind;
use tokio::sync::Semaphore;

/// So many witnesses are asked together: thousands are due at once when the operator starts, and each is a socket.
const TOGETHER: usize = 128;

/// Who is asked.
#[derive(Debug)]
pub(crate) struct Asking {
    unanswered: BTreeSet<(NodeName, WitnessKind)>,
    /// Seats for those who look at kubelets now and then, and for those who ask about a node that may be gone: these must not
    /// wait for thousands who are well.
    routine: Arc<Semaphore>,
    urgent: Arc<Semaphore>,
}

impl Default for Asking {
    fn default() -> Self {
        let seats = || Arc::new(Semaphore::new(TOGETHER));
        Self { unanswered: BTreeSet::new(), routine: seats(), urgent: seats() }
    }
}

impl Asking {
    /// Whether a witness has yet to answer: it is not asked again before.
    pub(crate) fn awaits(&self, node: &NodeName, kind: WitnessKind) -> bool {
        self.unanswered.contains(&(node.clone(), kind))
    }

    /// A witness is asked, as soon as one of these seats is free.
    pub(crate) fn begin(&mut self, node: &NodeName, kind: WitnessKind, urgent: bool) -> Arc<Semaphore> {
        self.unanswered.insert((node.clone(), kind));
        Arc::clone(if urgent { &self.urgent } else { &self.routine })
    }

    /// It has answered.
    pub(crate) fn answered(&mut self, node: &NodeName, kind: WitnessKind) {
        self.unanswered.remove(&(node.clone(), kind));
    }
}
