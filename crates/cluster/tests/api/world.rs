//! A small cluster for a test, and short words for what tests do to it.

use std::{fmt::Debug, sync::Arc};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::{
    Api, Client,
    api::{DynamicObject, PostParams},
    core::{ApiResource, GroupVersionKind},
};
use palisade_cluster::{
    api::{self, Kind, Server, Settings, Wire},
    clock::Clock,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) api: api::Api,
    pub(crate) server: Server,
    pub(crate) client: Client,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::over(Arc::new(api::wire::Direct))
    }

    pub(crate) fn over(wire: Arc<dyn Wire>) -> Self {
        let clock = Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap());
        let api = api::Api::new(clock, &Settings::default());
        let server = Server::over(api.clone(), wire);
        Self { client: server.client("test"), server, api }
    }

    pub(crate) fn with_crds(self) -> Self {
        for crd in palisade_api::crds() {
            self.api.create(Kind::CUSTOM_RESOURCE_DEFINITION, serde_json::to_value(crd).unwrap()).unwrap();
        }
        self
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) fn nodes(&self) -> Api<Node> {
        Api::all(self.client.clone())
    }

    pub(crate) fn fences(&self) -> Api<DynamicObject> {
        Api::all_with(self.client.clone(), &resource("palisade.dev", "v1alpha1", "NodeFence"))
    }

    pub(crate) async fn node(&self, name: &str) -> Node {
        self.nodes().create(&PostParams::default(), &read(node(name))).await.unwrap()
    }

    pub(crate) async fn pod(&self, name: &str, on: &str) -> Pod {
        self.pods().create(&PostParams::default(), &read(pod(name, on))).await.unwrap()
    }
}

pub(crate) fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind))
}

pub(crate) fn node(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {}})
}

pub(crate) fn pod(name: &str, on: &str) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": [{"name": "main", "image": "db"}]}});
    if !on.is_empty() {
        pod["spec"]["nodeName"] = on.into();
    }
    pod
}

pub(crate) fn fence(node: &str) -> Value {
    json!({"apiVersion": "palisade.dev/v1alpha1", "kind": "NodeFence", "metadata": {"name": node},
        "spec": {"nodeName": node}})
}

pub(crate) fn read<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// The refusal in a result; the test is wrong if there is none.
pub(crate) fn refusal<T: Debug>(result: kube::Result<T>) -> Box<kube::core::Status> {
    match result.unwrap_err() {
        kube::Error::Api(status) => status,
        other => panic!("not a Status: {other:?}"),
    }
}
