//! Executor: device calls and reads, beside the loop, each under a deadline of its own.
//!
//! Promise (I6): no answer in time is Unknown; a device that belongs to another machine is refused before it is told anything.
//! A series of reads goes on until it is steady, or until a read says otherwise; what the kubelet says meanwhile stands beside
//! each read.
//!
//! | file | carries out |
//! |---|---|
//! | `inline` | native drivers, inside the operator |
//! | `builtin` | what is done to the Node object, and drains |
//! | `job` | fence agents and the user's own pods, in a Job |

mod builtin;
mod inline;
mod job;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use palisade_api::names::annotations;
use palisade_core::durable::job_name;
use palisade_core::effect::{DeviceCall, ReadRequest};
use palisade_core::ident::{MethodName, NodeName, Uid};
use palisade_core::isolate::Placement;
use palisade_core::observe::{CallAnswer, CallOutcome, ReadAnswer};
use palisade_core::prove::{PlugRead, Sample, Seen};
use palisade_core::resolve::call::{Call, Device as Target, Mechanism};
use palisade_core::settings::Method;
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::{Span, Tick};
use palisade_devices::{Failure, Late, Permit};
use serde_json::{Value, json};

pub(crate) use self::job::{Owner, Progress, end as end_job, end_pods, find as find_job, progress as job_progress};

use crate::clock::Clock;
use crate::context::Context;
use crate::leader::Hold;
use crate::said::brief;
use crate::view::LeanNode;

/// How long a kubelet is left alone where nobody but it can be asked.
const BETWEEN_LOOKS: Duration = Duration::from_secs(1);

/// The pause between two reads of one plug.
const BETWEEN: Duration = Duration::from_millis(500);

/// What carries out the calls of one fence.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) context: Context,
    pub(crate) hold: Hold,
    pub(crate) node: NodeName,
    /// The UID of the Node, as far as it is known.
    pub(crate) node_uid: Option<Uid>,
    pub(crate) fence: Uid,
    /// The UUID of the machine that the Node shows.
    pub(crate) system_uuid: Option<String>,
    /// Where the node's kubelet listens.
    pub(crate) kubelet: Option<SocketAddr>,
    /// Nothing has been heard of the node for too long.
    pub(crate) silent: bool,
    pub(crate) calls: Arc<BTreeMap<MethodName, Call>>,
    /// Where a Job may run.
    pub(crate) placement: Arc<Placement>,
}

/// What came of a call.
pub(crate) struct Called {
    pub(crate) answer: CallAnswer,
    /// In words, for people: the method, what became of it, and what the device or agent said.
    pub(crate) told: String,
    /// It was made by a Job, and that is over.
    pub(crate) job_over: bool,
}

/// The last look before something is sent.
struct Deadline {
    clock: Clock,
    hold: Hold,
    before: Tick,
}

impl Permit for Deadline {
    fn may_send(&self) -> Result<(), Late> {
        self.hold.check()?;
        let now = self.clock.tick();
        if now > self.before {
            return Err(Late(format!("the time to send it was over {} ago; nothing was sent", now.since(self.before))));
        }
        Ok(())
    }
}

impl Executor {
    /// Makes one call, and says what it came to.
    pub(crate) async fn call(&self, call: &DeviceCall) -> Called {
        Box::pin(futures_util::future::join(self.note(call), self.make(call))).await.1
    }

    /// What runs is written on the Node, for whoever looks at it. Nothing rests on it, so nobody waits for it.
    async fn note(&self, call: &DeviceCall) {
        let in_job = self.calls.get(&call.method).is_some_and(|how| how.device.mechanism.in_job());
        let job = in_job.then(|| format!("{}/{}", self.context.namespace, job_name(&self.fence, call.call)));
        let started = self.context.clock.wall().to_string();
        let notes = json!({ annotations::REMEDY_STARTED: started, annotations::REMEDY_JOB: job });
        if let Err(why) = note(&self.context, &self.node, &notes).await {
            tracing::debug!(node = %self.node, why = brief(&why), "the remedy is not noted on the Node");
        }
    }

    async fn make(&self, call: &DeviceCall) -> Called {
        let mut job_over = false;
        let answered = match self.calls.get(&call.method).map(|how| &how.device) {
            None => Err(Failure::Refused(format!("{} is not in the config any more", call.method))),
            Some(target) => match &target.mechanism {
                Mechanism::Native(_) | Mechanism::Storage(_) => self.told(target, call).await,
                Mechanism::Builtin(builtin) => self.done(builtin, target, call).await,
                Mechanism::Agent(_) | Mechanism::Pod(_) => {
                    let ended = Box::pin(self.called_by_job(target, call)).await;
                    job_over = ended.over;
                    ended.said
                }
            },
        };
        let (outcome, said) = match answered {
            Ok(said) => (CallOutcome::Accepted, format!("taken{said}")),
            Err(why @ Failure::Refused(_)) => (CallOutcome::Refused, why.to_string()),
            Err(why @ Failure::Unknown(_)) => (CallOutcome::Unknown, why.to_string()),
        };
        let answer = CallAnswer { fence: self.fence.clone(), call: call.call, outcome };
        Called { answer, told: format!("{}: {said}", call.method), job_over }
    }

    fn permit(&self, before: Tick) -> Deadline {
        Deadline { clock: self.context.clock.clone(), hold: self.hold.clone(), before }
    }

    /// Reads every plug until it is steady or says otherwise.
    pub(crate) async fn read(&self, request: &ReadRequest) -> ReadAnswer {
        let reads = request.plugs.iter().map(|(method, plug)| self.read_plug(method, plug, request.over));
        ReadAnswer { id: request.id, plugs: futures_util::future::join_all(reads).await }
    }

    /// Who is asked for the state that a method leads to.
    fn reader(&self, method: &MethodName) -> Option<&Target> {
        self.calls.get(method).map(|call| call.read_back.as_ref().unwrap_or(&call.device))
    }

    async fn read_plug(&self, method: &MethodName, plug: &str, over: Span) -> PlugRead {
        let samples = match self.reader(method) {
            Some(Target { mechanism: Mechanism::Pod(_), .. }) => self.listen(over).await,
            Some(target) if target.mechanism.in_job() => Box::pin(self.read_by_job(target, over)).await,
            how => self.read_inline(how, over).await,
        };
        PlugRead { method: method.clone(), plug: plug.into(), samples }
    }

    /// Nobody can read back what a user's own pod did. Its node's kubelet is listened for instead: one answer is enough.
    async fn listen(&self, over: Span) -> Vec<Sample> {
        let mut samples: Vec<Sample> = Vec::new();
        loop {
            let began = self.context.clock.tick();
            let kubelet = self.context.probe.kubelet(&self.node, self.kubelet).await;
            let sample = Sample { began, ended: self.context.clock.tick(), seen: Seen::Unknown, kubelet };
            samples.push(sample);
            let long_enough = samples.first().is_some_and(|first| sample.began.since(first.ended) >= over);
            if kubelet == WitnessWord::Silent && samples.len() > 1 && long_enough {
                return samples;
            }
            // Whoever asks again at once would only ask more often.
            tokio::time::sleep(BETWEEN_LOOKS).await;
            if kubelet != WitnessWord::Silent {
                return samples;
            }
        }
    }

    /// Whoever reads has a plug of its own: a BMC that reads an outlet back does not call its machine so.
    async fn read_inline(&self, how: Option<&Target>, over: Span) -> Vec<Sample> {
        let mut samples: Vec<Sample> = Vec::new();
        let mut device = None;
        loop {
            let began = self.context.clock.tick();
            let look = self.context.probe.kubelet(&self.node, self.kubelet);
            let (seen, kubelet) = match how {
                Some(target) => futures_util::future::join(self.sample(target, &mut device), look).await,
                None => (Seen::Unknown, WitnessWord::Unknown),
            };
            let sample = Sample { began, ended: self.context.clock.tick(), seen, kubelet };
            samples.push(sample);
            let steady = samples.first().is_some_and(|first| sample.began.since(first.ended) >= over);
            if seen != Seen::Off || (samples.len() > 1 && steady) {
                // Whoever asks again at once would only ask more often.
                tokio::time::sleep(if seen == Seen::Off { Duration::ZERO } else { BETWEEN }).await;
                return samples;
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// What the device of this method says now, as a witness. Nobody makes a Job only to ask for a word.
    pub(crate) async fn power(&self, method: &Method) -> Seen {
        match self.reader(&method.name) {
            Some(target) if !target.mechanism.in_job() => self.sample(target, &mut None).await,
            Some(_) | None => Seen::Unknown,
        }
    }
}

/// Writes annotations of ours onto the Node as it is now, if they are not there.
pub(crate) async fn note(context: &Context, node: &NodeName, notes: &Value) -> kube::Result<()> {
    let nodes: Api<LeanNode> = Api::all(context.client.clone());
    let Some(found) = nodes.get_opt(node.as_str()).await? else { return Ok(()) };
    let known = found.annotations();
    let stands = |(key, value): (&String, &Value)| known.get(key).map(String::as_str) == value.as_str();
    if notes.as_object().is_some_and(|notes| notes.iter().all(stands)) {
        return Ok(());
    }
    let metadata = json!({ "uid": found.uid(), "resourceVersion": found.resource_version(), "annotations": notes });
    let patch = Patch::Merge(json!({ "metadata": metadata }));
    nodes.patch(node.as_str(), &PatchParams::default(), &patch).await.map(drop)
}

fn no_answer(target: &Target) -> Failure {
    Failure::Unknown(format!("{} did not answer in {}", target.template, target.timeout))
}
