//! Model / tables: fences and memories by number, and every decision of the real `step`, remembered.
//!
//! A world holds numbers, so it is small to copy and to hash; `step` is pure, so a decision that was made once need not be
//! made again. Nothing in here changes what is decided.
#![expect(clippy::disallowed_types, reason = "nobody looks at the order of these tables")]

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex};

use palisade_core::fence::Fence;
use palisade_core::observe::Memory;

use crate::shell::{Asked, Decided};
use crate::world::Ref;

/// Values by number.
#[derive(Debug)]
struct Numbered<T> {
    numbers: HashMap<Arc<T>, Ref>,
    values: Vec<Arc<T>>,
}

impl<T: Hash + Eq> Numbered<T> {
    fn new() -> Self {
        Self { numbers: HashMap::new(), values: Vec::new() }
    }

    fn number(&mut self, value: T) -> Ref {
        if let Some(number) = self.numbers.get(&value) {
            return *number;
        }
        let (number, value) = (Ref::try_from(self.values.len()).unwrap(), Arc::new(value));
        self.numbers.insert(Arc::clone(&value), number);
        self.values.push(value);
        number
    }
}

/// The tables of one exploration.
#[derive(Debug)]
pub(crate) struct Tables {
    fences: Mutex<Numbered<Fence>>,
    memories: Mutex<Numbered<Memory>>,
    decisions: Mutex<HashMap<Asked, Arc<Decided>>>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        Self {
            fences: Mutex::new(Numbered::new()),
            memories: Mutex::new(Numbered::new()),
            decisions: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn number_fence(&self, fence: Fence) -> Ref {
        self.fences.lock().unwrap().number(fence)
    }

    pub(crate) fn fence(&self, number: Ref) -> Arc<Fence> {
        Arc::clone(&self.fences.lock().unwrap().values[number as usize])
    }

    pub(crate) fn number_memory(&self, memory: Memory) -> Ref {
        self.memories.lock().unwrap().number(memory)
    }

    pub(crate) fn memory(&self, number: Ref) -> Arc<Memory> {
        Arc::clone(&self.memories.lock().unwrap().values[number as usize])
    }

    /// The decision for what was asked; made by `decide` the first time.
    pub(crate) fn decided(&self, asked: Asked, decide: impl FnOnce(&Asked) -> Decided) -> Arc<Decided> {
        if let Some(known) = self.decisions.lock().unwrap().get(&asked) {
            return Arc::clone(known);
        }
        let made = Arc::new(decide(&asked));
        self.decisions.lock().unwrap().insert(asked, Arc::clone(&made));
        made
    }
}
