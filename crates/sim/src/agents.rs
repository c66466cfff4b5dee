//! Agents: seeds whose machines are switched by a fence agent or by a user's own pod, in Jobs, and what goes wrong with these and
//! their Jobs.
//!
//! They are dealt by dice of their own: whoever has none of them sees the same run as without this file.

use std::time::Duration;

use palisade_api::names;
use palisade_cluster::Cluster;
use palisade_cluster::api::{DeleteOptions, Key, Kind, Part, Patch, metadata};
use palisade_cluster::dice::Dice;
use palisade_scenarios::world::Agent;
use serde_json::{Value, json};

use crate::acts::Act;
use crate::faults::Fault;
use crate::people::edit_policy;
use crate::plan::{Plan, QUIET, When, pick};

/// By what the machines of a run are switched off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum By {
    /// The native driver.
    #[default]
    Driver,
    /// An agent, which the driver reads back.
    AgentReadBack,
    /// An agent alone, which reads back itself.
    Agent,
    /// An agent, or else the driver.
    AgentOrDriver,
    /// A user's own pod that nobody reads back, and for which the policy vouches. It does what it says.
    Word,
}

impl By {
    const AGENTS: [Self; 3] = [Self::AgentReadBack, Self::Agent, Self::AgentOrDriver];
}

/// So many seeds out of a hundred have agents.
const SHARE: u64 = 20;
/// So many of the others have machines that are switched by a pod's word.
const BY_WORD: u64 = 5;

/// The template of the pod for which the policy vouches.
pub(crate) const MINE: &str = "mine";

/// Deals the agents of a seed, and what goes wrong with them.
pub(crate) fn deal(plan: &mut Plan, seed: u64) {
    let mut dice = Dice::new(seed, "agents");
    if dice.below(100) >= SHARE {
        deal_word(plan, &mut Dice::new(seed, "word"));
        return;
    }
    plan.by = pick(&mut dice, &By::AGENTS);
    let Some(first) = first_fault(plan) else { return };
    for _ in 0..dice.below(3) {
        let behaves = behaviour(&mut dice, plan.by);
        let from = if dice.below(2) == 0 {
            When::At(first.saturating_sub(Duration::from_secs(dice.below(5))))
        } else {
            When::AfterThe(pick(&mut dice, &Act::ALL), 1 + dice.below(3))
        };
        let until = (first + Duration::from_secs(30 + dice.below(200))).min(QUIET);
        plan.faults.push((from, Fault::Agents(behaves)));
        plan.faults.push((When::At(until), Fault::Agents(Agent::Honest)));
    }
    lose_jobs(plan, &mut dice, first);
}

/// Nobody can tell off from hibernated by a word.
fn deal_word(plan: &mut Plan, dice: &mut Dice) {
    if plan.hibernates || dice.below(100) >= BY_WORD {
        return;
    }
    plan.by = By::Word;
    if let Some(first) = first_fault(plan) {
        lose_jobs(plan, dice, first);
    }
}

/// When the first thing goes wrong: around that somebody needs an agent.
fn first_fault(plan: &Plan) -> Option<Duration> {
    let times = plan.faults.iter().filter_map(|(when, _)| match when {
        When::At(at) => Some(*at),
        When::AfterAct(_) | When::AfterThe(..) => None,
    });
    times.min()
}

fn lose_jobs(plan: &mut Plan, dice: &mut Dice, first: Duration) {
    if dice.below(4) == 0 {
        let when = if dice.below(2) == 0 {
            When::AfterThe(Act::Job, 1 + dice.below(3))
        } else {
            When::At((first + Duration::from_secs(10 + dice.below(60))).min(QUIET))
        };
        plan.faults.push((when, Fault::DeleteJobs));
    }
}

fn behaviour(dice: &mut Dice, by: By) -> Agent {
    match dice.below(9) {
        0 => Agent::SaysSuccess,
        1 => Agent::FailsAfterSuccess,
        2 => Agent::ErrorTextExitZero,
        3 => Agent::Hangs,
        4 => Agent::KilledBySignal,
        5 => Agent::WrongReport,
        6 => Agent::FlapsWithCycle,
        // Who lies alone, in word and deed, cannot be unmasked.
        7 if by == By::AgentReadBack => Agent::LiesWholly,
        _ => Agent::Slow(1 + dice.below(20)),
    }
}

/// The administrator's template and levels.
pub(crate) fn configure(cluster: &Cluster, plan: &Plan) {
    let levels: &[&str] = match plan.by {
        By::Driver => return,
        By::AgentReadBack | By::Agent => &["agent"],
        By::AgentOrDriver => &["agent", "bmc"],
        By::Word => return configure_word(cluster),
    };
    let (template, config) = (kind(cluster, "FenceTemplate"), kind(cluster, "FenceConfig"));
    let (Some(template), Some(config)) = (template, config) else { return };
    let mut agent = json!({
        "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "FenceTemplate",
        "metadata": { "name": "agent" },
        "spec": {
            "agent": { "name": "fence_redfish" },
            "parameters": { "ip": "bmc-{node}", "systems_uri": "/redfish/v1/Systems/{node}" },
            "secretRef": { "name": "bmc-{node}", "keys": { "username": "username", "password": "password" } },
            "timeout": "25s",
            "proves": { "class": "Power", "hibernation": if plan.hibernates { "Possible" } else { "Impossible" } },
        },
    });
    if plan.by == By::AgentReadBack {
        agent["spec"]["readBack"] = json!({ "template": "bmc" });
    }
    if let Err(why) = cluster.create(template, agent) {
        eprintln!("the template of the agent was refused: {why:?}");
    }
    let level = |name: &&str| json!({ "name": name, "methods": [{ "name": name, "template": name }] });
    let levels: Vec<Value> = levels.iter().map(level).collect();
    let patch = Patch::Merge(json!({ "spec": { "powerManagement": { "levels": levels } } }));
    if let Err(why) = cluster.api().patch(&Key::cluster(config, "bare-metal"), Part::Main, &patch) {
        eprintln!("the levels of the agent were refused: {why:?}");
    }
}

/// A pod that switches off, the policy's word for it, and the way back.
fn configure_word(cluster: &Cluster) {
    let (template, config) = (kind(cluster, "FenceTemplate"), kind(cluster, "FenceConfig"));
    let (Some(template), Some(config)) = (template, config) else { return };
    let container = json!({ "name": MINE, "image": "example.com/mine:1", "command": ["switch", "off"] });
    let mine = json!({
        "apiVersion": format!("{}/{}", names::GROUP, names::VERSION), "kind": "FenceTemplate",
        "metadata": { "name": MINE },
        "spec": {
            "podTemplate": { "spec": { "containers": [container] } },
            "proves": { "class": "Power", "withoutReadBack": true },
        },
    });
    if let Err(why) = cluster.create(template, mine) {
        eprintln!("the template of the pod was refused: {why:?}");
    }
    edit_policy(cluster, &json!({ "spec": { "declaredPower": [MINE] } }));
    let off = json!({ "name": MINE, "template": MINE });
    let on = json!({ "name": "back", "template": "bmc", "action": "SwitchOn" });
    let levels = json!([{ "name": "by-word", "methods": [off, on] }]);
    let patch = Patch::Merge(json!({ "spec": { "powerManagement": { "levels": levels } } }));
    if let Err(why) = cluster.api().patch(&Key::cluster(config, "bare-metal"), Part::Main, &patch) {
        eprintln!("the levels of the pod were refused: {why:?}");
    }
}

/// An admin deletes every Job that calls an agent.
pub(crate) fn delete_jobs(cluster: &Cluster) {
    for job in cluster.api().list(Kind::JOB) {
        if metadata::namespace(&job) == names::SYSTEM_NAMESPACE {
            let _ = cluster.api().delete(&Key::of(Kind::JOB, &job), &DeleteOptions::default());
        }
    }
}

fn kind(cluster: &Cluster, name: &str) -> Option<Kind> {
    cluster.api().kind(names::GROUP, name)
}
