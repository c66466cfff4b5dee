//! Create: how an object comes to be, and why it may not.

use http::Method;
use serde_json::json;

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{NOBODY, config_map, fence, fence_status, named, node, pod};
use crate::conformance::places::{CONFIG_MAPS, FENCES, NAMESPACES, NODES, PODS, SECRETS, at};
use crate::conformance::{Told, table};

table! { "create";
    already_exists: "a second object of the name is AlreadyExists";
    already_exists_of_ours: "so it is for our own kinds, whose group is named: this is how two leaders make one fence";
    already_exists_while_it_goes: "while the first is being deleted, the refusal says so";
    generated_name: "generateName gets five letters appended, and stays in the object";
    name_before_generated_name: "a name wins over generateName";
    without_a_name: "without a name it is refused";
    bad_name: "a name that is none is refused, with its field";
    with_a_version: "a new object must not have a version";
    in_no_namespace: "a namespace that does not exist is NotFound";
    in_another_namespace: "a body with another namespace than the path is refused";
    in_a_closing_namespace: "a namespace that is being deleted takes nothing new, and says why";
    another_kind: "a body of another kind is refused";
    another_group: "a body of another group or version is refused";
    no_json: "a body that is not JSON is refused";
    signed_by_the_server: "UID, creation time and generation are the server's, whatever the client sent";
    status_left_out: "a status that comes with a new object is left out, of a pod";
    status_of_ours_left_out: "and of our own kinds";
    node_with_status: "a Node keeps the status with which it is registered";
    post_to_a_name: "one cannot post to an object that has a name";
    secret_from_text: "a Secret's stringData becomes data, and is not shown";
}

async fn already_exists(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let refusal = bench.post(CONFIG_MAPS, &config_map(map.name())).await?.refused(409, "AlreadyExists")?;
    refusal.says(&format!("configmaps \"{}\" already exists", map.name()))?;
    refusal.about(map.name(), "", "configmaps")
}

async fn already_exists_of_ours(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let refusal = bench.post(FENCES, &fence(made.name())).await?.refused(409, "AlreadyExists")?;
    refusal.says(&format!("nodefences.palisade.dev \"{}\" already exists", made.name()))?;
    refusal.about(made.name(), "palisade.dev", "nodefences")?;
    bench.untouched(&made.path, &made.object).await
}

async fn already_exists_while_it_goes(bench: &Bench) -> Told {
    let mut held = config_map(&bench.name("m"));
    held["metadata"]["finalizers"] = json!(["palisade.dev/test"]);
    let map = bench.make(CONFIG_MAPS, held).await?;
    bench.delete(&map.path, &json!({})).await?.is(200)?;
    let refusal = bench.post(CONFIG_MAPS, &config_map(map.name())).await?.refused(409, "AlreadyExists")?;
    refusal.says(&format!("object is being deleted: configmaps \"{}\" already exists", map.name()))
}

async fn generated_name(bench: &Bench) -> Told {
    let stem = bench.name("m-");
    let map = bench.make(CONFIG_MAPS, json!({"metadata": {"generateName": stem}})).await?;
    let letters = map.name().strip_prefix(stem.as_str()).unwrap_or_default();
    let fine = |letter: char| "bcdfghjklmnpqrstvwxz2456789".contains(letter);
    must(letters.len() == 5 && letters.chars().all(fine), || format!("the name is {}", map.name()))?;
    same("generateName", text(&map.object, "/metadata/generateName"), &stem)
}

async fn name_before_generated_name(bench: &Bench) -> Told {
    let (name, stem) = (bench.name("m"), bench.name("other-"));
    let map = bench.make(CONFIG_MAPS, json!({"metadata": {"name": name, "generateName": stem}})).await?;
    same("name", map.name(), &name)
}

async fn without_a_name(bench: &Bench) -> Told {
    let refusal = bench.post(CONFIG_MAPS, &json!({"data": {}})).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueRequired", "metadata.name", "Required value: name or generateName is required")?;
    refusal.says("ConfigMap \"\" is invalid: metadata.name: Required value: name or generateName is required")
}

async fn bad_name(bench: &Bench) -> Told {
    let name = format!("{}-N_1", bench.name("m"));
    let refusal = bench.post(CONFIG_MAPS, &config_map(&name)).await?.refused(422, "Invalid")?;
    refusal.about(&name, "", "ConfigMap")?;
    refusal.cause("FieldValueInvalid", "metadata.name", "a lowercase RFC 1123 subdomain must consist of lower case")
}

async fn with_a_version(bench: &Bench) -> Told {
    let mut map = config_map(&bench.name("m"));
    map["metadata"]["resourceVersion"] = "7".into();
    let refusal = bench.post(CONFIG_MAPS, &map).await?.refused(500, "")?;
    refusal.says("resourceVersion should not be set on objects to be created")
}

async fn in_no_namespace(bench: &Bench) -> Told {
    let name = bench.name("nowhere");
    let place = format!("{NAMESPACES}/{name}/configmaps");
    let refusal = bench.post(&place, &config_map("m")).await?.refused(404, "NotFound")?;
    refusal.says(&format!("namespaces \"{name}\" not found"))?;
    refusal.about(&name, "", "namespaces")
}

async fn in_another_namespace(bench: &Bench) -> Told {
    let mut map = config_map(&bench.name("m"));
    map["metadata"]["namespace"] = "kube-system".into();
    let refusal = bench.post(CONFIG_MAPS, &map).await?.refused(400, "BadRequest")?;
    refusal.says("the namespace of the provided object does not match the namespace sent on the request")
}

async fn in_a_closing_namespace(bench: &Bench) -> Told {
    let space = bench.make(NAMESPACES, named(&bench.name("ns"))).await?;
    let name = space.name();
    let place = format!("{NAMESPACES}/{name}/configmaps");
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["palisade.dev/test"]);
    bench.make(&place, held).await?;
    bench.delete(&space.path, &json!({})).await?.is(200)?;
    let refusal = bench.post(&place, &config_map("m")).await?.refused(403, "Forbidden")?;
    refusal.says(&format!(
        "configmaps \"m\" is forbidden: unable to create new content in namespace {name} because it is being terminated"
    ))?;
    refusal.cause("NamespaceTerminating", "metadata.namespace", &format!("namespace {name} is being terminated"))
}

async fn another_kind(bench: &Bench) -> Told {
    let mut body = named(&bench.name("m"));
    body["kind"] = "Secret".into();
    body["apiVersion"] = "v1".into();
    let refusal = bench.post(CONFIG_MAPS, &body).await?.refused(400, "BadRequest")?;
    refusal.mentions("Secret in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Secret)")
}

async fn another_group(bench: &Bench) -> Told {
    let mut body = fence(&bench.name("n"));
    body["apiVersion"] = "palisade.dev/v1".into();
    let refusal = bench.post(FENCES, &body).await?.refused(400, "BadRequest")?;
    refusal.mentions("the API version in the data (palisade.dev/v1) does not match the expected API version")
}

async fn no_json(bench: &Bench) -> Told {
    let body = b"{\"metadata\": ".to_vec();
    let json = "application/json";
    bench.send(Method::POST, CONFIG_MAPS, json, json, body).await?.refused(400, "BadRequest").map(drop)
}

async fn signed_by_the_server(bench: &Bench) -> Told {
    let mut forged = fence(&bench.name("n"));
    forged["metadata"]["uid"] = NOBODY.into();
    forged["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
    forged["metadata"]["generation"] = 7.into();
    forged["metadata"]["deletionTimestamp"] = "2020-01-01T00:00:00Z".into();
    let made = bench.make(FENCES, forged).await?;
    let metadata = &made.object["metadata"];
    must(made.uid() != NOBODY && made.uid().len() == 36, || format!("the UID is {}", made.uid()))?;
    let since = text(&made.object, "/metadata/creationTimestamp");
    must(since > "2021" && since.len() == 20 && since.ends_with('Z'), || format!("it was made at {since}"))?;
    same("generation", &metadata["generation"], &json!(1))?;
    must(metadata.get("deletionTimestamp").is_none(), || "it is being deleted from the start".to_owned())
}

async fn status_left_out(bench: &Bench) -> Told {
    let mut forged = pod(&bench.name("p"));
    forged["status"] = json!({"phase": "Running", "podIP": "192.0.2.7"});
    let pod = bench.make(PODS, forged).await?;
    same("phase", text(&pod.object, "/status/phase"), "Pending")?;
    same("address", pod.object["status"].get("podIP"), None)
}

async fn status_of_ours_left_out(bench: &Bench) -> Told {
    let mut forged = fence(&bench.name("n"));
    forged["status"] = fence_status(3);
    let fence = bench.make(FENCES, forged).await?;
    same("status", fence.object.get("status"), None)
}

async fn node_with_status(bench: &Bench) -> Told {
    let node = bench.make(NODES, node(&bench.name("n"))).await?;
    same("condition", text(&node.object, "/status/conditions/0/status"), "True")
}

async fn post_to_a_name(bench: &Bench) -> Told {
    let path = at(CONFIG_MAPS, &bench.name("m"));
    let refusal = bench.post(&path, &json!({})).await?.refused(405, "MethodNotAllowed")?;
    refusal.says("the server does not allow this method on the requested resource")
}

async fn secret_from_text(bench: &Bench) -> Told {
    let mut secret = named(&bench.name("s"));
    secret["data"] = json!({"username": "b2xk", "other": "eA=="});
    secret["stringData"] = json!({"username": "admin"});
    let made = bench.make(SECRETS, secret).await?;
    same("data", &made.object["data"], &json!({"username": "YWRtaW4=", "other": "eA=="}))?;
    same("stringData", made.object.get("stringData"), None)?;
    same("type", text(&made.object, "/type"), "Opaque")
}
