//! What can be posted below an object: a pod's binding to a node, and its eviction.

use serde_json::{Value, json};

use super::{
    create::Options,
    deletion::DeleteOptions,
    eviction,
    handle::Api,
    kinds::Kind,
    metadata,
    path::Place,
    status::Status,
    store::{Actor, Key, Store},
    update::Part,
    write::{Written, delete_options_of},
};
use crate::clock::seconds;

pub(crate) fn create(api: &Api, place: &Place, body: &Value, options: Options) -> Result<Written, Status> {
    let key = place.key();
    match (key.kind, place.subresource.as_str()) {
        (Kind::POD, "binding") => {
            let node = body.pointer("/target/name").and_then(Value::as_str).unwrap_or_default();
            api.write(|store, by| bind(store, by, &key, node, options))?;
        }
        (Kind::POD, "eviction") => {
            let wishes = body.get("deleteOptions").unwrap_or(&Value::Null);
            let read = delete_options_of(wishes)?;
            let options = DeleteOptions { dry_run: read.dry_run || options.dry_run, ..read };
            api.write(|store, by| eviction::evict(store, by, &key, &options))?;
        }
        _ => return Err(Status::no_such_page()),
    }
    Ok(Written::Success(json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201,
    })))
}

/// The scheduler's only write: once, and never for a pod that is on its way out.
fn bind(store: &mut Store, by: &Actor, key: &Key, node: &str, options: Options) -> Result<(), Status> {
    let (definition, pod) = store.existing(key)?;
    let name = &key.name;
    let refuse = |why: String| Err(Status::conflict_on("pods/binding", &definition, name, &why));
    if metadata::is_deleting(&pod) {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    }
    if let Some(taken) = pod.pointer("/spec/nodeName").and_then(Value::as_str).filter(|taken| !taken.is_empty()) {
        return refuse(format!("pod {name} is already assigned to node \"{taken}\""));
    }
    let mut bound = Value::clone(&pod);
    bound["spec"]["nodeName"] = node.into();
    let now = seconds(store.clock.now());
    set_condition(&mut bound, &json!({"type": "PodScheduled", "status": "True", "lastTransitionTime": now}));
    store.update(by, key, Part::Whole, bound, options).map(drop)
}

/// Puts a condition in the place of the one of its type.
pub(crate) fn set_condition(object: &mut Value, condition: &Value) {
    let conditions = &mut object["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(list) = conditions.as_array_mut() else { return };
    match list.iter_mut().find(|known| known["type"] == condition["type"]) {
        Some(known) => *known = condition.clone(),
        None => list.push(condition.clone()),
    }
}
