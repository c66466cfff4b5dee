//! Identity: who the driver is. Served on every socket.

use palisade_csi::Services;
use palisade_csi::messages::identity::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest, GetPluginInfoResponse,
    PluginServiceType, ProbeRequest, ProbeResponse,
};

use crate::DRIVER;
use crate::truth::San;

/// The service.
pub(crate) fn services(san: &San) -> Services {
    let san = san.clone();
    Services::new()
        .on(|_: GetPluginInfoRequest| async {
            Ok(GetPluginInfoResponse {
                name: DRIVER.to_owned(),
                vendor_version: env!("CARGO_PKG_VERSION").to_owned(),
                ..GetPluginInfoResponse::default()
            })
        })
        .on(|_: GetPluginCapabilitiesRequest| async {
            Ok(GetPluginCapabilitiesResponse { capabilities: vec![PluginServiceType::ControllerService.into()] })
        })
        .on(move |_: ProbeRequest| {
            let san = san.clone();
            // A fabric that cannot be reached is a driver that is not ready.
            async move { Ok(ProbeResponse { ready: Some(san.is_there()) }) }
        })
}
