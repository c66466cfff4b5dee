//! Programs: what a world has in its images, for pods that have more to do than to write and to end.
//!
//! Promise: a program lives exactly as long as its process. It does nothing while its machine stands still, nothing after it was
//! killed, and nothing after its machine lost its memory; what it sent before is on its way all the same.
//! Promise: how it ended, and its last words, are on its machine's disk for as long as its kubelet hears of the pod.
//! Never: a thread, a socket or a clock of its own.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    future::Future,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::Value;
use tokio::task::JoinSet;

use super::{bmc::BmcNetwork, process::Exit};
use crate::{
    clock::Clock,
    truth::{Name, Truth, World},
};

/// The most that a kubelet keeps of last words, in bytes; of longer ones it keeps the end.
const MOST_WORDS: usize = 4096;

/// What a world has in its images.
pub trait Programs: Send + Sync {
    /// Whether nodes can pull this image. A registry below `.invalid` (RFC 2606) is never found.
    fn has_image(&self, image: &str) -> bool {
        let host = image.split('/').next().unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default();
        !host.ends_with(".invalid")
    }

    /// What a pod runs; nothing if its annotations say all that there is to say.
    fn program(&self, pod: &Value, inside: Inside) -> Option<Program>;
}

/// A world that has nothing in its images.
struct Nothing;

impl Programs for Nothing {
    fn program(&self, _: &Value, _: Inside) -> Option<Program> {
        None
    }
}

/// What a program finds where it runs.
#[derive(Clone, Debug)]
pub struct Inside {
    /// The node that it runs on.
    pub node: Name,
    /// What is mounted into its container from Secrets, by path.
    pub files: BTreeMap<String, String>,
    /// The network of the BMCs, as its machine reaches it.
    pub bmcs: BmcNetwork,
    /// The cluster's clock.
    pub clock: Clock,
}

/// What a pod runs.
pub struct Program {
    /// What it does, and how it ends by itself. It is polled only while its machine runs.
    pub body: Pin<Box<dyn Future<Output = End> + Send>>,
    /// How it ends when it is told to.
    pub told: End,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Program").field("told", &self.told).finish_non_exhaustive()
    }
}

/// How a program ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct End {
    /// Its exit code.
    pub code: i32,
    /// What it wrote into its termination log.
    pub words: String,
}

/// What the runtime keeps of a container that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// How.
    pub exit: Exit,
    /// What it wrote into its termination log.
    pub words: String,
}

impl Ended {
    /// What the kubelet tells of its last words.
    pub(crate) fn message(&self) -> &str {
        let mut from = self.words.len().saturating_sub(MOST_WORDS);
        while !self.words.is_char_boundary(from) {
            from += 1;
        }
        &self.words[from..]
    }
}

/// The images of a cluster, which a world may exchange while it runs.
#[derive(Clone)]
pub(crate) struct Shelf(Arc<Mutex<Arc<dyn Programs>>>);

impl Default for Shelf {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Arc::new(Nothing))))
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").finish_non_exhaustive()
    }
}

impl Shelf {
    pub(crate) fn fill(&self, programs: Arc<dyn Programs>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = programs;
    }

    fn now(&self) -> Arc<dyn Programs> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Which process: a pod may have several, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Which {
    pub(crate) node: Name,
    pub(crate) pod: Name,
    pub(crate) run: u64,
}

/// Runs programs. They end with it.
pub(crate) struct Runner {
    shelf: Shelf,
    truth: Truth,
    clock: Clock,
    tasks: JoinSet<()>,
}

impl Runner {
    pub(crate) fn new(shelf: Shelf, truth: Truth, clock: Clock) -> Self {
        Self { shelf, truth, clock, tasks: JoinSet::new() }
    }

    /// Whether a node can pull an image.
    pub(crate) fn has_image(&self, image: &str) -> bool {
        self.shelf.now().has_image(image)
    }

    /// What a pod on a node is going to run.
    pub(crate) fn find(&self, pod: &Value, node: &Name, files: BTreeMap<String, String>) -> Option<Program> {
        let bmcs = BmcNetwork::new(self.truth.clone(), self.clock.clone()).seen_from(node);
        let inside = Inside { node: Name::clone(node), files, bmcs, clock: self.clock.clone() };
        self.shelf.now().program(pod, inside)
    }

    /// Lets a program live in a process that has begun.
    pub(crate) fn run(&mut self, which: Which, program: Program) {
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(live(self.truth.clone(), which, program));
    }
}

enum Pulse {
    Beats,
    /// Its machine stands still.
    Still,
    Gone,
}

async fn live(truth: Truth, which: Which, mut program: Program) {
    let happened = truth.notify();
    loop {
        let mut event = pin!(happened.notified());
        event.as_mut().enable();
        match truth.look(|world| world.pulse(&which)) {
            Pulse::Gone => return,
            Pulse::Still => {
                event.await;
                continue;
            }
            Pulse::Beats => {}
        }
        // Whatever happened in this instant comes first: who is dead by now does nothing more.
        tokio::select! {
            biased;
            () = event => {}
            end = &mut program.body => {
                truth.act(|world| world.program_ends(&which, end));
                return;
            }
        }
    }
}

impl World {
    fn pulse(&self, which: &Which) -> Pulse {
        let Some(machine) = self.machines.get(&which.node) else { return Pulse::Gone };
        match machine.processes.get(&which.pod) {
            Some(process) if process.run == which.run && machine.power.runs() => Pulse::Beats,
            Some(process) if process.run == which.run => Pulse::Still,
            _ => Pulse::Gone,
        }
    }

    pub(crate) fn program_ends(&mut self, which: &Which, end: End) {
        let process = self.machines.get_mut(&which.node).and_then(|machine| machine.processes.get_mut(&which.pod));
        if let Some(process) = process.filter(|process| process.run == which.run) {
            process.words = end.words;
            self.process_exits(&which.node, &which.pod, Exit::Code(end.code));
        }
    }

    /// What the runtime of a machine knows of a pod that has ended there.
    pub fn ended(&self, node: &str, pod: &str) -> Option<&Ended> {
        self.machines.get(node)?.ended.get(pod)
    }

    /// The runtime of a machine forgets all pods but these.
    pub(crate) fn keep_ended(&mut self, node: &str, pods: &BTreeSet<Name>) {
        if let Some(machine) = self.machines.get_mut(node) {
            machine.ended.retain(|pod, _| pods.contains(pod));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_keeps_the_end_of_long_last_words_and_cuts_no_letter() {
        let words = format!("{}{}", "a".repeat(10), "\u{e9}".repeat(2048));
        let said = Ended { exit: Exit::Code(0), words };
        assert_eq!(said.message(), "\u{e9}".repeat(2048));
        let odd = Ended { words: format!("{}b", "\u{e9}".repeat(2048)), ..said };
        assert_eq!(odd.message(), format!("{}b", "\u{e9}".repeat(2047)));
    }

    #[test]
    fn a_registry_that_cannot_exist_has_no_images() {
        for (image, there) in [
            ("example.com/writer:1", true),
            ("none", true),
            ("nowhere.invalid/act:1", false),
            ("nowhere.invalid:5000/act@sha256:0", false),
            ("example.com/nowhere.invalid:1", true),
        ] {
            assert_eq!(Nothing.has_image(image), there, "{image}");
        }
    }
}
