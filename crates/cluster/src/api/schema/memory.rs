//! Which rules have held about which values.
//!
//! A rule is a pure function of what it looks at, and of a fence that changes in one field most rules ask what they asked
//! before. To note that takes a tenth of the time that asking again does. Only what held is remembered: a refusal is
//! worth the time it takes to say why.
//!
//! Two questions are taken for one if all 64 bits of their notes agree: with the memory full, that is one chance in ten
//! thousand million.

use std::{
    cell::RefCell,
    collections::BTreeSet,
    hash::{DefaultHasher, Hasher},
};

use serde_json::Value;

use super::look::Look;

/// Enough for a fence's whole life; a few megabytes.
const MOST: usize = 50_000;

thread_local! {
    static HELD: RefCell<BTreeSet<u64>> = const { RefCell::new(BTreeSet::new()) };
}

/// A rule, asked about a value and about the one before it.
#[derive(Clone, Copy)]
pub(super) struct Question(u64);

impl Question {
    /// Of the values only what the rule looks at.
    pub(super) fn new(rule: u64, now: (&Look, &Value), before: Option<(&Look, &Value)>) -> Self {
        let mut notes = DefaultHasher::new();
        notes.write_u64(rule);
        now.0.note(now.1, &mut notes);
        if let Some((look, value)) = before {
            look.note(value, &mut notes);
        }
        Self(notes.finish())
    }

    /// Whether the answer was yes before.
    pub(super) fn has_held(self) -> bool {
        HELD.with_borrow(|held| held.contains(&self.0))
    }

    /// The answer was yes.
    pub(super) fn held(self) {
        HELD.with_borrow_mut(|held| {
            if held.len() >= MOST {
                held.clear();
            }
            held.insert(self.0);
        });
    }
}
