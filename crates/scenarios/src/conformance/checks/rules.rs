//! Rules: CEL in our definitions, with its messages, its places, and its memory of what was.

use serde_json::{Value, json};

use crate::conformance::answer::same;
use crate::conformance::bench::Bench;
use crate::conformance::objects::{fence, fence_status, request, template};
use crate::conformance::places::{FENCES, POLICIES, REMEDIES, REQUESTS, TEMPLATES};
use crate::conformance::{Told, table};

table! { "rules";
    about_the_whole: "a rule of the whole object is told without a field";
    about_the_name: "and may look at the name";
    at_its_place: "a rule further below is told where it stands";
    at_the_field_it_points_to: "one with a fieldPath is told there";
    in_a_list: "one in a list is told with the index";
    with_a_reason: "one with a reason of its own is told with that";
    over_a_length_of_time: "a length of time is compared as one";
    over_names_of_a_map: "a rule may look at the names in a map";
    not_on_create: "a rule about a change is not asked when an object is made";
    never_changes: "a rule about a change refuses it";
    never_falls: "a counter never falls";
    never_removed: "a status that was given is never removed";
    status_rules_on_status: "a rule about the status is asked when the status is written";
    from_nothing: "and not about a change, if there was none before";
    same_item_of_a_list: "a rule about a change of an item finds the item of the same key";
    several_rules: "all rules that are broken are told";
    one_change_two_parts: "a change of the main part is not asked about a status that it cannot change";
}

fn spec_of_two() -> Value {
    json!({"native": {"driver": "redfish"}, "agent": {"name": "fence_ipmilan"}, "proves": {"class": "Power"}})
}

async fn about_the_whole(bench: &Bench) -> Told {
    let made = bench.make(REQUESTS, request(&bench.name("r"))).await?;
    let patch = json!({"spec": {"nodeName": "elsewhere"}});
    let refusal = bench.merge(&made.path, &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "<nil>", "spec: a request never changes; delete it and create another")
}

async fn about_the_name(bench: &Bench) -> Told {
    let mut policy = json!({"apiVersion": "palisade.dev/v1alpha1", "kind": "FencePolicy", "spec": {}});
    policy["metadata"] = json!({"name": bench.name("p")});
    let refusal = bench.post(POLICIES, &policy).await?.refused(422, "Invalid")?;
    refusal.says(&format!(
        "FencePolicy.palisade.dev \"{}\" is invalid: <nil>: Invalid value: metadata.name: there is one FencePolicy, and its \
         name is cluster",
        bench.name("p")
    ))
}

async fn at_its_place(bench: &Bench) -> Told {
    let mut odd = template(&bench.name("t"));
    odd["spec"] = spec_of_two();
    let refusal = bench.post(TEMPLATES, &odd).await?.refused(422, "Invalid")?;
    let why = "Invalid value: give exactly one of native, agent, builtin, podTemplate and storage";
    refusal.cause("FieldValueInvalid", "spec", why)
}

async fn at_the_field_it_points_to(bench: &Bench) -> Told {
    let mut odd = template(&bench.name("t"));
    odd["spec"] = json!({"builtin": {"name": "cordon"}, "proves": {"class": "Power"}});
    let refusal = bench.post(TEMPLATES, &odd).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.proves", "a builtin isolates nothing from its data and proves None")
}

async fn in_a_list(bench: &Bench) -> Told {
    let first = json!({"name": "fence"});
    let good = json!({"name": "a", "lease": {"missed": 2}, "first": first});
    let bad = json!({"name": "b", "first": first});
    let mut remedy = json!({"apiVersion": "palisade.dev/v1alpha1", "kind": "NodeRemedy"});
    remedy["metadata"] = json!({"name": bench.name("r")});
    remedy["spec"] = json!({"thresholds": [good, bad]});
    let refusal = bench.post(REMEDIES, &remedy).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.thresholds[1]", "give exactly one of condition, lease, storage and event")
}

async fn with_a_reason(bench: &Bench) -> Told {
    let mut odd = template(&bench.name("t"));
    odd["spec"]["parameters"] = json!({"password": "x"});
    let refusal = bench.post(TEMPLATES, &odd).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueForbidden", "spec.parameters", "a password, token or community belongs in a Secret")
}

async fn over_a_length_of_time(bench: &Bench) -> Told {
    let mut slow = template(&bench.name("t"));
    slow["spec"]["timeout"] = "31m".into();
    let refusal = bench.post(TEMPLATES, &slow).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.timeout", "timeout: between 1s and 30m")
}

async fn over_names_of_a_map(bench: &Bench) -> Told {
    let mut odd = template(&bench.name("t"));
    odd["spec"]["parameters"] = json!({"Ip": "x"});
    let refusal = bench.post(TEMPLATES, &odd).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.parameters", "parameters: a name is made of a-z, 0-9, _ and -")
}

async fn not_on_create(bench: &Bench) -> Told {
    let mut wished = fence(&bench.name("n"));
    wished["spec"]["admin"] = json!({"resume": 3});
    let made = bench.make(FENCES, wished).await?;
    same("resume", &made.object["spec"]["admin"]["resume"], &json!(3))
}

async fn never_changes(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut other = made.object.clone();
    other["spec"]["nodeName"] = "elsewhere".into();
    let refusal = bench.put(&made.path, &other).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.nodeName", "the target of a fence never changes")
}

async fn never_falls(bench: &Bench) -> Told {
    let mut wished = fence(&bench.name("n"));
    wished["spec"]["admin"] = json!({"resume": 3});
    let made = bench.make(FENCES, wished).await?;
    let refusal = bench.merge(&made.path, &json!({"spec": {"admin": {"resume": 2}}})).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec.admin.resume", "a counter; raise it by one to resume, never lower it")
}

async fn never_removed(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    bench.merge(&made.status(), &json!({"status": fence_status(1)})).await?.is(200)?;
    let refusal = bench.merge(&made.status(), &json!({"status": null})).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "<nil>", "the state of a fence is never removed")
}

async fn status_rules_on_status(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    bench.merge(&made.status(), &json!({"status": fence_status(2)})).await?.is(200)?;
    let refusal = bench.merge(&made.status(), &json!({"status": {"attempt": 1}})).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "status.attempt", "status.attempt: never falls")
}

async fn from_nothing(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let written = bench.merge(&made.status(), &json!({"status": fence_status(7)})).await?.is(200)?;
    same("attempt", &written["status"]["attempt"], &json!(7))
}

async fn same_item_of_a_list(bench: &Bench) -> Told {
    let release = |uid: &str, state: &str| json!({"podNamespace": "shop", "podName": "db-0", "podUID": uid, "group": "0", "proofs": ["a1-1"], "state": state});
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut status = fence_status(1);
    status["releases"] = json!([release("u", "Marked"), release("v", "Intended")]);
    bench.merge(&made.status(), &json!({"status": status})).await?.is(200)?;
    // The first stands second now, and goes back: its place says nothing, its key does.
    let patch = json!({"status": {"releases": [release("v", "Marked"), release("u", "Intended")]}});
    let refusal = bench.merge(&made.status(), &patch).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "status.releases[1].state", "releases.state: only forward")?;
    same("causes", refusal.causes().count(), 1)
}

async fn several_rules(bench: &Bench) -> Told {
    let mut odd = template(&bench.name("t"));
    odd["spec"] = spec_of_two();
    odd["spec"]["parameters"] = json!({"password": "x"});
    let refusal = bench.post(TEMPLATES, &odd).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "spec", "give exactly one of")?;
    refusal.cause("FieldValueForbidden", "spec.parameters", "belongs in a Secret")
}

async fn one_change_two_parts(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let written = bench.merge(&made.status(), &json!({"status": fence_status(2)})).await?.is(200)?;
    let mut next = written.clone();
    next["spec"]["stayOff"] = true.into();
    next["status"]["attempt"] = 1.into();
    let changed = bench.put(&made.path, &next).await?.is(200)?;
    same("attempt", &changed["status"]["attempt"], &json!(2))
}
