//! pods/eviction: a deletion that asks the PodDisruptionBudget first.

use serde_json::{Value, json};

use super::{
    create::Options,
    deletion::DeleteOptions,
    kinds::Kind,
    metadata,
    selector::Labels,
    status::{Cause, Status},
    store::{Actor, Key, Object, Store},
    subresources::set_condition,
    update::Part,
};
use crate::clock::seconds;

pub(crate) fn evict(store: &mut Store, by: &Actor, key: &Key, options: &DeleteOptions) -> Result<(), Status> {
    let (_, pod) = store.existing(key)?;
    if !is_free_to_go(&pod) {
        let budgets = budgets_of(store, &pod);
        match budgets.as_slice() {
            [] => {}
            [budget] => spend(store, by, budget, &pod, options.dry_run)?,
            _ => {
                let why = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not \
                           support.";
                return Err(Status::unexpected(why));
            }
        }
        if !options.dry_run {
            mark_disrupted(store, by, key)?;
        }
    }
    store.delete(by, key, options).map(drop)
}

/// Not running, or going already: its end disrupts nobody.
fn is_free_to_go(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || metadata::is_deleting(pod)
}

fn budgets_of(store: &Store, pod: &Value) -> Vec<Object> {
    let guards =
        |budget: &Value| Labels::of(budget.pointer("/spec/selector")).is_some_and(|selector| selector.select(pod));
    let budgets = store.list_in(Kind::POD_DISRUPTION_BUDGET, metadata::namespace(pod));
    budgets.map(|(_, budget)| budget).filter(|budget| guards(budget)).cloned().collect()
}

/// Takes one disruption from the budget, or refuses.
fn spend(store: &mut Store, by: &Actor, budget: &Object, pod: &Value, dry_run: bool) -> Result<(), Status> {
    let count = |pointer: &str| budget.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    let name = metadata::name(budget);
    let refuse = |why: String| {
        let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Err(Status::too_many_requests(message, Some(cause)))
    };
    if count("/status/observedGeneration") < metadata::generation(budget) {
        return refuse(format!("The disruption budget {name} is still being processed by the server."));
    }
    let (healthy, desired) = (count("/status/currentHealthy"), count("/status/desiredHealthy"));
    let always = budget.pointer("/spec/unhealthyPodEvictionPolicy") == Some(&json!("AlwaysAllow"));
    if !is_ready(pod) && (always || healthy >= desired && desired > 0) {
        return Ok(());
    }
    let allowed = count("/status/disruptionsAllowed");
    if allowed <= 0 {
        return refuse(format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        ));
    }
    let mut spent = Value::clone(budget);
    spent["status"]["disruptionsAllowed"] = (allowed - 1).into();
    spent["status"]["disruptedPods"][metadata::name(pod)] = seconds(store.clock.now()).into();
    let key = Key::of(Kind::POD_DISRUPTION_BUDGET, budget);
    store.update(by, &key, Part::Whole, spent, Options { dry_run, ..Options::default() }).map(drop)
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

fn mark_disrupted(store: &mut Store, by: &Actor, key: &Key) -> Result<(), Status> {
    let (_, pod) = store.existing(key)?;
    let mut marked = Value::clone(&pod);
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": seconds(store.clock.now()),
    });
    set_condition(&mut marked, &condition);
    store.update(by, key, Part::Whole, marked, Options::default()).map(drop)
}
