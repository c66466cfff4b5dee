//! Fields: how the server says that a value is not what the schema wants.

use serde_json::{Value, json};

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{fence, fence_status, request, template};
use crate::conformance::places::{CONFIGS, FENCES, REQUESTS, TEMPLATES};
use crate::conformance::{Told, table};

table! { "fields";
    not_one_of_the_words: "a word that is none of the enumeration is told with those that are";
    too_small: "a number below its minimum";
    too_big: "a number above its maximum";
    too_long: "a text that is too long, with its limit";
    too_short: "a text that is too short";
    no_match: "a text that does not match its pattern, with the pattern";
    another_type: "a value of another type, with both types";
    fraction_for_a_number: "a fraction where a whole number is wanted";
    missing: "a field that has to be there";
    missing_altogether: "a spec that has to have fields, and is empty";
    too_many: "a list that is too long";
    twice_in_a_map: "an item whose key stands twice in a list";
    twice_in_a_set: "a value that stands twice in a set";
    no_time: "a time that is none";
    several_at_once: "everything that is wrong is told at once, and in the message as a list";
    rules_wait: "rules are not looked at while the shape is wrong, and that is said";
    status_has_a_schema: "a status is looked at in the same way, when it is written";
    kind_in_the_message: "the message names the kind with its group, and the object";
}

/// Tries to make a template with a wrong spec.
async fn wrong(bench: &Bench, spec: Value) -> Told<crate::conformance::answer::Refusal> {
    let mut object = template(&bench.name("t"));
    let (Some(into), Value::Object(spec)) = (object["spec"].as_object_mut(), spec) else {
        return Err("a spec is an object".to_owned());
    };
    into.extend(spec);
    bench.post(TEMPLATES, &object).await?.refused(422, "Invalid")
}

async fn not_one_of_the_words(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"identity": "Never"})).await?;
    let why = "Unsupported value: \"Never\": supported values: \"WhenKnown\", \"Required\"";
    refusal.cause("FieldValueNotSupported", "spec.identity", why)
}

async fn too_small(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"retries": -1})).await?;
    let why = "Invalid value: -1: spec.retries in body should be greater than or equal to 0";
    refusal.cause("FieldValueInvalid", "spec.retries", why)
}

async fn too_big(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"retries": 11})).await?;
    let why = "Invalid value: 11: spec.retries in body should be less than or equal to 10";
    refusal.cause("FieldValueInvalid", "spec.retries", why)
}

async fn too_long(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"timeout": "1000000000000000000s"})).await?;
    refusal.cause("FieldValueTooLong", "spec.timeout", "Too long: may not be more than 16 bytes")
}

async fn too_short(bench: &Bench) -> Told {
    let mut bare = fence(&bench.name("n"));
    bare["spec"]["admin"] = json!({"confirm": {"nodeUID": "u", "bootID": "b", "confirmedBy": ""}});
    let refusal = bench.post(FENCES, &bare).await?.refused(422, "Invalid")?;
    let why = "Invalid value: \"\": spec.admin.confirm.confirmedBy in body should be at least 1 chars long";
    refusal.cause("FieldValueInvalid", "spec.admin.confirm.confirmedBy", why)
}

async fn no_match(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"timeout": "soon"})).await?;
    let why = "Invalid value: \"soon\": spec.timeout in body should match '^([0-9]{1,6}(ms|s|m|h)){1,4}$'";
    refusal.cause("FieldValueInvalid", "spec.timeout", why)
}

async fn another_type(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"timeout": 5})).await?;
    let why = "Invalid value: \"integer\": spec.timeout in body must be of type string: \"integer\"";
    refusal.cause("FieldValueTypeInvalid", "spec.timeout", why)
}

async fn fraction_for_a_number(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"retries": 1.5})).await?;
    let why = "Invalid value: \"number\": spec.retries in body must be of type integer: \"number\"";
    refusal.cause("FieldValueTypeInvalid", "spec.retries", why)
}

async fn missing(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"secretRef": {"name": "s"}})).await?;
    refusal.cause("FieldValueRequired", "spec.secretRef.keys", "Required value")
}

async fn missing_altogether(bench: &Bench) -> Told {
    let mut bare = fence(&bench.name("n"));
    bare["spec"] = json!({});
    let refusal = bench.post(FENCES, &bare).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueRequired", "spec.nodeName", "Required value")
}

async fn too_many(bench: &Bench) -> Told {
    let mut greedy = fence(&bench.name("n"));
    let one = |number: u32| json!({"namespace": "a", "name": "b", "uid": number.to_string()});
    greedy["spec"]["requests"] = (0..17).map(one).collect();
    let refusal = bench.post(FENCES, &greedy).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueTooMany", "spec.requests", "Too many: 17: must have at most 16 items")
}

async fn twice_in_a_map(bench: &Bench) -> Told {
    let mut double = fence(&bench.name("n"));
    let one = |name: &str| json!({"namespace": "a", "name": name, "uid": "u"});
    double["spec"]["requests"] = json!([one("b"), one("c")]);
    let refusal = bench.post(FENCES, &double).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueDuplicate", "spec.requests[1]", "Duplicate value: {\"uid\":\"u\"}")
}

async fn twice_in_a_set(bench: &Bench) -> Told {
    let mut config = json!({"apiVersion": "palisade.dev/v1alpha1", "kind": "FenceConfig"});
    config["metadata"] = json!({"name": bench.name("c")});
    let levels = json!([{"name": "a", "methods": [{"name": "m", "template": "t"}]}]);
    config["spec"] = json!({"nodeNames": ["n1", "n1"], "powerManagement": {"levels": levels}});
    let refusal = bench.post(CONFIGS, &config).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueDuplicate", "spec.nodeNames[1]", "Duplicate value: \"n1\"")
}

async fn no_time(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let condition = json!({"type": "Isolated", "status": "True", "reason": "Proven", "lastTransitionTime": "noon"});
    let patch = json!({"status": {"conditions": [condition]}});
    let refusal = bench.merge(&made.status(), &patch).await?.refused(422, "Invalid")?;
    let field = "status.conditions[0].lastTransitionTime";
    refusal.cause("FieldValueTypeInvalid", field, "lastTransitionTime in body must be of type date-time: \"noon\"")
}

async fn several_at_once(bench: &Bench) -> Told {
    let refusal = wrong(bench, json!({"retries": 11, "identity": "Never"})).await?;
    refusal.cause("FieldValueInvalid", "spec.retries", "")?;
    refusal.cause("FieldValueNotSupported", "spec.identity", "")?;
    let message = text(refusal.status(), "/message");
    must(message.contains(" is invalid: [") && message.ends_with(']'), || message.to_owned())
}

async fn rules_wait(bench: &Bench) -> Told {
    // Two mechanisms break a rule; but a field is missing, or a word is none of the enumeration.
    let agent = json!({"name": "fence_ipmilan"});
    let word = wrong(bench, json!({"agent": agent, "identity": "Never"})).await?;
    let field = wrong(bench, json!({"agent": {}})).await?;
    field.cause("FieldValueRequired", "spec.agent.name", "Required value")?;
    let why = "some validation rules were not checked because the object was invalid; correct the existing errors to \
               complete validation";
    for refusal in [word, field] {
        refusal.cause("FieldValueInvalid", "<nil>", why)?;
        same("causes", refusal.causes().count(), 2)?;
    }
    Ok(())
}

async fn status_has_a_schema(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let mut odd = fence_status(1);
    odd["slot"] = "Maybe".into();
    let refusal = bench.merge(&made.status(), &json!({"status": odd})).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueNotSupported", "status.slot", "supported values: \"None\", \"Held\"")
}

async fn kind_in_the_message(bench: &Bench) -> Told {
    let mut odd = request(&bench.name("r"));
    odd["spec"]["reason"] = "because".into();
    let refusal = bench.post(REQUESTS, &odd).await?.refused(422, "Invalid")?;
    let name = bench.name("r");
    refusal.says(&format!(
        "NodeFencingRequest.palisade.dev \"{name}\" is invalid: spec.reason: Invalid value: \"because\": spec.reason in body \
         should match '^[A-Z][A-Za-z0-9]*$'"
    ))?;
    refusal.about(&name, "palisade.dev", "NodeFencingRequest")
}
