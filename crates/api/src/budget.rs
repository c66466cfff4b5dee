//! `MachineDisruptionBudget`: how many machines of a group may be missing at once.
//!
//! Promise: the kind that OpenShift shipped in 4.2 and then dropped, with its group, names and fields, so that objects,
//! scripts and controllers written for it work unchanged. Short name `mdb`.

use std::collections::BTreeMap;

use jiff::Timestamp;
use kube::CustomResource;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{rules::forbid, selector::LabelSelector};

/// How many machines of a group may be missing at once.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "healthchecking.openshift.io",
    version = "v1alpha1",
    kind = "MachineDisruptionBudget",
    namespaced,
    status = "MachineDisruptionBudgetStatus",
    shortname = "mdb",
    shortname = "mdbs",
    category = "palisade",
    derive = "PartialEq",
    doc = "How many machines of a group may be missing at once. A machine is fenced only while the budget allows one more; the machine that is to be fenced does not count against itself.",
    printcolumn(
        name = "Healthy",
        type_ = "integer",
        json_path = ".status.currentHealthy",
        description = "Healthy machines"
    ),
    printcolumn(
        name = "Total",
        type_ = "integer",
        json_path = ".status.total",
        description = "Machines that the selector matches"
    ),
    printcolumn(
        name = "Desired",
        type_ = "integer",
        json_path = ".status.desiredHealthy",
        description = "Machines that must stay healthy"
    ),
    printcolumn(
        name = "Allowed",
        type_ = "integer",
        json_path = ".status.disruptionsAllowed",
        description = "Machines that may be disrupted now"
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    forbid("!(has(self.minAvailable) && has(self.maxUnavailable))",
        "minAvailable and maxUnavailable exclude each other; keep one of them"),
]))]
pub struct MachineDisruptionBudgetSpec {
    /// So many machines must stay available. Excludes maxUnavailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub min_available: Option<i32>,
    /// So many machines may be unavailable; 0 lets none be disrupted. Excludes minAvailable.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100_000))]
    pub max_unavailable: Option<i32>,
    /// The machines that the budget is about. Unlike elsewhere, an empty or missing selector matches none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
}

/// What the budget comes to now. Valid only if observedGeneration is the object's generation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MachineDisruptionBudgetStatus {
    /// The generation of the spec that the numbers belong to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// Machines whose disruption was granted and is not seen yet, with the time of the grant.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "disrupted")]
    pub disrupted_machines: BTreeMap<String, Timestamp>,
    /// Machines that may be disrupted now.
    #[schemars(range(min = 0))]
    pub disruptions_allowed: i32,
    /// Healthy machines.
    #[schemars(range(min = 0))]
    pub current_healthy: i32,
    /// Machines that must stay healthy.
    #[schemars(range(min = 0))]
    pub desired_healthy: i32,
    /// Machines that the selector matches.
    #[schemars(range(min = 0))]
    pub total: i32,
}

fn disrupted(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": { "type": "string", "format": "date-time" },
        // OpenShift's own limit: more than this means that nobody is cleaning up.
        "maxProperties": 50,
    })
}
