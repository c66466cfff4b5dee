//! How the API server says no: the `Status` object, with upstream's reasons, codes and sentences.

use std::fmt;

use serde_json::{Value, json};

use super::{kinds::Definition, store::Key};

/// Why a request was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP code.
    pub code: u16,
    /// The machine-readable word, such as `NotFound`.
    pub reason: &'static str,
    /// The sentence for people.
    pub message: String,
    /// What it is about.
    pub details: Box<Details>,
}

/// What a refusal is about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Name of the object.
    pub name: String,
    /// Its API group.
    pub group: String,
    /// The plural of its kind, except for `Invalid`, where it is the kind.
    pub kind: String,
    /// Each single thing that is wrong.
    pub causes: Vec<Cause>,
    /// When a retry may help.
    pub retry_after_seconds: u32,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// `FieldValueInvalid` and the like.
    pub reason: &'static str,
    /// The sentence, without the field.
    pub message: String,
    /// Where, such as `spec.taints[1].key`.
    pub field: String,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({} {})", self.message, self.code, self.reason)
    }
}

impl std::error::Error for Status {}

impl Status {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self { code, reason, message: message.into(), details: Box::default() }
    }

    fn about(mut self, definition: &Definition, name: &str) -> Self {
        name.clone_into(&mut self.details.name);
        self.details.group = definition.group.to_string();
        self.details.kind = definition.plural.to_string();
        self
    }

    pub(crate) fn not_found(definition: &Definition, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} \"{name}\" not found", definition.qualified())).about(definition, name)
    }

    /// No such path or kind.
    pub(crate) fn no_such_page() -> Self {
        Self::new(404, "NotFound", "the server could not find the requested resource")
    }

    pub(crate) fn already_exists(definition: &Definition, name: &str, is_deleting: bool) -> Self {
        let going = if is_deleting { "object is being deleted: " } else { "" };
        let message = format!("{going}{} \"{name}\" already exists", definition.qualified());
        Self::new(409, "AlreadyExists", message).about(definition, name)
    }

    pub(crate) fn conflict(definition: &Definition, name: &str, why: &str) -> Self {
        Self::conflict_on(&definition.plural, definition, name, why)
    }

    /// The same, where upstream calls the kind by another word than its plural.
    pub(crate) fn conflict_on(word: &str, definition: &Definition, name: &str, why: &str) -> Self {
        let dot = if definition.group.is_empty() { "" } else { "." };
        let message = format!("Operation cannot be fulfilled on {word}{dot}{} \"{name}\": {why}", definition.group);
        let mut status = Self::new(409, "Conflict", message).about(definition, name);
        word.clone_into(&mut status.details.kind);
        status
    }

    /// The caller means another object of that name. Told as upstream's storage tells it.
    pub(crate) fn another_uid(definition: &Definition, key: &Key, expected: &str, found: &str) -> Self {
        let folder = match (&*definition.plural, definition.custom.is_some()) {
            (plural, true) => format!("{}/{plural}", definition.group),
            ("nodes", _) => "minions".to_owned(),
            ("services", _) => "services/specs".to_owned(),
            ("endpoints", _) => "services/endpoints".to_owned(),
            (plural, _) => plural.to_owned(),
        };
        let (namespace, name) = (&key.namespace, &key.name);
        let slash = if namespace.is_empty() { "" } else { "/" };
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: /registry/{folder}/{namespace}{slash}{name}, ResourceVersion: 0, \
             AdditionalErrorMsg: Precondition failed: UID in precondition: {expected}, UID in object meta: {found}"
        );
        Self::conflict(definition, name, &why)
    }

    /// The object has changed since the caller read it.
    pub(crate) fn modified(definition: &Definition, name: &str) -> Self {
        let why = "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(definition, name, why)
    }

    pub(crate) fn invalid(definition: &Definition, name: &str, causes: Vec<Cause>) -> Self {
        Self::invalid_of((&definition.name, &definition.group), name, causes)
    }

    /// The same about something that is no object, such as the options of a request.
    pub(crate) fn invalid_of((kind, group): (&str, &str), name: &str, causes: Vec<Cause>) -> Self {
        let sentences: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let told = match sentences.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let dot = if group.is_empty() { "" } else { "." };
        let mut status = Self::new(422, "Invalid", format!("{kind}{dot}{group} \"{name}\" is invalid: {told}"));
        let details = &mut status.details;
        (details.name, details.group, details.kind) = (name.to_owned(), group.to_owned(), kind.to_owned());
        details.causes = causes;
        status
    }

    /// A replace that does not say which version it replaces. Upstream names the plural here.
    pub(crate) fn without_version(definition: &Definition, name: &str) -> Self {
        let cause = Cause::invalid("metadata.resourceVersion", &Value::from(0), "must be specified for an update");
        Self::invalid_of((&definition.plural, &definition.group), name, vec![cause])
    }

    /// A JSON patch that does not apply.
    pub(crate) fn unprocessable(definition: &Definition, name: &str, why: String) -> Self {
        let message = "the server rejected our request due to an error in our request";
        let mut status = Self::new(422, "Invalid", message).about(definition, name);
        status.details.causes = vec![Cause { reason: "UnexpectedServerResponse", message: why, field: String::new() }];
        status
    }

    pub(crate) fn forbidden(definition: &Definition, name: &str, why: &str) -> Self {
        let message = format!("{} \"{name}\" is forbidden: {why}", definition.qualified());
        Self::new(403, "Forbidden", message).about(definition, name)
    }

    pub(crate) fn bad_request(why: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", why)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(405, "MethodNotAllowed", "the server does not allow this method on the requested resource")
    }

    pub(crate) fn unsupported_patch() -> Self {
        let message = "the body of the request was in an unknown format - accepted media types include: \
                       application/json-patch+json, application/merge-patch+json";
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// The caller's revision is older than what we remember.
    pub(crate) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    pub(crate) fn continue_expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start \
                       a new list without the continue parameter.";
        Self::new(410, "Expired", message)
    }

    /// The caller knows more than this API server.
    pub(crate) fn too_large_revision(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut status = Self::new(504, "Timeout", message);
        status.details.retry_after_seconds = 1;
        status.details.causes = vec![Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        }];
        status
    }

    pub(crate) fn too_many_requests(message: &str, cause: Option<Cause>) -> Self {
        let mut status = Self::new(429, "TooManyRequests", message);
        status.details.causes = cause.into_iter().collect();
        status
    }

    /// Something that upstream did not expect: it has no reason but the sentence.
    pub(crate) fn unexpected(why: &str) -> Self {
        Self::new(500, "", why)
    }

    pub(crate) fn internal(why: impl fmt::Display) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
    }

    /// The answer of a server, or of a proxy before it, that does not want to work now.
    pub(crate) fn from_code(code: u16) -> Self {
        match code {
            429 => {
                let mut status = Self::new(429, "TooManyRequests", "Too many requests, please try again later.");
                status.details.retry_after_seconds = 1;
                status
            }
            503 => Self::new(503, "ServiceUnavailable", "the server is currently unable to handle the request"),
            504 => Self::new(504, "Timeout", "the server was unable to return a response in the time allotted"),
            500 => Self::internal("injected"),
            code => Self::new(code, "Unknown", format!("the server answered {code}")),
        }
    }

    /// As JSON.
    pub fn to_value(&self) -> Value {
        let mut details = serde_json::Map::new();
        let mut put = |name: &str, value: Value| drop(details.insert(name.to_owned(), value));
        for (name, text) in [("name", &self.details.name), ("group", &self.details.group), ("kind", &self.details.kind)]
        {
            if !text.is_empty() {
                put(name, json!(text));
            }
        }
        if !self.details.causes.is_empty() {
            put("causes", self.details.causes.iter().map(Cause::to_value).collect());
        }
        if self.details.retry_after_seconds > 0 {
            put("retryAfterSeconds", json!(self.details.retry_after_seconds));
        }
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.into();
        }
        if !details.is_empty() {
            status["details"] = details.into();
        }
        status
    }
}

impl Cause {
    pub(crate) fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Self {
        let message = format!("Invalid value: {}: {why}", shown(value));
        Self { reason: "FieldValueInvalid", message, field: field.into() }
    }

    pub(crate) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    /// A broken rule: upstream shows no value with it.
    pub(crate) fn broken_rule(field: String, why: &str) -> Self {
        Self { reason: "FieldValueInvalid", message: format!("Invalid value: {why}"), field }
    }

    pub(crate) fn required(field: impl Into<String>, why: &str) -> Self {
        let colon = if why.is_empty() { "" } else { ": " };
        Self { reason: "FieldValueRequired", message: format!("Required value{colon}{why}"), field: field.into() }
    }

    pub(crate) fn duplicate(field: impl Into<String>, value: &Value) -> Self {
        Self { reason: "FieldValueDuplicate", message: format!("Duplicate value: {value}"), field: field.into() }
    }

    pub(crate) fn unsupported(field: impl Into<String>, value: &Value, supported: &[Value]) -> Self {
        let list: Vec<String> = supported.iter().map(Value::to_string).collect();
        let message = format!("Unsupported value: {}: supported values: {}", shown(value), list.join(", "));
        Self { reason: "FieldValueNotSupported", message, field: field.into() }
    }

    pub(crate) fn mistyped(field: impl Into<String>, value: &Value, wanted: &str) -> Self {
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let field = field.into();
        let message = format!("Invalid value: \"{found}\": {field} in body must be of type {wanted}: \"{found}\"");
        Self { reason: "FieldValueTypeInvalid", message, field }
    }

    fn to_value(&self) -> Value {
        let mut value = json!({"reason": self.reason, "message": self.message});
        if !self.field.is_empty() {
            value["field"] = self.field.clone().into();
        }
        value
    }
}

/// Upstream names a structured value by its type only.
fn shown(value: &Value) -> String {
    match value {
        Value::Object(_) => "\"object\"".to_owned(),
        Value::Array(_) => "\"array\"".to_owned(),
        plain => plain.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::kinds::{Kind, Registry};

    #[test]
    fn refusals_read_as_upstream_writes_them() {
        let registry = Registry::new();
        let pod = registry.get(Kind::POD).unwrap();
        let lease = registry.get(Kind::LEASE).unwrap();
        assert_eq!(Status::not_found(pod, "db-0").message, "pods \"db-0\" not found");
        assert_eq!(
            Status::modified(lease, "n1").message,
            "Operation cannot be fulfilled on leases.coordination.k8s.io \"n1\": the object has been modified; please \
             apply your changes to the latest version and try again"
        );
        let causes = vec![Cause::required("spec.nodeName", "")];
        let status = Status::invalid(pod, "db-0", causes).to_value();
        assert_eq!(status["message"], "Pod \"db-0\" is invalid: spec.nodeName: Required value");
        assert_eq!(status["details"]["causes"][0]["field"], "spec.nodeName");
        assert_eq!(status["code"], 422);
    }
}
