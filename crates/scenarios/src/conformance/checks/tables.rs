//! Tables: what `kubectl get` shows of our kinds.

use serde_json::{Value, json};

use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::objects::{config_map, fence, request, settled_node};
use crate::conformance::places::{CONFIG_MAPS, CONFIGS, FENCES, NODES, OURS, POLICIES, REMEDIES, REQUESTS, TEMPLATES};
use crate::conformance::{Told, table};

table! { "tables";
    columns_of_ours: "each of our kinds has its columns, and the name first";
    cells_of_a_fence: "cells show what the columns point to, and null where there is nothing";
    wide_columns: "a column for -o wide has a priority";
    row_carries_metadata: "a row carries the metadata of its object";
    row_with_nothing: "or nothing, if that is asked for";
    row_with_everything: "or all of it";
    version_of_a_table: "a table has the version of its list";
    watch_of_a_table: "a watch tells rows, and its columns only once";
    built_in_columns: "Nodes are shown with their status";
    kind_without_columns: "a kind that has nothing of its own shows name and age, of a ConfigMap also how many";
}

const TABLE_FORM: &str = "application/json;as=Table;g=meta.k8s.io;v=v1";

fn titles(table: &Value) -> Vec<&str> {
    items(table, "/columnDefinitions").map(|column| text(column, "/name")).collect()
}

async fn columns_of_ours(bench: &Bench) -> Told {
    let requests = format!("{OURS}/nodefencingrequests");
    let wanted: [(&str, &[&str]); 6] = [
        (FENCES, &["Name", "Step", "Status", "Phase", "Why", "Attempt", "Slot", "Config", "Message", "Age"]),
        (&requests, &["Name", "Node", "Cause", "Phase", "Why", "Result", "Message", "Source", "Age"]),
        (POLICIES, &["Name", "Mode", "In flight", "Max", "Accepted", "Observing", "Attention", "Age"]),
        (CONFIGS, &["Name", "Priority", "First isolation", "First power", "Nodes", "Devices", "Accepted", "Age"]),
        (
            TEMPLATES,
            &["Name", "Native", "Agent", "Proves", "Accepted", "Checked", "Failing", "Built-in", "Storage", "Age"],
        ),
        (REMEDIES, &["Name", "Priority", "Nodes", "Accepted", "Why", "Age"]),
    ];
    for (place, wanted) in wanted {
        let table = bench.get_as(place, TABLE_FORM).await?.is(200)?;
        same(place, titles(&table), wanted.to_vec())?;
    }
    Ok(())
}

async fn cells_of_a_fence(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let status = json!({"attempt": 2, "step": "Isolation"});
    bench.merge(&fence.status(), &json!({"status": status})).await?.is(200)?;
    let table = bench.get_as(&fence.path, TABLE_FORM).await?.is(200)?;
    same("kind", [text(&table, "/kind"), text(&table, "/apiVersion")], ["Table", "meta.k8s.io/v1"])?;
    let cells: Vec<&Value> = items(&table, "/rows/0/cells").collect();
    let cell =
        |title: &str| titles(&table).iter().position(|name| *name == title).and_then(|at| cells.get(at).copied());
    same("name", cell("Name"), Some(&json!(fence.name())))?;
    same("step", cell("Step"), Some(&json!("Isolation")))?;
    same("attempt", cell("Attempt"), Some(&json!(2)))?;
    same("config", cell("Config"), Some(&Value::Null))?;
    let age = cell("Age").and_then(Value::as_str).unwrap_or_default();
    must(age.ends_with('s'), || format!("its age is {age:?}"))
}

async fn wide_columns(bench: &Bench) -> Told {
    let table = bench.get_as(FENCES, TABLE_FORM).await?.is(200)?;
    let definition =
        bench.read(&format!("{}/nodefences.palisade.dev", crate::conformance::places::DEFINITIONS)).await?;
    let wished = items(&definition, "/spec/versions/0/additionalPrinterColumns");
    for wish in wished {
        let shown = items(&table, "/columnDefinitions").find(|column| column["name"] == wish["name"]);
        let priority = wish["priority"].as_u64().unwrap_or_default();
        same(text(wish, "/name"), shown.and_then(|column| column["priority"].as_u64()), Some(priority))?;
        same("type", shown.map(|column| &column["type"]), Some(&wish["type"]))?;
    }
    Ok(())
}

async fn row_carries_metadata(bench: &Bench) -> Told {
    let request = bench.make(REQUESTS, request(&bench.name("r"))).await?;
    let table = bench.get_as(&request.path, TABLE_FORM).await?.is(200)?;
    let carried = &table["rows"][0]["object"];
    same("kind", [text(carried, "/kind"), text(carried, "/apiVersion")], ["PartialObjectMetadata", "meta.k8s.io/v1"])?;
    same("uid", text(carried, "/metadata/uid"), request.uid())
}

async fn row_with_nothing(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let table = bench.get_as(&format!("{}?includeObject=None", fence.path), TABLE_FORM).await?.is(200)?;
    let carried = &table["rows"][0]["object"];
    must(carried.is_null(), || format!("the row carries {carried}"))
}

async fn row_with_everything(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let table = bench.get_as(&format!("{}?includeObject=Object", fence.path), TABLE_FORM).await?.is(200)?;
    same("object", &table["rows"][0]["object"]["spec"], &fence.object["spec"])
}

async fn version_of_a_table(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let table = bench.get_as(&format!("{FENCES}?limit=1"), TABLE_FORM).await?.is(200)?;
    let version = crate::conformance::answer::version;
    must(version(&table) >= version(&fence.object), || format!("the version is {}", version(&table)))?;
    same("rows", items(&table, "/rows").count(), 1)
}

async fn watch_of_a_table(bench: &Bench) -> Told {
    let fence = bench.make(FENCES, fence(&bench.name("n"))).await?;
    let query = format!("fieldSelector=metadata.name={}&resourceVersion={}", fence.name(), fence.version());
    let mut watch = bench.watch_as(FENCES, &query, TABLE_FORM).await?;
    for (wish, columns) in [(true, 10), (false, 0)] {
        bench.merge(&fence.path, &json!({"spec": {"stayOff": wish}})).await?.is(200)?;
        let line = watch.next().await?;
        same("word", line.word.as_str(), "MODIFIED")?;
        same("kind", text(&line.object, "/kind"), "Table")?;
        same("name", text(&line.object, "/rows/0/cells/0"), fence.name())?;
        same("columns", titles(&line.object).len(), columns)?;
    }
    Ok(())
}

async fn built_in_columns(bench: &Bench) -> Told {
    let node = settled_node(bench, "n").await?;
    bench.merge(&node.path, &json!({"spec": {"unschedulable": true}})).await?.is(200)?;
    let path = format!("{NODES}?fieldSelector=metadata.name={}", node.name());
    let table = bench.get_as(&path, TABLE_FORM).await?.is(200)?;
    same("columns", &titles(&table)[..5], &["Name", "Status", "Roles", "Age", "Version"][..])?;
    let cells: Vec<&str> = items(&table, "/rows/0/cells").take(3).filter_map(Value::as_str).collect();
    same("cells", cells, vec![node.name(), "Ready,SchedulingDisabled", "<none>"])
}

async fn kind_without_columns(bench: &Bench) -> Told {
    let map = bench.make(CONFIG_MAPS, config_map(&bench.name("m"))).await?;
    let table = bench.get_as(&map.path, TABLE_FORM).await?.is(200)?;
    same("columns", titles(&table), vec!["Name", "Data", "Age"])?;
    same("data", &table["rows"][0]["cells"][1], &json!(1))
}
