//! What a request costs: a simulation makes thousands of them, several times a second.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)] // a benchmark may fail loudly

use std::{fs, hint::black_box, path::Path};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use k8s_openapi::api::core::v1::Node;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use palisade_cluster::{
    api::{Api, Key, Kind, Part, Server, Settings},
    clock::Clock,
};
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};

const NODES: usize = 20;

/// Generated once: how long that takes is the concern of `crates/api`.
fn crds() -> Vec<Value> {
    palisade_api::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
}

fn cluster(crds: &[Value]) -> Api {
    let api = Api::new(Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap()), &Settings::default());
    for crd in crds {
        api.create(Kind::CUSTOM_RESOURCE_DEFINITION, crd.clone()).unwrap();
    }
    for node in 0..NODES {
        let condition = |kind: &str| {
            json!({"type": kind, "status": "False", "reason": "KubeletHasSufficientMemory",
                "lastHeartbeatTime": "2026-03-01T12:00:00Z", "lastTransitionTime": "2026-03-01T12:00:00Z"})
        };
        let conditions: Vec<Value> =
            ["MemoryPressure", "DiskPressure", "PIDPressure", "Ready"].into_iter().map(condition).collect();
        let status = json!({"conditions": conditions, "nodeInfo": {"bootID": "b", "kubeletVersion": "v1.33.0"}});
        api.create(Kind::NODE, json!({"metadata": {"name": format!("n{node}")}, "status": status})).unwrap();
    }
    api
}

/// The fence of the tables of `crates/api`: proofs, releases, a timeline.
fn fence() -> Value {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../api/tests/objects/bad/node-fence.yaml");
    let table: Value = serde_saphyr::from_str(&fs::read_to_string(table).unwrap()).unwrap();
    table["base"].clone()
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn store(bench: &mut Criterion) {
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut group = bench.benchmark_group("store");
    group.throughput(Throughput::Elements(1));

    let crds = crds();
    let api = cluster(&crds);
    let key = Key::cluster(Kind::NODE, "n1");
    group.bench_function("get", |bench| bench.iter(|| black_box(api.get(&key))));
    group.bench_function("list 20 nodes", |bench| bench.iter(|| black_box(api.list(Kind::NODE))));
    let mut beat = 0;
    group.bench_function("update a node", |bench| {
        bench.iter(|| {
            beat += 1;
            api.update(&key, |node| node["status"]["conditions"][3]["lastHeartbeatTime"] = json!(beat)).unwrap()
        });
    });

    let kind = api.kind("palisade.dev", "NodeFence").unwrap();
    let fence = fence();
    let made = api.create(kind, fence.clone()).unwrap();
    let key = Key::of(kind, &made);
    api.update(&key, |new| new["status"] = fence["status"].clone()).unwrap();
    let mut calls = 1;
    group.bench_function("patch a fence's status", |bench| {
        bench.iter(|| {
            calls += 1;
            let patch = palisade_cluster::api::Patch::Merge(json!({"status": {"calls": calls}}));
            api.patch(&key, Part::Status, &patch).unwrap()
        });
    });
    group.bench_function("a new cluster with 8 CRDs and 20 nodes", |bench| bench.iter(|| cluster(&crds)));
}

fn client(bench: &mut Criterion) {
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut group = bench.benchmark_group("client");
    group.throughput(Throughput::Elements(1));

    let server = Server::new(cluster(&crds()));
    let nodes: kube::Api<Node> = kube::Api::all(server.client("bench"));
    group.bench_function("get a node", |bench| bench.iter(|| runtime.block_on(nodes.get("n1")).unwrap()));
    group.bench_function("list 20 nodes", |bench| {
        bench.iter(|| runtime.block_on(nodes.list(&ListParams::default())).unwrap());
    });
    let mut beat = 0;
    group.bench_function("patch a node", |bench| {
        bench.iter(|| {
            beat += 1;
            let label = Patch::Merge(json!({"metadata": {"labels": {"beat": beat.to_string()}}}));
            runtime.block_on(nodes.patch("n1", &PatchParams::default(), &label)).unwrap()
        });
    });

    let resource =
        kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("palisade.dev", "v1alpha1", "NodeFence"));
    let fences: kube::Api<DynamicObject> = kube::Api::all_with(server.client("bench"), &resource);
    let fence = fence();
    let name = fence["metadata"]["name"].as_str().unwrap().to_owned();
    let object: DynamicObject = serde_json::from_value(fence.clone()).unwrap();
    runtime.block_on(fences.create(&PostParams::default(), &object)).unwrap();
    let status = Patch::Merge(json!({"status": fence["status"]}));
    runtime.block_on(fences.patch_status(&name, &PatchParams::default(), &status)).unwrap();
    let mut calls = 1;
    group.bench_function("patch a fence's status", |bench| {
        bench.iter(|| {
            calls += 1;
            let patch = Patch::Merge(json!({"status": {"calls": calls}}));
            runtime.block_on(fences.patch_status(&name, &PatchParams::default(), &patch)).unwrap()
        });
    });
}

criterion_group!(benches, store, client);
criterion_main!(benches);
