//! Publish: which node reaches which volume.

use std::collections::BTreeMap;

use palisade_csi::Status;
use palisade_csi::messages::controller::{
    ControllerPublishVolumeRequest, ControllerPublishVolumeResponse, ControllerUnpublishVolumeRequest,
    ControllerUnpublishVolumeResponse,
};

use super::capabilities::offered;
use super::volumes::{existing, find};
use crate::serve::out_of_order;
use crate::truth::{Event, Id, Publication, San, Verdict, What};

/// What is said on publishing, and told to the node: for whom it was published.
const PUBLISHED_TO: &str = "lab.palisade.dev/published-to";

pub(super) fn publish(
    san: &San,
    request: &ControllerPublishVolumeRequest,
) -> Result<ControllerPublishVolumeResponse, Status> {
    if request.node_id.is_empty() {
        return Err(Status::invalid_argument("the node ID is missing"));
    }
    // Before anything is looked up: a request that says too little is wrong whatever there is.
    let capability = request.volume_capability.as_ref();
    let capability = capability.ok_or_else(|| Status::invalid_argument("the volume capability is missing"))?;
    let mode = offered(capability).map_err(Status::invalid_argument)?;
    let wanted = Publication { mode, readonly: request.readonly };

    let locked = san.lock().map_err(|why| out_of_order(&why))?;
    let volume = existing(san, &request.volume_id)?;
    let node = Id::read(&request.node_id).filter(|node| san.knows(node));
    let node = node.ok_or_else(|| Status::not_found(format!("there is no node {}", request.node_id)))?;
    match volume.may_publish(&node, wanted) {
        Verdict::Free => {
            let id = volume.id.clone();
            locked.publish(volume, &node, wanted).map_err(|why| out_of_order(&why))?;
            tracing::info!(volume = %id, %node, readonly = wanted.reads_only(), "published");
        }
        Verdict::Already => {}
        Verdict::Otherwise(has) => {
            let why = format!("{} is published to node {node} already, as {has:?}", volume.id);
            return Err(Status::already_exists(why));
        }
        Verdict::Elsewhere(other) => {
            let why = format!("{} is published to node {other}, and cannot be published to {node} beside", volume.id);
            let event = Event::now(What::Refused).of_volume(&volume.id).of_node(&node).saying(&why);
            san.log(&event).map_err(|why| out_of_order(&why))?;
            tracing::warn!(volume = %volume.id, %node, holder = %other, "refused: another node has it");
            return Err(Status::failed_precondition(why));
        }
    }
    let publish_context = BTreeMap::from([(PUBLISHED_TO.to_owned(), node.to_string())]);
    Ok(ControllerPublishVolumeResponse { publish_context })
}

pub(super) fn unpublish(
    san: &San,
    request: &ControllerUnpublishVolumeRequest,
) -> Result<ControllerUnpublishVolumeResponse, Status> {
    let locked = san.lock().map_err(|why| out_of_order(&why))?;
    // A volume that is not there is published to nobody.
    let Some(mut volume) = find(san, &request.volume_id)? else { return Ok(ControllerUnpublishVolumeResponse {}) };
    // Without a node, all of them are meant.
    let all = request.node_id.is_empty();
    let meant: Vec<Id> =
        volume.published.keys().filter(|node| all || node.as_str() == request.node_id).cloned().collect();
    for node in meant {
        volume = locked.unpublish(volume, &node).map_err(|why| out_of_order(&why))?;
        tracing::info!(volume = %volume.id, %node, "unpublished");
    }
    Ok(ControllerUnpublishVolumeResponse {})
}
