//! Binding: the scheduler's write, once for each pod.

use serde_json::{Value, json};

use crate::conformance::answer::{items, must, same, text};
use crate::conformance::bench::{Bench, Made};
use crate::conformance::objects::pod;
use crate::conformance::places::PODS;
use crate::conformance::{Told, table};

table! { "binding";
    binds_once: "a binding sets the node and says so in the status";
    second_binding: "a second one is a conflict that names the node";
    of_a_pod_that_goes: "a pod that is being deleted cannot be bound";
    keeps_the_generation: "a binding is no wish: the generation stays";
}

fn binding(pod: &Made, node: &str) -> (String, Value) {
    let target = json!({"apiVersion": "v1", "kind": "Node", "name": node});
    let body = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod.name()}, "target": target});
    (format!("{}/binding", pod.path), body)
}

async fn binds_once(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod(&bench.name("p"))).await?;
    let (path, body) = binding(&pod, "nowhere");
    let answer = bench.post(&path, &body).await?.is(201)?;
    same("answer", [text(&answer, "/kind"), text(&answer, "/status")], ["Status", "Success"])?;
    let now = bench.read(&pod.path).await?;
    same("node", text(&now, "/spec/nodeName"), "nowhere")?;
    let said = items(&now, "/status/conditions").any(|said| said["type"] == "PodScheduled" && said["status"] == "True");
    must(said, || format!("the pod does not say that it is scheduled: {}", now["status"]))
}

async fn second_binding(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod(&bench.name("p"))).await?;
    let (path, body) = binding(&pod, "nowhere");
    bench.post(&path, &body).await?.is(201)?;
    let (path, body) = binding(&pod, "elsewhere");
    let refusal = bench.post(&path, &body).await?.refused(409, "Conflict")?;
    let name = pod.name();
    refusal.says(&format!(
        "Operation cannot be fulfilled on pods/binding \"{name}\": pod {name} is already assigned to node \"nowhere\""
    ))
}

async fn of_a_pod_that_goes(bench: &Bench) -> Told {
    let mut held = pod(&bench.name("p"));
    held["metadata"]["finalizers"] = json!(["palisade.dev/test"]);
    let pod = bench.make(PODS, held).await?;
    bench.delete(&pod.path, &json!({})).await?.is(200)?;
    let (path, body) = binding(&pod, "nowhere");
    let refusal = bench.post(&path, &body).await?.refused(409, "Conflict")?;
    refusal.mentions(&format!("pod {} is being deleted, cannot be assigned to a host", pod.name()))
}

async fn keeps_the_generation(bench: &Bench) -> Told {
    let pod = bench.make(PODS, pod(&bench.name("p"))).await?;
    let (path, body) = binding(&pod, "nowhere");
    bench.post(&path, &body).await?.is(201)?;
    let now = bench.read(&pod.path).await?;
    same("generation", &now["metadata"]["generation"], &json!(1))
}
