//! Dry runs: everything but the write itself.

use serde_json::json;

use crate::conformance::answer::{must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{config_map, fence, fence_status, pod_on};
use crate::conformance::places::{CONFIG_MAPS, FENCES, PODS, at};
use crate::conformance::{Told, table};

table! { "dry runs";
    of_a_create: "a create answers with the object, with defaults and a UID, and keeps nothing";
    of_a_mistake: "a mistake is refused as it would be";
    of_one_that_exists: "and so is a name that is taken";
    of_a_replace: "a replace answers with the result, and keeps nothing";
    of_a_status_patch: "so does a patch of a status";
    of_a_delete: "a delete says what it would do, and does nothing";
    of_a_mark: "a delete of a pod on a node shows the mark, and sets none";
    of_a_conflict: "a conflict is one";
    of_no_kind: "a dry run of another kind than All is refused";
}

async fn of_a_create(bench: &Bench) -> Told {
    let name = bench.name("n");
    let shown = bench.post(&format!("{FENCES}?dryRun=All"), &fence(&name)).await?.is(201)?;
    same("default", &shown["spec"]["stayOff"], &json!(false))?;
    must(text(&shown, "/metadata/uid").len() == 36, || format!("no UID: {}", shown["metadata"]))?;
    bench.gone(&at(FENCES, &name)).await
}

async fn of_a_mistake(bench: &Bench) -> Told {
    let mut odd = fence(&bench.name("n"));
    odd["spec"]["nodeName"] = "elsewhere".into();
    bench.post(&format!("{FENCES}?dryRun=All"), &odd).await?.refused(422, "Invalid").map(drop)
}

async fn of_one_that_exists(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let path = format!("{CONFIG_MAPS}?dryRun=All");
    bench.post(&path, &config_map(map.name())).await?.refused(409, "AlreadyExists").map(drop)
}

async fn of_a_replace(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let mut next = map.object.clone();
    next["data"]["k"] = "w".into();
    let shown = bench.put(&format!("{}?dryRun=All", map.path), &next).await?.is(200)?;
    same("data", text(&shown, "/data/k"), "w")?;
    bench.untouched(&map.path, &map.object).await
}

async fn of_a_status_patch(bench: &Bench) -> Told {
    let made = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let path = format!("{}?dryRun=All", made.status());
    let shown = bench.merge(&path, &json!({"status": fence_status(1)})).await?.is(200)?;
    same("attempt", &shown["status"]["attempt"], &json!(1))?;
    bench.untouched(&made.path, &made.object).await
}

async fn of_a_delete(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    bench.delete(&map.path, &json!({"dryRun": ["All"]})).await?.is(200)?;
    bench.untouched(&map.path, &map.object).await
}

async fn of_a_mark(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod_on(&bench.name("p"), "nowhere")).await?;
    let shown = bench.delete(&pod.path, &json!({"dryRun": ["All"]})).await?.is(200)?;
    same("grace", &shown["metadata"]["deletionGracePeriodSeconds"], &json!(30))?;
    bench.untouched(&pod.path, &pod.object).await
}

async fn of_a_conflict(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    bench.merge(&map.path, &json!({"data": {"k": "w"}})).await?.is(200)?;
    bench.put(&format!("{}?dryRun=All", map.path), &map.object).await?.refused(409, "Conflict").map(drop)
}

async fn of_no_kind(bench: &Bench) -> Told {
    let path = format!("{CONFIG_MAPS}?dryRun=Some");
    let refusal = bench.post(&path, &config_map(&bench.name("m"))).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueNotSupported", "dryRun", "Unsupported value: [\"Some\"]: supported values: \"All\"")
}
