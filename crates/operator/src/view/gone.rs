//! View / gone: objects that are gone stay gone. An answer to a write or a read of ours may come later than the watch's word that
//! its object was deleted; it must not bring it back, as no watch would ever take it away again.
//!
//! A UID never comes back. But a list may be of an API server that lags behind, so the watch itself may show an object again.

use std::collections::VecDeque;

use palisade_core::ident::Uid;

/// How many are remembered: answers are late by seconds.
const KEPT: usize = 512;

/// The UIDs of objects that went lately.
#[derive(Debug, Default)]
pub(super) struct Gone(VecDeque<Uid>);

impl Gone {
    /// It went.
    pub(super) fn note(&mut self, uid: Uid) {
        if !self.has(&uid) {
            self.0.push_back(uid);
        }
        if self.0.len() > KEPT {
            self.0.pop_front();
        }
    }

    /// A watch shows it.
    pub(super) fn shown(&mut self, uid: &Uid) {
        self.0.retain(|known| known != uid);
    }

    /// Whether it went.
    pub(super) fn has(&self, uid: &Uid) -> bool {
        self.0.contains(uid)
    }
}
