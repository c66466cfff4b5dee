//! `csi.v1.Identity`: who the driver is, and what it can do at all.

use std::collections::BTreeMap;

use crate::request::methods;

methods! { "csi.v1":
    GetPluginInfoRequest => "Identity" / "GetPluginInfo", GetPluginInfoResponse;
    GetPluginCapabilitiesRequest => "Identity" / "GetPluginCapabilities", GetPluginCapabilitiesResponse;
    ProbeRequest => "Identity" / "Probe", ProbeResponse;
}

/// Who are you?
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct GetPluginInfoRequest {}

/// Who the driver is.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetPluginInfoResponse {
    /// Its name, as a domain name: `lab.palisade.dev`.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Its version, in whatever form.
    #[prost(string, tag = "2")]
    pub vendor_version: String,
    /// What else it wants to say of itself.
    #[prost(btree_map = "string, string", tag = "3")]
    pub manifest: BTreeMap<String, String>,
}

/// What can you do?
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct GetPluginCapabilitiesRequest {}

/// What the driver can do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct GetPluginCapabilitiesResponse {
    /// Each thing.
    #[prost(message, repeated, tag = "1")]
    pub capabilities: Vec<PluginCapability>,
}

/// One thing that a driver can do.
#[derive(Clone, PartialEq, prost::Message)]
pub struct PluginCapability {
    /// Which kind of thing. We know services only.
    #[prost(oneof = "PluginCapabilityType", tags = "1")]
    pub r#type: Option<PluginCapabilityType>,
}

/// Which kind of thing.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum PluginCapabilityType {
    /// It serves a service.
    #[prost(message, tag = "1")]
    Service(PluginService),
}

/// A service that a driver serves.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct PluginService {
    /// Which one.
    #[prost(enumeration = "PluginServiceType", tag = "1")]
    pub r#type: i32,
}

/// Services beside Identity and Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, prost::Enumeration)]
pub enum PluginServiceType {
    /// Nobody said.
    Unknown = 0,
    /// The Controller service.
    ControllerService = 1,
    /// Not every volume can be reached from everywhere.
    VolumeAccessibilityConstraints = 2,
    /// The GroupController service.
    GroupControllerService = 3,
}

impl From<PluginServiceType> for PluginCapability {
    fn from(service: PluginServiceType) -> Self {
        Self { r#type: Some(PluginCapabilityType::Service(PluginService { r#type: service.into() })) }
    }
}

/// Are you well?
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ProbeRequest {}

/// Whether the driver is well.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct ProbeResponse {
    /// Ready, still starting, or not said (which counts as ready).
    #[prost(message, optional, tag = "1")]
    pub ready: Option<bool>,
}
