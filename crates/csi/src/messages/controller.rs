//! `csi.v1.Controller`: what a driver does away from the node that uses a volume.

use std::collections::BTreeMap;

use super::hidden::hides_secrets;
use super::volume::{CapacityRange, Topology, TopologyRequirement, Volume, VolumeCapability, VolumeContentSource};
use crate::request::methods;

methods! { "csi.v1":
    CreateVolumeRequest => "Controller" / "CreateVolume", CreateVolumeResponse;
    DeleteVolumeRequest => "Controller" / "DeleteVolume", DeleteVolumeResponse;
    ControllerPublishVolumeRequest => "Controller" / "ControllerPublishVolume", ControllerPublishVolumeResponse;
    ControllerUnpublishVolumeRequest => "Controller" / "ControllerUnpublishVolume", ControllerUnpublishVolumeResponse;
    ValidateVolumeCapabilitiesRequest => "Controller" / "ValidateVolumeCapabilities", ValidateVolumeCapabilitiesResponse;
    ListVolumesRequest => "Controller" / "ListVolumes", ListVolumesResponse;
    GetCapacityRequest => "Controller" / "GetCapacity", GetCapacityResponse;
    ControllerGetCapabilitiesRequest => "Controller" / "ControllerGetCapabilities", ControllerGetCapabilitiesResponse;
}

hides_secrets! {
    CreateVolumeRequest {
        name, capacity_range, volume_capabilities, parameters, volume_content_source, accessibility_requirements,
        mutable_parameters
    }
    DeleteVolumeRequest { volume_id }
    ControllerPublishVolumeRequest { volume_id, node_id, volume_capability, readonly, volume_context }
    ControllerUnpublishVolumeRequest { volume_id, node_id }
    ValidateVolumeCapabilitiesRequest {
        volume_id, volume_context, volume_capabilities, parameters, mutable_parameters
    }
}

/// Make a volume.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct CreateVolumeRequest {
    /// The caller's name for it: asked again with the same name, the same volume is meant.
    #[prost(string, tag = "1")]
    pub name: String,
    /// How large.
    #[prost(message, optional, tag = "2")]
    pub capacity_range: Option<CapacityRange>,
    /// How it will be used: each of these has to be possible.
    #[prost(message, repeated, tag = "3")]
    pub volume_capabilities: Vec<VolumeCapability>,
    /// What the driver is told by whoever set it up.
    #[prost(btree_map = "string, string", tag = "4")]
    pub parameters: BTreeMap<String, String>,
    /// Secrets.
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
    /// What it is made from.
    #[prost(message, optional, tag = "6")]
    pub volume_content_source: Option<VolumeContentSource>,
    /// From where it has to be reached.
    #[prost(message, optional, tag = "7")]
    pub accessibility_requirements: Option<TopologyRequirement>,
    /// Parameters that can be changed later.
    #[prost(btree_map = "string, string", tag = "8")]
    pub mutable_parameters: BTreeMap<String, String>,
}

/// The volume that was made, or that was there.
#[derive(Clone, PartialEq, prost::Message)]
pub struct CreateVolumeResponse {
    /// The volume.
    #[prost(message, optional, tag = "1")]
    pub volume: Option<Volume>,
}

/// Destroy a volume.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct DeleteVolumeRequest {
    /// Which one.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// Secrets.
    #[prost(btree_map = "string, string", tag = "2")]
    pub secrets: BTreeMap<String, String>,
}

/// There is no such volume any more.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct DeleteVolumeResponse {}

/// Let a node reach a volume.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct ControllerPublishVolumeRequest {
    /// Which volume.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// Which node, by the driver's name for it.
    #[prost(string, tag = "2")]
    pub node_id: String,
    /// How it is used.
    #[prost(message, optional, tag = "3")]
    pub volume_capability: Option<VolumeCapability>,
    /// The node may not write.
    #[prost(bool, tag = "4")]
    pub readonly: bool,
    /// Secrets.
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
    /// What the driver wanted to be told.
    #[prost(btree_map = "string, string", tag = "6")]
    pub volume_context: BTreeMap<String, String>,
}

/// The node reaches it.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControllerPublishVolumeResponse {
    /// What the driver wants to be told on the node.
    #[prost(btree_map = "string, string", tag = "1")]
    pub publish_context: BTreeMap<String, String>,
}

/// Let a node reach a volume no more.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct ControllerUnpublishVolumeRequest {
    /// Which volume.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// Which node, by the driver's name for it; empty: every node.
    #[prost(string, tag = "2")]
    pub node_id: String,
    /// Secrets.
    #[prost(btree_map = "string, string", tag = "3")]
    pub secrets: BTreeMap<String, String>,
}

/// The node does not reach it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ControllerUnpublishVolumeResponse {}

/// Could this volume be used like this?
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct ValidateVolumeCapabilitiesRequest {
    /// Which one.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// What the driver wanted to be told.
    #[prost(btree_map = "string, string", tag = "2")]
    pub volume_context: BTreeMap<String, String>,
    /// How: each of these has to be possible.
    #[prost(message, repeated, tag = "3")]
    pub volume_capabilities: Vec<VolumeCapability>,
    /// What it was made with.
    #[prost(btree_map = "string, string", tag = "4")]
    pub parameters: BTreeMap<String, String>,
    /// Secrets.
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
    /// Parameters that can be changed.
    #[prost(btree_map = "string, string", tag = "6")]
    pub mutable_parameters: BTreeMap<String, String>,
}

/// Whether it could.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ValidateVolumeCapabilitiesResponse {
    /// What was confirmed; none: it cannot be used like this.
    #[prost(message, optional, tag = "1")]
    pub confirmed: Option<Confirmed>,
    /// Why not.
    #[prost(string, tag = "2")]
    pub message: String,
}

/// What was confirmed of a volume.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Confirmed {
    /// What the driver wants to be told.
    #[prost(btree_map = "string, string", tag = "1")]
    pub volume_context: BTreeMap<String, String>,
    /// How it can be used.
    #[prost(message, repeated, tag = "2")]
    pub volume_capabilities: Vec<VolumeCapability>,
    /// What it was made with.
    #[prost(btree_map = "string, string", tag = "3")]
    pub parameters: BTreeMap<String, String>,
    /// Parameters that can be changed.
    #[prost(btree_map = "string, string", tag = "4")]
    pub mutable_parameters: BTreeMap<String, String>,
}

/// Which volumes are there?
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct ListVolumesRequest {
    /// So many at most; 0: it does not matter.
    #[prost(int32, tag = "1")]
    pub max_entries: i32,
    /// Where the last page ended; empty: from the beginning.
    #[prost(string, tag = "2")]
    pub starting_token: String,
}

/// A page of volumes.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ListVolumesResponse {
    /// The volumes.
    #[prost(message, repeated, tag = "1")]
    pub entries: Vec<VolumeEntry>,
    /// Where this page ended; empty: there are no more.
    #[prost(string, tag = "2")]
    pub next_token: String,
}

/// A volume in a list.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VolumeEntry {
    /// The volume.
    #[prost(message, optional, tag = "1")]
    pub volume: Option<Volume>,
    /// What it is like.
    #[prost(message, optional, tag = "2")]
    pub status: Option<VolumeStatus>,
}

/// What a volume is like.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeStatus {
    /// The nodes that reach it.
    #[prost(string, repeated, tag = "1")]
    pub published_node_ids: Vec<String>,
}

/// How much room is left?
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetCapacityRequest {
    /// For volumes that are used like this.
    #[prost(message, repeated, tag = "1")]
    pub volume_capabilities: Vec<VolumeCapability>,
    /// For volumes that are made with these.
    #[prost(btree_map = "string, string", tag = "2")]
    pub parameters: BTreeMap<String, String>,
    /// In this place.
    #[prost(message, optional, tag = "3")]
    pub accessible_topology: Option<Topology>,
}

/// How much room is left.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct GetCapacityResponse {
    /// In all, in bytes.
    #[prost(int64, tag = "1")]
    pub available_capacity: i64,
    /// How large a volume can be.
    #[prost(message, optional, tag = "2")]
    pub maximum_volume_size: Option<i64>,
    /// How small a volume can be.
    #[prost(message, optional, tag = "3")]
    pub minimum_volume_size: Option<i64>,
}

/// What can your controller do?
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ControllerGetCapabilitiesRequest {}

/// What the controller can do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControllerGetCapabilitiesResponse {
    /// Each thing.
    #[prost(message, repeated, tag = "1")]
    pub capabilities: Vec<ControllerServiceCapability>,
}

impl ControllerGetCapabilitiesResponse {
    /// Whether this can be called.
    pub fn has(&self, rpc: ControllerRpcType) -> bool {
        self.capabilities.contains(&rpc.into())
    }
}

/// One thing that a controller can do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ControllerServiceCapability {
    /// Which kind of thing.
    #[prost(oneof = "ControllerCapabilityType", tags = "1")]
    pub r#type: Option<ControllerCapabilityType>,
}

/// Which kind of thing.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ControllerCapabilityType {
    /// Something that can be called.
    #[prost(message, tag = "1")]
    Rpc(ControllerRpc),
}

/// Something that can be called at a controller.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ControllerRpc {
    /// Which.
    #[prost(enumeration = "ControllerRpcType", tag = "1")]
    pub r#type: i32,
}

/// What can be called at a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
pub enum ControllerRpcType {
    /// Nobody said.
    Unknown = 0,
    /// Volumes are made and destroyed.
    CreateDeleteVolume = 1,
    /// Volumes are published to nodes.
    PublishUnpublishVolume = 2,
    /// Volumes are listed.
    ListVolumes = 3,
    /// It knows how much room is left.
    GetCapacity = 4,
    /// Snapshots are made and destroyed.
    CreateDeleteSnapshot = 5,
    /// Snapshots are listed.
    ListSnapshots = 6,
    /// A volume is made from another.
    CloneVolume = 7,
    /// A volume can be published for reading only.
    PublishReadonly = 8,
    /// Volumes can grow.
    ExpandVolume = 9,
    /// A list says to which nodes each volume is published.
    ListVolumesPublishedNodes = 10,
    /// A single volume can be asked for.
    GetVolume = 12,
    /// One workload is told from many of one node.
    SingleNodeMultiWriter = 13,
    /// Parameters can be changed.
    ModifyVolume = 14,
}

impl From<ControllerRpcType> for ControllerServiceCapability {
    fn from(rpc: ControllerRpcType) -> Self {
        Self { r#type: Some(ControllerCapabilityType::Rpc(ControllerRpc { r#type: rpc.into() })) }
    }
}
