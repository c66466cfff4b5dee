//! Agent / metadata: what an agent says that it can be told.
//!
//! Promise: an agent that does not describe itself is not used. What it says is taken for a list of names, types and actions;
//! what of it is unreliable (`required`, above all) is for `parameters` to judge.

use std::collections::BTreeSet;

use roxmltree::{Document, Node};
use thiserror::Error;

/// What an agent can be told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Metadata {
    parameters: Vec<Parameter>,
    actions: BTreeSet<String>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Its name, as the agent writes it.
    pub name: String,
    /// The older name that it stands for, too.
    pub obsoletes: Option<String>,
    /// It is such an older name.
    pub deprecated: bool,
    /// What values it has.
    pub kind: Kind,
    /// What it is if nobody says anything.
    pub default: Option<String>,
    /// The agent says that it has to be given.
    pub required: bool,
}

/// What values a parameter has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A number.
    Integer,
    /// A number of seconds.
    Seconds,
    /// Yes or no.
    Boolean,
    /// One of these.
    Select(Vec<String>),
}

/// What an agent said is no description of it.
#[derive(Debug, Error)]
pub enum BadMetadata {
    /// It is no XML.
    #[error("its metadata is no XML: {0}")]
    Unreadable(#[source] roxmltree::Error),
    /// It describes something else.
    #[error("its metadata describes a <{0}>, and not a <resource-agent>")]
    SomethingElse(String),
    /// It cannot do what every device has to.
    #[error("it knows no action `{0}`; an agent that cannot do that can show nothing, so use another one")]
    NoAction(&'static str),
}

impl Metadata {
    /// Reads what an agent says of itself.
    pub fn read(text: &str) -> Result<Self, BadMetadata> {
        let document = Document::parse(text.trim_start()).map_err(BadMetadata::Unreadable)?;
        let root = document.root_element();
        if root.tag_name().name() != "resource-agent" {
            return Err(BadMetadata::SomethingElse(root.tag_name().name().to_owned()));
        }
        let named = |tag| root.descendants().filter(move |node| node.has_tag_name(tag));
        let parameters = named("parameter").filter_map(parameter).collect();
        let actions = named("action").filter_map(|action| action.attribute("name")).map(str::to_owned).collect();
        let metadata = Self { parameters, actions };
        match ["off", "on", "status"].into_iter().find(|action| !metadata.can(action)) {
            Some(missing) => Err(BadMetadata::NoAction(missing)),
            None => Ok(metadata),
        }
    }

    /// Whether it knows an action.
    pub fn can(&self, action: &str) -> bool {
        self.actions.contains(action)
    }

    /// A parameter by any of its names, in its present one. `-` and `_` are the same.
    pub fn parameter(&self, name: &str) -> Option<&Parameter> {
        let named = |wanted: &str| self.parameters.iter().find(|known| same(&known.name, wanted));
        let present = |old: &Parameter| {
            let replaces = |known: &&Parameter| known.obsoletes.as_deref().is_some_and(|name| same(name, &old.name));
            self.parameters.iter().find(replaces)
        };
        let found = named(name)?;
        Some(if found.deprecated { present(found).unwrap_or(found) } else { found })
    }

    /// All parameters that are not older names.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.parameters.iter().filter(|known| !known.deprecated)
    }
}

/// Whether two names mean the same to an agent.
pub(super) fn same(a: &str, b: &str) -> bool {
    plain(a) == plain(b)
}

/// A name as agents compare it.
pub(super) fn plain(name: &str) -> String {
    name.replace('-', "_")
}

fn parameter(node: Node<'_, '_>) -> Option<Parameter> {
    let content = node.children().find(|child| child.has_tag_name("content"));
    let kind = match content.and_then(|content| content.attribute("type")) {
        Some("integer") => Kind::Integer,
        Some("second" | "time") => Kind::Seconds,
        Some("boolean") => Kind::Boolean,
        Some("select") => Kind::Select(options(content?)),
        // What nobody knows is a text, as agents themselves see it.
        _ => Kind::Text,
    };
    let says = |attribute| node.attribute(attribute).is_some_and(|value| value == "1");
    Some(Parameter {
        name: node.attribute("name")?.to_owned(),
        obsoletes: node.attribute("obsoletes").map(str::to_owned),
        deprecated: says("deprecated"),
        kind,
        default: content.and_then(|content| content.attribute("default")).map(str::to_owned),
        required: says("required"),
    })
}

fn options(content: Node<'_, '_>) -> Vec<String> {
    let options = content.children().filter(|child| child.has_tag_name("option"));
    options.filter_map(|option| option.attribute("value")).map(str::to_owned).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A device with plugs, as its agent describes it.
    pub(crate) const PDU: &str = r#"<?xml version="1.0" ?>
<resource-agent name="fence_pdu" shortdesc="A PDU" >
<longdesc>A PDU &amp; its plugs</longdesc>
<parameters>
 <parameter name="action" unique="0" required="1"><content type="string" default="reboot"/></parameter>
 <parameter name="ip" unique="0" required="1" obsoletes="ipaddr"><content type="string"/></parameter>
 <parameter name="ipaddr" unique="0" required="1" deprecated="1"><content type="string"/></parameter>
 <parameter name="ipport" unique="0" required="0"><content type="integer" default="161"/></parameter>
 <parameter name="username" unique="0" required="0" obsoletes="login"><content type="string"/></parameter>
 <parameter name="login" unique="0" required="0" deprecated="1"><content type="string"/></parameter>
 <parameter name="password" unique="0" required="0" obsoletes="passwd"><content type="string"/></parameter>
 <parameter name="passwd" unique="0" required="0" deprecated="1"><content type="string"/></parameter>
 <parameter name="plug" unique="0" required="1" obsoletes="port"><content type="string"/></parameter>
 <parameter name="port" unique="0" required="1" deprecated="1"><content type="string"/></parameter>
 <parameter name="power_wait" unique="0" required="0"><content type="second" default="0"/></parameter>
 <parameter name="method" unique="0" required="0"><content type="select" default="onoff"><option value="onoff"/><option value="cycle"/></content></parameter>
 <parameter name="snmp_version" unique="0" required="0"><content type="select" default="1"><option value="1"/><option value="2c"/></content></parameter>
 <parameter name="ssl" unique="0" required="0"><content type="boolean" default="1"/></parameter>
 <parameter name="ssl_insecure" unique="0" required="0"><content type="boolean"/></parameter>
 <parameter name="missing_as_off" unique="0" required="0"><content type="boolean"/></parameter>
 <parameter name="cipher" unique="0" required="0"><content type="string"/></parameter>
</parameters>
<actions><action name="on" automatic="0"/><action name="off"/><action name="status"/><action name="list"/><action name="metadata"/></actions>
</resource-agent>
"#;

    #[test]
    fn names_types_defaults_and_actions_are_read() {
        let metadata = Metadata::read(PDU).unwrap();
        let kind = |name| metadata.parameter(name).unwrap().kind.clone();
        assert_eq!(kind("ip"), Kind::Text);
        assert_eq!(kind("ipport"), Kind::Integer);
        assert_eq!(kind("power-wait"), Kind::Seconds);
        assert_eq!(kind("ssl_insecure"), Kind::Boolean);
        assert_eq!(kind("snmp_version"), Kind::Select(vec!["1".to_owned(), "2c".to_owned()]));
        assert_eq!(metadata.parameter("ipport").unwrap().default.as_deref(), Some("161"));
        assert!(metadata.can("list") && !metadata.can("reboot"));
    }

    #[test]
    fn an_older_name_leads_to_the_present_one() {
        let metadata = Metadata::read(PDU).unwrap();
        for (old, present) in [("ipaddr", "ip"), ("login", "username"), ("passwd", "password"), ("port", "plug")] {
            assert_eq!(metadata.parameter(old).unwrap().name, present);
        }
        assert_eq!(metadata.parameter("ip_addr"), None);
        assert!(metadata.parameters().all(|known| known.name != "ipaddr"));
    }

    #[test]
    fn what_does_not_describe_an_agent_is_refused() {
        assert!(matches!(Metadata::read("Usage: fence_ack_manual"), Err(BadMetadata::Unreadable(_))));
        assert!(matches!(Metadata::read("<html/>"), Err(BadMetadata::SomethingElse(tag)) if tag == "html"));
        let blind = PDU.replace("<action name=\"status\"/>", "");
        assert!(matches!(Metadata::read(&blind), Err(BadMetadata::NoAction("status"))));
    }
}
