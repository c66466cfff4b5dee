//! `NodeFencingRequest`: a claim that a node should be fenced, and the answer to it.
//!
//! Promise: a request only asks. Its spec never changes, its answer never changes once given, and the finished
//! requests are the history of a node.
//! Detectors, people, medik8s `NodeHealthCheck` and Cluster API (as external remediation) all make the same kind.

mod answer;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use answer::{ActionOutcome, NodeFencingRequestStatus, Outcome, Phase, RequestResult, Verdict};

use crate::{
    Span,
    conditions::{self, Condition},
    rules::forbid,
    schema,
};

/// A claim that a node should be fenced.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "palisade.dev",
    version = "v1alpha1",
    kind = "NodeFencingRequest",
    namespaced,
    status = "NodeFencingRequestStatus",
    shortname = "nfr",
    category = "palisade",
    derive = "PartialEq",
    doc = "A claim that a node should be fenced. It is vetted, answered with a result and kept as history. Honoured only in the namespaces that the FencePolicy lists.",
    validation = Rule::new("self.spec == oldSelf.spec")
        .message("spec: a request never changes; delete it and create another"),
    validation = Rule::new("!has(oldSelf.status) || has(self.status)")
        .message("status: an answer that was given is never removed"),
    printcolumn(name = "Node", type_ = "string", json_path = ".spec.nodeName"),
    printcolumn(name = "Cause", type_ = "string", json_path = ".spec.reason"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Why", type_ = "string", json_path = ".status.reason", description = "Why it is in that phase"),
    printcolumn(name = "Result", type_ = "string", json_path = ".status.result"),
    printcolumn(name = "Message", type_ = "string", json_path = ".status.message", priority = 1),
    printcolumn(name = "Source", type_ = "string", json_path = ".spec.source", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeFencingRequestSpec {
    /// The node. Left out by controllers that make requests from a template: then it is the annotation
    /// remediation.medik8s.io/node-name, else the node of the Machine that owns the request, else the request's own name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub node_name: Option<String>,
    /// UID of the Node, if it is known: a machine that took over the name is then not touched.
    #[serde(rename = "nodeUID", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::uid")]
    pub node_uid: Option<String>,
    /// What is wrong, in one CamelCase word, such as LeaseSilent, DiskPressure or Manual.
    #[schemars(schema_with = "schema::reason")]
    pub reason: String,
    /// What is wrong, in a sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::message")]
    pub message: String,
    /// Who asks: a detector, a controller or a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::origin")]
    pub source: Option<String>,
    /// The threshold that was crossed: the request is over when its evidence has cleared. Without one, the request is
    /// over when its operation was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<Trigger>,
    /// How far to go. Fence: isolate, and then whatever the node's FenceConfig says. PowerStep: the power step in any
    /// case (off, read back, release, on). PowerOff: the same, and the machine stays off.
    pub operation: Operation,
    /// How long to wait in case the node recovers by itself; left out, as the FencePolicy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<Span>,
}

impl Default for NodeFencingRequestSpec {
    fn default() -> Self {
        Self {
            node_name: None,
            node_uid: None,
            reason: "Requested".to_owned(),
            message: String::new(),
            source: None,
            trigger: None,
            operation: Operation::Fence,
            grace: None,
        }
    }
}

/// The threshold that was crossed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Trigger {
    /// Name of the NodeRemedy.
    #[schemars(schema_with = "schema::object_name")]
    pub remedy: String,
    /// Name of the threshold in it.
    #[schemars(schema_with = "schema::label_name")]
    pub threshold: String,
}

/// How far to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Operation {
    /// Isolate, and then as the config says.
    Fence,
    /// Isolate, and run the power step.
    PowerStep,
    /// Isolate, switch off, and stay off.
    PowerOff,
}

/// A request to be made again and again, in the form that medik8s `NodeHealthCheck` and Cluster API expect.
#[derive(CustomResource, Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "palisade.dev",
    version = "v1alpha1",
    kind = "NodeFencingRequestTemplate",
    namespaced,
    status = "NodeFencingRequestTemplateStatus",
    shortname = "nfrt",
    category = "palisade",
    derive = "PartialEq",
    doc = "A template from which medik8s NodeHealthCheck or Cluster API makes NodeFencingRequests.",
    printcolumn(name = "Operation", type_ = "string", json_path = ".spec.template.spec.operation"),
    printcolumn(name = "Accepted", type_ = "string", json_path = ".status.conditions[?(@.type=='Accepted')].status"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct NodeFencingRequestTemplateSpec {
    /// The request.
    pub template: RequestTemplate,
}

/// The request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    forbid("!has(self.spec.nodeName) && !has(self.spec.nodeUID)",
        "template.spec: nodeName and nodeUID are filled in for each node; remove them from the template"),
]))]
pub struct RequestTemplate {
    /// Its spec, without a node.
    #[serde(default)]
    pub spec: NodeFencingRequestSpec,
}

/// What is true of a request template.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NodeFencingRequestTemplateStatus {
    /// The generation of the spec that this was said about.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
    /// What is true of it: Accepted.
    #[schemars(schema_with = "conditions::list")]
    pub conditions: Vec<Condition>,
}
