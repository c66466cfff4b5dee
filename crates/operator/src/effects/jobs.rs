//! Effects / jobs: Jobs of a fence are ended, and seen to be over.

use std::collections::BTreeSet;

use palisade_core::durable::job_name;
use palisade_core::observe::CallId;

use super::Hand;
use crate::executor::{Owner, Progress, end_job, end_pods, find_job, job_progress};

impl Hand {
    /// Ends each of these Jobs that has not ended, and says which are over: gone with all that they made, or ended for good.
    pub(super) async fn end_jobs(&self, calls: &BTreeSet<CallId>) -> kube::Result<BTreeSet<CallId>> {
        let mut over = BTreeSet::new();
        let owner = Owner::Fence { node: &self.node, uid: &self.uid };
        for call in calls {
            let name = job_name(&self.uid, *call);
            // An API server that is behind says nothing of now.
            let Some(found) = find_job(&self.context, owner, &name).await? else { continue };
            let is_over = match (job_progress(found.job.as_ref(), &found.pods), &found.job) {
                (Progress::Gone | Progress::Ended { for_good: true, .. }, _) => true,
                (_, Some(job)) => end_job(&self.context, owner, job).await? && found.pods.is_empty(),
                (_, None) => {
                    end_pods(&self.context, &found.pods).await;
                    false
                }
            };
            if is_over {
                over.insert(*call);
            }
        }
        Ok(over)
    }
}
