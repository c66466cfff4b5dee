//! Workload: a staged volume, given to one workload.

use std::fs;
use std::io;

use palisade_csi::Status;
use palisade_csi::messages::node::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeUnpublishVolumeRequest, NodeUnpublishVolumeResponse,
};

use super::mounts::{self, There};
use super::{Host, named, path, usable};
use crate::truth::{Event, What};

pub(super) fn publish(host: &Host, request: &NodePublishVolumeRequest) -> Result<NodePublishVolumeResponse, Status> {
    named(&request.volume_id)?;
    let target = path(&request.target_path, "target path")?;
    usable(request.volume_capability.as_ref())?;
    let staging = path(&request.staging_target_path, "staging path")?;

    let _turn = host.take_turn();
    let (volume, publication) = host.masked(&request.volume_id)?;
    let data = host.san().data(&volume.id);
    let readonly = request.readonly || publication.reads_only();
    if !matches!(mounts::look(&data, &staging)?, There::This { .. }) {
        let why = format!("{} is not staged at {}", volume.id, staging.display());
        return Err(Status::failed_precondition(why));
    }
    match mounts::look(&data, &target)? {
        There::This { readonly: is } if is == readonly => return Ok(NodePublishVolumeResponse {}),
        There::This { .. } => {
            let why = format!("{} is at {} already, in another way", volume.id, target.display());
            return Err(Status::already_exists(why));
        }
        There::Nothing => fs::create_dir_all(&target).map_err(|why| mounts::failed("make", &target, &why))?,
        There::Another => {}
    }
    mounts::bind(&staging, &target, readonly)?;
    // Taken away meanwhile: then it must not stay.
    if let Err(why) = host.masked(&request.volume_id) {
        mounts::unmount(&target)?;
        return Err(why);
    }
    host.log(Event::now(What::Mounted).of_volume(&volume.id).reading(readonly).saying(&request.target_path))?;
    tracing::info!(volume = %volume.id, path = request.target_path, readonly, "given to a workload");
    Ok(NodePublishVolumeResponse {})
}

pub(super) fn unpublish(
    host: &Host,
    request: &NodeUnpublishVolumeRequest,
) -> Result<NodeUnpublishVolumeResponse, Status> {
    let volume = named(&request.volume_id)?;
    let target = path(&request.target_path, "target path")?;

    let _turn = host.take_turn();
    let was_mounted = mounts::unmount(&target)?;
    // The directory alone, and never what is in it: it could be data.
    match fs::remove_dir(&target) {
        Err(why) if why.kind() != io::ErrorKind::NotFound => return Err(mounts::failed("remove", &target, &why)),
        Ok(()) | Err(_) => {}
    }
    if was_mounted && let Some(volume) = volume {
        host.log(Event::now(What::Unmounted).of_volume(&volume).saying(&request.target_path))?;
        tracing::info!(%volume, path = request.target_path, "taken away from a workload");
    }
    Ok(NodeUnpublishVolumeResponse {})
}
