//! Custom kinds: what the server makes of our objects before anybody sees them.

use serde_json::{Value, json};

use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{fence, request, template};
use crate::conformance::places::{DEFINITIONS, FENCES, OURS, POLICIES, REQUESTS, TEMPLATES, at};
use crate::conformance::{Told, table};

table! { "custom";
    defaults_are_filled_in: "defaults are filled in when an object comes, and are stored";
    defaults_below_a_default: "an object that is there gets the defaults of its fields, and keeps what it says";
    an_empty_spec_is_whole: "a FencePolicy without a spec is one with all defaults, so that apply can drop an empty spec";
    defaults_come_back: "a field that is taken out gets its default again";
    null_gets_its_default: "null stands for nothing where it is not allowed, and gets the default";
    unknown_fields_are_dropped: "a field that the schema does not know is dropped, also far below";
    unknown_fields_are_warned_of: "by default with a warning that names it";
    strict_refuses: "fieldValidation=Strict refuses it, by its path";
    strict_refuses_all: "and names all of them";
    ignore_is_silent: "fieldValidation=Ignore says nothing";
    strict_refuses_in_patches: "a patch is looked at in the same way";
    established: "a definition says that its names are accepted and that it is served";
    resources: "discovery tells names, short names, categories and scope of each kind";
    status_is_a_resource: "and that each has a status";
    preferred_version: "the group tells its version";
    served_in_one_version: "there is no other version";
    in_a_namespace_that_it_has_not: "a kind of the cluster cannot be reached through a namespace";
}

async fn defaults_are_filled_in(bench: &Bench) -> Told {
    let made = bench.make(TEMPLATES, template(&bench.name("t"))).await?;
    let wanted = json!({
        "native": {"driver": "redfish"}, "proves": {"class": "Power", "drivers": []},
        "retries": 2, "timeout": "25s", "checkInterval": "10m", "identity": "WhenKnown",
    });
    same("spec", &made.object["spec"], &wanted)
}

async fn defaults_below_a_default(bench: &Bench) -> Told {
    let mut wished = fence(&bench.name("n"));
    wished["spec"]["admin"] = json!({"stop": true});
    let made = bench.make(FENCES, wished).await?;
    same("admin", &made.object["spec"]["admin"], &json!({"approve": false, "resume": 0, "stop": true}))
}

async fn an_empty_spec_is_whole(bench: &Bench) -> Told {
    let policy = json!({
        "apiVersion": "palisade.dev/v1alpha1", "kind": "FencePolicy", "metadata": {"name": palisade_api::names::POLICY_NAME},
    });
    // There is one name for all of them, so it is only rehearsed.
    let made = bench.post(&format!("{POLICIES}?dryRun=All"), &policy).await?.is(201)?;
    same("mode", text(&made, "/spec/mode"), "Enforce")
}

async fn defaults_come_back(bench: &Bench) -> Told {
    let mut slow = template(&bench.name("t"));
    slow["spec"]["timeout"] = "40s".into();
    let made = bench.make(TEMPLATES, slow).await?;
    let patched = bench.merge(&made.path, &json!({"spec": {"timeout": null}})).await?.is(200)?;
    same("timeout", text(&patched, "/spec/timeout"), "25s")
}

async fn null_gets_its_default(bench: &Bench) -> Told {
    let mut odd = template(&bench.name("t"));
    odd["spec"]["timeout"] = Value::Null;
    let made = bench.make(TEMPLATES, odd).await?;
    same("timeout", text(&made.object, "/spec/timeout"), "25s")
}

fn misspelt(bench: &Bench) -> Value {
    let mut odd = fence(&bench.name("n"));
    odd["spec"]["nonsense"] = true.into();
    odd["spec"]["admin"] = json!({"stopp": true});
    odd
}

async fn unknown_fields_are_dropped(bench: &Bench) -> Told {
    let made = bench.make(FENCES, misspelt(bench)).await?;
    same("spec", made.object["spec"].get("nonsense"), None)?;
    same("admin", made.object["spec"]["admin"].get("stopp"), None)
}

async fn unknown_fields_are_warned_of(bench: &Bench) -> Told {
    let answer = bench.post(FENCES, &misspelt(bench)).await?;
    let told: Vec<String> = answer.warnings().into_iter().map(str::to_owned).collect();
    bench.remember(FENCES, answer.is(201)?);
    let wanted = ["spec.admin.stopp", "spec.nonsense"].map(|field| format!("299 - \"unknown field \\\"{field}\\\"\""));
    same("warnings", told, wanted.to_vec())
}

async fn strict_refuses(bench: &Bench) -> Told {
    let mut odd = fence(&bench.name("n"));
    odd["spec"]["nonsense"] = true.into();
    let refusal = bench.post(&format!("{FENCES}?fieldValidation=Strict"), &odd).await?.refused(400, "BadRequest")?;
    refusal.says(
        "NodeFence in version \"v1alpha1\" cannot be handled as a NodeFence: strict decoding error: unknown field \
                  \"spec.nonsense\"",
    )
}

async fn strict_refuses_all(bench: &Bench) -> Told {
    let path = format!("{FENCES}?fieldValidation=Strict");
    let refusal = bench.post(&path, &misspelt(bench)).await?.refused(400, "BadRequest")?;
    refusal.mentions("strict decoding error: unknown field \"spec.admin.stopp\", unknown field \"spec.nonsense\"")
}

async fn ignore_is_silent(bench: &Bench) -> Told {
    let answer = bench.post(&format!("{FENCES}?fieldValidation=Ignore"), &misspelt(bench)).await?;
    let told = answer.warnings().len();
    bench.remember(FENCES, answer.is(201)?);
    same("warnings", told, 0)
}

async fn strict_refuses_in_patches(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let path = format!("{}?fieldValidation=Strict", made.path);
    let answer = bench.merge(&path, &json!({"spec": {"nonsense": true}})).await?;
    must(answer.code == 422 || answer.code == 400, || format!("got {} {}", answer.code, answer.body))?;
    must(text(&answer.body, "/message").contains("unknown field \"spec.nonsense\""), || answer.body.to_string())?;
    bench.untouched(&made.path, &made.object).await
}

async fn established(bench: &Bench) -> Told {
    let definition = bench.read(&at(DEFINITIONS, "nodefences.palisade.dev")).await?;
    let holds = |kind: &str| {
        items(&definition, "/status/conditions").any(|said| said["type"] == kind && said["status"] == "True")
    };
    must(holds("Established") && holds("NamesAccepted"), || definition["status"].to_string())?;
    same("stored", &definition["status"]["storedVersions"], &json!(["v1alpha1"]))?;
    same("names", text(&definition, "/status/acceptedNames/listKind"), "NodeFenceList")
}

async fn resources(bench: &Bench) -> Told {
    let list = bench.read(OURS).await?;
    for (name, short, kind, namespaced) in [
        ("nodefences", "nf", "NodeFence", false),
        ("nodefencingrequests", "nfr", "NodeFencingRequest", true),
        ("fencepolicies", "fpol", "FencePolicy", false),
        ("fenceconfigs", "fcfg", "FenceConfig", false),
        ("fencetemplates", "ftpl", "FenceTemplate", false),
        ("noderemedies", "nr", "NodeRemedy", false),
    ] {
        let found = items(&list, "/resources").find(|resource| resource["name"] == name).cloned().unwrap_or_default();
        let told = ["singularName", "namespaced", "kind", "shortNames", "categories"].map(|field| found[field].clone());
        let singular = kind.to_lowercase();
        let wanted = [json!(singular), json!(namespaced), json!(kind), json!([short]), json!(["palisade"])];
        same(name, told, wanted)?;
        let verbs = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];
        let mut said: Vec<&str> = items(&found, "/verbs").filter_map(Value::as_str).collect();
        said.sort_unstable();
        same(name, said, verbs.to_vec())?;
    }
    Ok(())
}

async fn status_is_a_resource(bench: &Bench) -> Told {
    let list = bench.read(OURS).await?;
    let found = items(&list, "/resources").find(|resource| resource["name"] == "nodefences/status").cloned();
    let found = found.unwrap_or_default();
    same("verbs", &found["verbs"], &json!(["get", "patch", "update"]))?;
    same("kind", text(&found, "/kind"), "NodeFence")
}

async fn preferred_version(bench: &Bench) -> Told {
    let group = bench.read("/apis/palisade.dev").await?;
    let version = json!({"groupVersion": "palisade.dev/v1alpha1", "version": "v1alpha1"});
    same("group", [&group["preferredVersion"], &group["versions"][0]], [&version, &version])
}

async fn served_in_one_version(bench: &Bench) -> Told {
    let other = FENCES.replace("v1alpha1", "v1");
    same("code", bench.get(&other).await?.code, 404)
}

async fn in_a_namespace_that_it_has_not(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let path = at(&format!("{OURS}/namespaces/default/nodefences"), fence.name());
    same("code", bench.get(&path).await?.code, 404)?;
    // And a kind with namespaces cannot be made without one.
    let answer = bench.post(&format!("{OURS}/nodefencingrequests"), &request(&bench.name("r"))).await?;
    must(matches!(answer.code, 400 | 404 | 405 | 422), || format!("got {} at {REQUESTS}", answer.code))
}
