//! Effects / jobs: Jobs of a fence are ended, and seen to be over.

use std::collections::BTreeSet;

use palisade_core::durable::job_name;
use palisade_core::observe::CallId;

use super::{Hand, Outcome};
use crate::executor::{Owner, Progress, end_job, find_job, job_progress};

impl Hand {
    /// Ends each of these Jobs that has not ended, and says which are over: gone with all that they made, or ended for good.
    pub(super) async fn end_jobs(&self, calls: &BTreeSet<CallId>) -> kube::Result<Outcome> {
        let mut over = BTreeSet::new();
        let owner = Owner::Fence { node: &self.node, uid: &self.uid };
        for call in calls {
            let name = job_name(&self.uid, *call);
            let found = find_job(&self.context, owner, &name).await?;
            let is_over = match (job_progress(found.job.as_ref(), &found.pods), &found.job) {
                (Progress::Gone | Progress::Ended { for_good: true, .. }, _) | (_, None) => true,
                (_, Some(job)) => end_job(&self.context, owner, job).await?,
            };
            if is_over {
                over.insert(*call);
            }
        }
        Ok(Outcome::JobsOver(over))
    }
}
