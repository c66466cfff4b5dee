//! `docs/reference/kinds.md`: the fields of every kind, from the schemas themselves.

use std::fmt::Write;

use serde_json::Value;

use crate::{
    golden,
    walk::{Kind, each, kinds, rules},
};

#[test]
fn the_reference_page_is_the_schema() {
    let mut page = String::from(
        "# Kinds\n\nMade from the schemas; do not edit. `UPDATE_GOLDEN=1 cargo test -p palisade-api` writes it anew.\n\n\
         `[]` is an item of a list, `{}` a value of a map. `*` marks what has to be given.\n",
    );
    for kind in kinds() {
        describe(&kind, &mut page);
    }
    golden::compare("../../docs/reference/kinds.md", &page);
}

fn describe(kind: &Kind, page: &mut String) {
    let spec = &kind.crd["spec"];
    let words = |value: &Value| {
        let words: Vec<&str> = value.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        words.join(", ")
    };
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    writeln!(page, "\n## {}\n\n{}\n", kind.name, text(&kind.schema["description"])).unwrap();
    let (group, scope) = (text(&spec["group"]), text(&spec["scope"]).to_lowercase());
    let version = text(&spec["versions"][0]["name"]);
    writeln!(page, "`{group}/{version}`, scope {scope}, short name {}.\n", words(&spec["names"]["shortNames"]))
        .unwrap();

    writeln!(page, "| field | type | default | meaning |\n|---|---|---|---|").unwrap();
    each(kind, &mut |place| {
        let path = place.path.split_once(':').map_or("", |(_, path)| path);
        if path.is_empty() || path.ends_with(['}', ']']) && place.schema["type"] != "object" {
            return;
        }
        let star = if required(kind, path) { "\\*" } else { "" };
        let default = place.schema.get("default").map_or(String::new(), default_of);
        let meaning = text(&place.schema["description"]).replace("\n\n", "<br>").replace('|', "\\|");
        writeln!(page, "| `{path}`{star} | {} | {default} | {meaning} |", type_of(place.schema)).unwrap();
    });

    let mut said = Vec::new();
    each(kind, &mut |place| {
        for rule in rules(place.schema) {
            let line = format!("- {}", text(&rule["message"]).replace('|', "\\|"));
            if !said.contains(&line) {
                said.push(line);
            }
        }
    });
    if !said.is_empty() {
        writeln!(page, "\nRefused by the API server, with these words:\n\n{}", said.join("\n")).unwrap();
    }
}

fn required(kind: &Kind, path: &str) -> bool {
    let mut schema = &kind.schema;
    let mut needed = false;
    for part in path.split('.') {
        let name = part.trim_end_matches("[]").trim_end_matches("{}");
        needed = schema["required"].as_array().is_some_and(|names| names.iter().any(|needed| needed == name));
        schema = &schema["properties"][name];
        for _ in 0..part.matches("[]").count() {
            schema = &schema["items"];
        }
        for _ in 0..part.matches("{}").count() {
            schema = &schema["additionalProperties"];
        }
        needed &= !part.ends_with(['}', ']']);
    }
    needed
}

/// A default that fits into a table; that of an object is told by its fields.
fn default_of(default: &Value) -> String {
    match default {
        Value::Object(_) => String::new(),
        Value::String(text) => format!("`{text}`"),
        Value::Array(items) if items.iter().any(Value::is_object) => {
            format!("`{}`", serde_json::to_string(items).unwrap())
        }
        other => format!("`{other}`"),
    }
}

fn type_of(schema: &Value) -> String {
    let name = schema["type"].as_str().unwrap_or_default();
    let number = |keyword: &str| schema[keyword].as_f64().map(|number| number.to_string());
    if let Some(words) = schema["enum"].as_array() {
        let words: Vec<String> = words.iter().map(|word| format!("`{}`", word.as_str().unwrap_or_default())).collect();
        return words.join(" ");
    }
    match name {
        "array" => format!("list of {}, at most {}", plural(&schema["items"]), schema["maxItems"]),
        "object" if schema.get("additionalProperties").is_some() => {
            format!("map of {}, at most {}", plural(&schema["additionalProperties"]), schema["maxProperties"])
        }
        "string" if schema["format"] == "date-time" => "time".to_owned(),
        "string" if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains("(ms|s|m|h)")) => {
            "length of time".to_owned()
        }
        "string" => format!("string, at most {}", schema["maxLength"]),
        "integer" => match (number("minimum"), number("maximum")) {
            (Some(least), Some(most)) => format!("integer, {least} to {most}"),
            (Some(least), None) => format!("integer, at least {least}"),
            _ => "integer".to_owned(),
        },
        other => other.to_owned(),
    }
}

fn plural(schema: &Value) -> &'static str {
    match schema["type"].as_str() {
        Some("object") if schema.get("additionalProperties").is_some() => "maps",
        Some("object") => "objects",
        Some("integer") => "integers",
        _ => "strings",
    }
}
