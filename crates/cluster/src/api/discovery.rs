//! What there is: versions, groups and kinds, as kubectl asks before it does anything else.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{
    kinds::{Definition, EVENTS_GROUP, Kind, Registry},
    openapi,
    path::Query,
};

/// The version that we say we are: the one whose behaviour we copy.
const VERSION: (&str, &str) = ("1", "33");

/// The answer to a path that is not about objects; nothing if there is no such page.
pub(crate) fn page(registry: &Registry, path: &str, _query: &Query) -> Option<Value> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments.as_slice() {
        ["version"] => Some(version()),
        ["healthz" | "livez" | "readyz"] => Some(json!("ok")),
        ["api"] => Some(json!({"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []})),
        ["apis"] => Some(groups(registry)),
        ["api", version] => resources(registry, "", version),
        ["apis", group] => groups_of(registry).remove(*group).map(|versions| self::group(group, &versions)),
        ["apis", group, version] => resources(registry, group, version),
        ["openapi", "v3"] => Some(openapi::index(registry)),
        ["openapi", "v3", "api", version] => openapi::document(registry, "", version),
        ["openapi", "v3", "apis", group, version] => openapi::document(registry, group, version),
        _ => None,
    }
}

fn version() -> Value {
    let (major, minor) = VERSION;
    let version = format!("v{major}.{minor}.0-palisade");
    json!({
        "major": major, "minor": minor, "gitVersion": version, "gitCommit": "", "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z", "goVersion": "none", "compiler": "rustc", "platform": "linux/amd64",
    })
}

/// Every group but the core one, with its versions.
pub(crate) fn groups_of(registry: &Registry) -> BTreeMap<String, BTreeSet<String>> {
    let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    groups.insert(EVENTS_GROUP.to_owned(), BTreeSet::from(["v1".to_owned()]));
    for definition in registry.all().filter(|definition| !definition.group.is_empty()) {
        let versions = definition.served.iter().map(ToString::to_string);
        groups.entry(definition.group.to_string()).or_default().extend(versions);
    }
    groups
}

fn groups(registry: &Registry) -> Value {
    let groups: Vec<Value> = groups_of(registry).iter().map(|(name, versions)| group(name, versions)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

fn group(name: &str, versions: &BTreeSet<String>) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|version| json!({"groupVersion": format!("{name}/{version}"), "version": version}))
        .collect();
    json!({"kind": "APIGroup", "apiVersion": "v1", "name": name, "preferredVersion": versions[0], "versions": versions})
}

/// The kinds of a group and version.
pub(crate) fn kinds_of<'a>(registry: &'a Registry, group: &'a str, version: &'a str) -> Vec<&'a Definition> {
    let belongs = |definition: &&Definition| {
        let own = if group == EVENTS_GROUP { definition.kind == Kind::EVENT } else { definition.group == group };
        own && definition.served.iter().any(|served| served == version)
    };
    registry.all().map(AsRef::as_ref).filter(belongs).collect()
}

fn resources(registry: &Registry, group: &str, version: &str) -> Option<Value> {
    let kinds = kinds_of(registry, group, version);
    if kinds.is_empty() {
        return None;
    }
    let group_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let resources: Vec<Value> = kinds.into_iter().flat_map(resources_of).collect();
    Some(json!({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": resources,
    }))
}

fn resources_of(definition: &Definition) -> Vec<Value> {
    let plural = &definition.plural;
    let mut own = json!({
        "name": plural, "singularName": definition.singular, "namespaced": definition.namespaced,
        "kind": definition.name,
        "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"],
    });
    if !definition.short_names.is_empty() {
        own["shortNames"] = json!(definition.short_names);
    }
    if !definition.categories.is_empty() {
        own["categories"] = json!(definition.categories);
    }
    let below = |name: &str, kind: &str, verbs: &[&str]| {
        json!({"name": format!("{plural}/{name}"), "singularName": "", "namespaced": definition.namespaced,
            "kind": kind, "verbs": verbs})
    };
    let mut resources = vec![own];
    if definition.has_status {
        resources.push(below("status", &definition.name, &["get", "patch", "update"]));
    }
    if definition.kind == Kind::POD {
        let mut eviction = below("eviction", "Eviction", &["create"]);
        eviction["group"] = "policy".into();
        eviction["version"] = "v1".into();
        resources.push(eviction);
        resources.push(below("binding", "Binding", &["create"]));
    }
    resources
}
