//! Agent / parameters: what an agent is told, held against what it says that it can be told.
//!
//! Promise: an agent gets exactly what the order says, or nothing. Agents ignore a name that they do not know, take off outer
//! blanks and quotes, and let the last of two values win, all without a word that counts; so each of these is refused here.
//! Promise (I6): one call is for one plug. Where a service has many systems, the system is named.
//! Never: a false boolean is passed on: agents often ask only whether it is there (`ssl_insecure=0` stops fence_redfish from
//! looking at certificates).

use std::collections::BTreeMap;

use thiserror::Error;

use super::forbidden::{Forbidden, forbidden, forbidden_value};
use super::metadata::{Kind, Metadata, Parameter, same};
use super::secret::Secret;

/// More than this does not fit into a pipe that nobody reads yet.
const MOST: usize = 32 * 1024;

/// Parameters whose values are quoted by the agents, or reach no command line. The others are put between blanks as they are:
/// `cipher=3 chassis power on` would be obeyed.
const FREE: [&str; 15] = [
    "username",
    "password",
    "snmp_priv_passwd",
    "community",
    "secret_key",
    "access_key",
    "apikey",
    "token",
    "filter",
    "cmd_prompt",
    "command_prompt",
    "domain",
    "project",
    "user_domain_name",
    "project_domain_name",
];

/// What an agent is to be told, beside the action and the plug.
#[derive(Clone, Debug, Default)]
pub struct Parameters {
    /// What anybody may read.
    pub plain: BTreeMap<String, String>,
    /// What nobody may.
    pub secret: BTreeMap<String, Secret>,
}

/// Why an agent is not told this.
#[derive(Debug, Error, PartialEq, Eq)]
#[expect(missing_docs, reason = "the messages say it")]
pub enum BadParameter {
    #[error("{agent}: `{name}` may not be set: {why}; leave it out")]
    Forbidden { agent: String, name: String, why: Forbidden },
    #[error("{agent} knows no parameter `{name}`, and would ignore it; it knows {known}")]
    Unknown { agent: String, name: String, known: String },
    #[error("{agent}: `{name}` is given twice, once as `{other}`, and the agent would take either; leave one out")]
    Twice { agent: String, name: String, other: String },
    #[error("{agent}: `{name}` has no value; give it one, or leave it out")]
    Empty { agent: String, name: String },
    #[error("{agent}: `{name}` has a control character in it, which would end the line; remove it")]
    Control { agent: String, name: String },
    #[error("{agent}: the agent would take outer {what} off the value of `{name}`; change the value")]
    Altered { agent: String, name: String, what: &'static str },
    #[error(
        "{agent}: `{name}` goes onto a command line as it is, and has blanks or signs of a shell in it, or begins with -; remove them"
    )]
    Marks { agent: String, name: String },
    #[error("{agent}: `{name}` has to be {wanted}")]
    Type { agent: String, name: String, wanted: String },
    #[error("{agent}: `{name}` is on unless something else is said, and agents do not understand a no; leave it out")]
    CannotBeFalse { agent: String, name: String },
    #[error("{agent} needs `{name}`; set it")]
    Missing { agent: String, name: String },
    #[error(
        "{agent} may reach many systems, and takes any of them if `{name}` is missing; set it to the path of this node's"
    )]
    System { agent: String, name: String },
    #[error("{agent} switches plugs, and none is named; give the method its plug")]
    NoPlug { agent: String },
    #[error(
        "{agent} has no plugs, and the plug {plug:?} is named; remove it, or use the agent of a device that has plugs"
    )]
    NoPlugs { agent: String, plug: String },
    #[error(
        "{agent} is for one machine and would ignore the plug {plug:?}; remove it (or set `port_as_ip`, if it is an address, and remove `ip`)"
    )]
    PlugIgnored { agent: String, plug: String },
    #[error("{agent}: {plug:?} is no single plug; give each power supply a method of its own in the same level")]
    NotOnePlug { agent: String, plug: String },
    #[error("{agent}: all parameters together have more than {MOST} bytes; shorten them")]
    TooMuch { agent: String },
}

/// Parameters that an agent can be told.
#[derive(Clone, Debug)]
pub(super) struct Checked {
    agent: String,
    /// By the agent's own names.
    values: BTreeMap<String, Secret>,
    plug: Plug,
}

/// What an agent knows of plugs.
#[derive(Clone, Debug)]
enum Plug {
    None,
    May(String),
    Must(String),
    /// It would be ignored.
    Ignored,
}

impl Checked {
    /// Holds what is to be told against what the agent knows.
    pub(super) fn new(agent: &str, metadata: &Metadata, told: &Parameters) -> Result<Self, BadParameter> {
        let mut checked = Self { agent: agent.to_owned(), values: BTreeMap::new(), plug: Plug::None };
        let mut written: BTreeMap<String, String> = BTreeMap::new();
        let plain = told.plain.iter().map(|(name, value)| (name, Secret::new(value)));
        let secret = told.secret.iter().map(|(name, value)| (name, value.clone()));
        for (name, value) in plain.chain(secret) {
            let (known, value) = checked.one(metadata, name, &value)?;
            if let Some(other) = written.insert(known.clone(), name.clone()) {
                return Err(BadParameter::Twice { agent: checked.agent, name: known, other });
            }
            if let Some(value) = value {
                checked.values.insert(known, value);
            }
        }
        checked.plug = checked.plugs(metadata);
        checked.complete(metadata)?;
        Ok(checked)
    }

    /// The present name of a parameter, and its value; none if saying nothing says the same.
    fn one(&self, metadata: &Metadata, name: &str, value: &Secret) -> Result<(String, Option<Secret>), BadParameter> {
        let agent = self.agent.clone();
        let refused = |why| BadParameter::Forbidden { agent: agent.clone(), name: name.to_owned(), why };
        if let Some(why) = forbidden(name).or_else(|| forbidden_value(name, value.value())) {
            return Err(refused(why));
        }
        let Some(parameter) = metadata.parameter(name) else {
            return Err(BadParameter::Unknown { agent, name: name.to_owned(), known: names(metadata) });
        };
        // An older name may lead to one that is forbidden.
        if let Some(why) = forbidden(&parameter.name) {
            return Err(refused(why));
        }
        self.as_written(&parameter.name, value.value())?;
        let value = self.of_its_kind(parameter, value)?;
        Ok((parameter.name.clone(), value))
    }

    /// Whether the agent would read the value as it is written.
    fn as_written(&self, name: &str, value: &str) -> Result<(), BadParameter> {
        let (agent, name) = (self.agent.clone(), name.to_owned());
        if value.is_empty() {
            return Err(BadParameter::Empty { agent, name });
        }
        if value.chars().any(breaks_lines) {
            return Err(BadParameter::Control { agent, name });
        }
        if value.trim() != value {
            return Err(BadParameter::Altered { agent, name, what: "blanks" });
        }
        if value.len() > 1 && value.starts_with('"') && value.ends_with('"') {
            return Err(BadParameter::Altered { agent, name, what: "quotes" });
        }
        let free = FREE.iter().any(|free| same(free, &name));
        if !free && (value.starts_with('-') || value.chars().any(marks_a_shell) || value.contains(char::is_whitespace))
        {
            return Err(BadParameter::Marks { agent, name });
        }
        Ok(())
    }

    fn of_its_kind(&self, parameter: &Parameter, value: &Secret) -> Result<Option<Secret>, BadParameter> {
        let (agent, name) = (self.agent.clone(), parameter.name.clone());
        let is_number = !value.value().is_empty() && value.value().bytes().all(|byte| byte.is_ascii_digit());
        let wanted = match &parameter.kind {
            Kind::Text => return Ok(Some(value.clone())),
            Kind::Integer | Kind::Seconds if is_number => return Ok(Some(value.clone())),
            Kind::Select(options) if options.iter().any(|option| option == value.value()) => {
                return Ok(Some(value.clone()));
            }
            Kind::Boolean => match truth(value.value()) {
                Some(true) => return Ok(Some(Secret::new("1"))),
                Some(false) if parameter.default.as_deref().and_then(truth) == Some(true) => {
                    return Err(BadParameter::CannotBeFalse { agent, name });
                }
                Some(false) => return Ok(None),
                None => "true or false".to_owned(),
            },
            Kind::Integer => "a number".to_owned(),
            Kind::Seconds => "a number of seconds".to_owned(),
            Kind::Select(options) => format!("one of {}", options.join(", ")),
        };
        Err(BadParameter::Type { agent, name, wanted })
    }

    fn plugs(&self, metadata: &Metadata) -> Plug {
        match metadata.parameter("plug").or_else(|| metadata.parameter("port")) {
            None => Plug::None,
            Some(plug) if plug.required => Plug::Must(plug.name.clone()),
            Some(plug) if metadata.parameter("port_as_ip").is_none() => Plug::May(plug.name.clone()),
            Some(plug) if self.has("port_as_ip") => Plug::Must(plug.name.clone()),
            Some(_) => Plug::Ignored,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.values.keys().any(|known| same(known, name))
    }

    /// Whether everything is there that the agent says it needs, or that it should.
    fn complete(&self, metadata: &Metadata) -> Result<(), BadParameter> {
        let agent = self.agent.clone();
        if let Some(system) = metadata.parameter("systems_uri")
            && !self.has(&system.name)
        {
            return Err(BadParameter::System { agent, name: system.name.clone() });
        }
        // Its own plug stands for its address.
        if self.has("port_as_ip") && self.has("ip") {
            return Err(BadParameter::Twice { agent, name: "ip".to_owned(), other: "port_as_ip".to_owned() });
        }
        let needed = |known: &&Parameter| {
            known.required && known.default.is_none() && forbidden(&known.name).is_none() && !self.has(&known.name)
        };
        match metadata.parameters().find(needed) {
            Some(missing) => Err(BadParameter::Missing { agent, name: missing.name.clone() }),
            None => Ok(()),
        }
    }

    /// What the agent reads for this action. It holds secrets.
    pub(super) fn input(&self, action: &str, plug: &str) -> Result<Secret, BadParameter> {
        let plug_line = self.name_of(plug)?.map(|name| format!("{name}={plug}\n"));
        let lines = self.values.iter().map(|(name, value)| format!("{name}={}\n", value.value()));
        let text: String = [format!("action={action}\n")].into_iter().chain(plug_line).chain(lines).collect();
        if text.len() > MOST {
            return Err(BadParameter::TooMuch { agent: self.agent.clone() });
        }
        Ok(Secret::new(text))
    }

    /// The parameter that this plug goes into.
    fn name_of(&self, plug: &str) -> Result<Option<&str>, BadParameter> {
        let agent = self.agent.clone();
        match &self.plug {
            Plug::Must(_) if plug.is_empty() => Err(BadParameter::NoPlug { agent }),
            Plug::None | Plug::May(_) | Plug::Ignored if plug.is_empty() => Ok(None),
            Plug::None => Err(BadParameter::NoPlugs { agent, plug: plug.to_owned() }),
            Plug::Ignored => Err(BadParameter::PlugIgnored { agent, plug: plug.to_owned() }),
            Plug::Must(name) | Plug::May(name) => {
                self.is_one_plug(plug)?;
                Ok(Some(name))
            }
        }
    }

    fn is_one_plug(&self, plug: &str) -> Result<(), BadParameter> {
        let agent = self.agent.clone();
        if plug.contains(',') {
            return Err(BadParameter::NotOnePlug { agent, plug: plug.to_owned() });
        }
        let name = "plug".to_owned();
        if plug.chars().any(breaks_lines) {
            return Err(BadParameter::Control { agent, name });
        }
        if plug.trim() != plug {
            return Err(BadParameter::Altered { agent, name, what: "blanks" });
        }
        // Machines have names with blanks in them.
        if plug.starts_with('-') || plug.chars().any(marks_a_shell) {
            return Err(BadParameter::Marks { agent, name });
        }
        Ok(())
    }

    /// The users that a secret may stand beside.
    pub(super) fn users(&self) -> Vec<&str> {
        self.values.iter().filter(|(name, _)| *name == "username").map(|(_, value)| value.value()).collect()
    }
}

/// What an agent takes for yes and no.
fn truth(value: &str) -> Option<bool> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "yes" | "on" | "true" => Some(true),
        "0" | "no" | "off" | "false" => Some(false),
        _ => None,
    }
}

fn breaks_lines(sign: char) -> bool {
    sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}')
}

fn marks_a_shell(sign: char) -> bool {
    matches!(sign, '\'' | '"' | '\\' | '`' | '$' | ';' | '|' | '&' | '<' | '>')
}

fn names(metadata: &Metadata) -> String {
    let known = metadata.parameters().map(|known| known.name.as_str()).filter(|name| forbidden(name).is_none());
    known.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
