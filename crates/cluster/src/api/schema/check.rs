//! Whether a value is what its schema says: type, bounds, pattern, required fields, unique items.

use serde_json::{Map, Value};

use super::{Bounds, Format, List, Node, Path, Type, key_of};
use crate::api::status::Cause;

pub(super) fn check(node: &Node, value: &Value, path: &Path<'_>, wrong: &mut Vec<Cause>) {
    if value.is_null() && node.nullable {
        return;
    }
    if let Err(wanted) = node.kind.fits(value) {
        wrong.push(Cause::mistyped(path.to_string(), value, wanted));
        check_choice(node, value, path, wrong);
        return;
    }
    check_choice(node, value, path, wrong);
    match value {
        Value::String(text) => check_text(node, text, path, wrong),
        Value::Number(number) => check_number(node, number.as_f64().unwrap_or_default(), value, path, wrong),
        Value::Array(items) => check_items(node, items, path, wrong),
        Value::Object(fields) => check_fields(node, fields, path, wrong),
        Value::Null | Value::Bool(_) => {}
    }
    check_combinations(node, value, path, wrong);
}

fn check_choice(node: &Node, value: &Value, path: &Path<'_>, wrong: &mut Vec<Cause>) {
    if !node.choices.is_empty() && !node.choices.contains(value) {
        wrong.push(Cause::unsupported(path.to_string(), value, &node.choices));
    }
}

impl Type {
    fn fits(self, value: &Value) -> Result<(), &'static str> {
        let (fits, wanted) = match self {
            Self::Anything => (true, ""),
            Self::Object => (value.is_object(), "object"),
            Self::Array => (value.is_array(), "array"),
            Self::Text => (value.is_string(), "string"),
            Self::Integer => (value.is_i64() || value.is_u64() || is_whole(value), "integer"),
            Self::Number => (value.is_number(), "number"),
            Self::Boolean => (value.is_boolean(), "boolean"),
            Self::IntOrText => (value.is_string() || value.is_i64() || value.is_u64(), "integer,string"),
        };
        if fits { Ok(()) } else { Err(wanted) }
    }
}

fn is_whole(value: &Value) -> bool {
    value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

/// A sentence of the form that most of upstream's have.
fn should(path: &Path<'_>, value: &Value, what: &str) -> Cause {
    let field = path.to_string();
    let why = format!("{field} in body should {what}");
    Cause::invalid(field, value, &why)
}

fn too_many(path: &Path<'_>, found: usize, most: u64) -> Cause {
    let message = format!("Too many: {found}: must have at most {most} items");
    Cause { reason: "FieldValueTooMany", message, field: path.to_string() }
}

fn check_text(node: &Node, text: &str, path: &Path<'_>, wrong: &mut Vec<Cause>) {
    let Bounds { min_length, max_length, .. } = node.bounds;
    let value = || Value::from(text);
    let length = || text.chars().count() as u64;
    if let Some(most) = max_length.filter(|most| length() > *most) {
        let message = format!("Too long: may not be more than {most} bytes");
        wrong.push(Cause { reason: "FieldValueTooLong", message, field: path.to_string() });
    }
    if let Some(least) = min_length.filter(|least| length() < *least) {
        wrong.push(should(path, &value(), &format!("be at least {least} chars long")));
    }
    if let Some(pattern) = node.pattern.as_ref().filter(|pattern| !pattern.is_match(text)) {
        wrong.push(should(path, &value(), &format!("match '{pattern}'")));
    }
    if node.format == Format::DateTime && text.parse::<jiff::Timestamp>().is_err() {
        let field = path.to_string();
        let message = format!("Invalid value: {text:?}: {field} in body must be of type date-time: {text:?}");
        wrong.push(Cause { reason: "FieldValueTypeInvalid", message, field });
    }
}

fn check_number(node: &Node, number: f64, value: &Value, path: &Path<'_>, wrong: &mut Vec<Cause>) {
    let bounds = &node.bounds;
    if let Some(least) = bounds.minimum {
        if bounds.exclusive_minimum && number <= least {
            wrong.push(should(path, value, &format!("be greater than {least}")));
        } else if number < least {
            wrong.push(should(path, value, &format!("be greater than or equal to {least}")));
        }
    }
    if let Some(most) = bounds.maximum {
        if bounds.exclusive_maximum && number >= most {
            wrong.push(should(path, value, &format!("be less than {most}")));
        } else if number > most {
            wrong.push(should(path, value, &format!("be less than or equal to {most}")));
        }
    }
    if let Some(step) = bounds.multiple_of.filter(|step| (number / step).fract() != 0.0) {
        wrong.push(should(path, value, &format!("be a multiple of {step}")));
    }
    if node.format == Format::Int32 && value.as_i64().is_none_or(|number| i32::try_from(number).is_err()) {
        wrong.push(should(path, value, "be of type int32"));
    }
}

fn check_items(node: &Node, items: &[Value], path: &Path<'_>, wrong: &mut Vec<Cause>) {
    let Bounds { min_items, max_items, .. } = node.bounds;
    if let Some(most) = max_items.filter(|most| items.len() as u64 > *most) {
        wrong.push(too_many(path, items.len(), most));
    }
    if let Some(least) = min_items.filter(|least| (items.len() as u64) < *least) {
        wrong.push(should(path, &Value::Array(Vec::new()), &format!("have at least {least} items")));
    }
    if let Some(schema) = &node.items {
        for (index, item) in items.iter().enumerate() {
            check(schema, item, &path.item(index), wrong);
        }
    }
    check_unique(&node.list, items, path, wrong);
}

fn check_unique(list: &List, items: &[Value], path: &Path<'_>, wrong: &mut Vec<Cause>) {
    for (index, item) in items.iter().enumerate() {
        let earlier = &items[..index];
        let duplicate = match list {
            List::Atomic => return,
            List::Set => earlier.contains(item).then(|| item.clone()),
            List::Map(keys) => {
                let key = key_of(keys, item);
                let is_double = earlier.iter().any(|other| key_of(keys, other) == key);
                is_double.then(|| {
                    let named = keys.iter().zip(key).filter_map(|(name, value)| Some((name.clone(), value?.clone())));
                    Value::Object(named.collect())
                })
            }
        };
        if let Some(value) = duplicate {
            wrong.push(Cause::duplicate(path.item(index).to_string(), &value));
        }
    }
}

fn check_fields(node: &Node, fields: &Map<String, Value>, path: &Path<'_>, wrong: &mut Vec<Cause>) {
    let Bounds { min_properties, max_properties, .. } = node.bounds;
    for name in node.required.iter().filter(|name| !fields.contains_key(*name)) {
        wrong.push(Cause::required(path.field(name).to_string(), ""));
    }
    if let Some(most) = max_properties.filter(|most| fields.len() as u64 > *most) {
        wrong.push(too_many(path, fields.len(), most));
    }
    if let Some(least) = min_properties.filter(|least| (fields.len() as u64) < *least) {
        wrong.push(should(path, &Value::Object(Map::new()), &format!("have at least {least} properties")));
    }
    for (name, field) in fields {
        if let Some(schema) = node.field(name) {
            check(schema, field, &path.field(name), wrong);
        }
    }
}

fn check_combinations(node: &Node, value: &Value, path: &Path<'_>, wrong: &mut Vec<Cause>) {
    let fits = |schema: &&Node| {
        let mut found = Vec::new();
        check(schema, value, path, &mut found);
        found.is_empty()
    };
    for schema in &node.all_of {
        check(schema, value, path, wrong);
    }
    let mut must = |holds: bool, what: &str| {
        if !holds {
            let field = path.to_string();
            let why = format!("{field} in body must validate {what}");
            wrong.push(Cause::invalid(field, value, &why));
        }
    };
    if !node.any_of.is_empty() {
        must(node.any_of.iter().any(|schema| fits(&schema)), "at least one schema (anyOf)");
    }
    if !node.one_of.is_empty() {
        must(node.one_of.iter().filter(fits).count() == 1, "one and only one schema (oneOf)");
    }
    if let Some(schema) = &node.not {
        must(!fits(&schema.as_ref()), "not the schema (not)");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Schema;

    fn told(schema: &Value, spec: &Value) -> Vec<String> {
        let schema = json!({"type": "object", "properties": {"spec": schema}});
        let object = json!({"metadata": {"name": "a"}, "spec": spec});
        let causes = Schema::compile(&schema).unwrap().check(&object, None);
        causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect()
    }

    #[test]
    fn each_mistake_is_told_as_upstream_tells_it() {
        let text = json!({"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]*$"});
        assert_eq!(told(&text, &json!("abc")), [""; 0]);
        assert_eq!(
            told(&text, &json!("A")),
            [
                "spec: Invalid value: \"A\": spec in body should be at least 2 chars long",
                "spec: Invalid value: \"A\": spec in body should match '^[a-z]*$'"
            ]
        );
        assert_eq!(
            told(&text, &json!(1))[0],
            "spec: Invalid value: \"integer\": spec in body must be of type string: \"integer\""
        );
        let choice = json!({"type": "string", "enum": ["On", "Off"]});
        assert_eq!(
            told(&choice, &json!("on"))[0],
            "spec: Unsupported value: \"on\": supported values: \"On\", \"Off\""
        );
        let number = json!({"type": "integer", "minimum": 0.0, "maximum": 10.0});
        assert_eq!(
            told(&number, &json!(-1)),
            ["spec: Invalid value: -1: spec in body should be greater than or equal to 0"]
        );
        let object = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        assert_eq!(told(&object, &json!({}))[0], "spec.a: Required value");
    }

    #[test]
    fn items_of_a_map_list_are_known_by_their_keys() {
        let schema = json!({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "x": {"type": "integer"}}}});
        let list = json!([{"name": "a", "x": 1}, {"name": "b"}, {"name": "a", "x": 2}]);
        assert_eq!(told(&schema, &list), ["spec[2]: Duplicate value: {\"name\":\"a\"}"]);
    }
}
