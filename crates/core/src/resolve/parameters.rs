//! Resolve / parameters: what a device is told, for one node.
//!
//! Later layers win: the template, then the method, then the method's own line for the node. `{node}` stands for the
//! node's name. Two spellings of one name (`snmp-priv-prot` and `snmp_priv_prot`, `plug` and the agents' older `port`)
//! are one parameter, so that a layer never adds a second plug beside the one that it meant to replace. What is passed
//! on is the spelling that was written.
//! Never: puts a secret's value anywhere; guesses a plug.

use std::collections::BTreeMap;

use palisade_api::config::Method;
use palisade_api::parameters::SecretRef;

use super::Problem;
use super::call::Value;
use crate::ident::NodeName;

/// The fence agent's word for the system of a Redfish service.
const SYSTEM: &str = "systems_uri";

/// What stands in one place.
pub(super) struct Layer<'a> {
    /// The place.
    pub at: String,
    /// Parameters.
    pub texts: &'a BTreeMap<String, String>,
    /// Parameters that come from a Secret.
    pub secret: Option<&'a SecretRef>,
}

/// The parameters of all layers, the last one winning.
pub(super) fn merged(layers: &[Layer<'_>], node: &NodeName) -> Result<BTreeMap<String, Value>, Problem> {
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    for layer in layers {
        let own = of_layer(layer, node)?;
        all.retain(|name, _| !own.keys().any(|other| same(other, name)));
        all.extend(own);
    }
    Ok(all)
}

fn of_layer(layer: &Layer<'_>, node: &NodeName) -> Result<BTreeMap<String, Value>, Problem> {
    let mut own: BTreeMap<String, Value> = BTreeMap::new();
    let mut take = |name: &str, value: Value| {
        if let Some(other) = own.keys().find(|other| same(other, name)) {
            let why =
                format!("`{other}` and `{name}` say the same thing twice, in parameters or in secretRef; keep one");
            return Err(Problem { field: layer.at.clone(), why });
        }
        own.insert(name.to_owned(), value);
        Ok(())
    };
    for (name, text) in layer.texts {
        take(name, Value::Text(filled(text, node, &format!("{}.{name}", layer.at))?))?;
    }
    if let Some(secret) = layer.secret {
        let secret_name = secret.name.replace("{node}", node.as_str());
        for (name, key) in &secret.keys {
            take(name, Value::Secret { name: secret_name.clone(), key: key.clone() })?;
        }
    }
    Ok(own)
}

/// Whether two names mean one parameter.
fn same(one: &str, other: &str) -> bool {
    canonical(one) == canonical(other)
}

/// To an agent `-` and `_` are the same, and some names have an older form.
pub(super) fn canonical(name: &str) -> String {
    let name = name.replace('-', "_");
    match name.as_str() {
        "port" | SYSTEM => "plug".to_owned(),
        "ipaddr" => "ip".to_owned(),
        "login" => "username".to_owned(),
        "passwd" => "password".to_owned(),
        _ => name,
    }
}

/// A parameter, in whichever spelling.
pub(super) fn find<'a>(all: &'a BTreeMap<String, Value>, wanted: &str) -> Option<&'a Value> {
    all.iter().find(|(name, _)| same(name, wanted)).map(|(_, value)| value)
}

/// A value with the node's name filled in. Any other word in braces would go to the device as it stands.
fn filled(text: &str, node: &NodeName, at: &str) -> Result<String, Problem> {
    let word = |part: &str| {
        let (word, _) = part.split_once('}')?;
        let plain = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
        (plain && word != "node").then(|| word.to_owned())
    };
    if let Some(unknown) = text.split('{').skip(1).find_map(word) {
        let why = format!("`{{{unknown}}}` stands for nothing; only `{{node}}` is filled in, with the node's name");
        return Err(Problem { field: at.to_owned(), why });
    }
    Ok(text.replace("{node}", node.as_str()))
}

/// The plug that is named, if one is.
pub(super) fn plug<'a>(all: &'a BTreeMap<String, Value>, at: &str) -> Result<Option<&'a str>, Problem> {
    let wrong = |why: &str| Err(Problem { field: at.to_owned(), why: why.to_owned() });
    match find(all, "plug") {
        None => Ok(None),
        Some(Value::Text(text)) if text.is_empty() => wrong("the plug is empty; say which one is the node's"),
        // Six agents were seen to switch only one plug of a list, and to report success.
        Some(Value::Text(text)) if text.contains(',') => {
            wrong("one plug per call; give each further power supply its own method in the same level")
        }
        Some(Value::Text(text)) => Ok(Some(text)),
        Some(Value::Secret { .. }) => wrong("a plug is no secret, and has to be seen in status; put it into perNode"),
    }
}

/// Whether the plug is named in the words of fence_redfish, which takes it for a parameter and not for a plug.
pub(super) fn is_system(all: &BTreeMap<String, Value>) -> bool {
    all.keys().any(|name| name.replace('-', "_") == SYSTEM)
}

/// Whether a parameter is given at all.
pub(super) fn has(all: &BTreeMap<String, Value>, wanted: &str) -> bool {
    find(all, wanted).is_some_and(|value| *value != Value::Text(String::new()))
}

/// A node that is missing in the very table that tells the machines apart. Other parameters may well be for some nodes
/// only; these two say which machine it is.
pub(super) fn missing_line(method: &Method, all: &BTreeMap<String, Value>, node: &NodeName) -> Option<String> {
    let listed = |wanted: &str| method.per_node.values().any(|line| line.0.keys().any(|name| same(name, wanted)));
    let gap = ["plug", "ip"].into_iter().find(|wanted| listed(wanted) && !has(all, wanted))?;
    Some(format!("other nodes have a `{gap}` here and {node} has none; add a line for it: `{node}: {{{gap}: ...}}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn of(layers: &[BTreeMap<String, String>], secret: Option<&SecretRef>) -> Result<BTreeMap<String, Value>, String> {
        let layer = |(index, texts)| Layer {
            at: format!("layer{index}"),
            texts,
            secret: if index == 0 { secret } else { None },
        };
        let layers: Vec<Layer<'_>> = layers.iter().enumerate().map(layer).collect();
        merged(&layers, &NodeName::from("host1")).map_err(|problem| problem.to_string())
    }

    fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, Value> {
        map(pairs).into_iter().map(|(name, text)| (name, Value::Text(text))).collect()
    }

    #[test]
    fn the_later_layer_wins_and_the_node_is_filled_in() {
        let layers = [
            map(&[("ip", "{node}.bmc.example.com"), ("lanplus", "1"), ("power_wait", "1")]),
            map(&[("power_wait", "3")]),
            map(&[("ip", "10.0.0.7")]),
        ];
        let wanted = texts(&[("ip", "10.0.0.7"), ("lanplus", "1"), ("power_wait", "3")]);
        assert_eq!(of(&layers, None), Ok(wanted));
        assert_eq!(
            of(&layers[..1], None).map(|all| all["ip"].clone()),
            Ok(Value::Text("host1.bmc.example.com".into()))
        );
    }

    #[test]
    fn another_spelling_replaces_and_does_not_add() {
        let layers =
            [map(&[("port", "1"), ("snmp-priv-prot", "DES")]), map(&[("plug", "2"), ("snmp_priv_prot", "AES")])];
        assert_eq!(of(&layers, None), Ok(texts(&[("plug", "2"), ("snmp_priv_prot", "AES")])));
        let older = [map(&[("ip", "10.0.0.1")]), map(&[("ipaddr", "10.0.0.2")])];
        assert_eq!(of(&older, None), Ok(texts(&[("ipaddr", "10.0.0.2")])));
        let twice = of(&[map(&[("plug", "1"), ("port", "2")])], None);
        assert!(twice.is_err_and(|why| why.starts_with("layer0: `plug` and `port`")));
    }

    #[test]
    fn a_secret_stays_a_reference_and_may_be_one_for_each_node() {
        let keys = map(&[("password", "bmc-password"), ("username", "user")]);
        let secret = SecretRef { name: "bmc-{node}".to_owned(), keys };
        let all = of(&[BTreeMap::new(), map(&[("username", "root")])], Some(&secret));
        let password = Value::Secret { name: "bmc-host1".to_owned(), key: "bmc-password".to_owned() };
        let wanted = BTreeMap::from([
            ("password".to_owned(), password),
            ("username".to_owned(), Value::Text("root".to_owned())),
        ]);
        assert_eq!(all, Ok(wanted));
        let twice = of(&[map(&[("username", "root")])], Some(&secret));
        assert!(twice.is_err_and(|why| why.contains("`username` and `username`")));
    }

    #[test]
    fn a_word_in_braces_that_stands_for_nothing_is_refused() {
        let said = of(&[map(&[("ip", "{node}.{zone}.example.com")])], None);
        assert!(said.is_err_and(|why| why.starts_with("layer0.ip: `{zone}` stands for nothing")));
        let json = map(&[("filter", "{\"name\": \"{node}\"}")]);
        assert!(of(&[json], None).is_ok(), "braces that hold no word are the device's own business");
    }

    #[test]
    fn a_list_of_plugs_is_refused_even_where_no_schema_looked() {
        for (text, said) in [("3,4", "one plug per call"), ("", "the plug is empty")] {
            let all = texts(&[("port", text)]);
            assert!(plug(&all, "here").is_err_and(|problem| problem.why.contains(said)), "{text}");
        }
        assert_eq!(plug(&texts(&[("ip", "a")]), "here"), Ok(None));
    }

    #[test]
    fn the_system_of_a_redfish_service_is_its_plug() {
        let all = of(&[map(&[("plug", "3")]), map(&[("systems-uri", "/redfish/v1/Systems/1")])], None).unwrap();
        assert_eq!(plug(&all, "here"), Ok(Some("/redfish/v1/Systems/1")));
        assert!(of(&[map(&[("plug", "1"), ("systems_uri", "/redfish/v1/Systems/2")])], None).is_err());
    }
}
