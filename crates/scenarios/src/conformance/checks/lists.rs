//! Lists: which objects a selector takes.

use serde_json::{Value, json};

use crate::conformance::answer::{items, must, names, same, text, version};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{config_map, fence, pod, pod_on, request};
use crate::conformance::places::{CONFIG_MAPS, FENCES, OURS, PODS, REQUESTS, at};
use crate::conformance::{Told, table};

table! { "lists";
    labels_equal: "a label selector takes those with the label";
    labels_in_sets: "in, notin, exists and does not exist mean what they say";
    labels_that_are_none: "a label selector that is none is refused";
    by_name: "metadata.name takes one";
    ours_by_name: "of our own kinds, too";
    pods_by_node: "spec.nodeName takes the pods of a node";
    pods_by_phase: "status.phase takes the pods of a phase";
    pods_by_two_fields: "two fields are both asked for, and one may be unlike";
    field_of_no_index: "a field that is not indexed is refused, by name";
    field_of_ours: "of our own kinds, none is but name and namespace";
    in_order: "objects come in the order of their names";
    items_of_a_built_in_list: "items of a built-in list do not say their kind, the list does";
    items_of_a_list_of_ours: "items of a list of ours say it";
    version_of_a_list: "a list has a version, not older than its newest object";
    everywhere: "a list without a namespace has those of all";
    metadata_alone: "PartialObjectMetadata shows nothing but metadata";
    of_no_kind: "a kind that does not exist is no page";
    of_no_group: "neither is one of a group that does not exist";
    get_nothing: "a get of nothing of ours is NotFound, with its group";
}

/// Three ConfigMaps with a label `tier`: a, b and none; all have `app`.
async fn three(bench: &Bench) -> Told<String> {
    let app = bench.name("app");
    for (word, tier) in [("1", Some("a")), ("2", Some("b")), ("3", None)] {
        let mut map = config_map(&bench.name(word));
        map["metadata"]["labels"] = json!({"app": app});
        if let Some(tier) = tier {
            map["metadata"]["labels"]["tier"] = tier.into();
        }
        bench.make(CONFIG_MAPS, map).await?;
    }
    Ok(app)
}

async fn listed(bench: &Bench, place: &str, query: &str) -> Told<Vec<Value>> {
    let list = bench.read(&format!("{place}?{query}")).await?;
    Ok(items(&list, "/items").cloned().collect())
}

async fn labels_equal(bench: &Bench) -> Told {
    let app = three(bench).await?;
    let found = listed(bench, CONFIG_MAPS, &format!("labelSelector=app%3D{app},tier%3D%3Da")).await?;
    same("names", names(&found), vec![bench.name("1").as_str()])
}

async fn labels_in_sets(bench: &Bench) -> Told {
    let app = three(bench).await?;
    for (test, wanted) in [
        ("tier%20in%20(a,b)", vec!["1", "2"]),
        ("tier%20notin%20(a)", vec!["2", "3"]),
        ("tier!%3Da", vec!["2", "3"]),
        ("tier", vec!["1", "2"]),
        ("!tier", vec!["3"]),
    ] {
        let found = listed(bench, CONFIG_MAPS, &format!("labelSelector=app%3D{app},{test}")).await?;
        let wanted: Vec<String> = wanted.into_iter().map(|word| bench.name(word)).collect();
        same(test, names(&found), wanted.iter().map(String::as_str).collect())?;
    }
    Ok(())
}

async fn labels_that_are_none(bench: &Bench) -> Told {
    let path = format!("{CONFIG_MAPS}?labelSelector=tier%20of%20(a)");
    let refusal = bench.get(&path).await?.refused(400, "BadRequest")?;
    refusal.mentions("unable to parse requirement")
}

async fn by_name(bench: &Bench) -> Told {
    three(bench).await?;
    let name = bench.name("2");
    let found = listed(bench, CONFIG_MAPS, &format!("fieldSelector=metadata.name%3D{name}")).await?;
    same("names", names(&found), vec![name.as_str()])
}

async fn ours_by_name(bench: &Bench) -> Told {
    let (one, other) = (bench.name("1"), bench.name("2"));
    bench.make(FENCES, fence(&one)).await?;
    bench.make(FENCES, fence(&other)).await?;
    let found = listed(bench, FENCES, &format!("fieldSelector=metadata.name={one}")).await?;
    same("names", names(&found), vec![one.as_str()])
}

/// Three pods: two on a node, of which one has failed, and one without.
async fn pods(bench: &Bench) -> Told<String> {
    let node = bench.name("node");
    bench.make(PODS, pod_on(&bench.name("1"), &node)).await?;
    let failed = bench.make(PODS, pod_on(&bench.name("2"), &node)).await?;
    bench.merge(&failed.status(), &json!({"status": {"phase": "Failed"}})).await?.is(200)?;
    bench.make(PODS, pod(&bench.name("3"))).await?;
    Ok(node)
}

async fn pods_by_node(bench: &Bench) -> Told {
    let node = pods(bench).await?;
    let found = listed(bench, "/api/v1/pods", &format!("fieldSelector=spec.nodeName%3D{node}")).await?;
    same("names", names(&found), vec![bench.name("1").as_str(), bench.name("2").as_str()])
}

async fn pods_by_phase(bench: &Bench) -> Told {
    pods(bench).await?;
    let found = listed(bench, PODS, "fieldSelector=status.phase=Failed").await?;
    let (failed, pending) = (bench.name("2"), bench.name("3"));
    let found = names(&found);
    must(found.contains(&failed.as_str()) && !found.contains(&pending.as_str()), || format!("found {found:?}"))
}

async fn pods_by_two_fields(bench: &Bench) -> Told {
    let node = pods(bench).await?;
    let query = format!("fieldSelector=spec.nodeName={node},status.phase!=Failed");
    let found = listed(bench, PODS, &query).await?;
    same("names", names(&found), vec![bench.name("1").as_str()])
}

async fn field_of_no_index(bench: &Bench) -> Told {
    let path = format!("{PODS}?fieldSelector=spec.hostname%3Da");
    let refusal = bench.get(&path).await?.refused(400, "BadRequest")?;
    refusal.mentions("field label not supported: spec.hostname")
}

async fn field_of_ours(bench: &Bench) -> Told {
    let path = format!("{FENCES}?fieldSelector=spec.nodeName%3Da");
    let refusal = bench.get(&path).await?.refused(400, "BadRequest")?;
    refusal.mentions("field label not supported: spec.nodeName")
}

async fn in_order(bench: &Bench) -> Told {
    let app = bench.name("app");
    for word in ["c", "a", "b"] {
        let mut map = config_map(&bench.name(word));
        map["metadata"]["labels"] = json!({"app": app});
        bench.make(CONFIG_MAPS, map).await?;
    }
    let found = listed(bench, CONFIG_MAPS, &format!("labelSelector=app={app}")).await?;
    let wanted = ["a", "b", "c"].map(|word| bench.name(word));
    same("names", names(&found), wanted.iter().map(String::as_str).collect())
}

async fn items_of_a_built_in_list(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let list = bench.read(&format!("{CONFIG_MAPS}?fieldSelector=metadata.name={}", map.name())).await?;
    same("list", [text(&list, "/kind"), text(&list, "/apiVersion")], ["ConfigMapList", "v1"])?;
    same("item", [list["items"][0].get("kind"), list["items"][0].get("apiVersion")], [None, None])
}

async fn items_of_a_list_of_ours(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let list = bench.read(&format!("{FENCES}?fieldSelector=metadata.name={}", fence.name())).await?;
    same("list", text(&list, "/kind"), "NodeFenceList")?;
    same(
        "item",
        [text(&list, "/items/0/kind"), text(&list, "/items/0/apiVersion")],
        ["NodeFence", "palisade.dev/v1alpha1"],
    )
}

async fn version_of_a_list(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let list = bench.read(CONFIG_MAPS).await?;
    must(version(&list) >= version(&map.object), || format!("{} of a list with {}", version(&list), map.version()))
}

async fn everywhere(bench: &Bench) -> Told {
    let name = bench.name("r");
    bench.make(REQUESTS, request(&name)).await?;
    let place = format!("{OURS}/nodefencingrequests");
    let found =
        listed(bench, &place, &format!("fieldSelector=metadata.namespace=default,metadata.name={name}")).await?;
    same("names", names(&found), vec![name.as_str()])?;
    let elsewhere = format!("{OURS}/namespaces/kube-system/nodefencingrequests");
    let found = listed(bench, &elsewhere, &format!("fieldSelector=metadata.name={name}")).await?;
    same("names", names(&found), vec![])
}

async fn metadata_alone(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let form = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
    let shown = bench.get_as(&fence.path, form).await?.is(200)?;
    same("kind", [text(&shown, "/kind"), text(&shown, "/apiVersion")], ["PartialObjectMetadata", "meta.k8s.io/v1"])?;
    same("uid", text(&shown, "/metadata/uid"), fence.uid())?;
    same("spec", shown.get("spec"), None)
}

async fn of_no_kind(bench: &Bench) -> Told {
    // The core group answers with a Status, as it knows the group; the words are a page's.
    let refusal = bench.get(&format!("{OURS}/dogs")).await?;
    same("code", refusal.code, 404)
}

async fn of_no_group(bench: &Bench) -> Told {
    let refusal = bench.get("/apis/dogs.palisade.dev/v1/dogs").await?;
    same("code", refusal.code, 404)
}

async fn get_nothing(bench: &Bench) -> Told {
    let name = bench.name("n");
    let refusal = bench.get(&at(FENCES, &name)).await?.refused(404, "NotFound")?;
    refusal.says(&format!("nodefences.palisade.dev \"{name}\" not found"))?;
    refusal.about(&name, "palisade.dev", "nodefences")
}
