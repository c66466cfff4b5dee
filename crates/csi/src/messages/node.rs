//! `csi.v1.Node`: what a driver does on the node that uses a volume.

use std::collections::BTreeMap;

use super::hidden::hides_secrets;
use super::volume::{Topology, VolumeCapability};
use crate::request::methods;

methods! { "csi.v1":
    NodeStageVolumeRequest => "Node" / "NodeStageVolume", NodeStageVolumeResponse;
    NodeUnstageVolumeRequest => "Node" / "NodeUnstageVolume", NodeUnstageVolumeResponse;
    NodePublishVolumeRequest => "Node" / "NodePublishVolume", NodePublishVolumeResponse;
    NodeUnpublishVolumeRequest => "Node" / "NodeUnpublishVolume", NodeUnpublishVolumeResponse;
    NodeGetVolumeStatsRequest => "Node" / "NodeGetVolumeStats", NodeGetVolumeStatsResponse;
    NodeGetCapabilitiesRequest => "Node" / "NodeGetCapabilities", NodeGetCapabilitiesResponse;
    NodeGetInfoRequest => "Node" / "NodeGetInfo", NodeGetInfoResponse;
}

hides_secrets! {
    NodeStageVolumeRequest { volume_id, publish_context, staging_target_path, volume_capability, volume_context }
    NodePublishVolumeRequest {
        volume_id, publish_context, staging_target_path, target_path, volume_capability, readonly, volume_context
    }
}

/// Bring a volume to this node, for all its workloads.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct NodeStageVolumeRequest {
    /// Which one.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// What the controller said when it published the volume to this node.
    #[prost(btree_map = "string, string", tag = "2")]
    pub publish_context: BTreeMap<String, String>,
    /// Where to. The directory is there already.
    #[prost(string, tag = "3")]
    pub staging_target_path: String,
    /// How it is used.
    #[prost(message, optional, tag = "4")]
    pub volume_capability: Option<VolumeCapability>,
    /// Secrets.
    #[prost(btree_map = "string, string", tag = "5")]
    pub secrets: BTreeMap<String, String>,
    /// What the driver wanted to be told.
    #[prost(btree_map = "string, string", tag = "6")]
    pub volume_context: BTreeMap<String, String>,
}

/// It is there.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NodeStageVolumeResponse {}

/// Take a volume away from this node.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeUnstageVolumeRequest {
    /// Which one.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// Where it is.
    #[prost(string, tag = "2")]
    pub staging_target_path: String,
}

/// It is not there any more.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NodeUnstageVolumeResponse {}

/// Give a volume to a workload.
#[derive(Clone, PartialEq, prost::Message)]
#[prost(skip_debug)]
pub struct NodePublishVolumeRequest {
    /// Which one.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// What the controller said when it published the volume to this node.
    #[prost(btree_map = "string, string", tag = "2")]
    pub publish_context: BTreeMap<String, String>,
    /// Where it was staged.
    #[prost(string, tag = "3")]
    pub staging_target_path: String,
    /// Where to. The driver makes it; what it lies in is there already.
    #[prost(string, tag = "4")]
    pub target_path: String,
    /// How it is used.
    #[prost(message, optional, tag = "5")]
    pub volume_capability: Option<VolumeCapability>,
    /// The workload may not write.
    #[prost(bool, tag = "6")]
    pub readonly: bool,
    /// Secrets.
    #[prost(btree_map = "string, string", tag = "7")]
    pub secrets: BTreeMap<String, String>,
    /// What the driver wanted to be told.
    #[prost(btree_map = "string, string", tag = "8")]
    pub volume_context: BTreeMap<String, String>,
}

/// The workload has it.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NodePublishVolumeResponse {}

/// Take a volume away from a workload.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeUnpublishVolumeRequest {
    /// Which one.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// Where it is.
    #[prost(string, tag = "2")]
    pub target_path: String,
}

/// The workload has it no more.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NodeUnpublishVolumeResponse {}

/// How full is it?
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeGetVolumeStatsRequest {
    /// Which one.
    #[prost(string, tag = "1")]
    pub volume_id: String,
    /// Where it is.
    #[prost(string, tag = "2")]
    pub volume_path: String,
    /// Where it was staged.
    #[prost(string, tag = "3")]
    pub staging_target_path: String,
}

/// How full it is.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct NodeGetVolumeStatsResponse {
    /// By unit.
    #[prost(message, repeated, tag = "1")]
    pub usage: Vec<VolumeUsage>,
}

/// How full a volume is, in one unit.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct VolumeUsage {
    /// Left.
    #[prost(int64, tag = "1")]
    pub available: i64,
    /// In all.
    #[prost(int64, tag = "2")]
    pub total: i64,
    /// In use.
    #[prost(int64, tag = "3")]
    pub used: i64,
    /// The unit.
    #[prost(enumeration = "UsageUnit", tag = "4")]
    pub unit: i32,
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
pub enum UsageUnit {
    /// Nobody said.
    Unknown = 0,
    /// Bytes.
    Bytes = 1,
    /// Files and directories.
    Inodes = 2,
}

/// What can you do on a node?
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NodeGetCapabilitiesRequest {}

/// What the driver can do on a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeGetCapabilitiesResponse {
    /// Each thing.
    #[prost(message, repeated, tag = "1")]
    pub capabilities: Vec<NodeServiceCapability>,
}

/// One thing that a driver can do on a node.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeServiceCapability {
    /// Which kind of thing.
    #[prost(oneof = "NodeCapabilityType", tags = "1")]
    pub r#type: Option<NodeCapabilityType>,
}

/// Which kind of thing.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum NodeCapabilityType {
    /// Something that can be called.
    #[prost(message, tag = "1")]
    Rpc(NodeRpc),
}

/// Something that can be called on a node.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NodeRpc {
    /// Which.
    #[prost(enumeration = "NodeRpcType", tag = "1")]
    pub r#type: i32,
}

/// What can be called on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
pub enum NodeRpcType {
    /// Nobody said.
    Unknown = 0,
    /// Volumes are staged before they are published.
    StageUnstageVolume = 1,
    /// It knows how full volumes are.
    GetVolumeStats = 2,
    /// Volumes can grow.
    ExpandVolume = 3,
    /// One workload is told from many of one node.
    SingleNodeMultiWriter = 5,
    /// Files can be given to a group.
    VolumeMountGroup = 6,
}

impl From<NodeRpcType> for NodeServiceCapability {
    fn from(rpc: NodeRpcType) -> Self {
        Self { r#type: Some(NodeCapabilityType::Rpc(NodeRpc { r#type: rpc.into() })) }
    }
}

/// Which node is this?
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct NodeGetInfoRequest {}

/// Which node it is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct NodeGetInfoResponse {
    /// The driver's name for it.
    #[prost(string, tag = "1")]
    pub node_id: String,
    /// How many volumes it takes; 0: it does not matter.
    #[prost(int64, tag = "2")]
    pub max_volumes_per_node: i64,
    /// Where it is.
    #[prost(message, optional, tag = "3")]
    pub accessible_topology: Option<Topology>,
}
