//! Conformance / answer: what an API server said, and the words in which a check compares.

use std::fmt::Debug;

use http::HeaderMap;
use serde_json::Value;

use super::Told;

/// An answer, whatever its code.
#[derive(Debug)]
pub(super) struct Answer {
    /// What was asked, for whoever reads a failure.
    pub(super) asked: String,
    pub(super) code: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Answer {
    /// The body of an answer with this code.
    pub(super) fn is(self, code: u16) -> Told<Value> {
        if self.code == code { Ok(self.body) } else { Err(self.unlike(&code.to_string())) }
    }

    /// A refusal with this code and reason; some have none.
    pub(super) fn refused(self, code: u16, reason: &str) -> Told<Refusal> {
        let status = &self.body;
        let is_refusal = self.code == code
            && status["kind"] == "Status"
            && status["status"] == "Failure"
            && status["code"] == code
            && text(status, "/reason") == reason;
        if is_refusal { Ok(Refusal(self.body)) } else { Err(self.unlike(&format!("{code} {reason}"))) }
    }

    /// The warnings that came with it.
    pub(super) fn warnings(&self) -> Vec<&str> {
        self.headers.get_all("warning").iter().filter_map(|value| value.to_str().ok()).collect()
    }

    fn unlike(&self, wanted: &str) -> String {
        let mut body = self.body.to_string();
        body.truncate(body.char_indices().nth(600).map_or(body.len(), |(end, _)| end));
        format!("{}: wanted {wanted}, got {} {body}", self.asked, self.code)
    }
}

/// A `Status` that says no.
#[derive(Debug)]
pub(super) struct Refusal(Value);

impl Refusal {
    /// The sentence for people, word by word.
    pub(super) fn says(&self, message: &str) -> Told {
        same("message", &self.0["message"], &Value::from(message))
    }

    /// A part of the sentence.
    pub(super) fn mentions(&self, part: &str) -> Told {
        let message = text(&self.0, "/message");
        must(message.contains(part), || format!("{part:?} is not in {message:?}"))
    }

    /// The details: name, group and kind; an empty one is left out.
    pub(super) fn about(&self, name: &str, group: &str, kind: &str) -> Told {
        let details = ["name", "group", "kind"].map(|field| self.0["details"][field].as_str().unwrap_or_default());
        same("details", details, [name, group, kind])
    }

    /// One thing that is wrong: its reason, its field, and a part of its sentence.
    pub(super) fn cause(&self, reason: &str, field: &str, part: &str) -> Told {
        let is = |cause: &&Value| {
            cause["reason"] == reason
                && cause["field"].as_str().unwrap_or_default() == field
                && text(cause, "/message").contains(part)
        };
        let found = self.causes().find(is).is_some();
        must(found, || format!("no cause {reason} at {field:?} with {part:?} in {}", self.0["details"]["causes"]))
    }

    /// All that is wrong.
    pub(super) fn causes(&self) -> impl Iterator<Item = &Value> {
        items(&self.0, "/details/causes")
    }

    /// The whole.
    pub(super) fn status(&self) -> &Value {
        &self.0
    }
}

/// What was found has to be what is wanted.
#[allow(clippy::needless_pass_by_value, reason = "both are made for the comparison, or are references already")]
pub(super) fn same<T: PartialEq + Debug>(what: &str, found: T, wanted: T) -> Told {
    must(found == wanted, || format!("{what}: wanted {wanted:?}, found {found:?}"))
}

/// Something has to be so.
pub(super) fn must(holds: bool, otherwise: impl FnOnce() -> String) -> Told {
    if holds { Ok(()) } else { Err(otherwise()) }
}

/// A text of an object; empty if it is not there.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list in an object.
pub(super) fn items<'a>(object: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    object.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

/// The names of objects.
pub(super) fn names<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Vec<&'a str> {
    objects.into_iter().map(|object| text(object, "/metadata/name")).collect()
}

/// `metadata.resourceVersion` as a number.
pub(super) fn version(object: &Value) -> u64 {
    text(object, "/metadata/resourceVersion").parse().unwrap_or_default()
}
