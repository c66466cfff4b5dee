//! Stage: a volume on a node, for all its workloads.

use palisade_csi::Status;
use palisade_csi::messages::node::{
    NodeStageVolumeRequest, NodeStageVolumeResponse, NodeUnstageVolumeRequest, NodeUnstageVolumeResponse,
};

use super::mounts::{self, There};
use super::{Host, named, path, usable};
use crate::truth::{Event, What};

pub(super) fn stage(host: &Host, request: &NodeStageVolumeRequest) -> Result<NodeStageVolumeResponse, Status> {
    named(&request.volume_id)?;
    let staging = path(&request.staging_target_path, "staging path")?;
    usable(request.volume_capability.as_ref())?;

    let _turn = host.take_turn();
    let (volume, publication) = host.masked(&request.volume_id)?;
    let (data, readonly) = (host.san().data(&volume.id), publication.reads_only());
    match mounts::look(&data, &staging)? {
        There::This { readonly: is } if is == readonly => return Ok(NodeStageVolumeResponse {}),
        There::This { .. } => {
            let why = format!("{} is staged already, but writable where it should not be, or not writable", volume.id);
            return Err(Status::already_exists(why));
        }
        There::Nothing => {
            std::fs::create_dir_all(&staging).map_err(|why| mounts::failed("make", &staging, &why))?;
        }
        There::Another => {}
    }
    mounts::bind(&data, &staging, readonly)?;
    // Taken away meanwhile: then it must not stay.
    if let Err(why) = host.masked(&request.volume_id) {
        mounts::unmount(&staging)?;
        return Err(why);
    }
    host.log(Event::now(What::Staged).of_volume(&volume.id).reading(readonly).saying(&request.staging_target_path))?;
    tracing::info!(volume = %volume.id, path = request.staging_target_path, readonly, "staged");
    Ok(NodeStageVolumeResponse {})
}

pub(super) fn unstage(host: &Host, request: &NodeUnstageVolumeRequest) -> Result<NodeUnstageVolumeResponse, Status> {
    let volume = named(&request.volume_id)?;
    let staging = path(&request.staging_target_path, "staging path")?;

    let _turn = host.take_turn();
    if mounts::unmount(&staging)?
        && let Some(volume) = volume
    {
        host.log(Event::now(What::Unstaged).of_volume(&volume).saying(&request.staging_target_path))?;
        tracing::info!(%volume, path = request.staging_target_path, "unstaged");
    }
    Ok(NodeUnstageVolumeResponse {})
}
