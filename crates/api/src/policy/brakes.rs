//! The gates of a policy: what must be true of the world before a node is cut off.
//!
//! Promise (I3): the defaults let the first failure through within seconds, and hold when the observer may be at fault.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Portion, Span, names::labels, rules::rule, schema, selector::LabelSelector};

/// Nodes that are never fenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Exclusions {
    /// Nodes with these labels are never fenced; left out, none are excluded this way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_selector: Option<LabelSelector>,
    /// Whether a node is left alone that others have marked: the skip, pause and exclude marks of Cluster API, medik8s,
    /// Deckhouse and kube-fencing; the drain taints of maintenance operators; the taints of the cluster autoscaler and of
    /// Karpenter on nodes that they remove; a reboot by kured, and a change by the machine-config-operator, under way.
    /// The annotation palisade.dev/maintenance counts in any case.
    pub honour_peer_annotations: bool,
}

impl Default for Exclusions {
    fn default() -> Self {
        Self { node_selector: None, honour_peer_annotations: true }
    }
}

/// Times in which nothing is admitted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Quiet {
    /// How long each operator process watches before it believes what it sees, from its start, not from its leadership.
    ///
    /// One minute: a living kubelet renews its Lease every 10 s, and the control plane itself needs 50 s to call a node
    /// unreachable, so whatever is still silent after 60 s is not just unseen. (oVirt waits 300 s, because its one engine
    /// is also the one that restarts; here a standby has been watching all the time.)
    pub startup: Span,
}

impl Default for Quiet {
    fn default() -> Self {
        Self { startup: Span::from_secs(60) }
    }
}

/// How many nodes may be down before the observer doubts itself. The first failure is never blocked, and when
/// everything is down it is always the observer who is at fault; neither can be changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Storm {
    /// Share (`40%`) or number (`3`) of the cluster's nodes that may be down.
    pub cluster: Portion,
    /// Failure domains with limits of their own.
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["topologyKey"]))]
    pub domains: Vec<Domain>,
}

impl Default for Storm {
    fn default() -> Self {
        Self {
            cluster: Portion::Percent(40),
            domains: vec![Domain {
                topology_key: labels::ZONE.to_owned(),
                limit: Portion::Percent(40),
                whole_domain: WholeDomain::Hold,
            }],
        }
    }
}

/// One kind of failure domain: zone, rack, switch, power feed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Domain {
    /// The node label whose values are the domains.
    #[schemars(schema_with = "schema::qualified_name")]
    pub topology_key: String,
    /// Share (`40%`) or number (`3`) of a domain's nodes that may be down.
    #[serde(default = "forty_percent")]
    pub limit: Portion,
    /// When a whole domain is down while others live. Hold: fence none of it. Fence: it really is gone, fence its nodes.
    #[serde(default)]
    pub whole_domain: WholeDomain,
}

fn forty_percent() -> Portion {
    Portion::Percent(40)
}

/// What a domain that is wholly down means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WholeDomain {
    /// We may just not see it.
    #[default]
    Hold,
    /// It is gone.
    Fence,
}

/// When the operator is blind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Observer {
    /// After so long without an answer from the API server, the operator was blind: all its timers begin anew.
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1s')", "observer.outage: at least 1s, or every hiccup resets all timers")]))]
    pub outage: Span,
    /// How long nothing is admitted after that.
    pub settle: Span,
}

impl Default for Observer {
    fn default() -> Self {
        Self { outage: Span::from_secs(15), settle: Span::from_secs(60) }
    }
}

/// How much may happen at once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Budget {
    /// Fences that may be in flight at once.
    #[schemars(range(min = 1, max = 100))]
    pub max_concurrent: u32,
    /// Least time between two admissions.
    pub spacing: Span,
    /// Most admissions in a time; left out, only the other two limits count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { max_concurrent: 1, spacing: Span::ZERO, rate: None }
    }
}

/// So many in a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// How many.
    #[schemars(range(min = 1, max = 100))]
    pub count: u32,
    /// In which time.
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1s')", "rate.per: at least 1s")]))]
    pub per: Span,
}

/// Care for the control plane.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ControlPlane {
    /// Fence a control-plane node only if those that remain are a quorum, and only one at a time.
    pub protect_quorum: bool,
}

impl Default for ControlPlane {
    fn default() -> Self {
        Self { protect_quorum: true }
    }
}

/// Storage systems that must be well before a node is cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageGates {
    /// Names of storage providers whose data must be fully redundant (Ceph: every placement group clean).
    #[schemars(schema_with = "schema::providers")]
    pub providers: Vec<String>,
    /// Whether MachineDisruptionBudgets are obeyed.
    pub machine_disruption_budgets: bool,
    /// An answer older than this closes the gate.
    #[schemars(extend("x-kubernetes-validations" = [rule("duration(self) >= duration('1s')", "storageGates.maxAge: at least 1s, or the gate never opens")]))]
    pub max_age: Span,
}

impl Default for StorageGates {
    fn default() -> Self {
        Self { providers: Vec::new(), machine_disruption_budgets: true, max_age: Span::from_secs(90) }
    }
}

/// What to do about a node that writes a kernel dump.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Kdump {
    /// How long after a failure a dump has to begin before the node is fenced; 0s: nobody waits for one. A dump that has begun
    /// holds the fence until nothing was heard of it for 90s. This version does not listen for dumps yet: all that the wait
    /// does is to delay.
    pub wait: Span,
    /// Whether a dump counts as a proof that the workload has stopped. Its packets are not authenticated: anybody on
    /// the network could say so. Evidence only, by default. This version does not listen for dumps yet, so none proves
    /// anything.
    pub proves: bool,
}

/// When a node fails so often that fencing it again is no help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Flap {
    /// After so many fences of one node it is held for a person to look at.
    #[schemars(range(min = 1, max = 100))]
    pub count: u32,
    /// In this time.
    pub window: Span,
}

impl Default for Flap {
    fn default() -> Self {
        Self { count: 3, window: Span::from_hours(1) }
    }
}

/// Who else must have seen that the node is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Witness {
    /// Whether a request that rests on a silent Lease alone waits until a witness (kubelet port, power state, storage
    /// heartbeat) agrees or the control plane calls the node Unknown. Without it a dead network path fences a node.
    pub required: bool,
}

impl Default for Witness {
    fn default() -> Self {
        Self { required: true }
    }
}
