//! The rules of a schema: `x-kubernetes-validations`, in CEL.
//!
//! Promise: a rule sees what it sees on a real API server: `self`, and as `oldSelf` the value that was there before,
//! found by name in objects and maps, by key in lists of type map, and nowhere else.
//! Rules cost most of a write, so only what a rule looks at becomes a CEL value, and what has held is not asked again.

use std::{
    fmt,
    hash::{DefaultHasher, Hash, Hasher},
};

use kube::core::cel::cel::{Context, Program, Value as CelValue};
use serde_json::Value;

use super::{
    List, Node, Path, key_of,
    look::{Look, looks},
    memory::Question,
    values::{FUNCTIONS, to_cel},
};
use crate::api::status::Cause;

/// A compiled rule.
pub(super) struct Rule {
    text: String,
    /// Tells it from every other rule, also from one of the same text on another schema.
    identity: u64,
    program: Program,
    /// Which parts of `self` and of `oldSelf` the rule looks at.
    looks_at: Look,
    looks_back_at: Look,
    /// It speaks of `oldSelf`, so there has to be one.
    is_transition: bool,
    message: Option<String>,
    message_program: Option<Program>,
    reason: &'static str,
    field: String,
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Compiles the rules that stand on one schema.
pub(super) fn compile(schema: &Value, path: &Path<'_>, wrong: &mut Vec<Cause>) -> Vec<Rule> {
    let rules = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    rules.filter_map(|rule| compile_one(schema, rule, path, wrong)).collect()
}

fn compile_one(schema: &Value, rule: &Value, path: &Path<'_>, wrong: &mut Vec<Cause>) -> Option<Rule> {
    let text = rule["rule"].as_str().unwrap_or_default();
    let mut program = |text: &str| match Program::compile(text) {
        Ok(program) => Some(program),
        Err(error) => {
            let why = format!("compilation failed: {error}");
            wrong.push(Cause::invalid(format!("{path}.x-kubernetes-validations.rule"), &text.into(), &why));
            None
        }
    };
    let message_program = rule["messageExpression"].as_str().and_then(&mut program);
    let program = program(text)?;
    let (mut looks_at, mut looks_back_at) = looks(program.expression());
    if let Some(message) = &message_program {
        let (at, back_at) = looks(message.expression());
        looks_at.join(&at);
        looks_back_at.join(&back_at);
    }
    let mut identity = DefaultHasher::new();
    (schema, rule).hash(&mut identity);
    Some(Rule {
        text: text.to_owned(),
        identity: identity.finish(),
        is_transition: program.references().has_variable("oldSelf"),
        looks_at,
        looks_back_at,
        message: rule["message"].as_str().map(str::to_owned),
        message_program,
        reason: match rule["reason"].as_str() {
            Some("FieldValueForbidden") => "FieldValueForbidden",
            Some("FieldValueRequired") => "FieldValueRequired",
            Some("FieldValueDuplicate") => "FieldValueDuplicate",
            _ => "FieldValueInvalid",
        },
        field: rule["fieldPath"].as_str().unwrap_or_default().trim_start_matches('.').to_owned(),
        program,
    })
}

/// Tells which rules a value breaks, here and below.
pub(super) fn check(root: &Node, object: &Value, old: Option<&Value>, wrong: &mut Vec<Cause>) {
    FUNCTIONS.with(|functions| walk(root, object, old, &Path::root(), functions, wrong));
}

fn walk(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    functions: &Context<'_>,
    wrong: &mut Vec<Cause>,
) {
    if !node.has_rules {
        return;
    }
    check_here(node, value, old, path, functions, wrong);
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let is_named = node.properties.contains_key(name);
                let below = if is_named { path.field(name) } else { path.key(name) };
                if let Some(schema) = node.field(name) {
                    walk(schema, field, old.and_then(|old| old.get(name)), &below, functions, wrong);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = &node.items else { return };
            for (index, item) in items.iter().enumerate() {
                let before = match &node.list {
                    List::Map(keys) => old.and_then(Value::as_array).and_then(|old| {
                        let key = key_of(keys, item);
                        old.iter().find(|before| key_of(keys, before) == key)
                    }),
                    List::Atomic | List::Set => None,
                };
                walk(schema, item, before, &path.item(index), functions, wrong);
            }
        }
        _ => {}
    }
}

fn check_here(
    node: &Node,
    value: &Value,
    old: Option<&Value>,
    path: &Path<'_>,
    functions: &Context<'_>,
    wrong: &mut Vec<Cause>,
) {
    let due: Vec<(&Rule, Question)> = node
        .rules
        .iter()
        .filter(|rule| !rule.is_transition || old.is_some())
        .map(|rule| {
            let before = old.filter(|_| rule.is_transition).map(|old| (&rule.looks_back_at, old));
            (rule, Question::new(rule.identity, (&rule.looks_at, value), before))
        })
        .filter(|(_, question)| !question.has_held())
        .collect();
    if due.is_empty() {
        return;
    }
    let (mut at, mut back_at) = (Look::default(), Look::default());
    for (rule, _) in &due {
        at.join(&rule.looks_at);
        back_at.join(&rule.looks_back_at);
    }
    let mut names = functions.new_inner_scope();
    names.add_variable_from_value("self", to_cel(value, Some(node), &at));
    if let Some(old) = old {
        names.add_variable_from_value("oldSelf", to_cel(old, Some(node), &back_at));
    }
    for (rule, question) in due {
        match ask(rule, &names, value, path) {
            None => question.held(),
            Some(cause) => wrong.push(cause),
        }
    }
}

fn ask(rule: &Rule, names: &Context<'_>, value: &Value, path: &Path<'_>) -> Option<Cause> {
    let problem = match rule.program.execute(names) {
        Ok(CelValue::Bool(true)) => return None,
        Ok(CelValue::Bool(false)) => Ok(message(rule, names)),
        Ok(other) => Err(format!("rule evaluated to {other:?}, not to a boolean: {}", rule.text)),
        Err(error) => Err(format!("{error} evaluating rule: {}", rule.text)),
    };
    let at = path.to_string();
    let field = match (at.is_empty(), rule.field.is_empty()) {
        (true, true) => "<nil>".to_owned(),
        (true, false) => rule.field.clone(),
        (false, true) => at,
        (false, false) => format!("{at}.{}", rule.field),
    };
    let problem = match problem {
        Ok(broken) => broken,
        // A rule that could not be asked is told with what it was asked about.
        Err(error) => return Some(Cause::invalid(field, value, &error)),
    };
    Some(match rule.reason {
        "FieldValueForbidden" => Cause::forbidden(field, &problem),
        "FieldValueRequired" => Cause::required(field, &problem),
        "FieldValueDuplicate" => Cause::duplicate(field, value),
        _ => Cause::broken_rule(field, &problem),
    })
}

fn message(rule: &Rule, names: &Context<'_>) -> String {
    let made = rule.message_program.as_ref().and_then(|program| match program.execute(names) {
        Ok(CelValue::String(text)) => Some(text.as_str().to_owned()),
        _ => None,
    });
    made.or_else(|| rule.message.clone()).unwrap_or_else(|| format!("failed rule: {}", rule.text))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::Schema, *};

    fn told(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let object = |spec: &Value| json!({"metadata": {"name": "a"}, "spec": spec});
        let causes = Schema::compile(&schema).unwrap().check(&object(new), old.map(object).as_ref());
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn a_broken_rule_is_told_where_it_points_to() {
        let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "x-kubernetes-validations": [
                {"rule": "self.a <= self.b", "message": "a is at most b", "fieldPath": ".a"},
                {"rule": "has(self.b)", "messageExpression": "'b is missing, a is ' + string(self.a)",
                 "reason": "FieldValueRequired"}]});
        assert_eq!(told(&schema, &json!({"a": 1, "b": 2}), None), [""; 0]);
        assert_eq!(told(&schema, &json!({"a": 3, "b": 2}), None), ["spec.a: Invalid value: a is at most b"]);
        let missing = told(&schema, &json!({"a": 3}), None);
        assert_eq!(missing[1], "spec: Required value: b is missing, a is 3");
    }

    #[test]
    fn what_was_is_found_by_name_and_by_key_but_not_by_place() {
        let rule = json!([{"rule": "self >= oldSelf", "message": "never less"}]);
        let count = json!({"type": "integer", "x-kubernetes-validations": rule});
        assert_eq!(told(&count, &json!(1), None), [""; 0]);
        assert_eq!(told(&count, &json!(1), Some(&json!(2))), ["spec: Invalid value: never less"]);

        let items = json!({"type": "object", "properties": {"name": {"type": "string"}, "count": count}});
        let by_key = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": items});
        let old = json!([{"name": "a", "count": 5}, {"name": "b", "count": 1}]);
        let new = json!([{"name": "b", "count": 2}, {"name": "a", "count": 4}]);
        assert_eq!(told(&by_key, &new, Some(&old)), ["spec[1].count: Invalid value: never less"]);
        let by_nothing = json!({"type": "array", "items": items});
        assert_eq!(told(&by_nothing, &new, Some(&old)), [""; 0]);
    }

    #[test]
    fn rules_speak_of_times_durations_and_odd_names() {
        let schema = json!({"type": "object", "properties": {
                "at": {"type": "string", "format": "date-time"}, "for": {"type": "string", "format": "duration"},
                "a-b": {"type": "integer"}, "c_d": {"type": "integer"}, "ratio": {"type": "number"}},
            "x-kubernetes-validations": [
                {"rule": "self.at > timestamp('2026-01-01T00:00:00Z') && self.__for__ < duration('1h')"},
                {"rule": "self.a__dash__b + self.c_d == 3"},
                {"rule": "self.ratio < 2.5"}]});
        let good = json!({"at": "2026-03-01T00:00:00Z", "for": "30m", "a-b": 1, "c_d": 2, "ratio": 2});
        assert_eq!(told(&schema, &good, None), [""; 0]);
    }

    #[test]
    fn a_rule_that_does_not_compile_refuses_the_definition() {
        let wrong = Schema::compile(&json!({"type": "object", "x-kubernetes-validations": [{"rule": "self >"}]}));
        assert!(wrong.unwrap_err()[0].message.contains("compilation failed"));
    }
}
