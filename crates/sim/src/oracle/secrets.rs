//! I7: nothing that we write holds what stands in a Secret.

use palisade_cluster::api::{Change, Kind};
use serde_json::Value;

use super::Seen;
use crate::trace::{Did, Line};

/// What every BMC's password in the embedded world begins with.
const CANARY: &str = "secret-n";

pub(super) fn write(seen: &mut Seen, change: &Change) {
    let Some(new) = change.new.as_ref().filter(|_| change.key.kind != Kind::SECRET) else { return };
    if holds(new) {
        seen.broken(format!("I7: {} holds a password", change.key.name));
    }
}

/// And nothing that we log.
pub(crate) fn told(lines: &[Line]) -> Option<String> {
    let line = lines.iter().find(|line| line.did == Did::Logged && line.text.contains(CANARY))?;
    Some(format!("I7: {} logged a password at event {}", line.actor, line.number))
}

fn holds(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(CANARY),
        Value::Array(all) => all.iter().any(holds),
        Value::Object(all) => all.values().any(holds),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}
