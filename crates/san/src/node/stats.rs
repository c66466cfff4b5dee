//! Stats: how full the file system is on which a volume lies. All volumes of the lab share one.

use palisade_csi::Status;
use palisade_csi::messages::node::{NodeGetVolumeStatsRequest, NodeGetVolumeStatsResponse, UsageUnit, VolumeUsage};

use super::mounts::{self, There};
use super::{Host, named, path};
use crate::controller::existing;

pub(super) fn stats(host: &Host, request: &NodeGetVolumeStatsRequest) -> Result<NodeGetVolumeStatsResponse, Status> {
    named(&request.volume_id)?;
    let at = path(&request.volume_path, "volume path")?;
    let volume = existing(host.san(), &request.volume_id)?;
    if !matches!(mounts::look(&host.san().data(&volume.id), &at)?, There::This { .. }) {
        return Err(Status::not_found(format!("{} is not at {}", volume.id, at.display())));
    }
    let room = mounts::room(&at)?;
    let blocks = |count: u64| whole(count.saturating_mul(room.f_frsize));
    let bytes = usage(UsageUnit::Bytes, blocks(room.f_blocks), blocks(room.f_bfree), blocks(room.f_bavail));
    let inodes = usage(UsageUnit::Inodes, whole(room.f_files), whole(room.f_ffree), whole(room.f_favail));
    Ok(NodeGetVolumeStatsResponse { usage: vec![bytes, inodes] })
}

fn usage(unit: UsageUnit, total: i64, free: i64, available: i64) -> VolumeUsage {
    VolumeUsage { available, total, used: total.saturating_sub(free), unit: unit.into() }
}

fn whole(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
