//! Driver: the CSI driver, and what it answers.
//!
//! Promise: each call has a deadline. An answer that did not come is told as such: what has become of the volume is not known.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use palisade_csi::messages::controller::{
    ControllerGetCapabilitiesRequest, ControllerPublishVolumeRequest, ControllerRpcType,
    ControllerUnpublishVolumeRequest,
};
use palisade_csi::messages::identity::{GetPluginInfoRequest, ProbeRequest};
use palisade_csi::{Client, Code, Status};

use crate::decide::{Publish, Traits, Unpublish};
use crate::names::finalizer;

/// External-attacher's `--timeout`.
const WITHIN: Duration = Duration::from_secs(15);

/// The values of a Secret, for the driver alone.
pub(crate) type Secrets = BTreeMap<String, String>;

/// A driver that has said who it is.
#[derive(Clone, Debug)]
pub(crate) struct Driver {
    client: Client,
    pub(crate) traits: Traits,
}

/// Why a driver cannot be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotMet {
    #[error("{0}")]
    NoAnswer(#[from] Status),
    #[error("it is not ready yet")]
    NotReady,
    #[error("driver {0} cannot publish volumes, so nothing of it has to be attached")]
    CannotPublish(String),
}

impl Driver {
    /// Asks a driver who it is and what it can do.
    pub(crate) async fn meet(socket: &Path) -> Result<Self, NotMet> {
        let client = Client::new(socket);
        // A driver that does not say is ready.
        if client.call(ProbeRequest {}, WITHIN).await?.ready == Some(false) {
            return Err(NotMet::NotReady);
        }
        let name = client.call(GetPluginInfoRequest {}, WITHIN).await?.name;
        let can = client.call(ControllerGetCapabilitiesRequest {}, WITHIN).await?;
        if !can.has(ControllerRpcType::PublishUnpublishVolume) {
            return Err(NotMet::CannotPublish(name));
        }
        let traits = Traits {
            finalizer: finalizer(&name),
            publishes_readonly: can.has(ControllerRpcType::PublishReadonly),
            tells_writers: can.has(ControllerRpcType::SingleNodeMultiWriter),
            name,
        };
        Ok(Self { client, traits })
    }

    /// Lets a node reach a volume. The answer is what the node has to be told.
    pub(crate) async fn publish(
        &self,
        publish: &Publish,
        secrets: Secrets,
    ) -> Result<BTreeMap<String, String>, String> {
        let request = ControllerPublishVolumeRequest {
            volume_id: publish.volume_handle.clone(),
            node_id: publish.node_id.clone(),
            volume_capability: Some(publish.capability.clone()),
            readonly: publish.readonly,
            secrets,
            volume_context: publish.attributes.clone(),
        };
        let answer = self.client.call(request, WITHIN).await;
        answer.map(|answer| answer.publish_context).map_err(|why| told(&why, "attached"))
    }

    /// Lets a node reach a volume no more. Where a driver can fence, that is asked for here.
    pub(crate) async fn unpublish(&self, unpublish: &Unpublish, secrets: Secrets) -> Result<(), String> {
        let request = ControllerUnpublishVolumeRequest {
            volume_id: unpublish.volume_handle.clone(),
            node_id: unpublish.node_id.clone(),
            secrets,
        };
        let answer = self.client.call(request, WITHIN).await;
        answer.map(drop).map_err(|why| told(&why, "detached"))
    }
}

/// What a driver's refusal means, for an administrator.
fn told(why: &Status, state: &str) -> String {
    let (code, words) = (why.code(), why.message());
    match code {
        Code::DeadlineExceeded => {
            format!("{code:?}: the driver did not answer within {WITHIN:?}; whether the volume is {state} is not known")
        }
        Code::Unavailable => format!("{code:?}: the driver cannot be reached: {words}"),
        _ => format!("{code:?}: {words}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_answer_is_not_told_as_a_refusal() {
        let text = told(&Status::deadline_exceeded("late"), "detached");
        assert_eq!(
            text,
            "DeadlineExceeded: the driver did not answer within 15s; whether the volume is detached is not known"
        );
        assert_eq!(told(&Status::failed_precondition("v1 is on n1"), "attached"), "FailedPrecondition: v1 is on n1");
    }
}
