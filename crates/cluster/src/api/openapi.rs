//! `/openapi/v3`: as much as kubectl needs to see that the server checks fields itself, and to explain our own kinds.

use serde_json::{Map, Value, json};

use super::{
    discovery::{groups_of, kinds_of},
    kinds::{Definition, Registry},
};

/// Which documents there are.
pub(crate) fn index(registry: &Registry) -> Value {
    let mut paths = Map::new();
    let mut add = |path: String| {
        let url = format!("/openapi/v3/{path}");
        paths.insert(path, json!({"serverRelativeURL": url}));
    };
    add("api/v1".to_owned());
    for (group, versions) in groups_of(registry) {
        for version in versions {
            add(format!("apis/{group}/{version}"));
        }
    }
    json!({"paths": paths})
}

/// The document of one group and version.
pub(crate) fn document(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let kinds = kinds_of(registry, group, version);
    if kinds.is_empty() {
        return None;
    }
    let mut paths = Map::new();
    let mut schemas = Map::new();
    for definition in kinds {
        let named = json!({"group": group, "version": version, "kind": definition.name});
        let name = schema_name(group, version, definition);
        paths.insert(path_of(group, version, definition), operations(&named));
        schemas.insert(name, schema(definition, &named));
    }
    Some(json!({
        "openapi": "3.0.0", "info": {"title": "Palisade", "version": "v1"},
        "paths": paths, "components": {"schemas": schemas},
    }))
}

fn path_of(group: &str, version: &str, definition: &Definition) -> String {
    let root = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let namespace = if definition.namespaced { "/namespaces/{namespace}" } else { "" };
    format!("{root}{namespace}/{}/{{name}}", definition.plural)
}

fn schema_name(group: &str, version: &str, definition: &Definition) -> String {
    let reversed: Vec<&str> = group.rsplit('.').filter(|part| !part.is_empty()).collect();
    let group = if reversed.is_empty() { "io.k8s.api.core".to_owned() } else { reversed.join(".") };
    format!("{group}.{version}.{}", definition.name)
}

/// kubectl looks at PATCH only, and there only for the parameter `fieldValidation`.
fn operations(named: &Value) -> Value {
    let parameter =
        |name: &str| json!({"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": true}});
    let parameters: Vec<Value> = ["dryRun", "fieldManager", "fieldValidation"].into_iter().map(parameter).collect();
    let operation = |action: &str| json!({"x-kubernetes-action": action, "x-kubernetes-group-version-kind": named, "parameters": parameters});
    json!({"get": operation("get"), "patch": operation("patch"), "put": operation("put"), "delete": operation("delete")})
}

fn schema(definition: &Definition, named: &Value) -> Value {
    let mut schema = match &definition.custom {
        Some(custom) => custom.openapi.clone(),
        None => json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
    };
    schema["x-kubernetes-group-version-kind"] = json!([named]);
    schema
}
