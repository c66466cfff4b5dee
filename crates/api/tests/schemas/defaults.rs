//! The schema's defaults and Rust's are the same: an object that the API server filled in equals one that it did not.

use kube::core::cel::apply_defaults;
use palisade_api::{
    FenceConfig, FencePolicy, FenceTemplate, MachineDisruptionBudget, NodeFence, NodeFencingRequest,
    NodeFencingRequestTemplate, NodeRemedy,
    budget::MachineDisruptionBudgetSpec,
    config::{FenceConfigSpec, FenceConfigStatus},
    fence::NodeFenceStatus,
    policy::{FencePolicySpec, FencePolicyStatus},
    remedy::NodeRemedyStatus,
    request::{NodeFencingRequestSpec, NodeFencingRequestStatus},
    template::FenceTemplateStatus,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::walk::kinds;

fn schema_of(kind: &str, part: &str) -> Value {
    let kind = kinds().into_iter().find(|candidate| candidate.name == kind).unwrap();
    kind.schema["properties"][part].clone()
}

/// Nothing, read by Rust, is what the schema makes of nothing, and is Rust's own default.
fn agree<T: Default + Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(kind: &str, part: &str) {
    let nothing = json!({});
    let filled = apply_defaults(&schema_of(kind, part), &nothing);
    let read: T = serde_json::from_value(nothing).unwrap();
    assert_eq!(read, T::default(), "{kind}.{part}: serde");
    assert_eq!(serde_json::to_value(&read).unwrap(), filled, "{kind}.{part}: schema");
}

#[test]
fn an_empty_object_means_the_same_to_rust_and_to_the_api_server() {
    agree::<FencePolicySpec>("FencePolicy", "spec");
    agree::<FencePolicyStatus>("FencePolicy", "status");
    agree::<NodeRemedyStatus>("NodeRemedy", "status");
    agree::<FenceConfigSpec>("FenceConfig", "spec");
    agree::<FenceConfigStatus>("FenceConfig", "status");
    agree::<FenceTemplateStatus>("FenceTemplate", "status");
    agree::<NodeFencingRequestSpec>("NodeFencingRequest", "spec");
    agree::<NodeFencingRequestStatus>("NodeFencingRequest", "status");
    agree::<NodeFenceStatus>("NodeFence", "status");
    agree::<MachineDisruptionBudgetSpec>("MachineDisruptionBudget", "spec");
}

/// A default for an object is filled in whole, so it must say what its fields' own defaults say.
#[test]
fn nested_defaults_agree_with_their_parents() {
    for kind in kinds() {
        crate::walk::each(&kind, &mut |place| {
            if let Some(default @ Value::Object(_)) = place.schema.get("default") {
                assert_eq!(&apply_defaults(place.schema, default), default, "{}", place.path);
            }
        });
    }
}

/// Reads an object as its kind, writes it, and reads it again.
pub(crate) fn round_trip(object: &Value) -> Result<Value, serde_json::Error> {
    fn through<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
        object: &Value,
    ) -> Result<Value, serde_json::Error> {
        let read: T = serde_json::from_value(object.clone())?;
        let written = serde_json::to_value(&read)?;
        assert_eq!(serde_json::from_value::<T>(written.clone())?, read);
        Ok(written)
    }
    match object["kind"].as_str().unwrap() {
        "FencePolicy" => through::<FencePolicy>(object),
        "NodeRemedy" => through::<NodeRemedy>(object),
        "FenceConfig" => through::<FenceConfig>(object),
        "FenceTemplate" => through::<FenceTemplate>(object),
        "NodeFencingRequest" => through::<NodeFencingRequest>(object),
        "NodeFencingRequestTemplate" => through::<NodeFencingRequestTemplate>(object),
        "NodeFence" => through::<NodeFence>(object),
        "MachineDisruptionBudget" => through::<MachineDisruptionBudget>(object),
        kind => panic!("no kind {kind}"),
    }
}
