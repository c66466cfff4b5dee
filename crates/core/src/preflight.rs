//! Preflight: devices are asked before they are needed, so that a person learns of a dead one while nothing else is broken.
//!
//! | file | says |
//! |---|---|
//! | `rounds` | which devices are asked now |
//! | `rounds/jobs` | whose device a Job asks now |
//! | `spread` | at which second each is asked, and how soon again after a failure |
//! | `outcome` | what an answer means |
//! | `health` | what a FenceTemplate says of its devices |
//!
//! Promise: nothing in here decides about a fence. A device that fails its check is told of, and used all the same when it is
//! needed: it may be well by then, and what it says then is judged then.
//! Promise (I7): a device is known in here by its names; what stands in a Secret is not among them.

mod health;
mod outcome;
mod rounds;
mod spread;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use palisade_api::template::FenceTemplateSpec;

pub use self::health::Health;
pub use self::outcome::{Answer, Around, Outcome, Power, Whose, judge};
pub use self::rounds::{Change, EACH, JOBS, PAUSE, Rounds, SECRET, Series, Standing, TOGETHER};
use self::spread::hash;
use crate::ident::{MethodName, NodeName};
use crate::resolve::Templates;
use crate::resolve::call::{Call, Device, Mechanism, Value};
use crate::time::Span;

/// A device of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The node.
    pub node: NodeName,
    /// The method that uses it, the first by name if there are several.
    pub method: MethodName,
    /// What for.
    pub part: Part,
}

/// What a method uses a device for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// It is told to act.
    Acts,
    /// It is asked afterwards.
    ReadsBack,
}

/// A device as it is wired to a node. Where it is and what it is told are hashes: thousands of them have to cost little, and
/// nobody has to know more than whether two are the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wired {
    /// The method that uses it.
    pub method: MethodName,
    /// What for.
    pub part: Part,
    /// Its template.
    pub template: Arc<str>,
    /// Who asks it.
    pub by: By,
    /// How often it is asked.
    pub interval: Span,
    /// Where it is.
    pub address: u64,
    /// Which Secrets it needs.
    pub login: Login,
    /// Everything that it is told. If that changes, what was known of it counts no longer.
    pub told: u64,
}

/// The Secrets that a device needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// Which.
    pub which: u64,
    /// How many.
    pub secrets: u32,
}

/// Who asks a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The operator.
    Us,
    /// A fence agent, in a Job.
    Job,
}

impl By {
    /// By what the device is; nothing if nobody asks it. Nobody knows whether a user's own pod is harmless.
    const fn of(mechanism: &Mechanism) -> Option<Self> {
        match mechanism {
            Mechanism::Native(_) => Some(Self::Us),
            Mechanism::Agent(_) => Some(Self::Job),
            Mechanism::Pod(_) | Mechanism::Builtin(_) | Mechanism::Storage(_) => None,
        }
    }
}

/// How the devices of a template are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// They are asked.
    Asked,
    /// They are reached by a user's own pod, and nobody knows what it does: it is run for fences alone.
    OwnPod,
    /// The template says that they are not asked.
    NotWanted,
    /// There is no device.
    NoDevice,
}

impl How {
    /// By the template.
    pub fn of(template: &FenceTemplateSpec) -> Self {
        let device = template.native.is_some() || template.agent.is_some();
        match (device, template.pod_template.is_some()) {
            (true, _) if template.check_interval.as_millis() == 0 => Self::NotWanted,
            (true, _) => Self::Asked,
            (false, true) => Self::OwnPod,
            (false, false) => Self::NoDevice,
        }
    }
}

/// The devices of a node that are asked, each once, however many methods use it.
pub fn wired(calls: &BTreeMap<MethodName, Call>, templates: &Templates<'_>) -> Vec<Wired> {
    let mut seen = BTreeSet::new();
    let mut all = Vec::new();
    for (method, call) in calls {
        let parts = [(Part::Acts, Some(&call.device)), (Part::ReadsBack, call.read_back.as_ref())];
        for (part, device) in parts {
            let Some((device, by)) = device.and_then(|device| Some((device, By::of(&device.mechanism)?))) else {
                continue;
            };
            let Some(template) = templates.get(device.template.as_str()) else { continue };
            let told = hash(&format!("{device:?}"));
            let interval = Span::millis(template.check_interval.as_millis());
            if interval == Span::ZERO || !seen.insert(told) {
                continue;
            }
            let (address, login) = (address(device), login(device));
            let template = Arc::from(device.template.as_str());
            all.push(Wired { method: method.clone(), part, template, by, interval, address, login, told });
        }
    }
    all
}

/// The device behind a key, in the calls of its node as they are now.
pub fn device<'a>(calls: &'a BTreeMap<MethodName, Call>, key: &Key) -> Option<&'a Device> {
    let call = calls.get(&key.method)?;
    match key.part {
        Part::Acts => Some(&call.device),
        Part::ReadsBack => call.read_back.as_ref(),
    }
}

/// Devices that name no address stand alone.
fn address(device: &Device) -> u64 {
    let of = |name: &str| device.parameters.get(name).map(|value| format!("{value:?}"));
    let host = of("ip").or_else(|| of("ipaddr")).unwrap_or_else(|| format!("{device:?}"));
    hash(&format!("{host} {}", of("ipport").unwrap_or_default()))
}

fn login(device: &Device) -> Login {
    let secret = |value: &Value| match value {
        Value::Text(_) => None,
        Value::Secret { name, .. } => Some(name.clone()),
    };
    let names: BTreeSet<String> = device.parameters.values().filter_map(secret).collect();
    let which = names.iter().fold(0, |so_far, name| hash(&format!("{so_far} {name}")));
    Login { which, secrets: u32::try_from(names.len()).unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use palisade_api::template::{Driver, Identity};

    use super::*;

    fn bmc(ip: &str, secret: &str, mechanism: Mechanism) -> Device {
        let login = Value::Secret { name: secret.to_owned(), key: "password".to_owned() };
        Device {
            template: "bmc".to_owned(),
            mechanism,
            parameters: BTreeMap::from([("ip".to_owned(), Value::Text(ip.to_owned())), ("password".to_owned(), login)]),
            plug: "node".into(),
            timeout: Span::secs(10),
            identity: Identity::WhenKnown,
        }
    }

    fn template(interval: &str) -> FenceTemplateSpec {
        let spec = format!(r#"{{ "native": {{ "driver": "redfish" }}, "checkInterval": "{interval}" }}"#);
        serde_json::from_str(&spec).unwrap()
    }

    fn calls(all: &[(&str, Device, Option<Device>)]) -> BTreeMap<MethodName, Call> {
        let call = |(name, device, read_back): &(&str, Device, Option<Device>)| {
            (MethodName::from(*name), Call { device: device.clone(), read_back: read_back.clone() })
        };
        all.iter().map(call).collect()
    }

    const NATIVE: Mechanism = Mechanism::Native(Driver::Redfish);

    #[test]
    fn a_device_that_two_methods_use_is_asked_once() {
        let spec = template("10m");
        let templates = BTreeMap::from([("bmc", &spec)]);
        let (one, other) = (bmc("a", "s", NATIVE), bmc("b", "s", NATIVE));
        let both = calls(&[("off", one.clone(), Some(other)), ("on", one, None)]);
        let wired = wired(&both, &templates);
        let names: Vec<_> = wired.iter().map(|wired| (wired.method.as_str(), wired.part)).collect();
        assert_eq!(names, [("off", Part::Acts), ("off", Part::ReadsBack)]);
        assert_ne!(wired[0].address, wired[1].address);
        assert_eq!(wired[0].login, wired[1].login, "they share a Secret");
        assert_eq!(wired[0].login.secrets, 1);
    }

    #[test]
    fn an_agents_device_is_asked_by_a_job_and_a_users_own_pod_is_left_alone() {
        let spec = template("10m");
        let templates = BTreeMap::from([("bmc", &spec)]);
        let agent = calls(&[("off", bmc("a", "s", Mechanism::Agent("fence_ipmilan".to_owned())), None)]);
        let by: Vec<By> = wired(&agent, &templates).iter().map(|wired| wired.by).collect();
        assert_eq!(by, [By::Job]);
        let pod: palisade_api::template::PodTemplate =
            serde_json::from_str(r#"{ "spec": { "containers": [] } }"#).unwrap();
        let own = calls(&[("off", bmc("a", "s", Mechanism::Pod(Box::new(pod))), None)]);
        assert_eq!(wired(&own, &templates), []);
    }

    #[test]
    fn what_nobody_wants_asked_is_left_alone() {
        let never = template("0s");
        let native = calls(&[("off", bmc("a", "s", NATIVE), None)]);
        assert_eq!(wired(&native, &BTreeMap::from([("bmc", &never)])), []);
    }

    #[test]
    fn a_template_says_whether_its_devices_are_asked() {
        let of = |what: &str| How::of(&serde_json::from_str(what).unwrap());
        assert_eq!((How::of(&template("10m")), How::of(&template("0s"))), (How::Asked, How::NotWanted));
        assert_eq!(of(r#"{ "agent": { "name": "fence_ipmilan" } }"#), How::Asked);
        assert_eq!(of(r#"{ "agent": { "name": "fence_ipmilan" }, "checkInterval": "0s" }"#), How::NotWanted);
        assert_eq!(of(r#"{ "podTemplate": { "spec": { "containers": [] } } }"#), How::OwnPod);
        assert_eq!(of(r#"{ "builtin": { "name": "cordon" } }"#), How::NoDevice);
    }
}
