//! Choosing objects by their labels.
//!
//! Promise: the same words and the same meaning as in Kubernetes, with bounds, and with the mistakes that
//! Kubernetes finds late (an operator without its values) refused by the schema.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{rules::rule, schema};

/// Chooses objects by their labels; all parts must match. An empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be there with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements that are more than equality.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<Requirement>,
}

/// One requirement on one label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self.operator in ['In', 'NotIn'] ? has(self.values) && size(self.values) > 0 : !has(self.values) || size(self.values) == 0",
        "values: In and NotIn need at least one value; Exists and DoesNotExist take none"),
]))]
pub struct Requirement {
    /// The label's key.
    #[schemars(schema_with = "schema::qualified_name")]
    pub key: String,
    /// How the label is compared: In, NotIn, Exists or DoesNotExist.
    pub operator: Operator,
    /// What the label is compared with: needed by In and NotIn, refused by the others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 63)))]
    pub values: Vec<String>,
}

/// How a label is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operator {
    /// The value is one of `values`.
    In,
    /// The value is none of `values`, or the label is missing.
    NotIn,
    /// The label is there.
    Exists,
    /// The label is missing.
    DoesNotExist,
}

impl From<LabelSelector> for meta::LabelSelector {
    fn from(selector: LabelSelector) -> Self {
        Self {
            match_labels: Some(selector.match_labels),
            match_expressions: Some(selector.match_expressions.into_iter().map(Into::into).collect()),
        }
    }
}

impl From<Requirement> for meta::LabelSelectorRequirement {
    fn from(requirement: Requirement) -> Self {
        Self {
            key: requirement.key,
            operator: requirement.operator.as_str().to_owned(),
            values: Some(requirement.values),
        }
    }
}

impl Operator {
    /// The word that Kubernetes uses.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::In => "In",
            Self::NotIn => "NotIn",
            Self::Exists => "Exists",
            Self::DoesNotExist => "DoesNotExist",
        }
    }
}
