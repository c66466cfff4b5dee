//! A walk over every schema of every kind.

use serde_json::Value;

/// One schema somewhere in a definition.
pub(crate) struct Place<'a> {
    /// `FencePolicy:spec.storm.domains[].limit`; map values are `{}`.
    pub(crate) path: String,
    pub(crate) schema: &'a Value,
    /// How many of it one object can have: the product of the bounds above it.
    pub(crate) cardinality: u64,
    /// Whether the API server can find the old value that belongs to a new one.
    pub(crate) correlatable: bool,
}

/// A kind and its schema.
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) crd: Value,
    pub(crate) schema: Value,
}

pub(crate) fn kinds() -> Vec<Kind> {
    let kind = |crd| {
        let crd = serde_json::to_value(crd).unwrap();
        Kind {
            name: crd["spec"]["names"]["kind"].as_str().unwrap().to_owned(),
            schema: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone(),
            crd,
        }
    };
    palisade_api::crds().into_iter().map(kind).collect()
}

/// Visits every schema, parents first.
pub(crate) fn each(kind: &Kind, visit: &mut impl FnMut(&Place<'_>)) {
    let root = Place { path: format!("{}:", kind.name), schema: &kind.schema, cardinality: 1, correlatable: true };
    below(&root, visit);
}

fn below(place: &Place<'_>, visit: &mut impl FnMut(&Place<'_>)) {
    visit(place);
    let schema = place.schema;
    let bound = |keyword: &str| schema[keyword].as_u64().unwrap_or(1);
    for (name, child) in schema["properties"].as_object().into_iter().flatten() {
        let dot = if place.path.ends_with(':') { "" } else { "." };
        below(&Place { path: format!("{}{dot}{name}", place.path), schema: child, ..*place }, visit);
    }
    if let Some(child) = schema.get("items") {
        let cardinality = place.cardinality * bound("maxItems");
        let correlatable = place.correlatable && schema["x-kubernetes-list-type"] == "map";
        below(&Place { path: format!("{}[]", place.path), schema: child, cardinality, correlatable }, visit);
    }
    if let Some(child) = schema.get("additionalProperties") {
        let cardinality = place.cardinality * bound("maxProperties");
        below(&Place { path: format!("{}{{}}", place.path), schema: child, cardinality, ..*place }, visit);
    }
}

/// The CEL rules that stand on a schema.
pub(crate) fn rules(schema: &Value) -> &[Value] {
    schema["x-kubernetes-validations"].as_array().map_or(&[], Vec::as_slice)
}
