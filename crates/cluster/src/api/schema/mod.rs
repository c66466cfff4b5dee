//! The schema of a custom resource: compiled once when its definition comes, used for every write.
//!
//! Promise: an object that goes in comes out as the API server would store it, or with every reason why not, each with
//! upstream's field path and in upstream's words.
//!
//! | file | does |
//! |---|---|
//! | [`shape`] | drops what is unknown, fills in defaults |
//! | [`check`] | types, bounds, patterns, required fields, unique items |
//! | [`cel`] | the rules (`x-kubernetes-validations`) |
//! | [`look`], [`values`] | what of a value a rule looks at, and how it sees it |
//! | [`memory`] | which rules have held about which values |
//! | [`path`] | where in an object we are |

mod cel;
mod check;
mod look;
mod memory;
mod path;
mod shape;
mod values;

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

pub(crate) use self::path::Path;
use super::status::Cause;

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Schema {
    root: Node,
}

impl Schema {
    /// Compiles; a pattern or a rule that cannot be compiled makes the definition invalid, as upstream.
    pub(crate) fn compile(schema: &Value) -> Result<Self, Vec<Cause>> {
        let mut wrong = Vec::new();
        let mut root = Node::compile(schema, &Path::root(), &mut wrong);
        for own in ["apiVersion", "kind", "metadata"] {
            // The API server looks after these itself, whatever the schema says about them.
            root.properties.insert(own.to_owned(), Node::anything());
        }
        if wrong.is_empty() { Ok(Self { root }) } else { Err(wrong) }
    }

    /// Drops what is unknown, fills in defaults; gives the paths of what it dropped.
    pub(crate) fn shape(&self, object: &mut Value) -> Vec<String> {
        let mut dropped = Vec::new();
        shape::shape(&self.root, object, &Path::root(), &mut dropped);
        // Upstream tells them in the order of their names.
        dropped.sort_unstable();
        dropped
    }

    /// Everything that is wrong with an object, by itself and as the successor of an old one.
    pub(crate) fn check(&self, object: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut wrong = Vec::new();
        check::check(&self.root, object, &Path::root(), &mut wrong);
        let blocks = |cause: &Cause| {
            matches!(
                cause.reason,
                "FieldValueNotSupported"
                    | "FieldValueRequired"
                    | "FieldValueTooLong"
                    | "FieldValueTooMany"
                    | "FieldValueTypeInvalid"
            )
        };
        if wrong.iter().any(blocks) {
            let why = "some validation rules were not checked because the object was invalid; correct the existing \
                       errors to complete validation";
            wrong.push(Cause::invalid("<nil>", &Value::Null, why));
        } else {
            cel::check(&self.root, object, old, &mut wrong);
        }
        wrong
    }
}

/// The schema of one value.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a schema says many things that are so or not")]
struct Node {
    kind: Type,
    nullable: bool,
    preserves_unknown: bool,
    is_embedded: bool,
    default: Option<Value>,
    properties: BTreeMap<String, Node>,
    /// The schema of the values of a map.
    values: Option<Box<Node>>,
    items: Option<Box<Node>>,
    list: List,
    required: Vec<String>,
    choices: Vec<Value>,
    pattern: Option<Regex>,
    format: Format,
    bounds: Bounds,
    all_of: Vec<Node>,
    any_of: Vec<Node>,
    one_of: Vec<Node>,
    not: Option<Box<Node>>,
    rules: Vec<cel::Rule>,
    /// Whether there are rules on this schema or below it: most of a schema has none, and is not walked for them.
    has_rules: bool,
    has_defaults: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Anything,
    Object,
    Array,
    Text,
    Integer,
    Number,
    Boolean,
    IntOrText,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    None,
    DateTime,
    Duration,
    Int32,
}

/// How items of a list are told apart.
#[derive(Debug, PartialEq, Eq)]
enum List {
    Atomic,
    Set,
    Map(Vec<String>),
}

#[derive(Debug, Default)]
struct Bounds {
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
}

impl Node {
    fn anything() -> Self {
        Self::compile(
            &serde_json::json!({"x-kubernetes-preserve-unknown-fields": true}),
            &Path::root(),
            &mut Vec::new(),
        )
    }

    fn compile(schema: &Value, path: &Path<'_>, wrong: &mut Vec<Cause>) -> Self {
        let flag = |keyword: &str| schema[keyword] == true;
        let texts = |keyword: &str| -> Vec<String> {
            let list = schema[keyword].as_array().into_iter().flatten();
            list.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let mut many = |keyword: &str| -> Vec<Self> {
            let list = schema[keyword].as_array().into_iter().flatten();
            list.map(|schema| Self::compile(schema, path, wrong)).collect()
        };
        let (all_of, any_of, one_of) = (many("allOf"), many("anyOf"), many("oneOf"));
        let mut below = |keyword: &str, path: &Path<'_>| {
            let schema = schema.get(keyword).filter(|schema| schema.is_object())?;
            Some(Box::new(Self::compile(schema, path, wrong)))
        };
        let items = below("items", &path.item(0));
        let values = below("additionalProperties", &path.field("*"));
        let not = below("not", path);
        let fields = schema["properties"].as_object().into_iter().flatten();
        let properties: BTreeMap<String, Self> =
            fields.map(|(name, schema)| (name.clone(), Self::compile(schema, &path.field(name), wrong))).collect();
        let rules = cel::compile(schema, path, wrong);
        let pattern = schema["pattern"].as_str().and_then(|pattern| {
            let compiled = Regex::new(pattern);
            compiled
                .map_err(|error| wrong.push(Cause::invalid(path.to_string(), &pattern.into(), &error.to_string())))
                .ok()
        });

        let children = || properties.values().chain(items.as_deref()).chain(values.as_deref());
        let has_rules = !rules.is_empty() || children().any(|child| child.has_rules);
        let has_defaults = children().any(|child| child.has_defaults || child.default.is_some());
        Self {
            kind: Type::read(schema),
            nullable: flag("nullable"),
            preserves_unknown: flag("x-kubernetes-preserve-unknown-fields") || schema["additionalProperties"] == true,
            is_embedded: flag("x-kubernetes-embedded-resource"),
            default: schema.get("default").cloned(),
            list: match schema["x-kubernetes-list-type"].as_str() {
                Some("set") => List::Set,
                Some("map") => List::Map(texts("x-kubernetes-list-map-keys")),
                _ => List::Atomic,
            },
            required: texts("required"),
            choices: schema["enum"].as_array().cloned().unwrap_or_default(),
            pattern,
            format: match schema["format"].as_str() {
                Some("date-time") => Format::DateTime,
                Some("duration") => Format::Duration,
                Some("int32") => Format::Int32,
                _ => Format::None,
            },
            bounds: Bounds::read(schema),
            has_rules,
            has_defaults,
            properties,
            values,
            items,
            all_of,
            any_of,
            one_of,
            not,
            rules,
        }
    }

    /// The schema of a field, be it named or one of a map.
    fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(self.values.as_deref())
    }
}

impl Type {
    fn read(schema: &Value) -> Self {
        if schema["x-kubernetes-int-or-string"] == true {
            return Self::IntOrText;
        }
        match schema["type"].as_str() {
            Some("object") => Self::Object,
            Some("array") => Self::Array,
            Some("string") => Self::Text,
            Some("integer") => Self::Integer,
            Some("number") => Self::Number,
            Some("boolean") => Self::Boolean,
            _ => Self::Anything,
        }
    }
}

impl Bounds {
    fn read(schema: &Value) -> Self {
        let number = |keyword: &str| schema[keyword].as_f64();
        let count = |keyword: &str| schema[keyword].as_u64();
        Self {
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: schema["exclusiveMinimum"] == true,
            exclusive_maximum: schema["exclusiveMaximum"] == true,
            multiple_of: number("multipleOf"),
            min_length: count("minLength"),
            max_length: count("maxLength"),
            min_items: count("minItems"),
            max_items: count("maxItems"),
            min_properties: count("minProperties"),
            max_properties: count("maxProperties"),
        }
    }
}

/// What identifies an item of a list.
fn key_of<'a>(keys: &[String], item: &'a Value) -> Vec<Option<&'a Value>> {
    keys.iter().map(|key| item.get(key)).collect()
}
