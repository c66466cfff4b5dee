//! CEL rules as they stand in the schemas.
//!
//! Promise: every rule has a message that names the field, the rule and the way out, because the reader is tired.
//! A rule with `oldSelf` is judged on updates only; the API server sees to that.

use serde_json::{Value, json};

/// A rule about the value that it stands on.
pub(crate) fn rule(expression: &str, message: &str) -> Value {
    json!({ "rule": expression, "message": message })
}

/// A rule whose error points at a field below the value that it stands on.
pub(crate) fn rule_at(field_path: &str, expression: &str, message: &str) -> Value {
    json!({ "rule": expression, "message": message, "fieldPath": field_path })
}

/// A rule about something that is well formed but not allowed.
pub(crate) fn forbid(expression: &str, message: &str) -> Value {
    json!({ "rule": expression, "message": message, "reason": "FieldValueForbidden" })
}

/// A CEL expression: exactly one of these optional fields is set.
pub(crate) fn exactly_one(fields: &[&str]) -> String {
    let flags: Vec<String> = fields.iter().map(|field| format!("has(self.{field})")).collect();
    format!("[{}].filter(set, set).size() == 1", flags.join(", "))
}
