//! `play`: a shell in miniature. It does what the automaton says to devices, Node and pods that obey their facts.

use palisade_core::effect::{DeviceCall, Effect, NodeChange, ReadRequest};
use palisade_core::fence::Fence;
use palisade_core::fence::Slot;
use palisade_core::observe::{CallAnswer, CallOutcome, Deletion, LedgerSeen, ReadAnswer, TaintSeen};
use palisade_core::prove::{PlugRead, Sample, Seen};
use palisade_core::settings::Action;
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::Span;

use super::{Print, World, one_of, show};
use crate::golden::Fact;

/// A device that one or more methods work on.
#[derive(Clone)]
pub struct Device {
    methods: Vec<String>,
    state: Seen,
    habit: Habit,
}

/// How a device behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    /// It does what it says.
    Honest,
    /// It says yes and does nothing.
    Lying,
    /// It says no.
    Refusing,
    /// It never answers.
    Silent,
    /// It obeys, and its state cannot be read.
    Unreadable,
}

/// How the attach/detach controller behaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    /// It detaches as soon as a volume has left `volumesInUse`.
    Quick,
    /// It detaches only when the Node was touched.
    Dozing,
    /// It never detaches.
    Absent,
}

/// More steps than any honest story needs.
const ENOUGH: u32 = 80;

impl World {
    /// `device fc methods=fc-off,fc-on state=on lying`, `controller dozing`.
    pub(super) fn take_device_fact(&mut self, fact: &mut Fact) -> Result<bool, String> {
        match fact.kind.as_str() {
            "device" => {
                let name = fact.word("the device")?;
                let mut methods = fact.list("methods");
                if methods.is_empty() {
                    methods.push(name.clone());
                }
                let state = fact.text("state").unwrap_or_else(|| "on".to_owned());
                let state = one_of(fact, &state, &[("on", Seen::On), ("off", Seen::Off), ("unknown", Seen::Unknown)])?;
                let habits = [
                    ("lying", Habit::Lying),
                    ("refusing", Habit::Refusing),
                    ("silent", Habit::Silent),
                    ("unreadable", Habit::Unreadable),
                ];
                let habit = habits.into_iter().find(|(word, _)| fact.flag(word)).map_or(Habit::Honest, |(_, h)| h);
                self.devices.insert(name, Device { methods, state, habit });
            }
            "controller" => {
                let word = fact.word("quick, dozing or absent")?;
                let table =
                    [("quick", Controller::Quick), ("dozing", Controller::Dozing), ("absent", Controller::Absent)];
                self.controller = one_of(fact, &word, &table)?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `play` until it waits, `play until=Isolated`, `play for=6m` through waits.
    pub(super) fn play(&mut self, fact: &mut Fact) -> Result<(), String> {
        let print = if fact.flag("quietly") { Print::Nothing } else { Print::Moves };
        let until = fact.text("until");
        let end = fact.value::<Span>("for")?.map(|span| self.now + span);
        let mut last_wait = None;
        for _ in 0..ENOUGH {
            let before = self.fence.clone();
            let lines = self.lines.len();
            let decision = self.ask(print);
            if time_kept(&decision.effects) {
                self.lines.truncate(lines);
            }
            let waits = decision.waits.as_ref().map(|why| (why.name(), show::wait(why, &self.fence, &self.seen)));
            for effect in &decision.effects {
                if matches!(effect, Effect::Close { .. }) {
                    return Ok(());
                }
                self.perform(effect);
            }
            self.refresh();
            if reached(&before, &self.fence, until.as_deref()) {
                return Ok(());
            }
            let Some((name, said)) = waits.filter(|_| decision.effects.is_empty()) else { continue };
            if last_wait != Some(name) && print != Print::Nothing {
                self.lines.push(format!("wait {said}"));
            }
            last_wait = Some(name);
            match (end, decision.look_again) {
                (Some(end), Some(at)) if at <= end => self.now = at,
                (Some(end), _) => {
                    self.now = end;
                    return Ok(());
                }
                (None, Some(at)) if passes_by_itself(name) => self.now = at,
                (None, _) => return Ok(()),
            }
        }
        Err(fact.wrong(&format!("still not at rest after {ENOUGH} steps; so far:\n{}", self.lines.join("\n"))))
    }

    fn perform(&mut self, effect: &Effect) {
        match effect {
            // A Job is over when somebody says so: `job-over`.
            Effect::Record { .. } | Effect::Close { .. } | Effect::EndJobs(_) | Effect::TellJobsToGo(_) => {}
            Effect::TakeSlot { grant } => self.seen.ledger = LedgerSeen::Present { grant: *grant },
            Effect::GiveSlotBack { .. } => self.seen.ledger = LedgerSeen::Absent,
            Effect::ReadLedger => self.read_ledger(),
            Effect::ReadNode(_) => self.node.read = Some(super::JUST_NOW),
            Effect::ListPods => {
                self.pods_listed = true;
                self.attachments_listed = true;
            }
            Effect::CallDevice(call) => self.call_device(call),
            Effect::ReadBack(request) => self.read_back(request),
            Effect::PatchNode(patch) => self.patch_node(patch.change),
            Effect::MarkPod(mark) => {
                for pod in self.pods.iter_mut().filter(|pod| pod.pod.uid == mark.pod().uid) {
                    pod.deletion = Deletion::Marked;
                }
            }
            Effect::Unpublish(call) => {
                self.seen.unpublished.insert((call.pod().uid.clone(), call.volume().clone()));
            }
            Effect::RemovePod(remove) => {
                for pod in self.pods.iter_mut().filter(|pod| pod.pod.uid == remove.pod().uid) {
                    pod.deletion = Deletion::Forced;
                }
                self.pods.retain(|pod| pod.pod.uid != remove.pod().uid || pod.finalizers);
            }
            Effect::DetachVolumes(edit) => {
                self.node.volumes_in_use.retain(|volume| !edit.volumes().contains(volume));
                self.detach(Controller::Quick);
            }
            Effect::TouchNode(_) => self.detach(Controller::Dozing),
            Effect::DeleteAttachment(delete) => {
                self.attachments.retain(|known| known.attachment != *delete.attachment());
                self.detached();
            }
            Effect::DeleteNode(_) => self.node_gone = true,
        }
    }

    /// The ledger has what the record says, unless the case says otherwise.
    fn read_ledger(&mut self) {
        if self.seen.ledger == LedgerSeen::Unknown {
            let held = self.fence.slot == Slot::Held;
            self.seen.ledger = if held { LedgerSeen::Present { grant: self.fence.grant } } else { LedgerSeen::Absent };
        }
    }

    fn call_device(&mut self, call: &DeviceCall) {
        match call.action {
            Action::Cordon => self.node.cordoned = true,
            Action::Uncordon => self.node.cordoned = false,
            Action::CutOff | Action::Restore | Action::FenceByDriver | Action::Run => {}
        }
        let device = self.devices.values_mut().find(|device| device.methods.iter().any(|m| m == call.method.as_str()));
        let outcome = match device.as_ref().map_or(Habit::Honest, |device| device.habit) {
            Habit::Honest | Habit::Lying | Habit::Unreadable => CallOutcome::Accepted,
            Habit::Refusing => CallOutcome::Refused,
            Habit::Silent => CallOutcome::Unknown,
        };
        if let Some(device) = device.filter(|device| matches!(device.habit, Habit::Honest | Habit::Unreadable)) {
            match call.action {
                Action::CutOff => device.state = Seen::Off,
                Action::Restore => device.state = Seen::On,
                Action::FenceByDriver | Action::Cordon | Action::Uncordon | Action::Run => {}
            }
        }
        self.seen.calls.push(CallAnswer { fence: self.fence.uid.clone(), call: call.call, outcome });
    }

    fn read_back(&mut self, request: &ReadRequest) {
        let mut plugs = Vec::new();
        for (method, plug) in &request.plugs {
            let device = self.devices.values().find(|device| device.methods.iter().any(|m| m == method.as_str()));
            let seen = match device {
                Some(device) if matches!(device.habit, Habit::Unreadable | Habit::Silent) => Seen::Unknown,
                Some(device) => device.state,
                None => Seen::Unknown,
            };
            let sample = |at| Sample { began: at, ended: at, seen, kubelet: WitnessWord::Silent };
            let samples = vec![sample(self.now), sample(self.now + request.over)];
            plugs.push(PlugRead { method: method.clone(), plug: plug.clone(), samples });
        }
        self.now = self.now + request.over;
        self.seen.reads.push(ReadAnswer { id: request.id, plugs });
    }

    fn patch_node(&mut self, change: NodeChange) {
        let quarantine = TaintSeen::Quarantine(self.fence.uid.clone());
        let taints = &mut self.node.taints;
        match change {
            NodeChange::Quarantine => {
                taints.insert(quarantine);
            }
            NodeChange::LiftQuarantine => {
                taints.remove(&quarantine);
            }
            NodeChange::OutOfService => {
                taints.insert(TaintSeen::OutOfService);
            }
            NodeChange::LiftOutOfService => {
                taints.remove(&TaintSeen::OutOfService);
            }
            NodeChange::Cordon => self.node.cordoned = true,
            NodeChange::Uncordon => self.node.cordoned = false,
        }
    }

    /// The controller frees what is no longer in use, if this is enough to wake it.
    fn detach(&mut self, event: Controller) {
        if self.controller == event {
            let in_use = &self.node.volumes_in_use;
            self.attachments.retain(|known| in_use.contains(&known.volume));
            self.detached();
        }
    }

    fn detached(&mut self) {
        let attachments = &self.attachments;
        self.node.volumes_attached.retain(|volume| attachments.iter().any(|known| known.volume == *volume));
    }
}

/// A record that only keeps the watched time: no line of its own in a story.
fn time_kept(effects: &[Effect]) -> bool {
    effects.iter().any(|effect| match effect {
        Effect::Record { why, .. } => why.name() == "TimeKept",
        _ => false,
    })
}

/// Waits that end with time alone and say nothing about the world.
fn passes_by_itself(wait: &str) -> bool {
    matches!(wait, "AwaitingOldDeadline" | "BackingOff")
}

fn reached(before: &Fence, after: &Fence, until: Option<&str>) -> bool {
    until.is_some_and(|name| after.phase.name() == name && before.phase != after.phase)
}
