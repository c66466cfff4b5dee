//! What is deployed: the manifests grant what the operator's code uses and nothing else, its pods are as confined as they can
//! be, and what the installation page tells people to apply is what the API server takes.

#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use palisade_api::names::{SYSTEM_NAMESPACE, taints};
use palisade_api::{FenceConfig, FenceTemplate};
use palisade_cluster::api::{Api, Kind, Server, Settings};
use palisade_cluster::clock::Clock;
use palisade_core::ident::NodeName;
use palisade_core::resolve::{self, Wanted};
use palisade_operator::rights::{self, NODE_LEASES, Place};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn documents(yaml: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(yaml).unwrap()
}

fn manifests() -> Vec<Value> {
    documents(&fs::read_to_string(root().join("deploy/palisade.yaml")).unwrap())
}

fn all(kind: &str) -> Vec<Value> {
    let found: Vec<Value> = manifests().into_iter().filter(|object| object["kind"] == kind).collect();
    assert!(!found.is_empty(), "no {kind}");
    found
}

fn one(kind: &str) -> Value {
    let mut found = all(kind);
    assert_eq!(found.len(), 1, "{kind}");
    found.remove(0)
}

fn words(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().map(|word| word.as_str().unwrap().to_owned()).collect()
}

/// Group, resource, verb, where, and the name if it is about one object.
type Grant = (String, String, String, String, Option<String>);

/// Where a rule counts.
fn place_of(role: &Value) -> String {
    role["metadata"]["namespace"].as_str().unwrap_or("everywhere").to_owned()
}

fn granted() -> BTreeSet<Grant> {
    let mut grants = BTreeSet::new();
    for role in all("ClusterRole").iter().chain(&all("Role")) {
        for rule in role["rules"].as_array().unwrap() {
            assert!(rule.get("nonResourceURLs").is_none());
            let names = words(&rule["resourceNames"]);
            let names = if names.is_empty() { vec![None] } else { names.into_iter().map(Some).collect() };
            for group in words(&rule["apiGroups"]) {
                for resource in words(&rule["resources"]) {
                    for verb in words(&rule["verbs"]) {
                        for name in &names {
                            let grant = (group.clone(), resource.clone(), verb.clone(), place_of(role), name.clone());
                            assert!(grants.insert(grant.clone()), "granted twice: {grant:?}");
                        }
                    }
                }
            }
        }
    }
    grants
}

/// Who needs it: rule by rule, the files of the operator.
fn needed() -> BTreeMap<Grant, BTreeSet<&'static str>> {
    let mut needs: BTreeMap<Grant, BTreeSet<&'static str>> = BTreeMap::new();
    for right in rights::ALL {
        let place = match right.place {
            Place::Cluster => "everywhere",
            Place::OwnNamespace => SYSTEM_NAMESPACE,
            Place::NodeLeases => NODE_LEASES,
        };
        for verb in right.verbs {
            let name = right.name.map(ToOwned::to_owned);
            let grant = (right.group.to_owned(), right.resource.to_owned(), (*verb).to_owned(), place.to_owned(), name);
            needs.entry(grant).or_default().insert(right.needed_by);
        }
    }
    needs
}

#[test]
fn everything_that_is_granted_is_needed_by_a_file_and_everything_needed_is_granted() {
    let (granted, needed) = (granted(), needed());
    let idle: Vec<&Grant> = granted.iter().filter(|grant| !needed.contains_key(*grant)).collect();
    assert!(idle.is_empty(), "granted, and nobody needs it: {idle:#?}");
    let missing: Vec<_> = needed.iter().filter(|(grant, _)| !granted.contains(*grant)).collect();
    assert!(missing.is_empty(), "needed, and not granted: {missing:#?}");
}

/// A file that speaks to the API server by way of `Api<…>` stands in the table, and those in the table do so. It is no proof of the
/// verbs; but a new file, or a kind that is gone, shows.
#[test]
fn every_file_that_asks_the_api_server_stands_in_the_table() {
    let source = root().join("crates/operator/src");
    let named: BTreeSet<&str> = rights::ALL.iter().map(|right| right.needed_by).collect();
    // `node.rs` lends its write to `volumes.rs`; `watch.rs` makes each `Api` where it is used.
    let asks = |text: &str| text.contains("Api<") || text.contains("Api::");
    let mut asking = BTreeSet::new();
    let mut folders = vec![source.clone()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            if asks(code) {
                asking.insert(path.strip_prefix(&source).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    let asking: BTreeSet<&str> = asking.iter().map(String::as_str).collect();
    assert_eq!(asking, named);
}

#[test]
fn there_is_no_wildcard_and_no_secret_outside_of_our_namespace() {
    for (group, resource, verb, place, _) in granted() {
        for word in [&group, &resource, &verb] {
            assert!(!word.contains('*'), "{group} {resource} {verb}");
        }
        for escalation in ["escalate", "bind", "impersonate", "deletecollection"] {
            assert_ne!(verb, escalation, "{resource}");
        }
        // Evictions are for the builtin drain: a budget can refuse them.
        let of_pods = ["pods/status", "pods/eviction"];
        assert!(!resource.starts_with("pods/") || of_pods.contains(&resource.as_str()), "no exec, no logs: {resource}");
        if resource == "secrets" {
            assert_eq!((place.as_str(), verb.as_str()), (SYSTEM_NAMESPACE, "get"));
        }
    }
}

#[test]
fn every_role_is_bound_to_our_service_account_and_to_nobody_else() {
    let account = one("ServiceAccount")["metadata"].clone();
    for (role, binding) in [("ClusterRole", "ClusterRoleBinding"), ("Role", "RoleBinding")] {
        let places = |kind: &str| all(kind).iter().map(place_of).collect::<Vec<_>>();
        assert_eq!(places(role), places(binding));
        for bound in all(binding) {
            assert_eq!(bound["roleRef"]["kind"], role);
            assert_eq!(bound["roleRef"]["name"], "palisade");
            let subject =
                json!({ "kind": "ServiceAccount", "name": account["name"], "namespace": account["namespace"] });
            assert_eq!(bound["subjects"], json!([subject]));
        }
    }
    assert_eq!(account["namespace"], SYSTEM_NAMESPACE);
}

#[test]
fn pods_are_confined_and_the_namespace_insists_on_it() {
    assert_eq!(one("Namespace")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"], "restricted");
    let deployment = one("Deployment");
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    for host in ["hostNetwork", "hostPID", "hostIPC", "volumes"] {
        assert!(pod.get(host).is_none(), "{host}");
    }
    let container = &pod["containers"][0];
    let context = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
        "capabilities": { "drop": ["ALL"] },
    });
    assert_eq!(container["securityContext"], context);
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    assert!(container["resources"]["limits"]["memory"].is_string());
}

#[test]
fn two_replicas_apart_that_outlive_what_they_fence() {
    let deployment = one("Deployment");
    assert_eq!(deployment["spec"]["replicas"], 2);
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["priorityClassName"], "system-cluster-critical");
    assert!(pod["affinity"]["podAntiAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"].is_array());
    let tolerated: Vec<&str> =
        pod["tolerations"].as_array().unwrap().iter().map(|one| one["key"].as_str().unwrap()).collect();
    assert!(tolerated.contains(&"node-role.kubernetes.io/control-plane"));
    assert!(!tolerated.contains(&taints::QUARANTINE), "whoever fences a node does not move there");
    assert_eq!(one("PodDisruptionBudget")["spec"]["maxUnavailable"], 1);
}

#[test]
fn the_pieces_find_each_other() {
    let deployment = one("Deployment");
    let labels = &deployment["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&deployment["spec"]["selector"]["matchLabels"], labels);
    assert_eq!(&one("Service")["spec"]["selector"], labels);
    assert_eq!(&one("PodDisruptionBudget")["spec"]["selector"]["matchLabels"], labels);
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["args"][0], "operator");
    assert_eq!(container["livenessProbe"]["httpGet"]["path"], "/healthz");
    assert_eq!(container["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert_eq!(container["ports"][0]["containerPort"], 8080);
    // The pods that call fence agents run what the operator runs.
    let image = json!({ "name": "PALISADE_ACT_IMAGE", "value": container["image"] });
    let name = json!({ "name": "POD_NAME", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } });
    assert_eq!(container["env"], json!([image, name]));
    let version = concat!(":", env!("CARGO_PKG_VERSION"));
    assert!(container["image"].as_str().unwrap().ends_with(version), "the image is of this version");
}

/// Every block of YAML in the installation page.
fn examples() -> Vec<Value> {
    let page = fs::read_to_string(root().join("docs/start/install.md")).unwrap();
    let blocks: Vec<&str> = page.split("```yaml\n").skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect();
    assert!(blocks.len() >= 4, "the page has examples");
    blocks.into_iter().flat_map(documents).collect()
}

#[tokio::test(start_paused = true)]
async fn what_the_installation_page_applies_is_accepted() {
    let api = Api::new(Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap()), &Settings::default());
    for crd in palisade_api::crds() {
        api.create(Kind::CUSTOM_RESOURCE_DEFINITION, serde_json::to_value(crd).unwrap()).unwrap();
    }
    api.create(Kind::NAMESPACE, json!({ "metadata": { "name": SYSTEM_NAMESPACE } })).unwrap();
    let client = Server::new(api).client("admin");
    for object in examples() {
        let (kind, plural) = (object["kind"].as_str().unwrap(), plural(object["kind"].as_str().unwrap()));
        let namespace = object["metadata"]["namespace"].as_str();
        let namespace = namespace.map(|name| format!("/namespaces/{name}")).unwrap_or_default();
        let group = match object["apiVersion"].as_str().unwrap() {
            "v1" => "/api/v1".to_owned(),
            other => format!("/apis/{other}"),
        };
        let request = http::Request::post(format!("{group}{namespace}/{plural}?fieldValidation=Strict"))
            .header("content-type", "application/json")
            .body(object.to_string().into_bytes());
        let made: Result<Value, _> = client.request(request.unwrap()).await;
        made.unwrap_or_else(|why| panic!("{kind}: {why}"));
    }
}

fn plural(kind: &str) -> String {
    match kind {
        "FencePolicy" => "fencepolicies".to_owned(),
        "NodeRemedy" => "noderemedies".to_owned(),
        other => format!("{}s", other.to_lowercase()),
    }
}

#[test]
fn the_config_of_the_installation_page_makes_a_plan_for_its_nodes() {
    let examples = examples();
    let find = |kind: &str| examples.iter().find(|object| object["kind"] == kind).unwrap().clone();
    let template: FenceTemplate = serde_json::from_value(find("FenceTemplate")).unwrap();
    let config: FenceConfig = serde_json::from_value(find("FenceConfig")).unwrap();
    let templates = BTreeMap::from([("bmc", &template.spec)]);
    for name in ["worker-1", "worker-2"] {
        let node = NodeName::from(name);
        let wanted = Wanted { node: &node, stay_off: false, revoking: &BTreeSet::new(), declared_power: &[] };
        let plan = resolve::settings("bare-metal", &config.spec, &templates, wanted).unwrap();
        let call = plan.calls.values().next().unwrap();
        let names: Vec<&str> = call.device.parameters.keys().map(String::as_str).collect();
        assert_eq!(names, ["ca", "ip", "password", "username"]);
    }
}
