//! Stage / facts: what is so at this instant.

use std::time::Duration;

use super::{Mark, Stage};

impl Stage {
    pub(super) fn elapsed(&self) -> Duration {
        self.world.cluster.elapsed()
    }

    pub(super) fn reached(&self, mark: Mark) -> bool {
        self.split.after(mark).is_some()
    }

    /// Where the pod runs, by the truth as well as by the API.
    pub(super) fn runs_on(&self) -> Option<String> {
        let cluster = &self.world.cluster;
        let node = cluster.node_of(&self.cast.pod);
        let writes = self.writers.nodes().contains(node.as_str());
        (cluster.is_ready(&self.cast.pod) && writes).then_some(node)
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
        if cluster.node_of(&self.cast.pod) != *home && self.writers.nodes().contains(home.as_str()) {
            left.push("it still writes".to_owned());
        }
        left
    }
}
