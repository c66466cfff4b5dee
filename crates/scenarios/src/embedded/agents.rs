//! Embedded / agents: what pods of the embedded world run that call fence agents, or are a user's own.
//!
//! Promise: whatever such a pod does to a machine goes through the machine's BMC, from the node that the pod runs on and with the
//! login that is mounted into it. So the BMC's own faults and its record apply, and a node without a way to it does nothing.
//!
//! | file | is |
//! |---|---|
//! | `act` | stands for `palisade act`: follows an order, and reports |
//! | `agent` | stands for a fence agent, of any personality |
//! | `panel` | what both find behind an address: a BMC, by Redfish |

mod act;
mod agent;
mod panel;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use palisade_api::names;
use palisade_cluster::clock::Clock;
use palisade_cluster::machines::machine::{Power, Switch};
use palisade_cluster::machines::program::{End, Inside, Program, Programs};
use palisade_cluster::truth::Truth;
use palisade_devices::act::{Report, Verdict};
use serde_json::Value;

use self::act::Acting;
use self::agent::Caller;
use self::panel::Panel;
use crate::world::Agent;

/// What a user's own pod has for a command if it switches its target off, in this world.
const SWITCH_OFF: [&str; 2] = ["switch", "off"];
/// How long somebody else's power cycle keeps a machine off: longer than an agent that is asked again and again goes on asking.
const CYCLE: Duration = Duration::from_secs(8);

/// The images of the embedded world.
#[derive(Clone)]
pub(super) struct Agents {
    truth: Truth,
    mood: Arc<Mutex<Mood>>,
}

struct Mood {
    behaves: Agent,
    /// Somebody else's power cycle came in between already.
    cycled: bool,
}

impl Agents {
    pub(super) fn new(truth: Truth) -> Self {
        Self { truth, mood: Arc::new(Mutex::new(Mood { behaves: Agent::Honest, cycled: false })) }
    }

    /// Agents behave like this from now on.
    pub(super) fn set(&self, behaves: Agent) {
        *self.mood.lock().unwrap_or_else(PoisonError::into_inner) = Mood { behaves, cycled: false };
    }

    fn behaves(&self) -> Agent {
        self.mood.lock().unwrap_or_else(PoisonError::into_inner).behaves
    }

    /// Somebody else cycles the power of the machine behind an address, once: it goes off, and on again whatever anybody does.
    async fn somebody_cycles(&self, host: &str, clock: &Clock) {
        if std::mem::replace(&mut self.mood.lock().unwrap_or_else(PoisonError::into_inner).cycled, true) {
            return;
        }
        let Some(node) = self.behind(host) else { return };
        self.truth.act(|world| world.switch(&node, Switch::ForceOff));
        let power = || self.truth.look(|world| world.machines.get(&*node).map(|machine| machine.power));
        while power() == Some(Power::PoweringOff) {
            clock.sleep(Duration::from_millis(100)).await;
        }
        let (truth, clock) = (self.truth.clone(), clock.clone());
        tokio::spawn(async move {
            clock.sleep(CYCLE).await;
            truth.act(|world| world.switch(&node, Switch::On));
        });
    }

    fn behind(&self, host: &str) -> Option<String> {
        self.truth.look(|world| world.bmcs.iter().find(|(_, bmc)| bmc.host == host).map(|(node, _)| node.to_string()))
    }

    /// What a user's own pod does.
    fn own(&self, pod: &Value, inside: &Inside) -> Option<Program> {
        let target = annotation(pod, names::annotations::TARGET_NODE)?.to_owned();
        let command = pod.pointer("/spec/containers/0/command").and_then(Value::as_array)?;
        if !command.iter().map(|word| word.as_str().unwrap_or_default()).eq(SWITCH_OFF) {
            return None;
        }
        let login = self.truth.look(|world| {
            let bmc = world.bmcs.get(&*target)?;
            Some((bmc.host.clone(), bmc.user.clone(), bmc.password.clone()))
        });
        let (host, user, password) = login?;
        let panel = Panel::new(inside.bmcs.clone(), &host, &user, &password, None);
        let caller = Caller::honest(panel, inside.clock.clone());
        let body = async move {
            let said = caller.call(agent::Action::Off).await;
            End { code: said.code, words: said.err }
        };
        Some(Program { body: Box::pin(body), told: End { code: 143, words: String::new() } })
    }
}

impl Programs for Agents {
    fn program(&self, pod: &Value, inside: Inside) -> Option<Program> {
        let Some(order) = annotation(pod, names::annotations::ORDER).map(ToOwned::to_owned) else {
            return self.own(pod, &inside);
        };
        let agents = self.clone();
        let body = async move { Acting::begin(agents, &order, inside).end().await };
        Some(Program { body: Box::pin(body), told: end(&Report::new(Verdict::Unknown, "the pod was told to end")) })
    }
}

/// How a pod ends with a report.
fn end(report: &Report) -> End {
    End { code: i32::from(report.verdict != Verdict::Taken), words: report.text() }
}

fn annotation<'a>(pod: &'a Value, name: &str) -> Option<&'a str> {
    pod.get("metadata")?.get("annotations")?.get(name)?.as_str()
}
