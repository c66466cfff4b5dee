//! Stage / facts: what is so at this instant.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::{HOLD_WATCH, MOVE_LIMIT, Mark, POD, Stage};

impl Stage {
    pub(super) fn elapsed(&self) -> Duration {
        self.world.cluster.elapsed()
    }

    pub(super) fn is_asked_to_end(&self) -> bool {
        self.asked_to_end.load(Ordering::Relaxed)
    }

    pub(super) fn reached(&self, mark: Mark) -> bool {
        self.split.after(mark).is_some()
    }

    /// The fence is over, or there never was one; the pod runs and the node is clean.
    pub(super) fn is_settled(&self) -> bool {
        let fenced = self.reached(Mark::Detected);
        let over = if fenced { self.reached(Mark::Closed) } else { self.elapsed() > self.failed + MOVE_LIMIT };
        over && self.runs_on().is_some() && self.left().is_empty()
    }

    /// A reason was named and watched for a while; or it did not hold at all.
    pub(super) fn is_held(&self) -> bool {
        self.released || self.held.as_ref().is_some_and(|held| self.elapsed() >= held.at + HOLD_WATCH)
    }

    /// Where the pod runs, by the truth as well as by the API.
    pub(super) fn runs_on(&self) -> Option<String> {
        let cluster = &self.world.cluster;
        let node = cluster.node_of(POD);
        let writes = self.writers.nodes().contains(node.as_str());
        (cluster.is_ready(POD) && writes).then_some(node)
    }

    /// What is left on the node that failed.
    pub(super) fn left(&self) -> Vec<String> {
        let (cluster, home) = (&self.world.cluster, &self.cast.home);
        let Some(node) = cluster.node(home) else { return vec!["its Node is gone".to_owned()] };
        let mut left = Vec::new();
        let conditions = node["status"]["conditions"].as_array();
        if !conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")) {
            left.push("not Ready".to_owned());
        }
        for taint in node["spec"]["taints"].as_array().into_iter().flatten() {
            left.push(format!("tainted {}", taint["key"].as_str().unwrap_or_default()));
        }
        if node["spec"]["unschedulable"] == true {
            left.push("unschedulable".to_owned());
        }
        if cluster.node_of(POD) != *home && self.writers.nodes().contains(home.as_str()) {
            left.push("it still writes".to_owned());
        }
        left
    }
}
