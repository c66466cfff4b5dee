//! Every schema is structural, bounded and explained; every rule can be judged and says what to do.

use std::collections::BTreeSet;

use kube::core::cel::compile_schema;
use serde_json::Value;

use crate::walk::{Place, each, kinds, rules};

fn for_each(mut wrong: impl FnMut(&Place<'_>) -> Option<String>) {
    let mut found = Vec::new();
    for kind in kinds() {
        each(&kind, &mut |place| found.extend(wrong(place).map(|what| format!("{}: {what}", place.path))));
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn everything_has_a_bound() {
    for_each(|Place { schema, .. }| {
        let has = |keyword: &str| schema.get(keyword).is_some();
        let bounded = match schema["type"].as_str()? {
            "string" => has("maxLength") || has("enum") || schema["format"] == "date-time",
            "array" => has("maxItems"),
            "object" => !has("additionalProperties") || has("maxProperties"),
            "integer" => has("minimum"),
            _ => true,
        };
        (!bounded).then(|| format!("{} without a bound", schema["type"]))
    });
}

#[test]
fn everything_has_one_plain_type() {
    for_each(|Place { schema, .. }| {
        if !schema["type"].is_string() {
            return Some("no type".to_owned());
        }
        let strange =
            ["nullable", "oneOf", "anyOf", "allOf", "not", "x-kubernetes-preserve-unknown-fields", "title", "$ref"];
        strange.iter().find(|keyword| schema.get(keyword).is_some()).map(|keyword| format!("has {keyword}"))
    });
}

#[test]
fn every_field_is_explained() {
    for_each(|Place { schema, path, .. }| {
        let is_field = !path.ends_with(['[', ']', '}', ':']);
        let text = schema["description"].as_str().unwrap_or_default();
        let sentence = text.len() > 8 && text.ends_with(['.', ')', ':']) && !text.contains("Auto-generated");
        (is_field && !sentence).then(|| format!("described by {text:?}"))
    });
}

#[test]
fn every_rule_compiles_and_can_be_judged() {
    for_each(|Place { schema, correlatable, .. }| {
        if let Some(error) = compile_schema(schema).compilation_errors().first() {
            return Some(error.to_string());
        }
        let transition = rules(schema).iter().find(|rule| rule["rule"].as_str().unwrap().contains("oldSelf"));
        // An API server refuses such a definition: it could not tell which old item belongs to which new one.
        transition.filter(|_| !correlatable).map(|rule| format!("no old value for {rule}"))
    });
}

#[test]
fn every_rule_names_a_field_and_a_way_out() {
    let mut names = BTreeSet::new();
    for kind in kinds() {
        each(&kind, &mut |place| {
            names.extend(place.path.rsplit(['.', ':']).next().map(|name| name.replace(['[', ']', '{', '}'], "")));
        });
    }
    names.insert("metadata".to_owned());
    for_each(|Place { schema, .. }| {
        rules(schema).iter().find_map(|rule| {
            let message = rule["message"].as_str().unwrap_or_default();
            let named = message.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| names.contains(word));
            (!named || message.len() < 15 || message.contains('\n')).then(|| format!("message {message:?}"))
        })
    });
}

#[test]
fn every_field_path_of_a_rule_is_there() {
    for_each(|Place { schema, .. }| {
        rules(schema).iter().find_map(|rule| {
            let path = rule["fieldPath"].as_str()?;
            let mut below = *schema;
            for name in path.trim_start_matches('.').split('.') {
                below = &below["properties"][name];
            }
            (below == &Value::Null).then(|| format!("no {path}"))
        })
    });
}
