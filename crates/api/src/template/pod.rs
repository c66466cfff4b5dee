//! The user's own pod: as much of a pod template as a remedy needs.
//!
//! Promise: nobody gains more of a node by writing a `FenceTemplate` than by asking the operator. The pod runs in the
//! operator's namespace, so host namespaces, host paths, privileges and other people's volumes cannot be said here at
//! all; and a Secret comes as a file, never as an environment variable (I7).
//! Placement, owner, deadline and restart policy belong to the operator.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::{
    rules::{exactly_one, forbid, rule},
    schema,
};

/// A pod that does the work. Its exit code says whether it succeeded; the end of its log is kept for triage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodTemplate {
    /// Labels and annotations of the pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<PodMetadata>,
    /// What the pod runs.
    pub spec: PodSpec,
}

/// Labels and annotations of the pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodMetadata {
    /// Labels, for example for a NetworkPolicy.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "annotations")]
    pub annotations: BTreeMap<String, String>,
}

/// What the pod runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule("self.containers.all(container, container.volumeMounts.all(mount, self.volumes.exists(volume, volume.name == mount.name)))",
        "containers.volumeMounts: each mount names one of spec.volumes"),
]))]
pub struct PodSpec {
    /// The containers; all have to end with exit code 0.
    #[schemars(length(min = 1, max = 4), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<Container>,
    /// Never: how often a call is repeated is the template's `retries`.
    #[serde(default)]
    pub restart_policy: RestartPolicy,
    /// The service account, in the operator's namespace; left out, one without any rights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::object_name")]
    pub service_account_name: Option<String>,
    /// Secrets for pulling the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "pull_secrets")]
    pub image_pull_secrets: Vec<String>,
    /// Volumes from Secrets, ConfigMaps and empty directories.
    #[serde(default)]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub volumes: Vec<Volume>,
    /// Labels that the node which runs the pod must have, besides not being the one that is remedied.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::labels")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<Toleration>,
}

/// When a container is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RestartPolicy {
    /// Never.
    #[default]
    Never,
}

/// One container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    /// Its name.
    #[schemars(schema_with = "schema::label_name")]
    pub name: String,
    /// Its image. Name a digest: what is pulled while a node is down should be what was tested.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,
    /// The program; left out, the image's own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub command: Vec<String>,
    /// The arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64), inner(length(max = 1024)))]
    pub args: Vec<String>,
    /// Environment variables with plain values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// ConfigMaps whose keys all become environment variables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "config_maps")]
    pub env_from_config_maps: Vec<String>,
    /// Where the pod's volumes appear.
    #[serde(default)]
    #[schemars(length(max = 8))]
    pub volume_mounts: Vec<VolumeMount>,
    /// What it may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
}

/// An environment variable with a plain value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvVar {
    /// Its name.
    #[schemars(length(min = 1, max = 128), regex(pattern = "^[A-Za-z_][A-Za-z0-9_]*$"))]
    #[schemars(extend("x-kubernetes-validations" = [
        forbid("!self.startsWith('PALISADE_')", "env.name: PALISADE_ is set by the operator; choose another name"),
    ]))]
    pub name: String,
    /// Its value. Not for passwords: mount a Secret.
    #[serde(default)]
    #[schemars(length(max = 1024))]
    pub value: String,
}

/// Where a volume appears in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct VolumeMount {
    /// Name of the volume.
    #[schemars(schema_with = "schema::label_name")]
    pub name: String,
    /// Absolute path in the container.
    #[schemars(length(min = 1, max = 512), regex(pattern = "^/[^:]*$"))]
    pub mount_path: String,
}

/// What a container may use, as Kubernetes quantities such as `100m` and `64Mi`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Resources {
    /// What is reserved for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub requests: BTreeMap<String, String>,
    /// What it may use at most.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "quantities")]
    pub limits: BTreeMap<String, String>,
}

/// A volume: exactly one of its sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(&exactly_one(&["secret", "configMap", "emptyDir"]), "volumes: give exactly one of secret, configMap and emptyDir"),
]))]
pub struct Volume {
    /// Its name.
    #[schemars(schema_with = "schema::label_name")]
    pub name: String,
    /// The keys of a Secret as files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretVolume>,
    /// The keys of a ConfigMap as files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapVolume>,
    /// An empty directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirVolume>,
}

/// The keys of a Secret as files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SecretVolume {
    /// Name of the Secret, in the operator's namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub secret_name: String,
}

/// The keys of a ConfigMap as files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigMapVolume {
    /// Name of the ConfigMap, in the operator's namespace.
    #[schemars(schema_with = "schema::object_name")]
    pub name: String,
}

/// An empty directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EmptyDirVolume {
    /// Its size at most, such as `64Mi`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "quantity")]
    pub size_limit: Option<String>,
}

/// A taint that the pod tolerates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Toleration {
    /// The taint's key.
    #[schemars(schema_with = "schema::qualified_name")]
    pub key: String,
    /// The taint's value; left out, any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_value")]
    pub value: Option<String>,
}

fn annotations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": { "type": "string", "maxLength": 1024 }, "maxProperties": 32 })
}

fn quantity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 16, "pattern": "^[0-9]+(\\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?$" })
}

fn quantities(make: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": quantity(make), "maxProperties": 8 })
}

fn config_maps(make: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "array", "items": schema::object_name(make), "maxItems": 8, "x-kubernetes-list-type": "set" })
}

fn pull_secrets(make: &mut SchemaGenerator) -> Schema {
    config_maps(make)
}
