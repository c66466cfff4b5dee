//! Operator / kinds: are the CRDs there, and as new as this operator?
//!
//! Promise (I5): an API server drops fields that its CRD does not know, without a word. An intent that is written into such a
//! status is not on record, so an operator that is newer than its CRDs does nothing at all.
//!
//! Both are asked of what every login may read (discovery and OpenAPI), so no right to read CRDs is needed.

use std::collections::BTreeSet;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use palisade_api::names::{GROUP, VERSION};
use serde_json::Value;

use super::ready::Missing;

/// What installs them.
const INSTALL: &str = "palisade crds | kubectl apply --server-side -f -";
/// How many fields are named; one is enough to know.
const NAMED: usize = 3;

pub(super) async fn there(client: &Client) -> Result<(), Missing> {
    let ours: Vec<CustomResourceDefinition> =
        palisade_api::crds().into_iter().filter(|crd| crd.spec.group == GROUP).collect();
    let served = served(client).await?;
    let is_there = |crd: &CustomResourceDefinition| {
        let plural = &crd.spec.names.plural;
        let version = crd.spec.versions.iter().find(|version| version.name == VERSION);
        let status = version.is_some_and(|version| version.subresources.is_some());
        served.contains(plural) && (!status || served.contains(&format!("{plural}/status")))
    };
    let missing: Vec<&str> = ours.iter().filter(|crd| !is_there(crd)).map(|crd| crd.spec.names.kind.as_str()).collect();
    if !missing.is_empty() {
        let many = if missing.len() == 1 { "a CRD is" } else { "CRDs are" };
        return Err(Missing(format!("{many} missing: {}; install them with `{INSTALL}`", missing.join(", "))));
    }
    match openapi(client).await {
        Ok(document) => as_new(&ours, &document),
        Err(why) => {
            tracing::warn!(%why, "whether the CRDs are as new as this operator cannot be seen");
            Ok(())
        }
    }
}

/// What the API server has of our group.
async fn served(client: &Client) -> Result<BTreeSet<String>, Missing> {
    match client.list_api_group_resources(&format!("{GROUP}/{VERSION}")).await {
        Ok(list) => Ok(list.resources.into_iter().map(|resource| resource.name).collect()),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(BTreeSet::new()),
        Err(why) => {
            Err(Missing(format!("the API server does not say which kinds it has: {:#}", anyhow::Error::from(why))))
        }
    }
}

async fn openapi(client: &Client) -> anyhow::Result<Value> {
    let request = http::Request::get(format!("/openapi/v3/apis/{GROUP}/{VERSION}")).body(Vec::new())?;
    Ok(client.request(request).await?)
}

fn as_new(ours: &[CustomResourceDefinition], document: &Value) -> Result<(), Missing> {
    let mut old = Vec::new();
    for crd in ours {
        let kind = crd.spec.names.kind.as_str();
        let schema = crd
            .spec
            .versions
            .iter()
            .find(|version| version.name == VERSION)
            .and_then(|version| serde_json::to_value(version.schema.as_ref()?.open_api_v3_schema.as_ref()?).ok());
        let (Some(ours), Some(theirs)) = (schema, published(document, kind)) else { continue };
        let mut fields = Vec::new();
        unknown_fields(&ours, theirs, "", &mut fields);
        if !fields.is_empty() {
            let more = fields.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            old.push(format!(
                "{kind} has no {}{more}",
                fields.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ")
            ));
        }
    }
    if old.is_empty() {
        return Ok(());
    }
    Err(Missing(format!(
        "CRDs are older than this operator, and what they do not know is lost when it is written: {}; renew them with `{INSTALL}`",
        old.join("; ")
    )))
}

/// The schema of a kind, as the API server shows it.
fn published<'a>(document: &'a Value, kind: &str) -> Option<&'a Value> {
    let schemas = document.pointer("/components/schemas")?.as_object()?;
    schemas.values().find(|schema| {
        let named = schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array);
        named.is_some_and(|named| named.iter().any(|one| one["kind"] == kind && one["group"] == GROUP))
    })
}

/// Fields of ours that the other schema would drop.
fn unknown_fields(ours: &Value, theirs: &Value, at: &str, found: &mut Vec<String>) {
    if theirs["x-kubernetes-preserve-unknown-fields"] == true {
        return;
    }
    for (name, field) in ours["properties"].as_object().into_iter().flatten() {
        // What every object has is the API server's own, and is shown by reference.
        if at.is_empty() && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            continue;
        }
        let path = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        match theirs["properties"].get(name) {
            Some(known) => unknown_fields(field, known, &path, found),
            None => found.push(path),
        }
    }
    for within in ["items", "additionalProperties"] {
        if let (Some(ours), Some(theirs)) = (ours.get(within), theirs.get(within)) {
            unknown_fields(ours, theirs, &format!("{at}[]"), found);
        }
    }
}

#[cfg(test)]
mod tests {
    use palisade_cluster::api::{Api, Kind, Server, Settings};
    use palisade_cluster::clock::Clock;

    use super::*;

    /// What is said of a cluster in which these CRDs are installed.
    async fn said_of(crds: Vec<Value>) -> Option<String> {
        let api = Api::new(Clock::starting_at("2026-03-01T12:00:00Z".parse().unwrap()), &Settings::default());
        for crd in crds {
            api.create(Kind::CUSTOM_RESOURCE_DEFINITION, crd).unwrap();
        }
        there(&Server::new(api).client("palisade")).await.err().map(|missing| missing.0)
    }

    fn crds() -> Vec<Value> {
        palisade_api::crds().iter().map(|crd| serde_json::to_value(crd).unwrap()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn crds_of_this_version_are_enough() {
        assert_eq!(said_of(crds()).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn missing_crds_are_named_with_the_command_that_installs_them() {
        let said = said_of(Vec::new()).await.unwrap();
        assert!(said.contains("NodeFence") && said.contains("FencePolicy") && said.contains(INSTALL), "{said}");
        let but_one = crds().into_iter().filter(|crd| crd["spec"]["names"]["kind"] != "NodeRemedy").collect();
        let said = said_of(but_one).await.unwrap();
        assert_eq!(said, format!("a CRD is missing: NodeRemedy; install them with `{INSTALL}`"));
    }

    #[tokio::test(start_paused = true)]
    async fn a_crd_that_would_drop_what_we_write_is_named_with_the_field() {
        let mut all = crds();
        for crd in &mut all {
            if crd["spec"]["names"]["kind"] == "NodeFence" {
                let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
                let status = schema["properties"]["status"]["properties"].as_object_mut().unwrap();
                assert!(status.remove("proofs").is_some());
            }
        }
        let said = said_of(all).await.unwrap();
        assert!(said.contains("NodeFence has no status.proofs;") && said.contains(INSTALL), "{said}");
    }
}
