//! Preflight: devices are asked before they are needed, so that a person learns of a dead one while nothing else is broken.
//!
//! | file | says |
//! |---|---|
//! | `rounds` | which devices are asked now |
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
pub use self::rounds::{Change, EACH, Rounds, SECRET, Series, Standing, TOGETHER};
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

/// How the devices of a template are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// The operator asks them.
    Asked,
    /// They are reached by a Job, and nobody starts one for a check.
    InAJob,
    /// The template says that they are not asked.
    NotWanted,
    /// There is no device.
    NoDevice,
}

impl How {
    /// By the template.
    pub fn of(template: &FenceTemplateSpec) -> Self {
        let device = template.native.is_some();
        let job = template.agent.is_some() || template.pod_template.is_some();
        match (device, job) {
            (true, _) if template.check_interval.as_millis() == 0 => Self::NotWanted,
            (true, _) => Self::Asked,
            (false, true) => Self::InAJob,
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
            let Some(device) = device.filter(|device| is_asked(&device.mechanism)) else { continue };
            let Some(template) = templates.get(device.template.as_str()) else { continue };
            let told = hash(&format!("{device:?}"));
            let interval = Span::millis(template.check_interval.as_millis());
            if interval == Span::ZERO || !seen.insert(told) {
                continue;
            }
            let (address, login) = (address(device), login(device));
            let template = Arc::from(device.template.as_str());
            all.push(Wired { method: method.clone(), part, template, interval, address, login, told });
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

/// What runs in a Job is not asked yet: whoever has Jobs made for checks lets them in here, and in [`How::of`].
const fn is_asked(mechanism: &Mechanism) -> bool {
    match mechanism {
        Mechanism::Native(_) => true,
        Mechanism::Agent(_) | Mechanism::Pod(_) | Mechanism::Builtin(_) | Mechanism::Storage(_) => false,
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
    fn what_runs_in_a_job_and_what_nobody_wants_asked_is_left_alone() {
        let (often, never) = (template("10m"), template("0s"));
        let agent = calls(&[("off", bmc("a", "s", Mechanism::Agent("fence_ipmilan".to_owned())), None)]);
        assert_eq!(wired(&agent, &BTreeMap::from([("bmc", &often)])), []);
        let native = calls(&[("off", bmc("a", "s", NATIVE), None)]);
        assert_eq!(wired(&native, &BTreeMap::from([("bmc", &never)])), []);
        assert_eq!((How::of(&often), How::of(&never)), (How::Asked, How::NotWanted));
    }
}
