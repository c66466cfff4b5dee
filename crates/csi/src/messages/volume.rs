//! What several services speak of: volumes, and how they may be used.

use std::collections::BTreeMap;

/// How a volume is to be used.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VolumeCapability {
    /// As a block device or as a file system.
    #[prost(oneof = "AccessType", tags = "1, 2")]
    pub access_type: Option<AccessType>,
    /// By whom.
    #[prost(message, optional, tag = "3")]
    pub access_mode: Option<AccessMode>,
}

/// As a block device or as a file system.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum AccessType {
    /// A block device.
    #[prost(message, tag = "1")]
    Block(BlockVolume),
    /// A file system.
    #[prost(message, tag = "2")]
    Mount(MountVolume),
}

/// A volume as a block device.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct BlockVolume {}

/// A volume as a file system.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct MountVolume {
    /// Which one; empty: what the driver likes.
    #[prost(string, tag = "1")]
    pub fs_type: String,
    /// Options of the mount. They may be secret, says the specification: do not log them.
    #[prost(string, repeated, tag = "2")]
    pub mount_flags: Vec<String>,
    /// The group that owns the files.
    #[prost(string, tag = "3")]
    pub volume_mount_group: String,
}

/// By whom a volume is to be used.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct AccessMode {
    /// Which one.
    #[prost(enumeration = "Mode", tag = "1")]
    pub mode: i32,
}

/// Who may use a volume at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
pub enum Mode {
    /// Nobody said.
    Unknown = 0,
    /// One node, reading and writing.
    SingleNodeWriter = 1,
    /// One node, reading.
    SingleNodeReaderOnly = 2,
    /// Many nodes, reading.
    MultiNodeReaderOnly = 3,
    /// Many nodes, of which one writes.
    MultiNodeSingleWriter = 4,
    /// Many nodes, reading and writing.
    MultiNodeMultiWriter = 5,
    /// One workload on one node.
    SingleNodeSingleWriter = 6,
    /// Many workloads on one node.
    SingleNodeMultiWriter = 7,
}

impl VolumeCapability {
    /// A file system, used like this.
    pub fn mount(mode: Mode) -> Self {
        Self {
            access_type: Some(AccessType::Mount(MountVolume::default())),
            access_mode: Some(AccessMode { mode: mode.into() }),
        }
    }

    /// By whom; `Unknown` if nothing that we know is said.
    pub fn mode(&self) -> Mode {
        self.access_mode.map_or(Mode::Unknown, |access| access.mode())
    }
}

/// How large a volume has to be, and may be at most. 0 means that it does not matter.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct CapacityRange {
    /// At least.
    #[prost(int64, tag = "1")]
    pub required_bytes: i64,
    /// At most.
    #[prost(int64, tag = "2")]
    pub limit_bytes: i64,
}

/// A volume.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Volume {
    /// How large it is.
    #[prost(int64, tag = "1")]
    pub capacity_bytes: i64,
    /// The driver's name for it.
    #[prost(string, tag = "2")]
    pub volume_id: String,
    /// What the driver wants to be told whenever the volume is used.
    #[prost(btree_map = "string, string", tag = "3")]
    pub volume_context: BTreeMap<String, String>,
    /// What it was made from.
    #[prost(message, optional, tag = "4")]
    pub content_source: Option<VolumeContentSource>,
    /// From where it can be reached; empty: from everywhere.
    #[prost(message, repeated, tag = "5")]
    pub accessible_topology: Vec<Topology>,
}

/// What a volume is made from.
#[derive(Clone, PartialEq, prost::Message)]
pub struct VolumeContentSource {
    /// A snapshot or another volume.
    #[prost(oneof = "ContentSource", tags = "1, 2")]
    pub r#type: Option<ContentSource>,
}

/// A snapshot or another volume.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum ContentSource {
    /// A snapshot.
    #[prost(message, tag = "1")]
    Snapshot(SnapshotSource),
    /// Another volume.
    #[prost(message, tag = "2")]
    Volume(VolumeSource),
}

/// A snapshot that a volume is made from.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct SnapshotSource {
    /// The driver's name for it.
    #[prost(string, tag = "1")]
    pub snapshot_id: String,
}

/// A volume that another is made from.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct VolumeSource {
    /// The driver's name for it.
    #[prost(string, tag = "1")]
    pub volume_id: String,
}

/// A place, such as a zone.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Topology {
    /// What it is called, by kind of place.
    #[prost(btree_map = "string, string", tag = "1")]
    pub segments: BTreeMap<String, String>,
}

/// From where a volume has to be reached.
#[derive(Clone, PartialEq, prost::Message)]
pub struct TopologyRequirement {
    /// From one of these at least.
    #[prost(message, repeated, tag = "1")]
    pub requisite: Vec<Topology>,
    /// Best from these, in this order.
    #[prost(message, repeated, tag = "2")]
    pub preferred: Vec<Topology>,
}
