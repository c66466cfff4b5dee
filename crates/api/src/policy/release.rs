//! How pods are released once a proof is in force.
//!
//! Promise (I2): nothing here replaces a proof. These settings only make a release rarer or slower.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Span, names::labels, rules::rule, schema};

/// How pods are released.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Release {
    /// Release under a storage or driver proof: the node may still run, only its writes are stopped.
    pub pod_lane: PodLane,
    /// Most pods released in a time; left out, all that may go now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Whether PodDisruptionBudgets hold up a release. The pods are down already: no, by default.
    pub respect_disruption_budgets: bool,
    /// Whether the taint node.kubernetes.io/out-of-service is set. Never: Palisade releases pods and volumes itself.
    /// WithPowerProof: after the release of all pods that have volumes, for CSI drivers that act on the taint.
    pub out_of_service: OutOfService,
}

impl Default for Release {
    fn default() -> Self {
        Self {
            pod_lane: PodLane::default(),
            pace: None,
            respect_disruption_budgets: false,
            out_of_service: OutOfService::Never,
        }
    }
}

/// Release under a storage or driver proof.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    rule("!self.requireOptIn || size(self.optInLabels) > 0",
        "podLane.optInLabels: name at least one label, or set requireOptIn to false"),
]))]
pub struct PodLane {
    /// Labels (`key=value`) that opt a pod in; one is enough.
    #[schemars(schema_with = "schema::label_pairs")]
    pub opt_in_labels: Vec<String>,
    /// Whether a pod must opt in. Storage cannot stop what a pod does over the network: only its owner knows whether
    /// that matters.
    pub require_opt_in: bool,
}

impl Default for PodLane {
    fn default() -> Self {
        let opt_in = |label: &str| format!("{label}={}", labels::FENCED_VALUE);
        Self { opt_in_labels: vec![opt_in(labels::FENCED), opt_in(labels::STORAGEOS_FENCED)], require_opt_in: true }
    }
}

/// So many pods in a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pace {
    /// How many pods.
    #[schemars(range(min = 1, max = 1000))]
    pub pods: u32,
    /// In which time.
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1s')", "pace.per: at least 1s")]))]
    pub per: Span,
}

/// Whether the out-of-service taint is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum OutOfService {
    /// Never.
    Never,
    /// Under a power proof, after the pods with volumes are gone.
    WithPowerProof,
}
