//! Node: brings volumes to a node and gives them to workloads, as far as the truth allows.
//!
//! Promise: nothing is mounted unless the volume is published to this very node, before and after the mount; and what is
//! published for reading is mounted for reading. Taking away is always allowed: a volume that is not ours any more has to be
//! let go of.

mod mounts;
mod stage;
mod stats;
mod workload;

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};

use palisade_csi::messages::node::{
    NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse, NodeGetInfoRequest, NodeGetInfoResponse, NodeRpcType,
};
use palisade_csi::messages::volume::VolumeCapability;
use palisade_csi::{Services, Status};

use crate::controller::{existing, offered};
use crate::serve::{answering, out_of_order};
use crate::truth::{Event, Id, Publication, San, Volume, What};

/// The driver on one node.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    san: San,
    id: Id,
    /// One mount at a time: two calls for one path would otherwise mount twice.
    turn: Arc<Mutex<()>>,
}

/// The service.
pub(crate) fn services(host: &Host) -> Services {
    let id = host.id.to_string();
    Services::new()
        .on(answering(host, stage::stage))
        .on(answering(host, stage::unstage))
        .on(answering(host, workload::publish))
        .on(answering(host, workload::unpublish))
        .on(answering(host, stats::stats))
        .on(|_: NodeGetCapabilitiesRequest| async {
            let can = [NodeRpcType::StageUnstageVolume, NodeRpcType::GetVolumeStats];
            Ok(NodeGetCapabilitiesResponse { capabilities: can.into_iter().map(Into::into).collect() })
        })
        .on(move |_: NodeGetInfoRequest| {
            let info = NodeGetInfoResponse { node_id: id.clone(), ..NodeGetInfoResponse::default() };
            async move { Ok(info) }
        })
}

impl Host {
    pub(crate) fn new(san: San, id: &str) -> io::Result<Self> {
        let id = Id::read(id).ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no name for a node"))?;
        Ok(Self { san, id, turn: Arc::default() })
    }

    pub(crate) fn san(&self) -> &San {
        &self.san
    }

    fn take_turn(&self) -> MutexGuard<'_, ()> {
        // It guards no data, so nothing in it can be broken.
        self.turn.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The volume and how it is published to this node; refused if it is not.
    fn masked(&self, id: &str) -> Result<(Volume, Publication), Status> {
        let volume = existing(&self.san, id)?;
        if let Some(publication) = volume.published.get(&self.id).copied() {
            return Ok((volume, publication));
        }
        let why = format!("{id} is not published to node {}: the SAN does not show it here", self.id);
        self.log(Event::now(What::Refused).of_volume(&volume.id).saying(&why))?;
        tracing::warn!(volume = id, node = %self.id, "refused: not published to this node");
        Err(Status::failed_precondition(why))
    }

    fn log(&self, event: Event) -> Result<(), Status> {
        self.san.log(&event.of_node(&self.id)).map_err(|why| out_of_order(&why))
    }
}

/// A path that a request has to name.
fn path(text: &str, what: &str) -> Result<PathBuf, Status> {
    let path = PathBuf::from(text);
    if text.is_empty() {
        return Err(Status::invalid_argument(format!("the {what} is missing")));
    }
    Ok(path)
}

/// A capability that a request has to name, and that we offer.
fn usable(capability: Option<&VolumeCapability>) -> Result<(), Status> {
    let capability = capability.ok_or_else(|| Status::invalid_argument("the volume capability is missing"))?;
    offered(capability).map(drop).map_err(Status::invalid_argument)
}

/// The ID of a volume that need not be there any more.
fn named(id: &str) -> Result<Option<Id>, Status> {
    if id.is_empty() {
        return Err(Status::invalid_argument("the volume ID is missing"));
    }
    Ok(Id::read(id))
}
