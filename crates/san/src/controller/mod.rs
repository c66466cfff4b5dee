//! Controller: makes volumes, and decides which node reaches which.
//!
//! Each call reads the truth under the lock, decides, and changes it. All of them can be repeated; the codes are those that
//! the specification names for each call.

mod capabilities;
mod list;
mod publish;
mod volumes;

pub(crate) use capabilities::offered;
pub(crate) use volumes::existing;

use palisade_csi::Services;
use palisade_csi::messages::controller::{
    ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse, ControllerRpcType,
};

use crate::serve::answering;
use crate::truth::San;

/// What we can do.
const CAN: [ControllerRpcType; 6] = [
    ControllerRpcType::CreateDeleteVolume,
    ControllerRpcType::PublishUnpublishVolume,
    ControllerRpcType::PublishReadonly,
    ControllerRpcType::ListVolumes,
    ControllerRpcType::ListVolumesPublishedNodes,
    ControllerRpcType::GetCapacity,
];

/// The service.
pub(crate) fn services(san: &San) -> Services {
    Services::new()
        .on(answering(san, volumes::create))
        .on(answering(san, volumes::delete))
        .on(answering(san, volumes::room_left))
        .on(answering(san, publish::publish))
        .on(answering(san, publish::unpublish))
        .on(answering(san, capabilities::validate))
        .on(answering(san, list::list))
        .on(|_: ControllerGetCapabilitiesRequest| async {
            Ok(ControllerGetCapabilitiesResponse { capabilities: CAN.into_iter().map(Into::into).collect() })
        })
}
