//! Garbage: what becomes of objects when their owner goes.

use serde_json::{Value, json};

use super::kubelet::{marked, seconds};
use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::{NOBODY, config_map};
use crate::conformance::places::CONFIG_MAPS;
use crate::conformance::{Told, table};

table! { "garbage";
    background: "a dependent goes after its owner";
    orphaned: "an orphan stays, and loses the reference";
    foreground: "an owner waits for the dependents that block it";
    owner_that_never_was: "an object whose owner does not exist goes";
    one_of_two_owners: "an object with another owner left stays";
    another_of_the_name: "an owner of the same name and another UID is not the owner";
}

fn owned_by(bench: &Bench, word: &str, owners: &[(&str, &str)]) -> Value {
    let reference = |(name, uid): &(&str, &str)| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid, "blockOwnerDeletion": true});
    let mut map = config_map(&bench.name(word));
    map["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    map
}

async fn owner(bench: &Bench, word: &str) -> Told<Made> {
    bench.make(CONFIG_MAPS, config_map(&bench.name(word))).await
}

async fn background(bench: &Bench) -> Told {
    let owner = owner(bench, "o").await?;
    let dependent = owned_by(bench, "d", &[(owner.name(), owner.uid())]);
    let dependent = bench.make(CONFIG_MAPS, dependent).await?;
    bench.delete(&owner.path, &json!({"propagationPolicy": "Background"})).await?.is(200)?;
    bench.gone(&owner.path).await?;
    bench.until(&dependent.path, seconds(60), Value::is_null).await.map(drop)
}

async fn orphaned(bench: &Bench) -> Told {
    let owner = owner(bench, "o").await?;
    let dependent = owned_by(bench, "d", &[(owner.name(), owner.uid())]);
    let dependent = bench.make(CONFIG_MAPS, dependent).await?;
    let left = bench.delete(&owner.path, &json!({"propagationPolicy": "Orphan"})).await?.is(200)?;
    same("finalizers", &left["metadata"]["finalizers"], &json!(["orphan"]))?;
    bench.until(&owner.path, seconds(60), Value::is_null).await?;
    let now = bench.read(&dependent.path).await?;
    same("owners", items(&now, "/metadata/ownerReferences").count(), 0)
}

async fn foreground(bench: &Bench) -> Told {
    let owner = owner(bench, "o").await?;
    let mut dependent = owned_by(bench, "d", &[(owner.name(), owner.uid())]);
    dependent["metadata"]["finalizers"] = json!(["palisade.dev/test"]);
    let dependent = bench.make(CONFIG_MAPS, dependent).await?;
    let left = bench.delete(&owner.path, &json!({"propagationPolicy": "Foreground"})).await?.is(200)?;
    same("finalizers", &left["metadata"]["finalizers"], &json!(["foregroundDeletion"]))?;
    bench.until(&dependent.path, seconds(60), marked).await?;
    let waiting = bench.read(&owner.path).await?;
    must(marked(&waiting), || "the owner is not marked".to_owned())?;
    bench.merge(&dependent.path, &json!({"metadata": {"finalizers": null}})).await?.is(200)?;
    bench.until(&owner.path, seconds(60), Value::is_null).await.map(drop)
}

async fn owner_that_never_was(bench: &Bench) -> Told {
    let orphan = owned_by(bench, "d", &[(&bench.name("nobody"), NOBODY)]);
    let orphan = bench.make(CONFIG_MAPS, orphan).await?;
    bench.until(&orphan.path, seconds(60), Value::is_null).await.map(drop)
}

async fn one_of_two_owners(bench: &Bench) -> Told {
    let (one, other) = (owner(bench, "o").await?, owner(bench, "p").await?);
    let dependent = owned_by(bench, "d", &[(one.name(), one.uid()), (other.name(), other.uid())]);
    let dependent = bench.make(CONFIG_MAPS, dependent).await?;
    bench.delete(&one.path, &json!({"propagationPolicy": "Background"})).await?.is(200)?;
    bench.holds(&dependent.path, seconds(20), |dependent| !dependent.is_null()).await?;
    let now = bench.read(&dependent.path).await?;
    let left: Vec<&str> = items(&now, "/metadata/ownerReferences").map(|owner| text(owner, "/name")).collect();
    same("owners", left, vec![other.name()])
}

async fn another_of_the_name(bench: &Bench) -> Told {
    let owner = owner(bench, "o").await?;
    let dependent = owned_by(bench, "d", &[(owner.name(), NOBODY)]);
    let dependent = bench.make(CONFIG_MAPS, dependent).await?;
    bench.until(&dependent.path, seconds(60), Value::is_null).await?;
    bench.read(&owner.path).await.map(drop)
}
