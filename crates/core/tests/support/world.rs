//! The world of one golden case: a fence, what is seen of its node, and a shell small enough to read.
//!
//! Facts are taken in the order of the file. Most of them say how things stand; `step` asks the automaton once and
//! prints its decision, `play` does what it says and asks again until it waits. A case without either is asked once,
//! at its end. Proofs cannot be written down: a `proof` fact plays the isolation that makes one.

#[path = "world/fence_facts.rs"]
mod fence_facts;
#[path = "world/play.rs"]
mod play;
#[path = "world/proofs.rs"]
mod proofs;
#[path = "world/seen_facts.rs"]
mod seen_facts;
#[path = "world/show.rs"]
pub mod show;

pub use fence_facts::CLASSES;
pub use seen_facts::samples;

use std::collections::{BTreeMap, BTreeSet};

use palisade_core::effect::Effect;
use palisade_core::fence::Fence;
use palisade_core::ident::{MethodName, NodeName, Uid};
use palisade_core::observe::{
    Admin, AttachmentSeen, LedgerSeen, Memory, NodeLive, NodeRead, NodeSeen, Observations, PodSeen, ReadId, Vetted,
};
use palisade_core::policy::ReleasePolicy;
use palisade_core::prove::LifeSigns;
use palisade_core::settings::{Method, Settings};
use palisade_core::snapshot::Ready;
use palisade_core::time::{Span, Tick};
use palisade_core::{Decision, State, step};

use crate::golden::Fact;

/// Everything that a case has said so far.
#[allow(clippy::struct_excessive_bools)] // each is one plain fact, told apart by its name
pub struct World {
    pub fence: Fence,
    pub memory: Memory,
    pub seen: Observations,
    pub now: Tick,
    /// The Node is gone or was never read; its facts are kept for when it comes back.
    node: NodeLive,
    node_gone: bool,
    /// Pods and attachments as they are; `seen` has them once they are listed.
    pods: Vec<PodSeen>,
    attachments: Vec<AttachmentSeen>,
    pods_listed: bool,
    attachments_listed: bool,
    methods: BTreeMap<MethodName, Method>,
    devices: BTreeMap<String, play::Device>,
    controller: play::Controller,
    /// The series that was asked for last, and over how long.
    reading: Option<(ReadId, Span)>,
    lines: Vec<String>,
    asked: bool,
}

/// A read of the Node that is newer than anything that was asked for.
pub const JUST_NOW: NodeRead = NodeRead { id: ReadId(u32::MAX), began: Tick::START };

impl World {
    /// A node `n1` (UID `u1`, boot `b1`) whose lease is silent, a new fence `f1`, a process that has run for a minute.
    pub fn new() -> Self {
        let node = NodeLive {
            uid: Uid::from("u1"),
            resource_version: "7".into(),
            read: Some(JUST_NOW),
            ready: Ready::Unknown,
            ready_for: None,
            life: LifeSigns { renewed: Some("r1".into()), heartbeat: Some("h1".into()), boot: Some("b1".into()) },
            lease_silent: true,
            lease_late: true,
            taints: BTreeSet::new(),
            cordoned: false,
            volumes_in_use: BTreeSet::new(),
            volumes_attached: BTreeSet::new(),
        };
        let seen = Observations {
            settings: Settings::default(),
            unusable: None,
            release: ReleasePolicy::default(),
            vetted: Vetted::Open,
            ledger: LedgerSeen::Absent,
            node: NodeSeen::There(node.clone()),
            evidence_cleared: false,
            power_wanted: false,
            admin: Admin::default(),
            pods: Some(Vec::new()),
            volumes: BTreeMap::new(),
            attachments: Some(Vec::new()),
            calls: Vec::new(),
            reads: Vec::new(),
            unpublished: BTreeSet::new(),
            released_lately: 0,
            jobs_over: BTreeSet::new(),
            kdump_proves: false,
        };
        Self {
            fence: Fence::new(Uid::from("f1"), NodeName::from("n1")),
            memory: Memory::fresh(Tick::START),
            seen,
            now: Tick::START + Span::mins(1),
            node,
            node_gone: false,
            pods: Vec::new(),
            attachments: Vec::new(),
            pods_listed: true,
            attachments_listed: true,
            methods: BTreeMap::new(),
            devices: BTreeMap::new(),
            controller: play::Controller::Quick,
            reading: None,
            lines: Vec::new(),
            asked: false,
        }
    }

    /// Takes one fact in; false: this room does not know it.
    pub fn take(&mut self, fact: &mut Fact) -> Result<bool, String> {
        let known = self.take_question(fact)? || self.take_fact(fact)?;
        self.refresh();
        Ok(known)
    }

    /// What was asked; where the last word is a fact, one more step.
    pub fn answer(mut self) -> Vec<String> {
        if !self.asked {
            self.ask(Print::Whole);
        }
        self.lines
    }

    fn take_question(&mut self, fact: &mut Fact) -> Result<bool, String> {
        match fact.kind.as_str() {
            "step" => {
                let print = if fact.flag("quietly") { Print::Nothing } else { Print::Whole };
                let before = self.fence.clone();
                self.ask(print);
                if fact.flag("write-lost") {
                    self.fence = before;
                }
            }
            "play" => self.play(fact)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn take_fact(&mut self, fact: &mut Fact) -> Result<bool, String> {
        self.asked = false;
        match fact.kind.as_str() {
            "crash" => {
                self.memory = Memory::fresh(self.now);
                self.reading = None;
                self.seen.calls.clear();
                self.seen.reads.clear();
            }
            "look-lost" => self.memory.effects_ended(),
            "now" => {
                let at: Span = parse(fact, "the time")?;
                self.now = Tick::START + at;
            }
            "pass" => {
                let span: Span = parse(fact, "the time that passes")?;
                self.now = self.now + span;
            }
            _ => return Ok(self.take_fence_fact(fact)? || self.take_seen_fact(fact)?),
        }
        Ok(true)
    }

    /// One step of the automaton; its record becomes the fence.
    fn ask(&mut self, print: Print) -> Decision {
        self.asked = print != Print::Nothing;
        self.refresh();
        let before = self.fence.clone();
        let state = State { fence: before.clone(), memory: self.memory.clone() };
        let (state, decision) = step(state, &self.seen, self.now);
        State { fence: self.fence, memory: self.memory } = state;
        match print {
            Print::Whole => self.lines.extend(show::decision(&before, &self.fence, &decision, &self.seen, self.now)),
            Print::Moves => self.lines.extend(show::moves(&before, &decision, self.now)),
            Print::Nothing => {}
        }
        for effect in &decision.effects {
            if let Effect::ReadBack(request) = effect {
                self.reading = Some((request.id, request.over));
            }
        }
        decision
    }

    /// What is seen follows from how things stand and from what was looked at.
    fn refresh(&mut self) {
        if let Some(read) = self.node.read.as_mut() {
            read.began = self.now;
        }
        self.seen.node = if self.node_gone { NodeSeen::Gone } else { NodeSeen::There(self.node.clone()) };
        self.seen.pods = self.pods_listed.then(|| self.pods.clone());
        self.seen.attachments = self.attachments_listed.then(|| self.attachments.clone());
    }
}

/// How much of a decision is printed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Print {
    /// Everything, with what changes in the record.
    Whole,
    /// Phases, reasons and effects.
    Moves,
    /// Nothing: it only leads to where the case begins.
    Nothing,
}

/// Runs a case of a room whose only questions are `step` and `play`.
pub fn run(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    Ok(read(facts)?.answer())
}

/// Takes all facts of a case in.
pub fn read(facts: &mut Vec<Fact>) -> Result<World, String> {
    let mut world = World::new();
    for mut fact in facts.drain(..) {
        if !world.take(&mut fact)? {
            return Err(fact.wrong("nobody understands this kind of fact"));
        }
        fact.done()?;
    }
    Ok(world)
}

/// Takes and parses the next word.
pub fn parse<T: std::str::FromStr>(fact: &mut Fact, what: &str) -> Result<T, String>
where
    T::Err: std::fmt::Display,
{
    let word = fact.word(what)?;
    word.parse().map_err(|why| fact.wrong(&format!("`{word}`: {why}")))
}

/// Looks a word up in a short table; the error names what could have stood there.
pub fn one_of<T: Clone>(fact: &Fact, word: &str, table: &[(&str, T)]) -> Result<T, String> {
    let found = table.iter().find(|(name, _)| *name == word).map(|(_, value)| value.clone());
    found.ok_or_else(|| {
        let names: Vec<_> = table.iter().map(|(name, _)| *name).collect();
        fact.wrong(&format!("`{word}` is none of {}", names.join(", ")))
    })
}
