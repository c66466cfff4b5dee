//! Volumes: made, destroyed, and how many more fit.

use std::collections::BTreeMap;

use palisade_csi::Status;
use palisade_csi::messages::controller::{
    CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest, DeleteVolumeResponse, GetCapacityRequest,
    GetCapacityResponse,
};
use palisade_csi::messages::volume::{self as csi, CapacityRange};

use super::capabilities::{asked_for, offered};
use crate::serve::out_of_order;
use crate::truth::{Id, San, Volume};

const GIB: i64 = 1 << 30;
/// What is given to who does not say how much.
const USUAL: i64 = GIB;
/// The largest volume.
const LARGEST: i64 = 1024 * GIB;
/// What all volumes may have together. Nobody writes that much in a lab; the number is there to be run out of.
const ROOM: i64 = 16 * LARGEST;

pub(super) fn create(san: &San, request: &CreateVolumeRequest) -> Result<CreateVolumeResponse, Status> {
    if request.name.is_empty() {
        return Err(Status::invalid_argument("the name is missing"));
    }
    asked_for(&request.volume_capabilities)?;
    for capability in &request.volume_capabilities {
        offered(capability).map_err(Status::invalid_argument)?;
    }
    if request.volume_content_source.is_some() {
        return Err(Status::invalid_argument("volumes are made empty: there are no snapshots and no clones"));
    }
    if !request.mutable_parameters.is_empty() {
        return Err(Status::invalid_argument("there are no parameters that could be changed"));
    }
    let range = request.capacity_range.unwrap_or_default();
    let bytes = size(range)?;

    let locked = san.lock().map_err(|why| out_of_order(&why))?;
    let all = san.volumes().map_err(|why| out_of_order(&why))?;
    if let Some(there) = all.iter().find(|volume| volume.name == request.name) {
        if !fits(there.bytes, range) || there.parameters != request.parameters {
            let why = format!("{} is there, but has {} bytes, or other parameters", request.name, there.bytes);
            return Err(Status::already_exists(why));
        }
        return Ok(CreateVolumeResponse { volume: Some(told(there)) });
    }
    if left(&all) < bytes {
        return Err(Status::resource_exhausted(format!("{bytes} bytes asked for, {} bytes left", left(&all))));
    }
    let id = Id::like(&request.name, |id| all.iter().any(|volume| volume.id == *id));
    let (name, parameters) = (request.name.clone(), request.parameters.clone());
    let made = Volume { id, name, bytes, parameters, published: BTreeMap::new() };
    locked.create(&made).map_err(|why| out_of_order(&why))?;
    tracing::info!(volume = %made.id, bytes, "made a volume");
    Ok(CreateVolumeResponse { volume: Some(told(&made)) })
}

pub(super) fn delete(san: &San, request: &DeleteVolumeRequest) -> Result<DeleteVolumeResponse, Status> {
    let locked = san.lock().map_err(|why| out_of_order(&why))?;
    let Some(volume) = find(san, &request.volume_id)? else { return Ok(DeleteVolumeResponse {}) };
    if let Some(node) = volume.published.keys().next() {
        let why = format!("{} is in use: it is published to node {node}", volume.id);
        return Err(Status::failed_precondition(why));
    }
    locked.delete(&volume.id).map_err(|why| out_of_order(&why))?;
    tracing::info!(volume = %volume.id, "destroyed a volume and its data");
    Ok(DeleteVolumeResponse {})
}

pub(super) fn room_left(san: &San, request: &GetCapacityRequest) -> Result<GetCapacityResponse, Status> {
    let all = san.volumes().map_err(|why| out_of_order(&why))?;
    let possible = request.volume_capabilities.iter().all(|one| offered(one).is_ok());
    Ok(GetCapacityResponse {
        available_capacity: if possible { left(&all) } else { 0 },
        maximum_volume_size: Some(LARGEST),
        minimum_volume_size: None,
    })
}

/// A volume, as far as there is one. An ID that no volume can have is the ID of no volume.
pub(crate) fn find(san: &San, id: &str) -> Result<Option<Volume>, Status> {
    if id.is_empty() {
        return Err(Status::invalid_argument("the volume ID is missing"));
    }
    Id::read(id).map_or(Ok(None), |id| san.volume(&id).map_err(|why| out_of_order(&why)))
}

/// A volume that has to be there.
pub(crate) fn existing(san: &San, id: &str) -> Result<Volume, Status> {
    find(san, id)?.ok_or_else(|| Status::not_found(format!("there is no volume {id}")))
}

/// A volume, as we tell others of it.
pub(super) fn told(volume: &Volume) -> csi::Volume {
    csi::Volume { capacity_bytes: volume.bytes, volume_id: volume.id.to_string(), ..csi::Volume::default() }
}

fn size(range: CapacityRange) -> Result<i64, Status> {
    let CapacityRange { required_bytes: least, limit_bytes: most } = range;
    if least < 0 || most < 0 || (most > 0 && least > most) {
        return Err(Status::invalid_argument(format!("at least {least} and at most {most} bytes: that is no size")));
    }
    if least > LARGEST {
        return Err(Status::out_of_range(format!("{least} bytes asked for, a volume has {LARGEST} at most")));
    }
    Ok(match (least, most) {
        (0, 0) => USUAL,
        (0, most) => USUAL.min(most),
        (least, _) => least,
    })
}

fn fits(bytes: i64, range: CapacityRange) -> bool {
    bytes >= range.required_bytes && (range.limit_bytes == 0 || bytes <= range.limit_bytes)
}

fn left(all: &[Volume]) -> i64 {
    ROOM.saturating_sub(all.iter().map(|volume| volume.bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_csi::Code;

    #[test]
    fn a_size_is_what_was_asked_for_or_the_usual_one() {
        let size =
            |required_bytes, limit_bytes| size(CapacityRange { required_bytes, limit_bytes }).map_err(|why| why.code());
        assert_eq!(size(0, 0), Ok(USUAL));
        assert_eq!(size(5, 0), Ok(5));
        assert_eq!(size(5, 9), Ok(5));
        assert_eq!(size(0, 9), Ok(9));
        assert_eq!(size(0, 2 * USUAL), Ok(USUAL));
        assert_eq!(size(9, 5), Err(Code::InvalidArgument));
        assert_eq!(size(-1, 0), Err(Code::InvalidArgument));
        assert_eq!(size(LARGEST + 1, 0), Err(Code::OutOfRange));
    }
}
