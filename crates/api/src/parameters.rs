//! What a device has to be told: parameters, and where its passwords are.
//!
//! Promise (I7): a password is never in a parameter; and no parameter makes a fence agent run a program, read or
//! write a file, or answer with a power cycle, which proves nothing.
//! Fence agents read `key=value` lines: a line break in a key or a value would smuggle in another parameter.

use std::{borrow::Cow, collections::BTreeMap};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::rules::{forbid, rule};

/// Keys that hand a shell, a file or the decision itself to whoever writes them. `-` and `_` mean the same to an agent.
const DANGEROUS: &str =
    "([_-](path|script|file|cmd|command|sudo)|^(path|sudo|debug|action|nodename|ssh[_-]options|disable[_-]timeout))$";
/// Keys that hold secrets.
const SECRET: &str =
    "(^|[_-])(password|passwd|passphrase|secret|secret[_-]key|private[_-]key|token|api[_-]?key|community|kg)$";

/// Parameters of a device by name, as its driver or fence agent knows them.
///
/// `{node}` in a value stands for the name of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Parameters(pub BTreeMap<String, String>);

impl Parameters {
    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// A bounded map of parameters with the rules that keep it harmless.
fn parameters(max: u32) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": max,
        "additionalProperties": { "type": "string", "maxLength": 512, "pattern": r"^[^\x00-\x1f\x7f]*$" },
        "x-kubernetes-validations": [
            rule("self.all(key, key.matches('^[a-z][a-z0-9_-]{0,62}$'))",
                "parameters: a name is made of a-z, 0-9, _ and -, begins with a letter and has at most 63 characters"),
            forbid(&format!("!self.exists(key, key.matches('{DANGEROUS}'))"),
                "parameters: names of programs, files and paths, ssh options, sudo, debug, nodename and action are not taken from users; leave it out (the action belongs in the method)"),
            forbid(&format!("!self.exists(key, key.matches('{SECRET}'))"),
                "parameters: a password, token or community belongs in a Secret; name it in secretRef.keys"),
            forbid("!('method' in self) || self['method'] != 'cycle'",
                "parameters: method=cycle proves nothing, as nobody sees the machine off; leave it out, Palisade sends off, reads back, and then on"),
            rule("(!('plug' in self) || !self['plug'].contains(',')) && (!('port' in self) || !self['port'].contains(','))",
                "parameters: one plug per call; give each further power supply its own method in the same level, they are joined by AND"),
        ],
    })
}

impl JsonSchema for Parameters {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Parameters".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        parameters(32)
    }
}

/// Per-node values: few, as there may be many nodes.
pub(crate) fn per_node(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "maxProperties": 500,
        "additionalProperties": parameters(8),
        "x-kubernetes-validations": [
            rule(r"self.all(node, node.matches('^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$'))",
                "perNode: each key is the name of a Node"),
        ],
    })
}

/// A Secret in the operator's own namespace, and which of its keys is which parameter.
///
/// There is no namespace to choose: the operator may read Secrets nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretRef {
    /// Name of the Secret; `{node}` stands for the name of the node, so that each node can have its own.
    #[schemars(length(min = 1, max = 253), regex(pattern = r"^([-a-z0-9.]|\{node\})+$"))]
    pub name: String,
    /// Which parameter is filled from which key of the Secret, for example `password: bmc-password`.
    #[schemars(schema_with = "secret_keys")]
    pub keys: BTreeMap<String, String>,
}

fn secret_keys(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "minProperties": 1,
        "maxProperties": 16,
        "additionalProperties": { "type": "string", "minLength": 1, "maxLength": 253, "pattern": "^[-._a-zA-Z0-9]+$" },
        "x-kubernetes-validations": [
            rule("self.all(key, key.matches('^[a-z][a-z0-9_-]{0,62}$'))",
                "keys: a parameter's name is made of a-z, 0-9, _ and -, begins with a letter and has at most 63 characters"),
            forbid(&format!("!self.exists(key, key.matches('{DANGEROUS}'))"),
                "keys: names of programs, files and paths, ssh options, sudo, debug, nodename and action are not taken from users, nor from Secrets"),
        ],
    })
}
