//! Executor / job: fence agents and the user's own pods, each call in a Job of its own.
//!
//! Promise (I5): a Job's name is on record before it is made; who finds it made already waits for it instead of making another.
//! Promise (I6): an exit code of 0 says that the agent took the command, and no more; a pod that left no report that can be read
//! is unknown, and so is whatever did not end in time.
//! Promise: what a Job looked at is taken to be as old as it can be. Its pod counts time by its own clock; on ours it began no
//! earlier than the last moment at which its pod was seen without a node.

mod check;
mod follow;
mod manifest;
mod owner;
mod progress;

use std::future::pending;
use std::time::Duration;

use palisade_api::names::look_prefix;
use palisade_core::durable::job_name;
use palisade_core::effect::DeviceCall;
use palisade_core::observe::CallId;
use palisade_core::planted::{self, Bug};
use palisade_core::prove::{Sample, Seen};
use palisade_core::resolve::call::{Device as Target, Mechanism, THE_NODE, Value};
use palisade_core::settings::{Action, LONGEST_WINDOW};
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::{Span, Tick};
use palisade_devices::Failure;
use palisade_devices::act::{Look, Order, Report, Shown, Task, Verdict};

use self::follow::Made;
pub(crate) use self::follow::{end, end_pods, find};
pub(crate) use self::owner::Owner;
pub(crate) use self::progress::{Progress, progress};

use super::Executor;
use crate::clock::duration;

/// The pause before a device that was not off is looked at by another Job.
const BETWEEN_JOBS: Duration = Duration::from_secs(3);

/// How a call by a Job ended.
pub(super) struct CalledByJob {
    pub(super) said: Result<String, Failure>,
    pub(super) over: bool,
}

/// How a Job ended, as far as anybody saw.
struct Ended {
    /// What its pod left, and its exit code; or why nobody knows.
    left: Result<Left, String>,
    /// It can do nothing more.
    over: bool,
    /// The Job, if there was one.
    made: Option<Made>,
    /// The last moment at which its pod was seen without a node: it began after that.
    unbound: Tick,
}

/// What a pod left behind.
struct Left {
    exit: i32,
    message: String,
    /// Somebody told it to go, or its kubelet did away with it: nobody knows what it would have done.
    cut_short: bool,
}

impl Executor {
    /// Has a Job make the call.
    pub(super) async fn called_by_job(&self, target: &Target, call: &DeviceCall) -> CalledByJob {
        // Not over: whoever wrote the call down before us may have made the Job.
        let refused = |why: String| CalledByJob { said: Err(Failure::Refused(why)), over: false };
        let job = match &target.mechanism {
            Mechanism::Agent(agent) => match task(call) {
                Some(task) => self.of_order(&order(agent, task, target), target, self.by_fence()),
                None => Err(format!("{}: an agent can only switch off or on", call.method)),
            },
            Mechanism::Pod(pod) => self.of_pod(pod, target),
            Mechanism::Native(_) | Mechanism::Builtin(_) | Mechanism::Storage(_) => {
                Err(format!("{} runs in no Job", target.template))
            }
        };
        let mut job = match job {
            Ok(job) => job,
            Err(why) => return refused(why),
        };
        let first = CallId { attempt: 1, call: 0 };
        let named = if planted::is(Bug::AdoptsAnOldJob) { first } else { call.call };
        job.metadata.name = Some(job_name(&self.fence, named));
        let ended = Box::pin(self.run(self.by_fence(), job, target, call.send_before, pending())).await;
        let said = match (ended.left, &target.mechanism) {
            (Err(why), _) => Err(Failure::Unknown(why)),
            (Ok(left), Mechanism::Pod(_)) => of_users_pod(&left),
            (Ok(left), _) => of_agent(&left),
        };
        CalledByJob { said, over: ended.over }
    }

    /// Has a Job look at the device until it is steadily off, or says otherwise.
    pub(super) async fn read_by_job(&self, target: &Target, over: Span) -> Vec<Sample> {
        let samples = self.looked_by_job(target, over).await;
        if samples.last().is_none_or(|last| last.seen != Seen::Off) {
            // Whoever asks again at once would only make more Jobs, or none at all in a circle.
            tokio::time::sleep(BETWEEN_JOBS).await;
        }
        samples
    }

    async fn looked_by_job(&self, target: &Target, over: Span) -> Vec<Sample> {
        let began = self.context.clock.tick();
        let Mechanism::Agent(agent) = &target.mechanism else { return vec![self.unread(began, WitnessWord::Unknown)] };
        let task = Task::Look { steady_ms: over.as_millis() };
        let mut job = match self.of_order(&order(agent, task, target), target, self.by_fence()) {
            Ok(job) => job,
            Err(why) => {
                tracing::debug!(node = %self.node, why, "the device could not be read by a Job");
                return vec![self.unread(began, WitnessWord::Unknown)];
            }
        };
        // A look changes nothing, so its Job needs no name on record; and no two looks share one.
        job.metadata.generate_name = Some(look_prefix(self.fence.as_str()));
        let run = self.run(self.by_fence(), job, target, began + LONGEST_WINDOW, pending());
        let (ended, kubelet) = Box::pin(self.beside_the_kubelet(run)).await;
        // What it saw is known now, and nobody needs it again.
        if let Some(made) = &ended.made {
            self.end(self.by_fence(), made).await;
        }
        let looks =
            ended.left.as_ref().ok().and_then(|left| Report::read(&left.message).ok()).map(|report| report.looks);
        let Some(looks) = looks.filter(|looks| !looks.is_empty()) else {
            let why = ended.left.err().unwrap_or_else(|| "its pod said nothing of the device".to_owned());
            tracing::debug!(node = %self.node, why, "the device could not be read by a Job");
            return vec![self.unread(began, kubelet)];
        };
        looks.iter().map(|look| sample(look, ended.unbound, kubelet)).collect()
    }

    const fn by_fence(&self) -> Owner<'_> {
        Owner::Fence { node: &self.node, uid: &self.fence }
    }

    fn unread(&self, began: Tick, kubelet: WitnessWord) -> Sample {
        Sample { began, ended: self.context.clock.tick(), seen: Seen::Unknown, kubelet }
    }

    /// Waits for `run`, and looks at the kubelet's port meanwhile: one answer is enough to contradict.
    async fn beside_the_kubelet(&self, run: impl Future<Output = Ended>) -> (Ended, WitnessWord) {
        let mut heard = WitnessWord::Unknown;
        let mut run = std::pin::pin!(run);
        loop {
            let look = async {
                let word = self.context.probe.kubelet(&self.node, self.kubelet).await;
                tokio::time::sleep(Duration::from_secs(1)).await;
                word
            };
            let look = std::pin::pin!(look);
            match futures_util::future::select(run, look).await {
                futures_util::future::Either::Left((ended, _)) => return (ended, heard),
                futures_util::future::Either::Right((word, still)) => {
                    if heard != WitnessWord::Alive {
                        heard = word;
                    }
                    run = still;
                }
            }
        }
    }
}

fn task(call: &DeviceCall) -> Option<Task> {
    match call.action {
        Action::CutOff => Some(Task::Off { only_if_on: call.only_if_on }),
        Action::Restore => Some(Task::On),
        Action::FenceByDriver | Action::Cordon | Action::Uncordon | Action::Run => None,
    }
}

/// What the pod is told: parameters as they are, secrets as the files that they are mounted at.
fn order(agent: &str, task: Task, target: &Target) -> Order {
    let mut order = Order::new(agent, task, duration(target.timeout));
    order.plug = (&*target.plug != THE_NODE).then(|| target.plug.to_string());
    for (name, value) in &target.parameters {
        match value {
            // It is told apart, so that nobody has to know its spelling.
            Value::Text(_) if matches!(name.as_str(), "plug" | "port") => {}
            Value::Text(text) => {
                order.parameters.insert(name.clone(), text.clone());
            }
            Value::Secret { name: secret, key } => {
                order.secrets.insert(name.clone(), manifest::file_of(secret, key));
            }
        }
    }
    order
}

fn of_agent(left: &Left) -> Result<String, Failure> {
    match Report::read(&left.message) {
        Ok(report) => {
            let said = format!("; {}", report.said);
            match report.verdict {
                Verdict::Taken if left.exit == 0 => Ok(said),
                Verdict::Taken => {
                    Err(Failure::Unknown(format!("the report says taken, and the exit code {}", left.exit)))
                }
                Verdict::Refused => Err(Failure::Refused(report.said)),
                Verdict::Unknown => Err(Failure::Unknown(report.said)),
            }
        }
        Err(why) => Err(Failure::Unknown(format!("exit code {}; {why}", left.exit))),
    }
}

/// The tool only cares if the pod succeeds or fails.
fn of_users_pod(left: &Left) -> Result<String, Failure> {
    let words = if left.message.is_empty() { String::new() } else { format!("; {}", left.message.trim()) };
    match left.exit {
        // Most programs end well when they are told to end.
        0 if left.cut_short => Err(Failure::Unknown(format!("its pod was told to go before it was done{words}"))),
        0 => Ok(words),
        code => Err(Failure::Unknown(format!("its pod ended with exit code {code}{words}"))),
    }
}

fn sample(look: &Look, unbound: Tick, kubelet: WitnessWord) -> Sample {
    let seen = match look.state {
        Shown::Off => Seen::Off,
        Shown::On => Seen::On,
        Shown::Unknown => Seen::Unknown,
    };
    let at = |ms: u64| unbound + Span::millis(ms);
    Sample { began: at(look.began_ms), ended: at(look.ended_ms), seen, kubelet }
}

#[cfg(test)]
mod tests;
