//! Executor / inline: native drivers, inside the operator.
//!
//! Promise (I7): a Secret is read by name, when it is needed, and kept no longer than one series of reads lasts.

use std::sync::Arc;

use palisade_api::template::Identity as IdentityRule;
use palisade_core::effect::DeviceCall;
use palisade_core::planted::{self, Bug};
use palisade_core::preflight::Whose;
use palisade_core::prove::Seen;
use palisade_core::resolve::call::{Device as Target, THE_NODE};
use palisade_core::settings::Action;
use palisade_devices::{Command, Device, Failure, Identity, PowerState};

use super::{Executor, no_answer};
use crate::belongs;
use crate::clock::duration;
use crate::secrets::Purse;

impl Executor {
    /// Tells a native device.
    pub(super) async fn told(&self, target: &Target, call: &DeviceCall) -> Result<String, Failure> {
        let command = match call.action {
            Action::CutOff => Command::Off,
            Action::Restore => Command::On,
            Action::FenceByDriver | Action::Cordon | Action::Uncordon | Action::Run => {
                return Err(Failure::Refused(format!("{}: a device can only be switched off or on", call.method)));
            }
        };
        let within = duration(target.timeout);
        let permit = self.permit(call.send_before);
        let work = async {
            let device = self.device(target).await?;
            for plug in &call.plugs {
                let plug = plug_name(plug);
                self.belongs(&*device, plug, target).await?;
                if call.only_if_on && device.state(plug).await? != PowerState::On {
                    return Err(Failure::Refused(format!(
                        "{} was on when the fence began and is not any more; off was not sent, since nobody could tell it from sleep",
                        self.node
                    )));
                }
                device.command(plug, command, &permit).await?;
            }
            Ok(String::new())
        };
        tokio::time::timeout(within, work).await.unwrap_or_else(|_| Err(no_answer(target)))
    }

    /// Whether the machine behind the plug is the node's. A device that cannot tell is believed unless the template forbids it.
    async fn belongs(&self, device: &dyn Device, plug: &str, target: &Target) -> Result<(), Failure> {
        let known = match device.identity(plug).await {
            Ok(known) => known,
            Err(why) if target.identity == IdentityRule::Required => return Err(why),
            Err(Failure::Refused(_)) => Identity::default(),
            Err(why) => return Err(why),
        };
        belongs::check(&known, target, self.system_uuid.as_deref(), &self.node)
    }

    /// One look at the device. `known` is kept for the next look of a series, unless this one fails: then its address or its
    /// login may be out of date.
    pub(super) async fn sample(&self, target: &Target, known: &mut Option<Arc<dyn Device>>) -> Seen {
        let before = known.take();
        let read = async {
            let device = match before {
                Some(device) => device,
                None => self.device(target).await?,
            };
            let state = device.state(plug_name(&target.plug)).await?;
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

    /// What a device says before anybody needs it: the power of the machine behind it, and whose machine that is. The power first:
    /// a login that is refused must not be tried twice.
    pub(crate) async fn survey(&self, target: &Target, device: &dyn Device) -> Result<(PowerState, Whose), Failure> {
        let (plug, within) = (plug_name(&target.plug), duration(target.timeout));
        let power =
            tokio::time::timeout(within, device.state(plug)).await.unwrap_or_else(|_| Err(no_answer(target)))?;
        let known = tokio::time::timeout(within, device.identity(plug)).await;
        let known = match known.unwrap_or_else(|_| Err(no_answer(target))) {
            Ok(known) => known.uuid,
            Err(Failure::Refused(_)) if target.identity != IdentityRule::Required => None,
            Err(why) => return Err(why),
        };
        let whose = match (known, self.system_uuid.clone()) {
            (Some(theirs), Some(ours)) if theirs != ours => Whose::Another { theirs, ours },
            (Some(_), Some(_)) => Whose::Ours,
            (None, _) | (_, None) => Whose::Unknown,
        };
        Ok((power, whose))
    }

    async fn device(&self, target: &Target) -> Result<Arc<dyn Device>, Failure> {
        self.device_with(target, &Purse::default()).await
    }

    /// The driver of a device, with its Secrets from `purse`. Nothing is sent to the device.
    pub(crate) async fn device_with(&self, target: &Target, purse: &Purse) -> Result<Arc<dyn Device>, Failure> {
        let values = purse.of(&self.context, &self.node, target).await?;
        let find = |name: &str, key: &str| values.get(&(name.to_owned(), key.to_owned())).cloned();
        self.context.devices.driver(target, &find)
    }
}

/// Where a method has no plug to name, the device has only one machine.
fn plug_name(plug: &str) -> &str {
    if plug == THE_NODE { "" } else { plug }
}
