//! Resolve / method: one method of a FenceConfig, with its template, for one node.
//!
//! Promise (I6): a method claims no more than its kind can back: whoever cannot be read back is Declared, which makes no
//! proof, and a read that goes the very way of the call is called so. A pod that says that nobody reads it back is refused, unless
//! the policy names its template: then its success is to count as a person's word (Confirmed), and never as a read-back (Power).
//! What a template is decides what its method does:
//!
//! | template | switches off | switches on |
//! |---|---|---|
//! | native, agent, storage | `CutOff`; with class Driver `FenceByDriver` | `Restore` |
//! | podTemplate with a class | `CutOff` | refused: the pod is not told, and would cut off again |
//! | podTemplate with `withoutReadBack` | `CutOff`, Confirmed, if the policy permits it | refused, likewise |
//! | podTemplate without a class | `Run` | `Run` |
//! | cordon | `Cordon` | refused |
//! | uncordon | refused | `Uncordon`, in recovery |
//! | taint, drain | `Run`: the core has no word of its own for them, and does not undo them | refused |
//! | release-pods | nothing: whatever a proof covers is released by itself | refused |
//! | delete-node | a setting of the whole flow | refused |

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::config::{self, FenceConfigSpec};
use palisade_api::template::{BuiltinName, Driver, FenceTemplateSpec, Hibernation};

use super::call::{Call, Device, Mechanism, THE_NODE, Value};
use super::claims::{class, path, scope};
use super::known;
use super::parameters::{self, Layer};
use super::{Problem, Templates, span};
use crate::fence::StepWord;
use crate::ident::{MethodName, NodeName, ProviderName};
use crate::prove::{Class, Scope};
use crate::settings::{Action, Method};
use crate::time::Span;

/// How long a native driver has to read off, and how long an agent, which sees its device through one more layer.
const STEADY_INLINE: Span = Span::secs(2);
const STEADY_BY_JOB: Span = Span::secs(5);

/// What a method comes to.
pub(super) enum Part {
    /// It cuts off, or runs on the way off.
    Off(Wired),
    /// It gives back, or runs on the way back.
    On(Wired),
    /// The Node object is deleted when everything is released.
    DeleteNode {
        /// Where that is said.
        at: String,
    },
    /// Nothing that has to be planned.
    Nothing,
}

/// A method with everything that belongs to it.
pub(super) struct Wired {
    /// In the words of `core`.
    pub method: Method,
    /// What its template is about. A method that gives back proves nothing, but what it gives back is of a class.
    pub class: Option<Class>,
    /// For the shell.
    pub call: Call,
    /// Where it stands.
    pub at: String,
}

/// What a method is read from.
pub(super) struct Source<'a> {
    pub config: &'a str,
    pub spec: &'a FenceConfigSpec,
    pub templates: &'a Templates<'a>,
    pub node: &'a NodeName,
    pub revoking: &'a BTreeSet<ProviderName>,
    pub declared_power: &'a [String],
}

/// A template that was found.
pub(super) struct Template<'a> {
    pub name: &'a str,
    pub spec: &'a FenceTemplateSpec,
    pub mechanism: Mechanism,
}

impl Template<'_> {
    /// The place of one of its fields.
    pub(super) fn at(&self, field: &str) -> String {
        format!("FenceTemplate/{} {field}", self.name)
    }
}

/// What a method does, and what that is about.
struct Does {
    action: Action,
    class: Option<Class>,
    scope: Scope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Off,
    On,
}

impl<'a> Source<'a> {
    /// One method of a level.
    pub(super) fn part(&self, step: StepWord, level: &str, method: &'a config::Method) -> Result<Part, Problem> {
        let field = match step {
            StepWord::Isolation => "isolation",
            StepWord::PowerManagement => "powerManagement",
            StepWord::Recovery => "recovery",
        };
        let at = format!("FenceConfig/{} {field}.levels[{level}].methods[{}]", self.config, method.name);
        let refused = |why: &str| Err(Problem { field: format!("{at}.action"), why: why.to_owned() });
        let way = match (step, method.action) {
            (StepWord::Isolation | StepWord::PowerManagement, None | Some(config::Action::SwitchOff)) => Way::Off,
            (StepWord::PowerManagement | StepWord::Recovery, Some(config::Action::SwitchOn))
            | (StepWord::Recovery, None) => Way::On,
            (StepWord::Isolation, Some(config::Action::SwitchOn)) => {
                return refused("isolation only switches off; put SwitchOn into recovery");
            }
            (StepWord::Recovery, Some(config::Action::SwitchOff)) => {
                return refused("recovery only switches on; put SwitchOff into isolation or powerManagement");
            }
        };
        let template = self.template(&method.template, &format!("{at}.template"))?;
        match &template.mechanism {
            Mechanism::Builtin(builtin) => self.builtin(builtin.name, &template, step, way, method, at),
            Mechanism::Pod(_) => self.pod(&template, way, method, at),
            Mechanism::Native(_) | Mechanism::Agent(_) | Mechanism::Storage(_) => {
                self.device(&template, way, method, at)
            }
        }
    }

    fn template(&self, name: &'a str, at: &str) -> Result<Template<'a>, Problem> {
        let Some(spec) = self.templates.get(name).copied() else {
            let why = format!("there is no FenceTemplate `{name}`; create it, or name one that exists");
            return Err(Problem { field: at.to_owned(), why });
        };
        let mechanisms = [
            spec.native.as_ref().map(|native| Mechanism::Native(native.driver)),
            spec.agent.as_ref().map(|agent| Mechanism::Agent(agent.name.clone())),
            spec.builtin.as_ref().map(|builtin| Mechanism::Builtin(builtin.clone())),
            spec.pod_template.as_ref().map(|pod| Mechanism::Pod(Box::new(pod.clone()))),
            spec.storage.as_ref().map(|storage| Mechanism::Storage(ProviderName::from(storage.provider.as_str()))),
        ];
        let mut given = mechanisms.into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(mechanism), None) => Ok(Template { name, spec, mechanism }),
            (Some(_), Some(_)) | (None, _) => Err(Problem {
                field: format!("FenceTemplate/{name}"),
                why: "give exactly one of native, agent, builtin, podTemplate and storage".to_owned(),
            }),
        }
    }

    fn builtin(
        &self,
        name: BuiltinName,
        template: &Template<'a>,
        step: StepWord,
        way: Way,
        method: &config::Method,
        at: String,
    ) -> Result<Part, Problem> {
        let refused = |why: &str| Err(Problem { field: format!("{at}.template"), why: why.to_owned() });
        no_parameters(method, &at, "a builtin")?;
        let action = match (name, step) {
            (BuiltinName::Uncordon, StepWord::Recovery) => Action::Uncordon,
            (BuiltinName::Uncordon, StepWord::Isolation | StepWord::PowerManagement) => {
                return refused("uncordon lets pods onto a node that is being cut off; put it into recovery");
            }
            (_, StepWord::Recovery) => return refused("of the builtins only uncordon gives something back"),
            (_, StepWord::Isolation | StepWord::PowerManagement) if way == Way::On => {
                return refused("a builtin switches nothing on; remove its action, and put it before every SwitchOn");
            }
            (BuiltinName::Cordon, _) => Action::Cordon,
            (BuiltinName::Taint | BuiltinName::Drain, _) => Action::Run,
            (BuiltinName::ReleasePods, _) => return Ok(Part::Nothing),
            (BuiltinName::DeleteNode, _) => return Ok(Part::DeleteNode { at }),
        };
        let device = device(template, BTreeMap::new(), THE_NODE);
        let does = Does { action, class: None, scope: Scope::Node };
        let wired = self.wired(template, method, does, Call { device, read_back: None }, at);
        Ok(if action == Action::Uncordon { Part::On(wired) } else { Part::Off(wired) })
    }

    fn pod(&self, template: &Template<'a>, way: Way, method: &'a config::Method, at: String) -> Result<Part, Problem> {
        let class = self.class_of_pod(template)?;
        if let (Some(class), Way::On) = (class, way) {
            let why = format!(
                "the pod of `{}` cuts off by {class}, and is not told that it should give back; name a template that proves None",
                template.name
            );
            return Err(Problem { field: format!("{at}.template"), why });
        }
        // The pod has its own env and volumes: what the method says can only be meant for the device that is read.
        let read_back = self.reader(template, method, None, &at)?;
        if read_back.is_none() {
            no_parameters(method, &at, "a podTemplate without readBack")?;
        }
        let plug = read_back.as_ref().map_or(THE_NODE, |reader| &reader.plug);
        let device = device(template, BTreeMap::new(), plug);
        let does = match class {
            Some(Class::Confirmed) => Does { action: Action::CutOff, class, scope: Scope::Node },
            Some(of) => Does { action: Action::CutOff, class, scope: scope(template, of)? },
            None => Does { action: Action::Run, class, scope: Scope::Node },
        };
        let wired = self.wired(template, method, does, Call { device, read_back }, at);
        Ok(if way == Way::Off { Part::Off(wired) } else { Part::On(wired) })
    }

    /// What a pod's success is about. Where nobody reads it back, the policy has to name its template: whoever may write templates
    /// has not thereby vouched for one.
    fn class_of_pod(&self, template: &Template<'_>) -> Result<Option<Class>, Problem> {
        let claimed = class(template.spec.proves.class);
        let declared = template.spec.proves.without_read_back && template.spec.read_back.is_none();
        if claimed != Some(Class::Power) || !declared {
            return Ok(claimed);
        }
        if self.declared_power.iter().any(|name| name == template.name) {
            return Ok(Some(Class::Confirmed));
        }
        let why = format!(
            "nobody reads back what the pod of `{name}` did, and spec.declaredPower of FencePolicy/{policy} does not name it, so its \
             success counts for nothing; name a readBack template, or, if you vouch for this pod, add `{name}` to spec.declaredPower",
            name = template.name,
            policy = palisade_api::names::POLICY_NAME,
        );
        Err(Problem { field: template.at("proves.withoutReadBack"), why })
    }

    fn device(
        &self,
        template: &Template<'a>,
        way: Way,
        method: &'a config::Method,
        at: String,
    ) -> Result<Part, Problem> {
        let all = self.parameters(template, method, &at)?;
        let plug = plug_of(template, &all, &at, self.node)?;
        // To an agent the system of a Redfish service is a parameter like any other; it has no plug beside it.
        let own = plug.filter(|_| !(matches!(template.mechanism, Mechanism::Agent(_)) && parameters::is_system(&all)));
        let device = device(template, all.clone(), own.unwrap_or(THE_NODE));
        let read_back = self.reader(template, method, plug, &at)?;
        let class = class(template.spec.proves.class);
        let scope = class.map_or(Ok(Scope::Node), |class| scope(template, class))?;
        let action = match (way, class) {
            (Way::Off, Some(Class::Driver)) => Action::FenceByDriver,
            (Way::Off, _) => Action::CutOff,
            (Way::On, _) => Action::Restore,
        };
        let does = Does { action, class, scope };
        let wired = self.wired(template, method, does, Call { device, read_back }, at);
        Ok(if way == Way::Off { Part::Off(wired) } else { Part::On(wired) })
    }

    fn parameters(
        &self,
        template: &Template<'a>,
        method: &config::Method,
        at: &str,
    ) -> Result<BTreeMap<String, Value>, Problem> {
        let shared = Layer {
            at: template.at("parameters"),
            texts: &template.spec.parameters.0,
            secret: template.spec.secret_ref.as_ref(),
        };
        let mut layers = vec![shared];
        layers.extend(self.own_layers(method, at));
        if let Mechanism::Native(driver) = template.mechanism {
            layers.iter().try_for_each(|layer| known::only_known(driver, layer))?;
        }
        let all = parameters::merged(&layers, self.node)?;
        match parameters::missing_line(method, &all, self.node) {
            Some(why) => Err(Problem { field: format!("{at}.perNode"), why }),
            None => Ok(all),
        }
    }

    /// What the method itself says.
    fn own_layers<'m>(&self, method: &'m config::Method, at: &str) -> Vec<Layer<'m>> {
        let own = Layer { at: format!("{at}.parameters"), texts: &method.parameters.0, secret: None };
        let line = method.per_node.get(self.node.as_str()).map(|line| Layer {
            at: format!("{at}.perNode[{}]", self.node),
            texts: &line.0,
            secret: None,
        });
        [Some(own), line].into_iter().flatten().collect()
    }

    /// The device that reads the result back. What the method says about the machine (its plug, its line for the node)
    /// counts for it too; what its own template says wins, as it may be another device with an address of its own.
    fn reader(
        &self,
        template: &Template<'a>,
        method: &config::Method,
        plug: Option<&str>,
        at: &str,
    ) -> Result<Option<Device>, Problem> {
        let Some(read_back) = &template.spec.read_back else { return Ok(None) };
        let here = template.at("readBack.template");
        let refused = |why: String| Err(Problem { field: here.clone(), why });
        if read_back.template == template.name {
            return refused(
                "a template that reads itself back is no other path; name another one, or leave it out".into(),
            );
        }
        let reader = self.template(&read_back.template, &here)?;
        match &reader.mechanism {
            Mechanism::Native(_) | Mechanism::Agent(_) => {}
            Mechanism::Builtin(_) | Mechanism::Pod(_) | Mechanism::Storage(_) => {
                return refused(format!("`{}` cannot read a device; name a native or an agent template", reader.name));
            }
        }
        let named: BTreeMap<String, String> =
            plug.map(|plug| ("plug".to_owned(), plug.to_owned())).into_iter().collect();
        let own = Layer {
            at: reader.at("parameters"),
            texts: &reader.spec.parameters.0,
            secret: reader.spec.secret_ref.as_ref(),
        };
        // What else the method says is for the other device, in its words.
        if let Mechanism::Native(driver) = reader.mechanism {
            known::only_known(driver, &own)?;
        }
        let mut layers = vec![Layer { at: at.to_owned(), texts: &named, secret: None }];
        layers.extend(self.own_layers(method, at));
        layers.push(own);
        let all = parameters::merged(&layers, self.node)?;
        let plug = plug_of(&reader, &all, at, self.node)?;
        Ok(Some(device(&reader, all.clone(), plug.unwrap_or(THE_NODE))))
    }

    fn wired(&self, template: &Template<'_>, method: &config::Method, does: Does, call: Call, at: String) -> Wired {
        let Does { action, class, scope } = does;
        let steady = |device: &Device| if device.mechanism.in_job() { STEADY_BY_JOB } else { STEADY_INLINE };
        let slowest = call.read_back.iter().map(steady).fold(steady(&call.device), Span::max);
        let cuts = matches!(action, Action::CutOff | Action::FenceByDriver);
        let method = Method {
            name: MethodName::from(method.name.as_str()),
            action,
            proves: class.filter(|_| cuts),
            scope,
            plugs: vec![call.device.plug.clone()],
            path: path(&call),
            stable_off: self.spec.stable_off.map_or(slowest, span),
            retries: template.spec.retries,
            in_job: call.device.mechanism.in_job(),
            tells_hibernation: off_is_off(template),
            revokes_sessions: match &template.mechanism {
                Mechanism::Storage(provider) => self.revoking.contains(provider),
                Mechanism::Native(_) | Mechanism::Agent(_) | Mechanism::Builtin(_) | Mechanism::Pod(_) => false,
            },
        };
        Wired { method, class, call, at }
    }
}

/// Whether off means that the memory is lost. No BMC and no outlet can tell off from hibernated, so it is a statement about
/// the machine: a node of bare metal does not hibernate (its kubelet would not run with the swap that it takes), and a
/// cloud or a hypervisor calls a machine stopped that it has saved to disk.
fn off_is_off(template: &Template<'_>) -> bool {
    match (template.spec.proves.hibernation, &template.mechanism) {
        (Some(Hibernation::Impossible), _) | (None, Mechanism::Native(_)) => true,
        (Some(Hibernation::Possible) | None, _) => false,
    }
}

fn device(template: &Template<'_>, parameters: BTreeMap<String, Value>, plug: &str) -> Device {
    Device {
        template: template.name.to_owned(),
        mechanism: template.mechanism.clone(),
        parameters,
        plug: plug.into(),
        timeout: span(template.spec.timeout),
        identity: template.spec.identity,
    }
}

/// The plug that a device needs. Whether an agent needs one is in its own metadata, which is not known here; without it
/// the agent refuses each call before it does anything, and the periodic check shows that long before a fence.
fn plug_of<'p>(
    template: &Template<'_>,
    all: &'p BTreeMap<String, Value>,
    at: &str,
    node: &NodeName,
) -> Result<Option<&'p str>, Problem> {
    let plug = match &template.mechanism {
        // A BMC is in one machine: a plug is that of the device which it reads back.
        Mechanism::Native(Driver::Ipmi) => None,
        _ => parameters::plug(all, at)?,
    };
    let missing = |what: &str, which: &str| {
        let why = format!(
            "`{}` needs `{what}`, {which}, and {node} has none; give it in perNode, or for all nodes in parameters",
            template.name
        );
        Err(Problem { field: at.to_owned(), why })
    };
    match &template.mechanism {
        Mechanism::Native(_) if !parameters::has(all, "ip") => missing("ip", "the address of the device"),
        Mechanism::Native(Driver::SnmpPdu) if plug.is_none() => missing("plug", "the outlet of the node"),
        Mechanism::Native(Driver::Redfish | Driver::Ipmi | Driver::SnmpPdu)
        | Mechanism::Agent(_)
        | Mechanism::Builtin(_)
        | Mechanism::Pod(_)
        | Mechanism::Storage(_) => Ok(plug),
    }
}

/// Parameters that nobody would ever read are a mistake, perhaps a dangerous one: their author believes in them.
fn no_parameters(method: &config::Method, at: &str, whose: &str) -> Result<(), Problem> {
    if method.parameters.is_empty() && method.per_node.is_empty() {
        return Ok(());
    }
    Err(Problem { field: format!("{at}.parameters"), why: format!("{whose} takes no parameters; remove them") })
}
