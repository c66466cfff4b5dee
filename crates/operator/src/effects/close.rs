//! Effects / close: the fence goes, when its requests have their answer.

use kube::ResourceExt;
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use palisade_api::names::annotations;
use palisade_api::request::Phase;
use palisade_api::{NodeFence, NodeFencingRequest, names};
use palisade_core::fence::End;
use palisade_core::planted::{self, Bug};
use serde_json::json;

use super::{Hand, Outcome, gone};
use crate::executor::note;

impl Hand {
    /// What ran is not written on the Node any more. Where no method was called, nothing is.
    async fn forget_remedy(&self) -> kube::Result<()> {
        if self.fence.status.as_ref().is_none_or(|status| status.calls == 0) {
            return Ok(());
        }
        let none = json!({ annotations::REMEDY_STARTED: null, annotations::REMEDY_JOB: null });
        note(&self.context, &self.node, &none).await
    }

    /// The answers first: the requests are the history, and the fence is what they are answered from.
    pub(super) async fn close(&mut self, end: End) -> kube::Result<Outcome> {
        for request in self.fence.spec.requests.clone() {
            let requests: Api<NodeFencingRequest> = Api::namespaced(self.context.client.clone(), &request.namespace);
            let Some(found) = requests.get_opt(&request.name).await? else { continue };
            let ours = found.uid().as_deref() == Some(request.uid.as_str());
            let phase = found.status.as_ref().map_or(Phase::Pending, |status| status.phase);
            if ours && !matches!(phase, Phase::Completed | Phase::Rejected) {
                tracing::debug!(node = %self.node, request = %request.name, ?end, "the answer is not written yet");
                return Ok(Outcome::NotYet);
            }
        }
        self.forget_remedy().await?;
        if planted::is(Bug::NeverCloses) {
            return Ok(Outcome::Nothing);
        }
        let fences: Api<NodeFence> = Api::all(self.context.client.clone());
        let name = self.node.as_str();
        let left: Vec<&String> =
            self.fence.finalizers().iter().filter(|known| *known != names::finalizers::RECOVER_FIRST).collect();
        let version = self.fence.resource_version().unwrap_or_default();
        let free = json!({
            "metadata": { "uid": self.uid.as_str(), "resourceVersion": version, "finalizers": left },
        });
        match fences.patch(name, &PatchParams::default(), &Patch::Merge(free)).await {
            Ok(_) => {}
            Err(why) if gone(&why) => return Ok(Outcome::Closed),
            Err(why) => return Err(why),
        }
        let params = DeleteParams {
            preconditions: Some(Preconditions { uid: Some(self.uid.to_string()), resource_version: None }),
            ..DeleteParams::default()
        };
        match fences.delete(name, &params).await {
            Ok(_) => Ok(Outcome::Closed),
            Err(why) if gone(&why) => Ok(Outcome::Closed),
            Err(why) => Err(why),
        }
    }
}
