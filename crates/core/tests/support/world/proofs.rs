//! `proof` and `ends`: proofs are made and ended by the automaton alone, so these facts play what makes and ends them.

use palisade_core::effect::Effect;
use palisade_core::fence::{Fence, Isolation, IsolationKind, IsolationState, Phase, Slot, StepWord};
use palisade_core::ident::MethodName;
use palisade_core::observe::{
    Admin, AttachmentSeen, CallAnswer, CallOutcome, Confirmation, LedgerSeen, Memory, NodeSeen, Observations,
    ReadAnswer,
};
use palisade_core::prove::{Class, PlugRead, Proof, ReadPath, Sample, Scope, Seen};
use palisade_core::settings::{Action, Level, Method, Plan, Settings};
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::{Span, Tick};
use palisade_core::{State, step};

use super::fence_facts::{CLASSES, attachment_ref, scope_of};
use super::{World, one_of};
use crate::golden::Fact;

const ENOUGH: u32 = 12;

impl World {
    /// `proof power`, `proof storage provider=stos`, `proof driver volume=v1`, `proof confirmed by=own`.
    pub(super) fn take_proof(&mut self, fact: &mut Fact) -> Result<(), String> {
        let class = fact.word("the class")?;
        let class = one_of(fact, &class, CLASSES)?;
        let scope = scope_of(fact);
        let by = fact.text("by");
        self.refresh();
        let made =
            self.make(class, scope, by.as_deref()).ok_or_else(|| fact.wrong("this proof cannot be made here"))?;
        self.fence.proofs.push(made);
        Ok(())
    }

    /// Isolates the very life that the fence is about, as if it began now.
    fn make(&self, class: Class, scope: Scope, by: Option<&str>) -> Option<Proof> {
        let mut fence = self.acting(Phase::Isolating(self.fence.first_run()));
        let mut seen = self.quiet();
        match (class, by) {
            (Class::Confirmed, Some(pod)) => {
                let word = method(pod, Action::CutOff, Some(class), scope);
                seen.settings.isolation = single(Method { path: ReadPath::Declared, ..word });
            }
            (Class::Confirmed, None) => {
                let target = fence.target.clone()?;
                let said = Confirmation { by: "somebody".into(), uid: target.uid, boot: target.boot };
                seen.admin.confirm = Some(said);
            }
            (Class::Kdump, _) => seen.kdump_proves = true,
            (Class::Power | Class::Storage | Class::Driver | Class::Network, _) => {
                seen.settings.isolation = single(method("maker", Action::CutOff, Some(class), scope));
            }
        }
        let known = fence.proofs.len();
        let before = fence.clone();
        fence = run_until(fence, &mut seen, Seen::Off, |fence| fence.proofs.len() > known)?;
        fence.proofs.into_iter().find(|proof| before.proofs.iter().all(|old| old.id() != proof.id()))
    }

    /// `ends power Heartbeat`: what was seen, or what we did, that ended the proof of this class.
    pub(super) fn take_end_of_proof(&mut self, fact: &mut Fact) -> Result<(), String> {
        let class = fact.word("the class")?;
        let class = one_of(fact, &class, CLASSES)?;
        let why = fact.word("what ended it")?;
        self.refresh();
        let proof = self.fence.proofs.iter().find(|proof| proof.class() == class && proof.ended().is_none());
        let proof = proof.ok_or_else(|| fact.wrong(&format!("there is no {class} proof that stands")))?.clone();
        let ended = self.end(&proof, &why).filter(|ended| ended.ended().is_some());
        let ended = ended.ok_or_else(|| fact.wrong(&format!("`{why}` cannot end it")))?;
        for known in self.fence.proofs.iter_mut().filter(|known| known.id() == ended.id()) {
            *known = ended.clone();
        }
        Ok(())
    }

    fn end(&self, proof: &Proof, why: &str) -> Option<Proof> {
        let mut fence = self.acting(Phase::Isolated { by: StepWord::Isolation });
        fence.proofs = vec![proof.clone()];
        fence.isolations.clear();
        let mut seen = self.quiet();
        let NodeSeen::There(node) = &mut seen.node else { return None };
        node.life = proof.baseline().clone();
        let mut sees = Seen::On;
        match why {
            "NewBoot" => node.life.boot = Some("another".into()),
            "LeaseRenewed" => node.life.renewed = Some("another".into()),
            "Heartbeat" => node.life.heartbeat = Some("another".into()),
            "AnotherNode" => node.uid = "another".into(),
            "PublishedAgain" => {
                let Scope::Volume(volume) = proof.scope() else { return None };
                let (attachment, volume) = (attachment_ref("another"), volume.clone());
                seen.attachments =
                    Some(vec![AttachmentSeen { attachment, volume, deleting: false, detach_error: None }]);
            }
            "ReadOn" | "ReadUnfenced" => {
                fence.isolations.push(behind(proof.class()));
                fence.phase = Phase::Isolating(fence.first_run());
                let again = method("maker", Action::CutOff, Some(proof.class()), proof.scope().clone());
                seen.settings.isolation = single(again);
            }
            "OnIntended" => {
                fence.phase = Phase::PoweringOn(fence.first_run());
                seen.settings.power_on = single(method("on", Action::Restore, None, Scope::Node));
            }
            "LiftIntended" => {
                fence.isolations.push(behind(proof.class()));
                fence.phase = Phase::Recovering(fence.first_run());
                sees = Seen::Off;
                healthy(&mut seen);
            }
            _ => return None,
        }
        let ended = |fence: &Fence| fence.proofs.iter().any(|known| known.ended().is_some());
        run_until(fence, &mut seen, sees, ended)?.proofs.into_iter().next()
    }

    /// The fence as it is, with a slot, in `phase`, without what other facts said about its isolations.
    fn acting(&self, phase: Phase) -> Fence {
        let mut fence = Fence { phase, slot: Slot::Held, stopped: false, ..self.fence.clone() };
        fence.attempt = fence.attempt.max(1);
        fence.isolations.clear();
        fence.releases.clear();
        fence
    }

    /// What is seen, without pods, admins and plans.
    fn quiet(&self) -> Observations {
        Observations {
            settings: Settings::default(),
            ledger: LedgerSeen::Present { grant: self.fence.grant },
            admin: Admin::default(),
            evidence_cleared: false,
            pods: Some(Vec::new()),
            attachments: Some(Vec::new()),
            calls: Vec::new(),
            reads: Vec::new(),
            jobs_over: std::collections::BTreeSet::new(),
            kdump_proves: false,
            ..self.seen.clone()
        }
    }
}

fn healthy(seen: &mut Observations) {
    seen.evidence_cleared = true;
    if let NodeSeen::There(node) = &mut seen.node {
        node.ready = palisade_core::snapshot::Ready::True;
        node.ready_for = Some(Span::mins(1));
        node.lease_silent = false;
    }
}

fn behind(class: Class) -> Isolation {
    let kind = match class {
        Class::Power | Class::Confirmed | Class::Kdump => IsolationKind::Power,
        Class::Storage => IsolationKind::Storage,
        Class::Driver => IsolationKind::Driver,
        Class::Network => IsolationKind::Network,
    };
    Isolation { method: MethodName::from("maker"), kind, state: IsolationState::InForce }
}

fn single(method: Method) -> Plan {
    Plan { levels: vec![Level { methods: vec![method] }], retries: 0 }
}

fn method(name: &str, action: Action, proves: Option<Class>, scope: Scope) -> Method {
    Method {
        name: MethodName::from(name),
        action,
        proves,
        scope,
        plugs: vec!["1".into()],
        path: ReadPath::Independent,
        stable_off: Span::ZERO,
        retries: 0,
        tells_hibernation: true,
        in_job: false,
        revokes_sessions: true,
    }
}

/// Steps, answers every call with yes and every read with `sees`, until `done`.
fn run_until(fence: Fence, seen: &mut Observations, sees: Seen, done: impl Fn(&Fence) -> bool) -> Option<Fence> {
    let now = Tick::START + Span::mins(1);
    let mut state = State { fence, memory: Memory::fresh(Tick::START) };
    for _ in 0..ENOUGH {
        let (next, decision) = step(state, seen, now);
        if done(&next.fence) {
            return Some(next.fence);
        }
        for effect in &decision.effects {
            match effect {
                Effect::CallDevice(call) => seen.calls.push(CallAnswer {
                    fence: next.fence.uid.clone(),
                    call: call.call,
                    outcome: CallOutcome::Accepted,
                }),
                Effect::ReadBack(request) => {
                    let sample = Sample { began: now, ended: now, seen: sees, kubelet: WitnessWord::Silent };
                    let plugs = request.plugs.iter().map(|(method, plug)| PlugRead {
                        method: method.clone(),
                        plug: plug.clone(),
                        samples: vec![sample, sample],
                    });
                    seen.reads.push(ReadAnswer { id: request.id, plugs: plugs.collect() });
                }
                Effect::ReadNode(_) => {
                    if let NodeSeen::There(node) = &mut seen.node {
                        node.read = Some(super::JUST_NOW);
                    }
                }
                _ => {}
            }
        }
        state = next;
    }
    None
}
