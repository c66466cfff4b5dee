//! An API server's judgement of an object, without an API server.
//!
//! In its order: unknown fields (as `kubectl --validate=strict` finds them), defaults, schema, unique keys of lists, CEL.
//! The walk for CEL is our own and hands each rule to kube-cel with the old value that an API server would find for it:
//! by name in objects and maps, by key in `list-type: map`, nowhere else.

use std::{collections::BTreeMap, fmt};

use kube::core::cel::{Validator, apply_defaults};
use serde_json::{Map, Value, json};

use crate::walk::{Kind, kinds, rules};

/// One reason why an object is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Where, such as `spec.thresholds[0].first.period`.
    pub(crate) at: String,
    /// The schema keyword (`enum`, `pattern`, `unknown`, `duplicate`, …) or the rule's message.
    pub(crate) why: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.why)
    }
}

pub(crate) struct Checker {
    kinds: BTreeMap<String, (Kind, jsonschema::Validator)>,
}

impl Checker {
    pub(crate) fn new() -> Self {
        let compile = |kind: Kind| {
            let strict =
                jsonschema::draft7::options().should_validate_formats(true).build(&strict(&kind.schema, true)).unwrap();
            (kind.name.clone(), (kind, strict))
        };
        Self { kinds: kinds().into_iter().map(compile).collect() }
    }

    /// The object as the API server would store it.
    pub(crate) fn with_defaults(&self, object: &Value) -> Value {
        apply_defaults(&self.kind_of(object).0.schema, object)
    }

    /// Why the object is refused, on creation or as the successor of an old one. Nothing: it is accepted.
    pub(crate) fn refusals(&self, object: &Value, old: Option<&Value>) -> Vec<Refusal> {
        let (kind, strict) = self.kind_of(object);
        assert_eq!(object["apiVersion"], format!("{}/v1alpha1", kind.crd["spec"]["group"].as_str().unwrap()));
        let object = self.with_defaults(object);
        let old = old.map(|old| self.with_defaults(old));
        let mut found: Vec<Refusal> = strict.iter_errors(&object).flat_map(|error| explain(&error)).collect();
        // A value of the wrong type is not one of the right words either; saying so twice helps nobody.
        let mistyped: Vec<String> =
            found.iter().filter(|refusal| refusal.why == "type").map(|refusal| refusal.at.clone()).collect();
        found.retain(|refusal| refusal.why == "type" || !mistyped.contains(&refusal.at));
        if found.is_empty() {
            duplicates(&kind.schema, &object, "", &mut found);
        }
        // The API server does not run rules over what is not even well formed.
        if found.is_empty() {
            rules_below(&kind.schema, &object, old.as_ref(), "", &mut found);
        }
        found
    }

    fn kind_of(&self, object: &Value) -> &(Kind, jsonschema::Validator) {
        let name = object["kind"].as_str().expect("an object has a kind");
        self.kinds.get(name).unwrap_or_else(|| panic!("no kind {name}"))
    }
}

/// The schema as a JSON-schema validator knows it, closed against unknown fields.
fn strict(schema: &Value, root: bool) -> Value {
    let Value::Object(keywords) = schema else { return schema.clone() };
    let mut closed = Map::new();
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" => {
                let properties = value.as_object().unwrap().iter();
                let properties: Map<_, _> =
                    properties.map(|(name, child)| (name.clone(), strict(child, false))).collect();
                closed.insert(keyword.clone(), properties.into());
            }
            "items" | "additionalProperties" => drop(closed.insert(keyword.clone(), strict(value, false))),
            "default" | "description" => {}
            _ if keyword.starts_with("x-") => {}
            _ => drop(closed.insert(keyword.clone(), value.clone())),
        }
    }
    if root {
        let properties = closed.get_mut("properties").unwrap().as_object_mut().unwrap();
        for name in ["apiVersion", "kind", "metadata"] {
            properties.insert(name.to_owned(), json!({}));
        }
    }
    if closed.get("type") == Some(&json!("object")) && !closed.contains_key("additionalProperties") {
        closed.insert("additionalProperties".to_owned(), json!(false));
    }
    closed.into()
}

fn explain(error: &jsonschema::ValidationError<'_>) -> Vec<Refusal> {
    use jsonschema::error::ValidationErrorKind as Error;
    let at = dotted(error.instance_path().as_str());
    let below = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    let one = |at: String, why: &str| vec![Refusal { at, why: why.to_owned() }];
    match error.kind() {
        Error::AdditionalProperties { unexpected } => {
            unexpected.iter().map(|name| Refusal { at: below(name), why: "unknown".to_owned() }).collect()
        }
        Error::Required { property } => one(below(property.as_str().unwrap()), "required"),
        _ => {
            let keyword = error.schema_path().as_str().rsplit('/').next().unwrap_or_default().to_owned();
            one(at, &keyword)
        }
    }
}

/// `/spec/levels/0/name` as `spec.levels[0].name`.
fn dotted(pointer: &str) -> String {
    let mut path = String::new();
    for part in pointer.split('/').skip(1) {
        if part.bytes().all(|byte| byte.is_ascii_digit()) {
            path = format!("{path}[{part}]");
        } else {
            path = join(&path, &part.replace("~1", "/").replace("~0", "~"));
        }
    }
    path
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// What identifies an item of a list, if the list says so.
fn key_of(list: &Value, item: &Value) -> Option<Vec<Value>> {
    match list["x-kubernetes-list-type"].as_str()? {
        "set" => Some(vec![item.clone()]),
        "map" => {
            let keys = list["x-kubernetes-list-map-keys"].as_array()?.iter();
            Some(keys.map(|key| item[key.as_str().unwrap()].clone()).collect())
        }
        _ => None,
    }
}

fn duplicates(schema: &Value, value: &Value, path: &str, found: &mut Vec<Refusal>) {
    each_child(schema, value, None, path, &mut |schema, value, _, path| duplicates(schema, value, path, found));
    let items = value.as_array().map_or(&[][..], Vec::as_slice);
    for (index, item) in items.iter().enumerate() {
        let key = key_of(schema, item);
        if key.is_some() && items[..index].iter().any(|earlier| key_of(schema, earlier) == key) {
            found.push(Refusal { at: format!("{path}[{index}]"), why: "duplicate".to_owned() });
        }
    }
}

fn rules_below(schema: &Value, value: &Value, old: Option<&Value>, path: &str, found: &mut Vec<Refusal>) {
    if !rules(schema).is_empty() {
        let only_here = without_rules_below(schema);
        for error in Validator::new().validate(&only_here, value, old).err().into_iter().flatten() {
            let at = match error.field_path.trim_start_matches('.') {
                "" => path.to_owned(),
                field => join(path, field),
            };
            found.push(Refusal { at, why: error.message });
        }
    }
    each_child(schema, value, old, path, &mut |schema, value, old, path| rules_below(schema, value, old, path, found));
}

fn without_rules_below(schema: &Value) -> Value {
    fn strip(schema: &mut Value) {
        for child in children(schema) {
            child.as_object_mut().map(|keywords| keywords.remove("x-kubernetes-validations"));
            strip(child);
        }
    }
    let mut schema = schema.clone();
    strip(&mut schema);
    schema
}

fn children(schema: &mut Value) -> Vec<&mut Value> {
    let Value::Object(keywords) = schema else { return Vec::new() };
    let mut found = Vec::new();
    for (keyword, value) in keywords {
        match keyword.as_str() {
            "properties" => found.extend(value.as_object_mut().unwrap().values_mut()),
            "items" | "additionalProperties" => found.push(value),
            _ => {}
        }
    }
    found
}

type Visit<'a> = &'a mut dyn FnMut(&Value, &Value, Option<&Value>, &str);

fn each_child(schema: &Value, value: &Value, old: Option<&Value>, path: &str, visit: Visit<'_>) {
    for (name, child) in value.as_object().into_iter().flatten() {
        let below = schema["properties"].get(name).or_else(|| schema.get("additionalProperties"));
        if let Some(below) = below {
            visit(below, child, old.and_then(|old| old.get(name)), &join(path, name));
        }
    }
    let is_map = schema["x-kubernetes-list-type"] == "map";
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        let key = key_of(schema, item);
        let old_items = old.filter(|_| is_map).and_then(Value::as_array);
        let before = old_items.and_then(|items| items.iter().find(|before| key_of(schema, before) == key));
        visit(&schema["items"], item, before, &format!("{path}[{index}]"));
    }
}
