//! The custom resource definitions, as `palisade crds` prints them.
//!
//! Promise: what comes out is what a strict API server takes. Install these, not the bare `Kind::crd()` of the derive.
//! The derive is general; three of its habits are not ours:
//! - `nullable`: an explicit null would survive, and rules would have to expect it. Without it the API server drops nulls.
//! - formats such as `uint32`: Kubernetes does not know them and warns; the bounds say it all.
//! - `title`: a Rust name means nothing to a reader of `kubectl explain`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceValidation, JSON, JSONSchemaProps,
};
use kube::CustomResourceExt;
use serde_json::Value;

use crate::policy::FencePolicySpec;
use crate::{
    FenceConfig, FencePolicy, FenceTemplate, MachineDisruptionBudget, NodeFence, NodeFencingRequest,
    NodeFencingRequestTemplate, NodeRemedy,
};

/// All definitions, in the order in which a newcomer should read them.
pub fn crds() -> Vec<CustomResourceDefinition> {
    [
        with_a_default_spec(FencePolicy::crd()),
        NodeRemedy::crd(),
        FenceConfig::crd(),
        FenceTemplate::crd(),
        NodeFencingRequest::crd(),
        NodeFencingRequestTemplate::crd(),
        NodeFence::crd(),
        MachineDisruptionBudget::crd(),
    ]
    .into_iter()
    .map(tidy)
    .collect()
}

fn tidy(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for version in &mut crd.spec.versions {
        version.schema = version
            .schema
            .take()
            .map(|schema| CustomResourceValidation { open_api_v3_schema: schema.open_api_v3_schema.map(tidy_schema) });
    }
    crd
}

/// A FencePolicy without a `spec` has all defaults. Server-side apply drops an empty one, and what it has dropped must not be
/// missed: the second apply of the same file would be refused.
fn with_a_default_spec(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let Ok(whole) = serde_json::to_value(FencePolicySpec::default()) else { return crd };
    let schemas =
        crd.spec.versions.iter_mut().filter_map(|version| version.schema.as_mut()?.open_api_v3_schema.as_mut());
    for spec in schemas.filter_map(|schema| schema.properties.as_mut()?.get_mut("spec")) {
        spec.default = Some(JSON(whole.clone()));
    }
    crd
}

/// Goes over the schema as JSON: `JSONSchemaProps` has forty fields, JSON has four shapes.
fn tidy_schema(props: JSONSchemaProps) -> JSONSchemaProps {
    let Ok(mut value) = serde_json::to_value(&props) else { return props };
    tidy_value(&mut value, Place::Schema);
    serde_json::from_value(value).unwrap_or(props)
}

/// Where in a schema a value stands: `properties` holds names, everything else holds keywords.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Schema,
    Properties,
}

fn tidy_value(value: &mut Value, place: Place) {
    let Value::Object(map) = value else { return };
    if place == Place::Properties {
        map.values_mut().for_each(|schema| tidy_value(schema, Place::Schema));
        return;
    }
    map.remove("nullable");
    map.remove("title");
    if map.get("format").is_some_and(|format| !matches!(format.as_str(), Some("int32" | "int64" | "date-time"))) {
        map.remove("format");
    }
    if let Some(Value::String(text)) = map.get_mut("description") {
        *text = unwrap_lines(text);
    }
    for (key, child) in map {
        match key.as_str() {
            "properties" => tidy_value(child, Place::Properties),
            "items" | "additionalProperties" => tidy_value(child, Place::Schema),
            _ => {}
        }
    }
}

/// Source lines are wrapped for the editor; `kubectl explain` wraps for the reader's window. Paragraphs stay.
fn unwrap_lines(text: &str) -> String {
    let paragraphs: Vec<String> = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
    paragraphs.join("\n\n")
}
