//! Pages: long lists in parts, and lists of another time.

use serde_json::{Value, json};

use crate::conformance::answer::{items, must, names, same, text, version};
use crate::conformance::bench::Bench;
use crate::conformance::objects::config_map;
use crate::conformance::places::CONFIG_MAPS;
use crate::conformance::{Told, table};

table! { "pages";
    whole_in_parts: "pages together are the list, each object once";
    one_moment: "all pages are of the moment of the first: what comes later is not in them";
    versions_of_pages: "all pages have the version of the first";
    what_is_left: "a page of everything says how many are left; one of a selection does not";
    last_page: "the last page has no token";
    full_page: "who follows a full page to its end gets nothing twice, though a last page may be empty";
    token_that_is_none: "a token that is none is refused";
    at_a_version: "a list at an exact version shows what was there then";
    at_any_version: "a list at version 0 is served";
    match_without_a_version: "resourceVersionMatch needs a version";
    version_that_is_none: "a version that is no number is refused";
    version_of_the_future: "a version that is not reached yet is a timeout that says so";
}

async fn several(bench: &Bench) -> Told<String> {
    for word in ["1", "2", "3", "4", "5"] {
        make(bench, word).await?;
    }
    Ok(format!("{CONFIG_MAPS}?labelSelector=app={}", bench.name("app")))
}

async fn make(bench: &Bench, word: &str) -> Told<Value> {
    let mut map = config_map(&bench.name(word));
    map["metadata"]["labels"] = json!({"app": bench.name("app")});
    Ok(bench.make(CONFIG_MAPS, map).await?.object)
}

fn token(page: &Value) -> &str {
    text(page, "/metadata/continue")
}

async fn next(bench: &Bench, path: &str, limit: u32, page: &Value) -> Told<Value> {
    bench.read(&format!("{path}&limit={limit}&continue={}", token(page))).await
}

fn wanted(bench: &Bench, words: &[&str]) -> Vec<String> {
    words.iter().map(|word| bench.name(word)).collect()
}

async fn whole_in_parts(bench: &Bench) -> Told {
    let path = several(bench).await?;
    let mut page = bench.read(&format!("{path}&limit=2")).await?;
    let mut found: Vec<Value> = items(&page, "/items").cloned().collect();
    same("first page", found.len(), 2)?;
    while !token(&page).is_empty() {
        page = next(bench, &path, 2, &page).await?;
        found.extend(items(&page, "/items").cloned());
    }
    same("names", names(&found), wanted(bench, &["1", "2", "3", "4", "5"]).iter().map(String::as_str).collect())
}

async fn one_moment(bench: &Bench) -> Told {
    let path = several(bench).await?;
    let first = bench.read(&format!("{path}&limit=3")).await?;
    make(bench, "6").await?;
    bench.delete(&format!("{CONFIG_MAPS}/{}", bench.name("4")), &json!({})).await?.is(200)?;
    let rest = next(bench, &path, 10, &first).await?;
    same("names", names(items(&rest, "/items")), wanted(bench, &["4", "5"]).iter().map(String::as_str).collect())
}

async fn versions_of_pages(bench: &Bench) -> Told {
    let path = several(bench).await?;
    let first = bench.read(&format!("{path}&limit=3")).await?;
    make(bench, "6").await?;
    let rest = next(bench, &path, 10, &first).await?;
    same("version", version(&rest), version(&first))
}

async fn what_is_left(bench: &Bench) -> Told {
    let path = several(bench).await?;
    let some = bench.read(&format!("{path}&limit=2")).await?;
    same("of a selection", some["metadata"].get("remainingItemCount"), None)?;
    let all = bench.read(&format!("{CONFIG_MAPS}?limit=2")).await?;
    let left = all["metadata"]["remainingItemCount"].as_u64();
    must(left.is_some_and(|left| left >= 3), || format!("{left:?} are left of everything"))
}

async fn last_page(bench: &Bench) -> Told {
    let path = several(bench).await?;
    let first = bench.read(&format!("{path}&limit=4")).await?;
    must(!token(&first).is_empty(), || "the first page has no token".to_owned())?;
    let last = next(bench, &path, 4, &first).await?;
    same("names", names(items(&last, "/items")), vec![bench.name("5").as_str()])?;
    same("token", token(&last), "")
}

async fn full_page(bench: &Bench) -> Told {
    let path = several(bench).await?;
    let mut page = bench.read(&format!("{path}&limit=5")).await?;
    same("items", items(&page, "/items").count(), 5)?;
    // Whether there is a token depends on what comes after, which is others' business: it was not selected.
    while !token(&page).is_empty() {
        page = next(bench, &path, 5, &page).await?;
        same("more", items(&page, "/items").count(), 0)?;
    }
    Ok(())
}

async fn token_that_is_none(bench: &Bench) -> Told {
    let refusal = bench.get(&format!("{CONFIG_MAPS}?limit=2&continue=nonsense")).await?;
    refusal.refused(400, "BadRequest")?.mentions("continue key is not valid")
}

async fn at_a_version(bench: &Bench) -> Told {
    let path = several(bench).await?;
    let then = bench.read(&path).await?;
    make(bench, "6").await?;
    bench.delete(&format!("{CONFIG_MAPS}/{}", bench.name("1")), &json!({})).await?.is(200)?;
    let query = format!("resourceVersion={}&resourceVersionMatch=Exact", text(&then, "/metadata/resourceVersion"));
    let shown = bench.read(&format!("{path}&{query}")).await?;
    same("names", names(items(&shown, "/items")), names(items(&then, "/items")))?;
    same("version", version(&shown), version(&then))
}

async fn at_any_version(bench: &Bench) -> Told {
    let path = several(bench).await?;
    bench.read(&format!("{path}&resourceVersion=0")).await.map(drop)
}

async fn match_without_a_version(bench: &Bench) -> Told {
    let refusal = bench.get(&format!("{CONFIG_MAPS}?resourceVersionMatch=Exact")).await?.refused(422, "Invalid")?;
    refusal.mentions("resourceVersionMatch is forbidden unless resourceVersion is provided")
}

async fn version_that_is_none(bench: &Bench) -> Told {
    let refusal = bench.get(&format!("{CONFIG_MAPS}?resourceVersion=nonsense")).await?;
    must(refusal.code == 400, || format!("got {} {}", refusal.code, refusal.body))
}

async fn version_of_the_future(bench: &Bench) -> Told {
    let map = make(bench, "1").await?;
    let far = version(&map) + 1_000_000_000;
    let path = format!("{CONFIG_MAPS}?resourceVersion={far}&resourceVersionMatch=NotOlderThan");
    let refusal = bench.get(&path).await?.refused(504, "Timeout")?;
    refusal.mentions(&format!("Too large resource version: {far}, current: "))?;
    refusal.cause("ResourceVersionTooLarge", "", "Too large resource version")
}
