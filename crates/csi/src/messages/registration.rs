//! Kubelet's `pluginregistration.v1`: how a kubelet gets to know a driver on its node.
//!
//! The package is called `pluginregistration`, without a version ("this should have been v1", says its source).

use crate::request::methods;

methods! { "pluginregistration":
    InfoRequest => "Registration" / "GetInfo", PluginInfo;
    RegistrationStatus => "Registration" / "NotifyRegistrationStatus", RegistrationStatusResponse;
}

/// What a driver that follows CSI says in [`PluginInfo::type`](PluginInfo).
pub const CSI_PLUGIN: &str = "CSIPlugin";

/// Who are you?
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct InfoRequest {}

/// Who the plugin is, and where it is spoken to.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct PluginInfo {
    /// [`CSI_PLUGIN`].
    #[prost(string, tag = "1")]
    pub r#type: String,
    /// The name of the driver.
    #[prost(string, tag = "2")]
    pub name: String,
    /// The path of the socket on which the driver serves.
    #[prost(string, tag = "3")]
    pub endpoint: String,
    /// The versions of CSI that it speaks.
    #[prost(string, repeated, tag = "4")]
    pub supported_versions: Vec<String>,
}

/// What came of the registration.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub struct RegistrationStatus {
    /// The kubelet knows the driver now.
    #[prost(bool, tag = "1")]
    pub plugin_registered: bool,
    /// Why not.
    #[prost(string, tag = "2")]
    pub error: String,
}

/// Heard.
#[derive(Clone, Copy, PartialEq, Eq, prost::Message)]
pub struct RegistrationStatusResponse {}
