//! Conformance / bad: what must not be sayable, asked of an API server.
//!
//! The table is that of `crates/api/tests/objects/bad`: a good object, and changes that make it bad, each with the field and the
//! rule that refuses it. There it is checked against the schemas; here against whoever serves them.
//!
//! Promise: a case is refused at its field, for its reason, and for nothing else.

use std::collections::BTreeMap;

use kube::Client;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::answer::{Answer, items, must, text};
use super::bench::Bench;
use super::places::{POLICIES, at};
use super::run::{Outcome, Report};
use super::{Told, answer};

macro_rules! files {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../../api/tests/objects/bad/", $name, ".yaml")))),*]
    };
}

const FILES: [(&str, &str); 8] = files! {
    "fence-config" "fence-policy" "fence-template" "machine-disruption-budget" "node-fence"
    "node-fencing-request-template" "node-fencing-request" "node-remedy"
};

#[derive(Deserialize)]
struct Table {
    base: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    story: String,
    #[serde(default)]
    was: Option<Value>,
    change: Value,
    at: String,
    #[serde(default)]
    because: Option<String>,
    #[serde(default)]
    breaks: Option<String>,
}

/// Plays every case, one after the other: there is only one FencePolicy.
pub(super) async fn play(client: &Client, tag: &str) -> Report {
    let (places, mut report) = (places(), Report::default());
    for (file, text) in FILES {
        let table: Table = match serde_saphyr::from_str(text) {
            Ok(table) => table,
            Err(why) => {
                report.outcomes.push(outcome(file, "the table can be read", Some(why.to_string()), Instant::now()));
                continue;
            }
        };
        let kind = table.base["kind"].as_str().unwrap_or_default();
        let place = places.get(kind).cloned().unwrap_or_default();
        for (number, case) in table.cases.iter().enumerate() {
            let (begin, bench) = (Instant::now(), Bench::new(client.clone(), format!("{tag}-{file}-{number}")));
            let wrong = case.play(&bench, &place, &table.base).await.err();
            bench.clean().await;
            report.outcomes.push(outcome(file, &case.story, wrong, begin));
        }
    }
    report
}

fn outcome(file: &str, story: &str, wrong: Option<String>, begin: Instant) -> Outcome {
    Outcome { name: format!("bad/{file}"), about: story.to_owned(), wrong, took: begin.elapsed() }
}

/// Where objects of each of our kinds are made.
fn places() -> BTreeMap<String, String> {
    let place = |definition: Value| {
        let word = |pointer: &str| text(&definition, pointer).to_owned();
        let home = if word("/spec/scope") == "Namespaced" { "namespaces/default/" } else { "" };
        let path = format!("/apis/{}/v1alpha1/{home}{}", word("/spec/group"), word("/spec/names/plural"));
        (word("/spec/names/kind"), path)
    };
    palisade_api::crds().iter().map(|crd| place(serde_json::to_value(crd).unwrap_or_default())).collect()
}

impl Case {
    async fn play(&self, bench: &Bench, place: &str, base: &Value) -> Told {
        let old = self.was.as_ref().map(|was| merged(base, was));
        let new = merged(old.as_ref().unwrap_or(base), &self.change);
        let in_status = self.at.starts_with("status") || self.at.is_empty() && self.change.get("status").is_some();
        let (name, own) = (text(base, "/metadata/name"), bench.name("o"));
        let named = |object: &Value| renamed(object, name, &own);
        if place == POLICIES && (in_status || old.is_some()) && bench.get(&at(POLICIES, name)).await?.code != 404 {
            return Err("there is a FencePolicy here already; this table needs to make its own".to_owned());
        }
        let query = "dryRun=All&fieldValidation=Strict";
        if !in_status && old.is_none() {
            return self.refused(bench.post(&format!("{place}?{query}"), &named(&new)).await?);
        }
        let made = bench.make(place, named(old.as_ref().unwrap_or(&new))).await?;
        let mut stands = made.object.clone();
        if let Some(status) = old.as_ref().and_then(|old| old.get("status")) {
            stands["status"] = status.clone();
            stands = bench.put(&made.status(), &stands).await?.is(200)?;
        }
        let mut next = named(&new);
        next["metadata"]["resourceVersion"] = stands["metadata"]["resourceVersion"].clone();
        // Over the wire nobody can be renamed: then the rule about the name is broken, too.
        next["metadata"]["name"] = own.as_str().into();
        if place == POLICIES {
            next["metadata"]["name"] = name.into();
        }
        let path = if in_status { made.status() } else { made.path };
        self.refused(bench.put(&format!("{path}?{query}"), &next).await?)
    }

    /// Whether the answer is a refusal for this reason, at this field, and nowhere else.
    fn refused(&self, answer: Answer) -> Told {
        let breaks = self.breaks.as_deref().unwrap_or_default();
        if breaks == "unknown" {
            return answer.refused(400, "BadRequest")?.mentions(&format!("unknown field \"{}\"", self.at));
        }
        let refusal = answer.refused(422, "Invalid")?;
        let (reason, part) = broken(breaks);
        let part = self.because.as_deref().unwrap_or(part);
        // While the shape is wrong the rules are not looked at, which is told as a cause of its own.
        // And a value of the wrong type is not one of the right words either.
        let told = |cause: &&Value| {
            let also =
                breaks == "type" && cause["reason"] == "FieldValueNotSupported" && cause["field"] == self.field();
            !also && !text(cause, "/message").contains("some validation rules were not checked")
        };
        let fits = |cause: &Value| {
            dotted(text(cause, "/field")) == self.field()
                && text(cause, "/message").contains(part)
                && reason.is_none_or(|reason| cause["reason"] == reason)
        };
        let causes: Vec<&Value> = items(refusal.status(), "/details/causes").filter(told).collect();
        let fine = if self.renames() {
            causes.iter().any(|cause| fits(cause))
        } else {
            !causes.is_empty() && causes.iter().all(|cause| fits(cause))
        };
        must(fine, || format!("wanted {reason:?} at {:?} with {part:?}, found {}", self.at, json!(causes)))
    }

    /// Whether an object that was there is given another name.
    fn renames(&self) -> bool {
        self.was.is_some() && self.change.pointer("/metadata/name").is_some()
    }

    /// A rule of the whole object is told with a field that no object has.
    fn field(&self) -> &str {
        if self.at.is_empty() { "<nil>" } else { &self.at }
    }
}

/// The reason and a part of the message with which a keyword of a schema is told.
fn broken(keyword: &str) -> (Option<&'static str>, &'static str) {
    match keyword {
        "enum" => (Some("FieldValueNotSupported"), "supported values: "),
        "pattern" => (Some("FieldValueInvalid"), "should match '"),
        "type" => (Some("FieldValueTypeInvalid"), "must be of type "),
        "required" => (Some("FieldValueRequired"), "Required value"),
        "minimum" => (Some("FieldValueInvalid"), "should be greater than or equal to "),
        "maximum" => (Some("FieldValueInvalid"), "should be less than or equal to "),
        "minLength" => (Some("FieldValueInvalid"), "should be at least "),
        "maxLength" => (Some("FieldValueTooLong"), "Too long: may not be more than "),
        "minItems" | "minProperties" => (Some("FieldValueInvalid"), "should have at least "),
        "maxItems" => (Some("FieldValueTooMany"), "Too many: "),
        "duplicate" => (Some("FieldValueDuplicate"), "Duplicate value: "),
        // A rule: its message is in the table.
        _ => (None, ""),
    }
}

/// A value of a map is told as `perNode[n1]` by rules and as `perNode.n1` by the rest; the table writes the latter.
fn dotted(field: &str) -> String {
    let mut parts = field.split('[');
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once(']') {
            Some((key, rest)) if !key.bytes().all(|byte| byte.is_ascii_digit()) => whole.extend([".", key, rest]),
            _ => whole.extend(["[", part]),
        }
    }
    whole
}

/// The object under a name of this bench, where its kind lets it have one.
fn renamed(object: &Value, name: &str, own: &str) -> Value {
    let mut object = object.clone();
    let is = |object: &Value, pointer: &str| answer::text(object, pointer) == name;
    let kind = text(&object, "/kind").to_owned();
    if kind != "FencePolicy" && is(&object, "/metadata/name") {
        object["metadata"]["name"] = own.into();
    }
    // A fence has the name of its node.
    if kind == "NodeFence" && is(&object, "/spec/nodeName") {
        object["spec"]["nodeName"] = own.into();
    }
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("namespace");
    }
    object
}

/// RFC 7396.
fn merged(base: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut whole = base.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            whole.remove(name);
        } else {
            let before = whole.get(name).cloned().unwrap_or_default();
            whole.insert(name.clone(), merged(&before, value));
        }
    }
    whole.into()
}
