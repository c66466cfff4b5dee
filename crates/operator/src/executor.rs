//! Executor: device calls and reads, beside the loop, each under a deadline of its own.
//!
//! Promise (I6): no answer in time is Unknown; a device that belongs to another machine is refused before it is told anything.
//! A series of reads goes on until it is steady, or until a read says otherwise; what the kubelet says meanwhile stands beside
//! each read.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ObjectReference, Secret};
use kube::api::Api;
use palisade_api::template::Identity as IdentityRule;
use palisade_core::effect::{DeviceCall, ReadRequest};
use palisade_core::ident::{MethodName, NodeName, Uid};
use palisade_core::observe::{CallAnswer, CallOutcome, ReadAnswer};
use palisade_core::planted::{self, Bug};
use palisade_core::prove::{PlugRead, Sample, Seen};
use palisade_core::resolve::call::{Call, Device as Target, THE_NODE, Value};
use palisade_core::settings::{Action, Method};
use palisade_core::snapshot::WitnessWord;
use palisade_core::time::{Span, Tick};
use palisade_devices::{Command, Device, Failure, Late, Permit, PowerState};

use crate::clock::{Clock, duration};
use crate::context::Context;
use crate::leader::Hold;

/// The pause between two reads of one plug.
const BETWEEN: Duration = Duration::from_millis(500);

/// What carries out the calls of one fence.
#[derive(Clone)]
pub(crate) struct Executor {
    pub(crate) context: Context,
    pub(crate) hold: Hold,
    pub(crate) node: NodeName,
    pub(crate) fence: Uid,
    /// The UUID of the machine that the Node shows.
    pub(crate) system_uuid: Option<String>,
    /// Where the node's kubelet listens.
    pub(crate) kubelet: Option<SocketAddr>,
    pub(crate) calls: Arc<BTreeMap<MethodName, Call>>,
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
    pub(crate) async fn call(&self, call: &DeviceCall) -> (CallAnswer, String) {
        let answered = match self.calls.get(&call.method) {
            Some(how) => self.told(&how.device, call).await,
            None => Err(Failure::Refused(format!("{} is not in the config any more", call.method))),
        };
        let (outcome, told) = match answered {
            Ok(()) => (CallOutcome::Accepted, format!("{}: taken", call.method)),
            Err(why @ Failure::Refused(_)) => (CallOutcome::Refused, format!("{}: {why}", call.method)),
            Err(why @ Failure::Unknown(_)) => (CallOutcome::Unknown, format!("{}: {why}", call.method)),
        };
        (CallAnswer { fence: self.fence.clone(), call: call.call, outcome }, told)
    }

    async fn told(&self, target: &Target, call: &DeviceCall) -> Result<(), Failure> {
        let command = match call.action {
            Action::CutOff => Command::Off,
            Action::Restore => Command::On,
            Action::FenceByDriver | Action::Cordon | Action::Uncordon | Action::Run => {
                return Err(Failure::Refused(format!(
                    "{}: this method needs an executor that is not there",
                    call.method
                )));
            }
        };
        let within = duration(target.timeout);
        let permit = Deadline { clock: self.context.clock.clone(), hold: self.hold.clone(), before: call.send_before };
        let work = async {
            let device = self.device(target).await?;
            for plug in &call.plugs {
                let plug = plug_name(plug);
                self.belongs(&*device, plug, target.identity).await?;
                if call.only_if_on && device.state(plug).await? != PowerState::On {
                    return Err(Failure::Refused(format!(
                        "{} was on when the fence began and is not any more; off was not sent, since nobody could tell it from sleep",
                        self.node
                    )));
                }
                device.command(plug, command, &permit).await?;
            }
            Ok(())
        };
        tokio::time::timeout(within, work).await.unwrap_or_else(|_| Err(no_answer(target)))
    }

    /// Whether the machine behind the plug is the node's. A device that cannot tell is believed unless the template forbids it.
    async fn belongs(&self, device: &dyn Device, plug: &str, rule: IdentityRule) -> Result<(), Failure> {
        let known = match device.identity(plug).await {
            Ok(known) => known.uuid,
            Err(why) if rule == IdentityRule::Required => return Err(why),
            Err(Failure::Refused(_)) => None,
            Err(why) => return Err(why),
        };
        match (known, &self.system_uuid) {
            (Some(theirs), Some(ours)) if theirs != *ours => Err(Failure::Refused(format!(
                "the device is wired to the machine {theirs}, and {} is {ours}; put the address or plug right",
                self.node
            ))),
            (None, _) | (_, None) if rule == IdentityRule::Required => Err(Failure::Refused(format!(
                "the template asks for the device's identity, and nobody can tell whether it belongs to {}",
                self.node
            ))),
            _ => Ok(()),
        }
    }

    /// Reads every plug until it is steady or says otherwise.
    pub(crate) async fn read(&self, request: &ReadRequest) -> ReadAnswer {
        let reads = request.plugs.iter().map(|(method, plug)| self.read_plug(method, plug, request.over));
        ReadAnswer { id: request.id, plugs: futures_util::future::join_all(reads).await }
    }

    async fn read_plug(&self, method: &MethodName, plug: &str, over: Span) -> PlugRead {
        let mut samples: Vec<Sample> = Vec::new();
        let how = self.calls.get(method).map(|call| call.read_back.as_ref().unwrap_or(&call.device));
        let mut device = None;
        loop {
            let began = self.context.clock.tick();
            let look = self.context.probe.kubelet(&self.node, self.kubelet);
            let (seen, kubelet) = match how {
                Some(target) => futures_util::future::join(self.sample(target, plug, &mut device), look).await,
                None => (Seen::Unknown, WitnessWord::Unknown),
            };
            let sample = Sample { began, ended: self.context.clock.tick(), seen, kubelet };
            samples.push(sample);
            let steady = samples.first().is_some_and(|first| sample.began.since(first.ended) >= over);
            if seen != Seen::Off || (samples.len() > 1 && steady) {
                // Whoever asks again at once would only ask more often.
                tokio::time::sleep(if seen == Seen::Off { Duration::ZERO } else { BETWEEN }).await;
                return PlugRead { method: method.clone(), plug: plug.into(), samples };
            }
            tokio::time::sleep(BETWEEN).await;
        }
    }

    /// What the device of this method says now, as a witness.
    pub(crate) async fn power(&self, method: &Method) -> Seen {
        let how = self.calls.get(&method.name).map(|call| call.read_back.as_ref().unwrap_or(&call.device));
        match (how, method.plugs.first()) {
            (Some(target), Some(plug)) => self.sample(target, plug, &mut None).await,
            _ => Seen::Unknown,
        }
    }

    /// One look at the device. `known` is kept for the next look of a series, unless this one fails: then its address or its
    /// login may be out of date.
    async fn sample(&self, target: &Target, plug: &str, known: &mut Option<Arc<dyn Device>>) -> Seen {
        let before = known.take();
        let read = async {
            let device = match before {
                Some(device) => device,
                None => self.device(target).await?,
            };
            let state = device.state(plug_name(plug)).await?;
            Ok((state, device))
        };
        let within = duration(target.timeout);
        let read = tokio::time::timeout(within, read).await.unwrap_or_else(|_| Err(no_answer(target)));
        let state = read.map(|(state, device)| {
            *known = Some(device);
            state
        });
        match state {
            Ok(PowerState::Off) => Seen::Off,
            Ok(PowerState::On) => Seen::On,
            Ok(PowerState::Unclear(why)) => {
                tracing::debug!(node = %self.node, %why, "the device's answer is unclear");
                Seen::Unknown
            }
            Err(_) if planted::is(Bug::UnknownIsOff) => Seen::Off,
            Err(why) => {
                tracing::debug!(node = %self.node, %why, "the device could not be read");
                Seen::Unknown
            }
        }
    }

    async fn device(&self, target: &Target) -> Result<Arc<dyn Device>, Failure> {
        let mut secrets: BTreeMap<(String, String), String> = BTreeMap::new();
        for value in target.parameters.values() {
            let Value::Secret { name, key } = value else { continue };
            let text = self.secret(name, key).await?;
            secrets.insert((name.clone(), key.clone()), text);
        }
        let find = |name: &str, key: &str| secrets.get(&(name.to_owned(), key.to_owned())).cloned();
        self.context.devices.driver(target, &find)
    }

    /// Read by name, when it is needed, and kept no longer than one series of reads lasts.
    async fn secret(&self, name: &str, key: &str) -> Result<String, Failure> {
        let secrets: Api<Secret> = Api::namespaced(self.context.client.clone(), &self.context.namespace);
        let missing = || Failure::Refused(format!("the Secret {name} in {} has no key {key}", self.context.namespace));
        let found = secrets.get_opt(name).await.map_err(|why| Failure::Unknown(format!("Secret {name}: {why}")))?;
        if planted::is(Bug::TellsASecret)
            && let Some(text) = found.as_ref().and_then(|secret| secret.data.as_ref()).and_then(|data| data.get(key))
        {
            let news = tokio::sync::mpsc::unbounded_channel().0;
            let about = ObjectReference { name: Some(self.node.to_string()), ..ObjectReference::default() };
            let text = String::from_utf8_lossy(&text.0);
            crate::events::tell(&self.context, &news, about, crate::events::Tone::Normal, "LoggedIn", &text).await;
        }
        let bytes = found.and_then(|secret| secret.data).and_then(|mut data| data.remove(key)).ok_or_else(missing)?;
        String::from_utf8(bytes.0).map_err(|_| Failure::Refused(format!("{key} of the Secret {name} is no text")))
    }
}

/// Where a method has no plug to name, the device has only one machine.
fn plug_name(plug: &str) -> &str {
    if plug == THE_NODE { "" } else { plug }
}

fn no_answer(target: &Target) -> Failure {
    Failure::Unknown(format!("{} did not answer in {}", target.template, target.timeout))
}
