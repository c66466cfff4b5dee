//! Scale / counter: a wire that delays nothing and counts every request, a watch when it begins.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use palisade_cluster::api::wire::{Call, Fate};
use palisade_cluster::api::{Kind, Verb, Wire};

/// How many requests of which verb and kind came in.
pub(crate) type Counts = BTreeMap<(&'static str, Option<Kind>), u32>;

/// Counts.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<Mutex<Counts>>);

impl Counter {
    /// All requests since the last time.
    pub(crate) fn take(&self) -> Counts {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn count(&self, verb: Verb, kind: Option<Kind>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry((verb.word(), kind)).or_default() += 1;
    }
}

impl Wire for Counter {
    fn carry(&self, call: &Call) -> Fate {
        self.count(call.verb, call.kind);
        Fate::default()
    }
}
