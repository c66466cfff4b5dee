//! Events: what the operator tells people.

use serde_json::{Value, json};

use crate::conformance::answer::{items, names, same, text};
use crate::conformance::bench::Bench;
use crate::conformance::places::{EVENTS, NAMESPACES, NEW_EVENTS, at};
use crate::conformance::{Told, table};

table! { "events";
    as_the_operator_writes: "an Event about a Node lives in default, and is kept as it was sent";
    in_the_newer_dress: "events.k8s.io shows the same one in its own words";
    from_the_newer_dress: "and one that was written there is shown in the old ones";
    about_another_namespace: "an Event about a pod of another namespace is refused, with its field";
    about_a_node_elsewhere: "so is one about a Node anywhere but in default";
    by_subject: "they are selected by their subject, type and reason";
    counted: "a merge patch raises the count";
}

fn event(bench: &Bench, subject: &str) -> Value {
    json!({
        "metadata": {"generateName": format!("{subject}.")},
        "involvedObject": {"apiVersion": "v1", "kind": "Node", "name": subject, "uid": bench.name("uid")},
        "type": "Warning", "reason": "Fenced", "message": "it is off", "count": 1,
        "firstTimestamp": "2026-03-01T12:00:00Z", "lastTimestamp": "2026-03-01T12:00:00Z",
        "source": {"component": "palisade"}, "reportingComponent": "palisade", "reportingInstance": "",
    })
}

async fn as_the_operator_writes(bench: &Bench) -> Told {
    let sent = event(bench, &bench.name("n"));
    let made = bench.make(EVENTS, sent.clone()).await?;
    for field in ["involvedObject", "type", "reason", "message", "count", "firstTimestamp", "lastTimestamp", "source"] {
        same(field, &made.object[field], &sent[field])?;
    }
    Ok(())
}

async fn in_the_newer_dress(bench: &Bench) -> Told {
    let old = bench.make(EVENTS, event(bench, &bench.name("n"))).await?;
    let new = bench.read(&at(NEW_EVENTS, old.name())).await?;
    same("version", text(&new, "/apiVersion"), "events.k8s.io/v1")?;
    same("subject", &new["regarding"], &old.object["involvedObject"])?;
    same("note", text(&new, "/note"), "it is off")?;
    let told = [&new["deprecatedCount"], &new["deprecatedSource"], &new["reportingController"]];
    same("rest", told, [&json!(1), &json!({"component": "palisade"}), &json!("palisade")])
}

async fn from_the_newer_dress(bench: &Bench) -> Told {
    let subject = json!({"apiVersion": "v1", "kind": "Node", "name": bench.name("n")});
    let new = json!({
        "metadata": {"name": bench.name("e")}, "regarding": subject, "note": "it is off", "type": "Normal",
        "reason": "Fenced", "action": "Fence", "eventTime": "2026-03-01T12:00:00.000001Z",
        "reportingController": "palisade.dev/operator", "reportingInstance": "palisade-0",
    });
    let made = bench.make(NEW_EVENTS, new).await?;
    let old = bench.read(&at(EVENTS, made.name())).await?;
    same("subject", &old["involvedObject"], &subject)?;
    same("message", text(&old, "/message"), "it is off")
}

async fn about_another_namespace(bench: &Bench) -> Told {
    let mut stray = event(bench, &bench.name("p"));
    stray["involvedObject"]["kind"] = "Pod".into();
    stray["involvedObject"]["namespace"] = "kube-system".into();
    let refusal = bench.post(EVENTS, &stray).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "involvedObject.namespace", "does not match event.namespace")
}

async fn about_a_node_elsewhere(bench: &Bench) -> Told {
    let place = format!("{NAMESPACES}/kube-public/events");
    let refusal = bench.post(&place, &event(bench, &bench.name("n"))).await?.refused(422, "Invalid")?;
    refusal.cause("FieldValueInvalid", "involvedObject.namespace", "does not match event.namespace")
}

async fn by_subject(bench: &Bench) -> Told {
    let subject = bench.name("n");
    let made = bench.make(EVENTS, event(bench, &subject)).await?;
    let mut normal = event(bench, &subject);
    normal["type"] = "Normal".into();
    bench.make(EVENTS, normal).await?;
    let query =
        format!("fieldSelector=involvedObject.name={subject},type=Warning,reason=Fenced,involvedObject.kind=Node");
    let list = bench.read(&format!("{EVENTS}?{query}")).await?;
    same("names", names(items(&list, "/items")), vec![made.name()])
}

async fn counted(bench: &Bench) -> Told {
    let made = bench.make(EVENTS, event(bench, &bench.name("n"))).await?;
    let patch = json!({"count": 2, "lastTimestamp": "2026-03-01T12:05:00Z"});
    let again = bench.merge(&made.path, &patch).await?.is(200)?;
    same("count", &again["count"], &json!(2))?;
    same("first", text(&again, "/firstTimestamp"), "2026-03-01T12:00:00Z")
}
