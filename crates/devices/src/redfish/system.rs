//! Redfish / system: which ComputerSystem is meant, and one of them, reduced to power, identity and how to reset it.
//!
//! Promise (I6): off is the word `Off` and nothing else. Promise (I4): a system is meant by its id or its path, or there is no
//! other; a list that is not whole, or says that it has more than it shows, does not show that there is no other.

use serde_json::Value;

use crate::{Command, Failure, Identity, PowerState};

/// The collection of systems.
pub(super) const SYSTEMS: &str = "/redfish/v1/Systems";

/// How many systems are named to whoever has to choose one.
const SHOWN: usize = 8;

/// The path of the system that a plug names; nothing if it names none.
pub(super) fn path(plug: &str) -> Result<Option<String>, Failure> {
    if plug.is_empty() {
        return Ok(None);
    }
    let (path, id) = match plug.strip_prefix('/') {
        Some(path) => (plug.to_owned(), path.trim_end_matches('/')),
        None => (format!("{SYSTEMS}/{plug}"), plug),
    };
    // What a path may hold as it is (RFC 3986); nothing has to be written in another way, and then read by somebody else.
    let plain = |c: char| c.is_ascii_alphanumeric() || "-._~!$&'()*+,;=:@/".contains(c);
    let steps: Vec<&str> = id.split('/').collect();
    let whole = steps.iter().all(|step| !matches!(*step, "" | "." | ".."));
    if !id.chars().all(plain) || !whole || (steps.len() > 1) != plug.starts_with('/') {
        return Err(Failure::Refused(format!(
            "`plug` is {plug:?}; it is the Id of a system, or its path, as {SYSTEMS} of the service lists them"
        )));
    }
    Ok(Some(path.trim_end_matches('/').to_owned()))
}

/// A ComputerSystem as it was read.
pub(super) struct System {
    pub(super) power: PowerState,
    pub(super) identity: Identity,
    target: Option<String>,
    allowed: Option<Vec<String>>,
}

impl System {
    /// The path of the only system of a service.
    pub(super) fn only_one(systems: &Value) -> Result<String, Failure> {
        let unknown = |why: &str| Err(Failure::Unknown(format!("{SYSTEMS}: {why}")));
        let Some(members) = systems.get("Members").and_then(Value::as_array) else {
            return unknown("the list of systems has no Members");
        };
        let path = |member: &Value| member.get("@odata.id").and_then(Value::as_str).map(str::to_owned);
        let counted = systems.get("Members@odata.count").and_then(Value::as_u64);
        let more = systems.get("Members@odata.nextLink").is_some();
        match members.as_slice() {
            [one] if !more && counted.is_none_or(|count| count == 1) => match path(one) {
                Some(path) => Ok(path),
                None => unknown("the only system has no @odata.id"),
            },
            [] if !more && counted.is_none_or(|count| count == 0) => {
                Err(Failure::Refused("the service has no system".to_owned()))
            }
            several => {
                let named: Vec<String> = several.iter().filter_map(path).take(SHOWN).collect();
                Err(Failure::Refused(format!(
                    "the service has more than one system, and the parameter `plug` names none of them; name the one of this \
                     node: {}{}",
                    named.join(", "),
                    if more || several.len() > SHOWN { ", .." } else { "" }
                )))
            }
        }
    }

    /// Reads a system; what is not there stays unknown.
    pub(super) fn read(value: &Value, path: &str) -> Result<Self, Failure> {
        if !value.is_object() {
            return Err(Failure::Unknown(format!("{path} is no object")));
        }
        let text = |pointer: &str| {
            let said = value.pointer(pointer).and_then(Value::as_str).map(str::trim);
            said.filter(|said| !said.is_empty()).map(str::to_owned)
        };
        let reset = value.pointer("/Actions/#ComputerSystem.Reset");
        let words = |list: &Vec<Value>| list.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        let allowed = reset.and_then(|reset| reset.get("ResetType@Redfish.AllowableValues")).and_then(Value::as_array);
        Ok(Self {
            power: match value.get("PowerState").and_then(Value::as_str) {
                Some("Off") => PowerState::Off,
                Some("On" | "PoweringOn" | "PoweringOff") => PowerState::On,
                Some(other) => PowerState::Unclear(format!("PowerState is {other}")),
                None => PowerState::Unclear("the system has no PowerState".to_owned()),
            },
            identity: Identity { uuid: text("/UUID").map(|uuid| uuid.to_lowercase()), serial: text("/SerialNumber") },
            target: reset.and_then(|reset| reset.get("target")).and_then(Value::as_str).map(str::to_owned),
            allowed: allowed.map(words),
        })
    }

    /// Where a command is sent, and the word for it.
    pub(super) fn reset(&self, command: Command) -> Result<(&str, &'static str), Failure> {
        let word = match command {
            Command::Off => "ForceOff",
            Command::On => "On",
        };
        let target = self.target.as_deref();
        let target = target.ok_or_else(|| Failure::Refused("the system offers no ComputerSystem.Reset".to_owned()))?;
        match &self.allowed {
            Some(allowed) if !allowed.iter().any(|known| known == word) => {
                Err(Failure::Refused(format!("the system allows {}, not {word}", allowed.join(", "))))
            }
            Some(_) | None => Ok((target, word)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn power(said: &Value) -> PowerState {
        System::read(said, "/s").unwrap().power
    }

    #[test]
    fn only_off_is_off() {
        assert_eq!(power(&json!({"PowerState": "Off"})), PowerState::Off);
        for on in ["On", "PoweringOn", "PoweringOff"] {
            assert_eq!(power(&json!({"PowerState": on})), PowerState::On);
        }
        for unclear in [json!("Paused"), json!("off"), json!(""), json!(null), json!(["Off"]), json!({"Off": true})] {
            assert!(matches!(power(&json!({"PowerState": unclear})), PowerState::Unclear(_)), "{unclear}");
        }
        assert!(matches!(power(&json!({})), PowerState::Unclear(_)));
        assert!(System::read(&json!("Off"), "/s").is_err());
    }

    #[test]
    fn a_plug_is_an_id_or_a_path_and_nothing_that_leads_elsewhere() {
        let to = |plug: &str| path(plug).unwrap().unwrap();
        assert_eq!(to("System.Embedded.1"), "/redfish/v1/Systems/System.Embedded.1");
        assert_eq!(to("/redfish/v1/Systems/1/"), "/redfish/v1/Systems/1");
        assert_eq!(path("").unwrap(), None);
        for wrong in [
            "a/b",
            "..",
            "../Managers/1",
            "1?x",
            "1#x",
            "%2e%2e",
            "a b",
            "/",
            "/a/../b",
            "//elsewhere",
            "/a//b",
            "`{\"a",
            "/a/{b}",
            "ü",
        ] {
            assert!(matches!(path(wrong), Err(Failure::Refused(_))), "{wrong}");
        }
    }

    #[test]
    fn the_only_system_is_one_that_has_no_other_beside_it() {
        let one = json!([{"@odata.id": "/redfish/v1/Systems/1"}]);
        assert_eq!(System::only_one(&json!({"Members": one})).unwrap(), "/redfish/v1/Systems/1");
        assert!(System::only_one(&json!({"Members": one, "Members@odata.count": 1})).is_ok());
        let several = json!([{"@odata.id": "/redfish/v1/Systems/1"}, {"@odata.id": "/redfish/v1/Systems/2"}]);
        for list in [
            json!({"Members": several}),
            json!({"Members": one, "Members@odata.count": 2}),
            json!({"Members": one, "Members@odata.nextLink": "/redfish/v1/Systems?page=2"}),
            json!({"Members": []}),
        ] {
            assert!(matches!(System::only_one(&list), Err(Failure::Refused(_))), "{list}");
        }
        let why = System::only_one(&json!({"Members": several})).unwrap_err().to_string();
        assert!(why.contains("/redfish/v1/Systems/1, /redfish/v1/Systems/2"), "{why}");
        for nonsense in [json!({}), json!([]), json!({"Members": [{}]}), json!({"Members": {}})] {
            assert!(matches!(System::only_one(&nonsense), Err(Failure::Unknown(_))), "{nonsense}");
        }
    }

    #[test]
    fn a_command_is_sent_only_in_a_word_that_the_system_takes() {
        let system = |allowed: Value| {
            let reset = json!({"target": "/reset", "ResetType@Redfish.AllowableValues": allowed});
            System::read(&json!({"Actions": {"#ComputerSystem.Reset": reset}}), "/s").unwrap()
        };
        assert_eq!(system(json!(["On", "ForceOff"])).reset(Command::Off), Ok(("/reset", "ForceOff")));
        assert_eq!(system(json!(null)).reset(Command::On), Ok(("/reset", "On")));
        assert!(matches!(system(json!(["GracefulShutdown"])).reset(Command::Off), Err(Failure::Refused(_))));
        assert!(System::read(&json!({}), "/s").unwrap().reset(Command::Off).is_err());
    }
}
