//! Watches: what happens, in the order in which it happened, to those who asked for it.

use serde_json::{Value, json};

use crate::conformance::answer::{items, must, same, text, version};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{config_map, fence, fence_status, pod, pod_on};
use crate::conformance::places::{CONFIG_MAPS, FENCES, PODS};
use crate::conformance::{Told, table};

table! { "watches";
    life_of_an_object: "ADDED, MODIFIED, DELETED, in order, and nothing in between";
    life_of_one_of_ours: "of our own kinds, too, status and spec alike";
    from_a_list: "a watch from a list's version begins after it";
    versions_in_a_watch: "each line has a higher version, and a deletion one of its own";
    leaves_the_selection: "an object that loses its label is DELETED, as it last was, in the version of the change";
    enters_the_selection: "one that gets the label is ADDED";
    bound_to_a_node: "a pod that is bound to a node is ADDED for those who watch that node";
    one_by_name: "a watch of one name sees no other";
    nothing_written_nothing_told: "a write that changes nothing is not told";
    forced_pod: "a pod that is removed by force is MODIFIED first, with its mark, then DELETED";
    last_finalizer: "the last finalizer's removal is one DELETED, with the object as it last stood";
    without_a_version: "a watch without a version tells first what is there";
    from_version_zero: "so does one from version 0";
    state_then_bookmark: "sendInitialEvents ends the state with a bookmark that says so";
    state_without_match: "sendInitialEvents needs resourceVersionMatch";
    forgotten_version: "a watch from a version that is forgotten is told so: 410, Expired";
    ends_in_time: "timeoutSeconds ends a watch";
    bookmark_before_the_end: "who wants bookmarks gets one shortly before the end, past what was not selected";
    no_bookmark_unasked: "who does not, gets none";
    selector_that_is_none: "a selector that is none is refused before anything is told";
}

async fn now(bench: &Bench, place: &str) -> Told<String> {
    let list = bench.read(&format!("{place}?limit=1")).await?;
    Ok(text(&list, "/metadata/resourceVersion").to_owned())
}

fn labelled(bench: &Bench, word: &str) -> Value {
    let mut map = config_map(&bench.name(word));
    map["metadata"]["labels"] = json!({"app": bench.name("app")});
    map
}

fn of_label(bench: &Bench, version: &str) -> String {
    format!("labelSelector=app={}&resourceVersion={version}", bench.name("app"))
}

async fn life_of_an_object(bench: &Bench) -> Told {
    let begin = now(bench, CONFIG_MAPS).await?;
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, &begin)).await?;
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    bench.delete(&map.path, &json!({})).await?.is(200)?;
    let added = watch.expect("ADDED", map.name()).await?;
    same("kind", [text(&added, "/kind"), text(&added, "/apiVersion")], ["ConfigMap", "v1"])?;
    let modified = watch.expect("MODIFIED", map.name()).await?;
    same("data", text(&modified, "/data/k"), "w")?;
    watch.expect("DELETED", map.name()).await.map(drop)
}

async fn life_of_one_of_ours(bench: &Bench) -> Told {
    let (begin, name) = (now(bench, FENCES).await?, bench.name("n"));
    let query = format!("fieldSelector=metadata.name={name}&resourceVersion={begin}");
    let mut watch = bench.watch(FENCES, &query).await?;
    let fence = bench.make(FENCES, fence(&name)).await?;
    bench.merge(&fence.status(), &json!({"status": fence_status(1)})).await?.is(200)?;
    bench.merge(&fence.path, &json!({"spec": {"stayOff": true}})).await?.is(200)?;
    bench.delete(&fence.path, &json!({})).await?.is(200)?;
    watch.expect("ADDED", &name).await?;
    let status = watch.expect("MODIFIED", &name).await?;
    same("attempt", &status["status"]["attempt"], &json!(1))?;
    let spec = watch.expect("MODIFIED", &name).await?;
    same("spec", &spec["spec"]["stayOff"], &json!(true))?;
    watch.expect("DELETED", &name).await.map(drop)
}

async fn from_a_list(bench: &Bench) -> Told {
    bench.make(CONFIG_MAPS, labelled(bench, "before")).await?;
    let list = bench.read(CONFIG_MAPS).await?;
    let after = bench.make(CONFIG_MAPS, labelled(bench, "after")).await?;
    let begin = text(&list, "/metadata/resourceVersion");
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, begin)).await?;
    watch.expect("ADDED", after.name()).await.map(drop)
}

async fn versions_in_a_watch(bench: &Bench) -> Told {
    let begin = now(bench, CONFIG_MAPS).await?;
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, &begin)).await?;
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    bench.delete(&map.path, &json!({})).await?.is(200)?;
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.push(version(&watch.next().await?.object));
    }
    must(seen.is_sorted_by(|one, next| one < next), || format!("versions are {seen:?}"))
}

async fn leaves_the_selection(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, map.version())).await?;
    let patch = json!({"metadata": {"labels": {"app": "other"}}, "data": {"k": "w"}});
    let left = bench.merge(&map.path, &patch).await?.is(200)?;
    let told = watch.expect("DELETED", map.name()).await?;
    same("data", text(&told, "/data/k"), "v")?;
    same("version", version(&told), version(&left))
}

async fn enters_the_selection(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, map.version())).await?;
    let patch = json!({"metadata": {"labels": {"app": bench.name("app")}}});
    bench.merge(&map.path, &patch).await?.is(200)?;
    watch.expect("ADDED", map.name()).await.map(drop)
}

async fn bound_to_a_node(bench: &Bench) -> Told {
    let node = bench.name("node");
    let pod = bench.make(PODS, pod(&bench.name("p"))).await?;
    let query = format!("fieldSelector=spec.nodeName={node}&resourceVersion={}", pod.version());
    let mut watch = bench.watch(PODS, &query).await?;
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
    let binding = json!({"metadata": {"name": pod.name()}, "target": target});
    bench.post(&format!("{}/binding", pod.path), &binding).await?.is(201)?;
    watch.expect("ADDED", pod.name()).await.map(drop)
}

async fn one_by_name(bench: &Bench) -> Told {
    let (begin, name) = (now(bench, CONFIG_MAPS).await?, bench.name("b"));
    let query = format!("fieldSelector=metadata.name={name}&resourceVersion={begin}");
    let mut watch = bench.watch(CONFIG_MAPS, &query).await?;
    bench.make(CONFIG_MAPS, config_map(&bench.name("a"))).await?;
    bench.make(CONFIG_MAPS, config_map(&name)).await?;
    watch.expect("ADDED", &name).await.map(drop)
}

async fn nothing_written_nothing_told(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, map.version())).await?;
    bench.put(&map.path, &map.object).await?.is(200)?;
    bench.delete(&map.path, &json!({})).await?.is(200)?;
    watch.expect("DELETED", map.name()).await.map(drop)
}

async fn forced_pod(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    let query = format!("fieldSelector=metadata.name={}&resourceVersion={}", pod.name(), pod.version());
    let mut watch = bench.watch(PODS, &query).await?;
    bench.delete(&pod.path, &json!({"gracePeriodSeconds": 0})).await?.is(200)?;
    let marked = watch.expect("MODIFIED", pod.name()).await?;
    same("grace", &marked["metadata"]["deletionGracePeriodSeconds"], &json!(0))?;
    watch.expect("DELETED", pod.name()).await.map(drop)
}

async fn last_finalizer(bench: &Bench) -> Told {
    let mut held = labelled(bench, "m");
    held["metadata"]["finalizers"] = json!(["palisade.dev/test"]);
    let map = bench.make(CONFIG_MAPS, held).await?;
    let marked = bench.delete(&map.path, &json!({})).await?.is(200)?;
    let begin = text(&marked, "/metadata/resourceVersion");
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, begin)).await?;
    let patch = json!({"metadata": {"finalizers": null}, "data": {"k": "w"}});
    bench.merge(&map.path, &patch).await?.is(200)?;
    let told = watch.expect("DELETED", map.name()).await?;
    same("finalizers", &told["metadata"]["finalizers"], &json!(["palisade.dev/test"]))?;
    same("data", text(&told, "/data/k"), "v")
}

async fn without_a_version(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    let query = format!("labelSelector=app={}", bench.name("app"));
    let mut watch = bench.watch(CONFIG_MAPS, &query).await?;
    watch.expect("ADDED", map.name()).await?;
    bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    watch.expect("MODIFIED", map.name()).await.map(drop)
}

async fn from_version_zero(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    // Any version will do for version 0, also one before the object: a read makes sure that the server is past it.
    bench.read(CONFIG_MAPS).await?;
    let mut watch = bench.watch(CONFIG_MAPS, &of_label(bench, "0")).await?;
    watch.expect("ADDED", map.name()).await.map(drop)
}

async fn state_then_bookmark(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    let query = format!(
        "labelSelector=app={}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
        bench.name("app")
    );
    let mut watch = bench.watch(CONFIG_MAPS, &query).await?;
    watch.expect("ADDED", map.name()).await?;
    let end = watch.next().await?;
    same("word", end.word.as_str(), "BOOKMARK")?;
    same("annotations", &end.object["metadata"]["annotations"], &json!({"k8s.io/initial-events-end": "true"}))?;
    must(version(&end.object) >= version(&map.object), || format!("the bookmark is at {}", version(&end.object)))
}

async fn state_without_match(bench: &Bench) -> Told {
    let path = format!("{CONFIG_MAPS}?watch=true&sendInitialEvents=true");
    let refusal = bench.get(&path).await?.refused(422, "Invalid")?;
    refusal.mentions("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
}

async fn forgotten_version(bench: &Bench) -> Told {
    let mut watch = bench.watch(CONFIG_MAPS, "resourceVersion=1").await?;
    let told = watch.next().await?;
    same("word", told.word.as_str(), "ERROR")?;
    same("code", &told.object["code"], &json!(410))?;
    same("reason", text(&told.object, "/reason"), "Expired")?;
    must(text(&told.object, "/message").contains("too old resource version: 1"), || told.object.to_string())?;
    watch.expect_end().await
}

async fn ends_in_time(bench: &Bench) -> Told {
    let begin = now(bench, CONFIG_MAPS).await?;
    let query = format!("{}&timeoutSeconds=1", of_label(bench, &begin));
    bench.watch(CONFIG_MAPS, &query).await?.expect_end().await
}

async fn bookmark_before_the_end(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    let query = format!("{}&timeoutSeconds=5&allowWatchBookmarks=true", of_label(bench, map.version()));
    let mut watch = bench.watch(CONFIG_MAPS, &query).await?;
    let other = bench.make(CONFIG_MAPS, config_map(&bench.name("other"))).await?;
    let mut last = 0;
    // More than one may come in the last two seconds; what counts is where they lead to.
    while let Some(mark) = watch.next_or_end().await? {
        same("line", [mark.word.as_str(), mark.name()], ["BOOKMARK", ""])?;
        same("kind", text(&mark.object, "/kind"), "ConfigMap")?;
        must(version(&mark.object) >= last, || format!("{} after {last}", version(&mark.object)))?;
        last = version(&mark.object);
    }
    must(last >= version(&other.object), || format!("the last bookmark is at {last}, before {}", other.version()))
}

async fn no_bookmark_unasked(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, labelled(bench, "m")).await?;
    let query = format!("{}&timeoutSeconds=5", of_label(bench, map.version()));
    let mut watch = bench.watch(CONFIG_MAPS, &query).await?;
    bench.make(CONFIG_MAPS, config_map(&bench.name("other"))).await?;
    watch.expect_end().await
}

async fn selector_that_is_none(bench: &Bench) -> Told {
    let path = format!("{PODS}?watch=true&fieldSelector=spec.hostname%3Da");
    let refusal = bench.get(&path).await?.refused(400, "BadRequest")?;
    same("causes", items(refusal.status(), "/details/causes").count(), 0)
}
