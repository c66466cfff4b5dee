//! What the API server makes of an object before it looks whether it is right.

use serde_json::Value;

use super::{Node, Path};

/// Drops unknown fields and nulls that may not be null, and fills in defaults, from the outside in.
pub(super) fn shape(node: &Node, value: &mut Value, path: &Path<'_>, dropped: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            let keeps_all = node.preserves_unknown || node.is_embedded;
            fields.retain(|name, field| {
                let Some(schema) = node.field(name) else {
                    if !keeps_all {
                        dropped.push(path.field(name).to_string());
                    }
                    return keeps_all;
                };
                !field.is_null() || schema.nullable || schema.preserves_unknown
            });
            if node.has_defaults {
                for (name, schema) in &node.properties {
                    if let Some(default) = schema.default.as_ref().filter(|_| !fields.contains_key(name)) {
                        fields.insert(name.clone(), default.clone());
                    }
                }
            }
            for (name, field) in fields {
                if let Some(schema) = node.field(name) {
                    shape(schema, field, &path.field(name), dropped);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &node.items {
                for (index, item) in items.iter_mut().enumerate() {
                    shape(schema, item, &path.item(index), dropped);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;

    #[test]
    fn unknown_fields_go_and_defaults_come() {
        let schema =
            Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "default": {},
            "properties": {
                "mode": {"type": "string", "default": "Enforce"},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "levels": {"type": "array", "items": {"type": "object", "properties": {
                    "tries": {"type": "integer", "default": 3}}}},
                "values": {"type": "object", "additionalProperties": {"type": "string"}},
            }}}}))
            .unwrap();
        let mut object = json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "labels": {"b": "c"}},
            "other": 1, "spec": {"typo": 1, "mode": null, "free": {"any": {"thing": null}}, "levels": [{"x": 1}],
            "values": {"n1": "a", "n2": null}}});
        let dropped = schema.shape(&mut object);
        assert_eq!(dropped, ["other", "spec.levels[0].x", "spec.typo"]);
        assert_eq!(
            object,
            json!({"apiVersion": "x/v1", "kind": "X", "metadata": {"name": "a", "labels": {"b": "c"}},
            "spec": {"mode": "Enforce", "free": {"any": {"thing": null}}, "levels": [{"tries": 3}],
            "values": {"n1": "a"}}})
        );

        let mut empty = json!({"metadata": {"name": "a"}});
        schema.shape(&mut empty);
        assert_eq!(empty["spec"], json!({"mode": "Enforce"}));
    }
}
