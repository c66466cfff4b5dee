//! Which ways of use we offer, and whether a volume could be used so.

use palisade_csi::Status;
use palisade_csi::messages::controller::{
    Confirmed, ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse,
};
use palisade_csi::messages::volume::{AccessType, VolumeCapability};

use super::volumes::existing;
use crate::truth::{Access, San};

pub(super) fn validate(
    san: &San,
    request: &ValidateVolumeCapabilitiesRequest,
) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
    asked_for(&request.volume_capabilities)?;
    existing(san, &request.volume_id)?;
    let missing = request.volume_capabilities.iter().find_map(|one| offered(one).err());
    Ok(match missing {
        Some(message) => ValidateVolumeCapabilitiesResponse { confirmed: None, message },
        None => ValidateVolumeCapabilitiesResponse {
            confirmed: Some(Confirmed {
                volume_context: request.volume_context.clone(),
                volume_capabilities: request.volume_capabilities.clone(),
                parameters: request.parameters.clone(),
                mutable_parameters: request.mutable_parameters.clone(),
            }),
            message: String::new(),
        },
    })
}

/// Somebody has to say how a volume is used.
pub(super) fn asked_for(capabilities: &[VolumeCapability]) -> Result<(), Status> {
    if capabilities.is_empty() {
        return Err(Status::invalid_argument("volume capabilities are missing"));
    }
    Ok(())
}

/// The access that is meant, or why we do not offer it.
pub(crate) fn offered(capability: &VolumeCapability) -> Result<Access, String> {
    match &capability.access_type {
        Some(AccessType::Mount(_)) => {}
        Some(AccessType::Block(_)) => return Err("this SAN has directories, no block devices".to_owned()),
        None => return Err("neither mount nor block is asked for".to_owned()),
    }
    let mode = capability.mode();
    Access::read(mode).ok_or_else(|| format!("access mode {mode:?} is not offered"))
}
