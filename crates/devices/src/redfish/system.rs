//! Redfish / system: one ComputerSystem, reduced to power, identity and how to reset it.

use serde_json::Value;

use crate::{Command, Failure, Identity, PowerState};

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
        let members = systems.get("Members").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let path = |member: &Value| member.get("@odata.id").and_then(Value::as_str).map(str::to_owned);
        match members {
            [one] => path(one).ok_or_else(|| Failure::Unknown("the only system has no @odata.id".to_owned())),
            [] => Err(Failure::Refused("the service has no system".to_owned())),
            several => Err(Failure::Refused(format!(
                "the service has {} systems and the parameter `plug` names none of them; name the one of this node",
                several.len()
            ))),
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
