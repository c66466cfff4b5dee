//! Workloads as stories need them: objects to change and create, or to create as they are.

use serde_json::{Value, json};

use crate::{
    api::{Kind, Object, Status, metadata},
    cluster::Cluster,
};

/// The storage class of the embedded storage system.
pub const CLASS: &str = "standard";

/// Which volume each pod of a workload has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// None.
    None,
    /// One of its own, for one node at a time.
    ReadWriteOnce,
    /// One of its own, for one pod at a time.
    ReadWriteOncePod,
    /// One of its own, for many nodes.
    ReadWriteMany,
}

impl Claim {
    fn mode(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::ReadWriteOnce => Some("ReadWriteOnce"),
            Self::ReadWriteOncePod => Some("ReadWriteOncePod"),
            Self::ReadWriteMany => Some("ReadWriteMany"),
        }
    }
}

/// A claim of its own.
pub fn claim(name: &str, mode: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"accessModes": [mode], "storageClassName": CLASS, "resources": {"requests": {"storage": "1Gi"}}},
    })
}

/// A StatefulSet whose claim template is called `data`.
pub fn stateful_set(name: &str, replicas: u32, with: Claim) -> Value {
    let claims: Vec<Value> = with.mode().map(|mode| claim("data", mode)).into_iter().collect();
    json!({
        "metadata": {"name": name},
        "spec": {
            "serviceName": name, "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": template(name), "volumeClaimTemplates": claims,
        },
    })
}

/// A ReplicaSet; its pods share the claim, if there is one.
pub fn replica_set(name: &str, replicas: u32, shared_claim: Option<&str>) -> Value {
    let mut template = template(name);
    if let Some(claim) = shared_claim {
        template["spec"]["volumes"] = json!([{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]);
    }
    let spec = json!({"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template});
    json!({"metadata": {"name": name}, "spec": spec})
}

/// A Job whose pods run for so many seconds and then end well.
pub fn job(name: &str, runs_for: u32) -> Value {
    let mut template = template(name);
    template["metadata"]["annotations"] =
        json!({crate::machines::kubelet::RUNS_FOR: runs_for.to_string(), crate::machines::kubelet::EXIT_CODE: "0"});
    template["spec"]["restartPolicy"] = "Never".into();
    json!({"metadata": {"name": name}, "spec": {"template": template}})
}

fn template(name: &str) -> Value {
    let container = json!({"name": "main", "image": "example.com/writer:1"});
    json!({"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}})
}

impl Cluster {
    /// Makes a StatefulSet in the namespace `default`.
    pub fn stateful_set(&self, name: &str, replicas: u32, claim: Claim) -> Result<Object, Status> {
        self.create(Kind::STATEFUL_SET, stateful_set(name, replicas, claim))
    }

    /// Makes a ReplicaSet in the namespace `default`.
    pub fn replica_set(&self, name: &str, replicas: u32) -> Result<Object, Status> {
        self.create(Kind::REPLICA_SET, replica_set(name, replicas, None))
    }

    /// Makes a Job in the namespace `default`.
    pub fn job(&self, name: &str, runs_for: u32) -> Result<Object, Status> {
        self.create(Kind::JOB, job(name, runs_for))
    }

    /// Makes a DaemonSet and one pod of it on every Node that there is. Nobody looks after them later.
    pub fn daemon_set(&self, name: &str) -> Result<Object, Status> {
        let spec = json!({"selector": {"matchLabels": {"app": name}}, "template": template(name)});
        let set = self.create(Kind::DAEMON_SET, json!({"metadata": {"name": name}, "spec": spec}))?;
        for node in self.api().list(Kind::NODE) {
            let mut pod = template(name);
            pod["metadata"]["generateName"] = format!("{name}-").into();
            pod["metadata"]["ownerReferences"] = json!([crate::objects::owner_reference(&set)]);
            pod["spec"]["nodeName"] = metadata::name(&node).into();
            pod["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
            self.create(Kind::POD, pod)?;
        }
        Ok(set)
    }
}
