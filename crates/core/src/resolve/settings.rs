//! Resolve / settings: a FenceConfig and its templates, made into the plans of one node.
//!
//! Promise: whatever is cut off has a way back, known before it is cut off; and no way back is taken twice. What
//! isolation took from network or storage is given back by `undo`, after the return checks, never by the power step.
//! Never: chooses between two meanings. A config with a mistake is refused whole, and no other config with it.
//!
//! A pod that the policy vouches for stands alone: nothing of its level switches the machine off beside it or comes after it, so
//! that its own call is the last that the level makes; and no Node is deleted on its word.
//!
//! Names. Settings, the record in `NodeFence.status` and the calls are keyed by a method's name, and the schema lets
//! equal names stand in different levels. So one name may appear again only for the same call (as `disk` does in source
//! document 001, off in isolation and on in recovery); anything else is a Problem. To qualify names as `level/method`
//! was considered: the record takes a DNS label of 63 characters, so two long names would not fit, and people would
//! read other names in status than they wrote.
//!
//! Steps:
//! - A config without an isolation step isolates by its power step: a machine that is off is isolated.
//! - A level of the power step that names no SwitchOn is switched on by the opposite of its own SwitchOffs; without a
//!   power step, the way on is the opposite of what the isolation step switches off by power.
//! - A recovery method that gives back what a method of isolation took (same template, plug and address) is that
//!   method's undo. The others run as the recovery step.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::config::{FenceConfigSpec, StepConfig};

use super::call::{Call, Device, Mechanism};
use super::method::{Part, Source, Wired};
use super::{Problem, Templates, span};
use crate::fence::StepWord;
use crate::ident::{MethodName, NodeName, ProviderName};
use crate::prove::{Class, ReadPath};
use crate::settings::{Action, JOB_START, LONGEST_WINDOW, Level, Method, Plan, SEND_WINDOW, Settings};
use crate::time::Span;

/// How one node is fenced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// What the core decides by.
    pub settings: Settings,
    /// What the shell needs besides, by the name of the method: one entry for every method in the settings.
    pub calls: BTreeMap<MethodName, Call>,
}

/// For whom, and what is known beside the objects.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The node.
    pub node: &'a NodeName,
    /// A request asks for `PowerOff`: the machine stays off, whatever the config says.
    pub stay_off: bool,
    /// Storage providers that leave old sessions dead when they let a node in again; each says so itself.
    pub revoking: &'a BTreeSet<ProviderName>,
    /// FenceTemplates whose pods the policy vouches for, though nobody reads back what they did (spec.declaredPower).
    pub declared_power: &'a [String],
}

/// The settings of a node from its FenceConfig (`name` and `spec`) and all FenceTemplates, by name.
pub fn settings<'a>(
    name: &'a str,
    spec: &'a FenceConfigSpec,
    templates: &'a Templates<'a>,
    wanted: Wanted<'a>,
) -> Result<Resolved, Problem> {
    let Wanted { node, revoking, declared_power, .. } = wanted;
    let source = Source { config: name, spec, templates, node, revoking, declared_power };
    let isolation = Step::read(&source, StepWord::Isolation, &spec.isolation)?;
    let power = Step::read(&source, StepWord::PowerManagement, &spec.power_management)?;
    let recovery = Step::read(&source, StepWord::Recovery, &spec.recovery)?;
    let steps = [&isolation, &power, &recovery];

    let calls = calls(steps.into_iter().flat_map(Step::all))?;
    let delete_node = delete_node(&isolation, &power, spec)?;
    let cuts = Cuts { cuts: isolation.offs().chain(power.offs()).collect() };
    cuts.refuse_early_return(&power)?;
    refuse_unseen_off(&power)?;
    isolation.refuse_company()?;
    power.refuse_company()?;
    let returns: Vec<&Wired> = recovery.ons().chain(power.ons()).collect();
    let leaves_off = spec.stay_off || delete_node;

    let mut settings = Settings {
        isolation: isolation.plan(|level| &level.off),
        power_off: power.plan(|level| &level.off),
        power_on: power_on(&isolation, &power, &returns, leaves_off)?,
        recovery: recovery.plan_of(|level| level.on.iter().filter(|on| cuts.answered_by(on).next().is_none())),
        switch_on: cuts.switch_on(&returns),
        undo: cuts.undo(&returns)?,
        restarts: spec.restarts,
        power_after: span(spec.power_after),
        stay_off: spec.stay_off || wanted.stay_off,
        delete_node,
        release_timeout: span(spec.release_timeout),
        recovery_timeout: span(spec.recovery_timeout),
        ..Settings::default()
    };
    if settings.isolation.levels.is_empty() {
        settings.isolation = std::mem::take(&mut settings.power_off);
    }
    settings.send_window = send_window(&calls);
    settings.settle = settings.settle.max(longest(&calls, steps.into_iter().flat_map(Step::all)));
    Ok(Resolved { settings, calls })
}

/// The methods of a step, sorted by the way that they go.
struct Step {
    levels: Vec<Ways>,
    delete_node: Option<String>,
    retries: u32,
}

#[derive(Default)]
struct Ways {
    off: Vec<Wired>,
    on: Vec<Wired>,
}

impl Step {
    fn read<'a>(source: &Source<'a>, word: StepWord, config: &'a StepConfig) -> Result<Self, Problem> {
        let mut step = Self { levels: Vec::new(), delete_node: None, retries: config.retries };
        for level in &config.levels {
            let mut ways = Ways::default();
            for method in &level.methods {
                match source.part(word, &level.name, method)? {
                    Part::Off(wired) => ways.off.push(wired),
                    Part::On(wired) => ways.on.push(wired),
                    Part::DeleteNode { at } => step.delete_node = Some(at),
                    Part::Nothing => {}
                }
            }
            step.levels.push(ways);
        }
        Ok(step)
    }

    fn offs(&self) -> impl Iterator<Item = &Wired> {
        self.levels.iter().flat_map(|level| &level.off)
    }

    fn ons(&self) -> impl Iterator<Item = &Wired> {
        self.levels.iter().flat_map(|level| &level.on)
    }

    fn all(&self) -> impl Iterator<Item = &Wired> {
        self.offs().chain(self.ons())
    }

    /// A pod that is vouched for is the last to cut off in its level, and the only one to switch the machine off. Beside a device
    /// that is read back it could only weaken that one's proof: one of two power supplies would be off by a word.
    fn refuse_company(&self) -> Result<(), Problem> {
        for level in &self.levels {
            let Some(at) = level.off.iter().position(is_vouched_for) else { continue };
            let alone = level.off.iter().filter(|off| switches_off(off)).count() == 1;
            if let (Some(pod), false) = (level.off.get(at), alone && at + 1 == level.off.len()) {
                let why = "a pod that nobody reads back is the last method of its level, and the only one that switches the \
                           machine off: what comes after it would be seen later than its word, and what is read back beside it \
                           would seem to prove more than it does; give it a level of its own";
                return Err(Problem { field: pod.at.clone(), why: why.to_owned() });
            }
        }
        Ok(())
    }

    fn plan(&self, way: impl Fn(&Ways) -> &Vec<Wired>) -> Plan {
        self.plan_of(|level| way(level).iter())
    }

    /// A plan of what is chosen from each level. A level of which nothing is left is none: it would succeed by itself.
    fn plan_of<'s, I: Iterator<Item = &'s Wired>>(&'s self, choose: impl Fn(&'s Ways) -> I) -> Plan {
        let chosen = |level| choose(level).map(|wired| wired.method.clone()).collect();
        plan(self.levels.iter().map(chosen), self.retries)
    }
}

fn plan(levels: impl Iterator<Item = Vec<Method>>, retries: u32) -> Plan {
    let levels: Vec<Level> = levels.filter(|methods| !methods.is_empty()).map(|methods| Level { methods }).collect();
    if levels.is_empty() { Plan::default() } else { Plan { levels, retries } }
}

/// Everything that cuts off.
struct Cuts<'a> {
    cuts: Vec<&'a Wired>,
}

impl<'a> Cuts<'a> {
    /// The cuts that `on` gives back.
    fn answered_by(&self, on: &Wired) -> impl Iterator<Item = &'a Wired> {
        self.cuts.iter().copied().filter(move |off| answers(on, off))
    }

    /// The power step runs before the node was found clean: it must not give back what keeps stale writes away.
    fn refuse_early_return(&self, power: &Step) -> Result<(), Problem> {
        let early = |on: &&Wired| on.class.is_some_and(gives_data_back) && self.answered_by(on).next().is_none();
        power.ons().find(early).map_or(Ok(()), |on| {
            let why = "what keeps the node from its data is given back when it is clean again, not by the power step; \
                       put this method into recovery";
            Err(Problem { field: on.at.clone(), why: why.to_owned() })
        })
    }

    /// How each device that switches the machine off switches it on; a pod has no way back of its own.
    fn switch_on(&self, returns: &[&Wired]) -> BTreeMap<MethodName, Method> {
        let back = |off: &&&Wired| {
            let named = returns.iter().find(|on| answers(on, off)).map(|on| on.method.clone());
            Some((off.method.name.clone(), named.or_else(|| opposite(off))?))
        };
        self.cuts.iter().filter(|off| switches_off(off)).filter_map(|off| back(&off)).collect()
    }

    /// How each isolation from network or storage is lifted: by the method that names it, else by its own opposite.
    fn undo(&self, returns: &[&Wired]) -> Result<BTreeMap<MethodName, Method>, Problem> {
        let mut undo = BTreeMap::new();
        for off in self.cuts.iter().filter(|off| off.method.proves.is_some_and(gives_data_back)) {
            let named = returns.iter().find(|on| answers(on, off)).map(|on| on.method.clone());
            let Some(method) = named.or_else(|| opposite(off)) else {
                let why = "a pod that cuts the node off from network or storage has no opposite, so the node could \
                           never be let in again; use an agent, a native driver or a storage provider, or let the \
                           template prove None and put the pod that gives back into recovery";
                return Err(Problem { field: format!("{}.template", off.at), why: why.to_owned() });
            };
            undo.insert(off.method.name.clone(), method);
        }
        Ok(undo)
    }
}

const fn gives_data_back(class: Class) -> bool {
    match class {
        Class::Network | Class::Storage | Class::Driver => true,
        Class::Power | Class::Confirmed | Class::Kdump => false,
    }
}

/// Whether `on` gives back what `off` takes. Only what is on record is paired: a cut without a class leaves no trace,
/// so its way back has to run as the step says.
fn answers(on: &Wired, off: &Wired) -> bool {
    on.method.action == Action::Restore && off.method.proves.is_some() && on.call.device.is_same_as(&off.call.device)
}

/// The same device, told to give back. A pod is told nothing, so it has no opposite.
fn opposite(off: &Wired) -> Option<Method> {
    match &off.call.device.mechanism {
        Mechanism::Native(_) | Mechanism::Agent(_) | Mechanism::Storage(_) => {
            Some(Method { action: Action::Restore, proves: None, ..off.method.clone() })
        }
        Mechanism::Builtin(_) | Mechanism::Pod(_) => None,
    }
}

fn cuts_power(wired: &Wired) -> bool {
    wired.method.proves == Some(Class::Power)
}

/// The policy vouches for it.
fn is_vouched_for(wired: &Wired) -> bool {
    wired.method.proves == Some(Class::Confirmed)
}

/// Whether the machine is off by it, whoever says so: it needs a way on.
fn switches_off(wired: &Wired) -> bool {
    cuts_power(wired) || is_vouched_for(wired)
}

/// The power step is over when the machine is seen off, or somebody vouches for it. A level that nobody can see off would be run again and again.
fn refuse_unseen_off(power: &Step) -> Result<(), Problem> {
    let seen_off = |off: &Wired| is_vouched_for(off) || cuts_power(off) && off.method.path != ReadPath::Declared;
    let blind = power.levels.iter().find(|level| !level.off.is_empty() && !level.off.iter().any(seen_off));
    blind.and_then(|level| level.off.first()).map_or(Ok(()), |first| {
        let why = "nothing in this level shows that the machine is off; add a method whose template proves Power and \
                   can be read back, or put what only runs into isolation";
        Err(Problem { field: first.at.clone(), why: why.to_owned() })
    })
}

/// The way on.
fn power_on(isolation: &Step, power: &Step, returns: &[&Wired], leaves_off: bool) -> Result<Plan, Problem> {
    let step = if power.offs().next().is_some() { power } else { isolation };
    let mut levels = Vec::new();
    for level in &step.levels {
        let named = level.on.iter().filter(|on| !on.class.is_some_and(gives_data_back));
        let mut methods: Vec<Method> = named.map(|on| on.method.clone()).collect();
        if methods.is_empty() {
            for off in level.off.iter().filter(|off| switches_off(off)) {
                let named = returns.iter().find(|on| answers(on, off)).map(|on| on.method.clone());
                match named.or_else(|| opposite(off)) {
                    Some(on) => methods.push(on),
                    None if leaves_off => {}
                    None => {
                        let why = "a pod that switches off has no opposite, and a machine is not left off without a \
                                   word; add a method with SwitchOn to this level of powerManagement, or set stayOff";
                        return Err(Problem { field: format!("{}.template", off.at), why: why.to_owned() });
                    }
                }
            }
        }
        levels.push(methods);
    }
    Ok(plan(levels.into_iter(), step.retries))
}

fn delete_node(isolation: &Step, power: &Step, spec: &FenceConfigSpec) -> Result<bool, Problem> {
    let Some(at) = isolation.delete_node.as_ref().or(power.delete_node.as_ref()) else { return Ok(false) };
    let refused = |why: &str| Err(Problem { field: at.clone(), why: why.to_owned() });
    if spec.stay_off {
        return refused(
            "a machine whose Node is deleted stays off anyway, and stayOff would keep the Node; remove stayOff",
        );
    }
    if isolation.offs().chain(power.offs()).any(is_vouched_for) {
        return refused(
            "a Node is deleted only when its machine is proven off, and a pod that nobody reads back proves nothing; name a \
             readBack for it, or remove this method",
        );
    }
    if !isolation.offs().chain(power.offs()).any(cuts_power) {
        return refused(
            "a Node is deleted only when its machine is proven off; add a method whose template proves Power",
        );
    }
    Ok(true)
}

/// The calls by name; one name is one call.
fn calls<'a>(all: impl Iterator<Item = &'a Wired>) -> Result<BTreeMap<MethodName, Call>, Problem> {
    let mut calls: BTreeMap<MethodName, (&Wired, Call)> = BTreeMap::new();
    for wired in all {
        let name = &wired.method.name;
        match calls.get(name) {
            Some((first, call)) if *call != wired.call => {
                let why = format!(
                    "another method has this name and does not make the same call ({}); status and history know a \
                     method by its name, so give one of them another",
                    first.at
                );
                return Err(Problem { field: format!("{}.name", wired.at), why });
            }
            Some(_) => {}
            None => {
                calls.insert(name.clone(), (wired, wired.call.clone()));
            }
        }
    }
    Ok(calls.into_iter().map(|(name, (_, call))| (name, call)).collect())
}

/// How long a call may wait before it is sent. A device is asked who it is before it is told anything, and each of its answers may
/// take long; the whole call has the template's timeout. What runs in a Job has its own deadline there.
fn send_window(calls: &BTreeMap<MethodName, Call>) -> Span {
    let inline = calls.values().filter(|call| !call.device.mechanism.in_job());
    let slowest = inline.map(|call| call.device.timeout).max().unwrap_or_default();
    slowest.clamp(SEND_WINDOW, LONGEST_WINDOW)
}

/// How long the slowest call may take until its result can be steady. A shorter patience would call a pod that is
/// still at work within its own timeout unknown.
fn longest<'a>(calls: &BTreeMap<MethodName, Call>, all: impl Iterator<Item = &'a Wired>) -> Span {
    let of_device = |device: &Device| {
        let start = if device.mechanism.in_job() { JOB_START } else { Span::ZERO };
        start + device.timeout
    };
    let of_call = |call: &Call| call.read_back.iter().map(of_device).fold(of_device(&call.device), Span::max);
    let call = calls.values().map(of_call).max().unwrap_or_default();
    call + all.map(|wired| wired.method.stable_off).max().unwrap_or_default()
}

#[cfg(test)]
mod tests;
