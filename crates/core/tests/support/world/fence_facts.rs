//! Facts about the fence and how its node is fenced: `fence`, `target`, `isolation`, `release`, `method`, `plan`, `undo`,
//! `settings`, `policy`.

use std::collections::BTreeSet;

use palisade_api::fence::{NodeFenceStatus, ReleaseRecord};
use palisade_core::durable;
use palisade_core::fence::{
    Detach, End, Isolation, IsolationKind, IsolationState, Phase, Release, ReleaseState, Run, SinceMark, Slot, StepWord,
};
use palisade_core::ident::{AttachmentRef, DriverName, Incarnation, MethodName, PodRef, ProviderName, Uid, VolumeName};
use palisade_core::observe::LedgerSeen;
use palisade_core::policy::Rate;
use palisade_core::prove::{Basis, Class, Coverage, ReadPath, Scope, cover};
use palisade_core::reason::automaton::FailReason;
use palisade_core::settings::{Action, Level, Method, Plan};
use palisade_core::time::Span;

use super::{World, one_of, parse};
use crate::golden::Fact;

pub const CLASSES: &[(&str, Class)] = &[
    ("power", Class::Power),
    ("storage", Class::Storage),
    ("driver", Class::Driver),
    ("network", Class::Network),
    ("confirmed", Class::Confirmed),
    ("kdump", Class::Kdump),
];

pub const KINDS: &[(&str, IsolationKind)] = &[
    ("network", IsolationKind::Network),
    ("power", IsolationKind::Power),
    ("storage", IsolationKind::Storage),
    ("driver", IsolationKind::Driver),
    ("cordon", IsolationKind::Cordon),
    ("out-of-service", IsolationKind::OutOfService),
    ("quarantine", IsolationKind::Quarantine),
    ("node-deletion", IsolationKind::NodeDeletion),
];

pub const ISOLATION_STATES: &[(&str, IsolationState)] = &[
    ("intended", IsolationState::Intended),
    ("in-force", IsolationState::InForce),
    ("lifting", IsolationState::Lifting),
];

const RELEASE_STATES: &[(&str, ReleaseState)] = &[
    ("intended", ReleaseState::Intended),
    ("marked", ReleaseState::Marked),
    ("removed", ReleaseState::Removed),
    ("detached", ReleaseState::Detached),
];

const STEPS: &[(&str, StepWord)] = &[
    ("Isolation", StepWord::Isolation),
    ("PowerManagement", StepWord::PowerManagement),
    ("Recovery", StepWord::Recovery),
];

const ENDS: &[(&str, End)] = &[
    ("Recovered", End::Recovered),
    ("NeverNeeded", End::NeverNeeded),
    ("Refused", End::Refused),
    ("HeldOff", End::HeldOff),
    ("NodeGone", End::NodeGone),
    ("Stopped", End::Stopped),
];

impl World {
    pub(super) fn take_fence_fact(&mut self, fact: &mut Fact) -> Result<bool, String> {
        match fact.kind.as_str() {
            "fence" => self.take_fence(fact)?,
            "target" => self.take_target(fact),
            "isolation" => self.take_isolation(fact)?,
            "job" => {
                let call = super::seen_facts::call_id(fact)?;
                self.fence.jobs.insert(call);
            }
            "proof" => self.take_proof(fact)?,
            "ends" => self.take_end_of_proof(fact)?,
            "release" => self.take_release(fact)?,
            "crowd" => self.take_crowd(fact)?,
            "since-mark" => self.take_since_mark(fact)?,
            "detach" => self.take_detach(fact),
            "method" => self.take_method(fact)?,
            "plan" => self.take_plan(fact)?,
            "undo" => self.take_undo(fact)?,
            "settings" => self.take_settings(fact)?,
            "policy" => self.take_policy(fact)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// `fence Isolating level=0 method=1 attempt=1 waited=5m slot=none power-sent`.
    fn take_fence(&mut self, fact: &mut Fact) -> Result<(), String> {
        let fence = &mut self.fence;
        fence.power_sent |= fact.flag("power-sent");
        fence.stopped |= fact.flag("stopped");
        if fact.flag("without-proofs") {
            fence.proofs.clear();
        }
        fence.restarts = fact.value_or("restarts", fence.restarts)?;
        fence.waited = fact.value_or("waited", fence.waited)?;
        let run = Run {
            level: fact.value_or("level", 0)?,
            method: fact.value_or("method", 0)?,
            tries: fact.value_or("tries", 0)?,
            rounds: fact.value_or("rounds", 0)?,
            call: fact.value_or("call", 1)?,
            seen_running: fact.flag("seen-running"),
        };
        let step = |text: Option<String>, fact: &Fact| match text {
            Some(word) => one_of(fact, &word, STEPS),
            None => Ok(StepWord::Isolation),
        };
        let word = fact.word("the phase")?;
        let phase = match word.as_str() {
            "New" => Phase::New,
            "Isolating" => Phase::Isolating(run),
            "Isolated" => {
                let by = fact.text("by");
                Phase::Isolated { by: step(by, fact)? }
            }
            "PoweringOff" => Phase::PoweringOff(run),
            "PoweringOn" => Phase::PoweringOn(run),
            "Returning" => Phase::Returning,
            "Recovering" => Phase::Recovering(run),
            "Final" => {
                let end = fact.text("end").unwrap_or_else(|| "Recovered".to_owned());
                Phase::Final(one_of(fact, &end, ENDS)?)
            }
            "Failed" => {
                let at = fact.text("at");
                Phase::Failed { at: step(at, fact)?, why: FailReason::StillOn { method: "bmc".into() } }
            }
            _ => return Err(fact.wrong(&format!("`{word}` is no phase"))),
        };
        let begun = phase != Phase::New;
        fence.calls = fact.value_or("calls", phase.run().map_or(0, |run| run.call))?;
        fence.attempt = fact.value_or("attempt", fence.attempt.max(u32::from(begun)))?;
        fence.phase = phase;
        if begun && fence.target.is_none() {
            fence.target = Some(incarnation("u1", "b1"));
        }
        let slot = fact.text("slot").unwrap_or_else(|| if begun { "held" } else { "none" }.to_owned());
        fence.slot = one_of(fact, &slot, &[("held", Slot::Held), ("none", Slot::None)])?;
        let held = fence.slot == Slot::Held;
        fence.grant = fact.value_or("grant", fence.grant.max(u32::from(held)))?;
        self.seen.ledger = if held { LedgerSeen::Present { grant: fence.grant } } else { LedgerSeen::Absent };
        Ok(())
    }

    fn take_target(&mut self, fact: &mut Fact) {
        let uid = fact.text("uid").unwrap_or_else(|| "u1".to_owned());
        let boot = fact.text("boot").unwrap_or_else(|| "b1".to_owned());
        self.fence.target = Some(incarnation(&uid, &boot));
    }

    /// `isolation bmc power in-force`.
    fn take_isolation(&mut self, fact: &mut Fact) -> Result<(), String> {
        let method = MethodName::new(fact.word("the method")?);
        let kind = fact.word("the kind of isolation")?;
        let state = fact.word("its state")?;
        let kind = one_of(fact, &kind, KINDS)?;
        let state = one_of(fact, &state, ISOLATION_STATES)?;
        self.fence.isolations.retain(|known| known.method != method || known.kind != kind);
        self.fence.isolations.push(Isolation { method, kind, state });
        Ok(())
    }

    /// `release db-0 marked group=0 attachments=va1 mark-releases`: the pod's own facts say what it stands on.
    fn take_release(&mut self, fact: &mut Fact) -> Result<(), String> {
        let name = fact.word("the pod")?;
        let state = fact.word("how far it has come")?;
        let state = one_of(fact, &state, RELEASE_STATES)?;
        let pod = self.pods.iter().find(|pod| &*pod.pod.name == name.as_str());
        let pod = pod.ok_or_else(|| fact.wrong(&format!("there is no pod `{name}` yet")))?.clone();
        self.refresh();
        let basis = if fact.flag("on-nothing") {
            stands_on_nothing()
        } else {
            match cover(&self.fence, &pod, &self.seen) {
                Coverage::Node(basis) | Coverage::Volumes(basis) => basis,
                Coverage::Missing(why) => return Err(fact.wrong(&format!("it is not covered: {why}"))),
            }
        };
        let volumes: BTreeSet<VolumeName> = pod
            .mounts
            .iter()
            .filter_map(|mount| match mount {
                palisade_core::observe::Mount::Claim { volume: Some(name), .. } => self.seen.volumes.get(name),
                _ => None,
            })
            .map(|volume| volume.name.clone())
            .collect();
        let attachments = fact.list("attachments").iter().map(|name| attachment_ref(name)).collect();
        let group = fact.value_or("group", u32::try_from(self.fence.releases.len()).unwrap_or(0))?;
        let mark_releases = fact.flag("mark-releases");
        if state >= ReleaseState::Removed {
            self.pods.retain(|other| other.pod.uid != pod.pod.uid);
        }
        self.fence.releases.push(Release { pod: pod.pod, group, basis, mark_releases, volumes, attachments, state });
        if state > ReleaseState::Intended && self.fence.since_mark == SinceMark::Unknown {
            // Its kubelet has posted a status since, from the boot that it was in.
            self.fence.since_mark = SinceMark::FirstBoot("b1".into());
        }
        Ok(())
    }

    /// `since-mark unknown|read|off|boot=b1`.
    fn take_since_mark(&mut self, fact: &mut Fact) -> Result<(), String> {
        let read = SinceMark::Baseline { heartbeat: Some("h1".into()), boot: Some("b1".into()) };
        self.fence.since_mark = if let Some(boot) = fact.text("boot") {
            SinceMark::FirstBoot(boot.as_str().into())
        } else {
            let word = fact.word("unknown, read, off or boot=")?;
            one_of(fact, &word, &[("unknown", SinceMark::Unknown), ("read", read), ("off", SinceMark::Off)])?
        };
        Ok(())
    }

    /// `crowd 250`: so many pods were released before.
    fn take_crowd(&mut self, fact: &mut Fact) -> Result<(), String> {
        let size: u32 = parse(fact, "how many pods")?;
        for number in 0..size {
            let name = format!("crowd-{number}");
            self.fence.releases.push(Release {
                pod: PodRef { namespace: "default".into(), name: name.as_str().into(), uid: Uid::new(name) },
                group: number,
                basis: stands_on_nothing(),
                mark_releases: false,
                volumes: BTreeSet::new(),
                attachments: BTreeSet::new(),
                state: ReleaseState::Detached,
            });
        }
        Ok(())
    }

    /// `detach done=v1 adding=v2` or `detach forbidden`.
    fn take_detach(&mut self, fact: &mut Fact) {
        let volumes = |names: Vec<String>| names.into_iter().map(VolumeName::new).collect();
        self.fence.detach = if fact.flag("forbidden") {
            Detach::Forbidden
        } else {
            Detach::Edits { done: volumes(fact.list("done")), adding: volumes(fact.list("adding")) }
        };
    }

    /// `method bmc CutOff proves=power plugs=1,2 path=same-agent stable=2s retries=1`.
    fn take_method(&mut self, fact: &mut Fact) -> Result<(), String> {
        let name = MethodName::new(fact.word("the method")?);
        let action = fact.word("the action")?;
        let action = one_of(
            fact,
            &action,
            &[
                ("CutOff", Action::CutOff),
                ("Restore", Action::Restore),
                ("FenceByDriver", Action::FenceByDriver),
                ("Cordon", Action::Cordon),
                ("Uncordon", Action::Uncordon),
                ("Run", Action::Run),
            ],
        )?;
        let proves = fact.text("proves").map(|word| one_of(fact, &word, CLASSES)).transpose()?;
        let scope = scope_of(fact);
        let path = fact.text("path").unwrap_or_else(|| "independent".to_owned());
        let path = one_of(
            fact,
            &path,
            &[
                ("independent", ReadPath::Independent),
                ("same-driver", ReadPath::SameDriver),
                ("same-agent", ReadPath::SameAgent),
                ("declared", ReadPath::Declared),
            ],
        )?;
        let mut plugs = fact.list("plugs");
        if plugs.is_empty() {
            plugs.push("1".to_owned());
        }
        let method = Method {
            name: name.clone(),
            action,
            proves,
            scope,
            plugs: plugs.into_iter().map(Into::into).collect(),
            path,
            stable_off: fact.value_or("stable", Span::secs(2))?,
            retries: fact.value_or("retries", 0)?,
            tells_hibernation: !fact.flag("cannot-tell-hibernated"),
            in_job: fact.flag("in-job"),
            revokes_sessions: fact.flag("revokes-sessions"),
        };
        self.methods.insert(name, method);
        Ok(())
    }

    /// `plan isolation net,disk` adds a level; `plan isolation retries=1`; `plan isolation none` forgets all levels.
    fn take_plan(&mut self, fact: &mut Fact) -> Result<(), String> {
        let step = fact.word("the step")?;
        let retries = fact.value::<u32>("retries")?;
        let forget = fact.flag("none");
        let names = fact.word("the methods").ok();
        let mut methods = Vec::new();
        for name in names.iter().flat_map(|names| names.split(',')) {
            methods.push(self.method_named(name, fact)?);
        }
        let settings = &mut self.seen.settings;
        let plan: &mut Plan = match step.as_str() {
            "isolation" => &mut settings.isolation,
            "power-off" => &mut settings.power_off,
            "power-on" => &mut settings.power_on,
            "recovery" => &mut settings.recovery,
            _ => return Err(fact.wrong(&format!("`{step}` is no step"))),
        };
        plan.retries = retries.unwrap_or(plan.retries);
        if forget {
            plan.levels.clear();
        }
        if !methods.is_empty() {
            plan.levels.push(Level { methods });
        }
        Ok(())
    }

    /// `undo fc-off by=fc-on`.
    fn take_undo(&mut self, fact: &mut Fact) -> Result<(), String> {
        let of = MethodName::new(fact.word("the method that is undone")?);
        let by = fact.text("by").unwrap_or_default();
        let by = self.method_named(&by, fact)?;
        let power = self.methods.get(&of).is_some_and(|method| method.proves == Some(Class::Power));
        let settings = &mut self.seen.settings;
        if power {
            settings.switch_on.insert(of, by)
        } else {
            settings.undo.insert(of, by)
        };
        Ok(())
    }

    fn method_named(&self, name: &str, fact: &Fact) -> Result<Method, String> {
        let known = self.methods.get(&MethodName::from(name));
        known.cloned().ok_or_else(|| fact.wrong(&format!("there is no method `{name}` yet")))
    }

    fn take_settings(&mut self, fact: &mut Fact) -> Result<(), String> {
        let settings = &mut self.seen.settings;
        settings.stay_off |= fact.flag("stay-off");
        settings.delete_node |= fact.flag("delete-node");
        settings.restarts = fact.value_or("restarts", settings.restarts)?;
        for (key, span) in [
            ("power-after", &mut settings.power_after),
            ("release-timeout", &mut settings.release_timeout),
            ("recovery-timeout", &mut settings.recovery_timeout),
            ("return-hold", &mut settings.return_hold),
            ("send-window", &mut settings.send_window),
            ("longest-window", &mut settings.longest_window),
            ("fresh", &mut settings.fresh),
            ("settle", &mut settings.settle),
            ("backoff", &mut settings.backoff),
            ("slowest", &mut settings.slowest),
            ("checkpoint", &mut settings.checkpoint),
            ("detach-patience", &mut settings.detach_patience),
        ] {
            *span = fact.value_or(key, *span)?;
        }
        Ok(())
    }

    fn take_policy(&mut self, fact: &mut Fact) -> Result<(), String> {
        let release = &mut self.seen.release;
        release.respect_pdb |= fact.flag("respect-pdb");
        release.out_of_service |= fact.flag("out-of-service");
        release.opt_in_required &= !fact.flag("no-label-needed");
        release.driver_guard.extend(fact.list("driver-guard").into_iter().map(DriverName::new));
        release.look_again = fact.value_or("look-again", release.look_again)?;
        if let Some(count) = fact.value("pace")? {
            release.pace = Some(Rate { count, per: fact.value_or("per", Span::mins(1))? });
        }
        Ok(())
    }
}

/// What a proof covers: `provider=`, `volume=`, `drivers=`, or the whole node.
pub fn scope_of(fact: &mut Fact) -> Scope {
    let drivers = fact.list("drivers");
    match (fact.text("provider"), fact.text("volume")) {
        (Some(provider), _) => Scope::Provider(ProviderName::new(provider)),
        (None, Some(volume)) => Scope::Volume(VolumeName::new(volume)),
        (None, None) if !drivers.is_empty() => Scope::Drivers(drivers.into_iter().map(DriverName::new).collect()),
        (None, None) => Scope::Node,
    }
}

/// A life of the node `n1`.
fn incarnation(uid: &str, boot: &str) -> Incarnation {
    Incarnation { node: "n1".into(), uid: Uid::from(uid), boot: boot.into() }
}

/// An attachment whose UID is its name, unless the case writes `name/uid`.
pub fn attachment_ref(text: &str) -> AttachmentRef {
    let (name, uid) = text.split_once('/').unwrap_or((text, text));
    AttachmentRef { name: name.into(), uid: Uid::from(uid) }
}

/// A basis that names nothing: no decision makes one, but a status that was edited by hand could say so.
fn stands_on_nothing() -> Basis {
    let record = ReleaseRecord {
        pod_namespace: "default".to_owned(),
        pod_name: "nobody".to_owned(),
        pod_uid: "nobody".to_owned(),
        group: "0".to_owned(),
        volumes: Vec::new(),
        attachments: Vec::new(),
        proofs: Vec::new(),
        unpublish: Vec::new(),
        driver_guard: false,
        mark_releases: false,
        state: palisade_api::fence::ReleaseState::Detached,
    };
    let status = NodeFenceStatus { releases: vec![record], ..NodeFenceStatus::default() };
    let mut fence = durable::read(&Uid::from("fence"), &"n1".into(), &status).expect("the status is readable");
    fence.releases.remove(0).basis
}
