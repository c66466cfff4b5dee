//! Builtin: what Palisade does to the Node itself on the way: cordon, taint, drain.

use palisade_api::names::annotations;
use palisade_api::request::Outcome;
use serde_json::{Value, json};

use super::{clean, database, expect, moved, things};
use crate::world::{Kind, Look, Switched, Told, World};

/// A template around a builtin, under its own name.
fn template(builtin: &str) -> Value {
    json!({ "metadata": { "name": builtin }, "spec": { "builtin": { "name": builtin }, "timeout": "60s" } })
}

/// The isolation step of the nodes runs these templates, one after the other, before the power step.
async fn isolate_by(world: &mut impl World, templates: &[&str]) -> Told {
    let methods: Vec<Value> = templates.iter().map(|name| json!({ "name": name, "template": name })).collect();
    let levels = json!({ "levels": [{ "name": "gently", "methods": methods }] });
    world.patch(Kind::Config, "bare-metal", json!({ "spec": { "isolation": levels } })).await
}

fn noted(world: &dyn Look, node: &str) -> bool {
    let notes = world.get(Kind::Node, node).unwrap_or_default()["metadata"]["annotations"].clone();
    notes.get(annotations::REMEDY_STARTED).is_some()
}

fn cordoned(world: &dyn Look, node: &str) -> bool {
    world.get(Kind::Node, node).unwrap_or_default()["spec"]["unschedulable"] == true
}

/// An admin takes a healthy node out: it is cordoned and drained first, so the database ends as it wants to and another one starts
/// (elsewhere, unless the machine is back before anybody has made it); then the machine is switched off and on, and comes back without
/// a cordon. While a method runs, the Node says since when.
pub async fn drained_before_it_is_switched_off(world: &mut impl World) -> Told {
    let home = database(world).await?;
    for builtin in ["cordon", "drain"] {
        world.create(Kind::Template, template(builtin)).await?;
    }
    isolate_by(world, &["cordon", "drain"]).await?;
    let uid = world.uid_of("db-0");
    world.create(Kind::Request, things::request("please", &home, "PowerStep")).await?;
    let seen = |world: &dyn Look| cordoned(world, &home) && noted(world, &home);
    world.run_until(60, "the node is cordoned, and says that it is being remedied", seen).await?;
    let another = |world: &dyn Look| world.uid_of("db-0") != uid && world.is_ready("db-0");
    world.run_until(120, "another db-0 is ready", another).await?;
    clean(world, &home, 900).await?;
    expect(!cordoned(world, &home), "our own cordon is lifted")?;
    expect(!noted(world, &home), "the Node says nothing of a remedy any more")?;
    expect(world.commands_to(&home).contains(&Switched::Off), "the machine was switched off")?;
    let request = world.requests_of(&home).into_iter().find(|one| one.metadata.name.as_deref() == Some("please"));
    let actions = request.and_then(|one| one.status).unwrap_or_default().actions;
    let names: Vec<&str> = actions.iter().map(|action| action.method.as_str()).collect();
    expect(names.starts_with(&["cordon", "drain", "bmc"]), &format!("the request says what was done: {names:?}"))?;
    expect(actions.iter().all(|action| action.outcome == Outcome::Succeeded), "and that it was done")
}

/// The node is dead. A drain would wait for ever for somebody to hear it, so nobody is asked; the power step does the rest.
pub async fn drain_of_a_dead_node_is_left_out(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.create(Kind::Template, template("drain")).await?;
    isolate_by(world, &["drain"]).await?;
    world.power_off(&home).await?;
    moved(world, &home, 120).await?;
    clean(world, &home, 900).await.map(drop)
}

/// An admin had cordoned the node before it failed. It comes back as the admin left it.
pub async fn cordon_of_somebody_else_stays(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.create(Kind::Template, template("cordon")).await?;
    isolate_by(world, &["cordon"]).await?;
    world.patch(Kind::Node, &home, things::cordon(true)).await?;
    world.power_off(&home).await?;
    moved(world, &home, 120).await?;
    let over = |world: &dyn Look| world.node_is_ready(&home) && world.fence_of(&home).is_none();
    world.run_until(900, "the node is back, and the fence is over", over).await?;
    expect(cordoned(world, &home), "it is cordoned as before")
}

/// A taint of the admin's own choice is set with the fence, beside everybody else's. It is the admin's to take away.
pub async fn taint_of_ones_own(world: &mut impl World) -> Told {
    let home = database(world).await?;
    let taint = json!({ "key": "example.com/was-fenced", "value": "yes", "effect": "PreferNoSchedule" });
    let spec = json!({ "builtin": { "name": "taint", "taint": taint } });
    world.create(Kind::Template, json!({ "metadata": { "name": "taint" }, "spec": spec })).await?;
    isolate_by(world, &["taint"]).await?;
    world.power_off(&home).await?;
    moved(world, &home, 120).await?;
    let over = |world: &dyn Look| world.node_is_ready(&home) && world.fence_of(&home).is_none();
    world.run_until(900, "the node is back, and the fence is over", over).await?;
    let taints = world.get(Kind::Node, &home).unwrap_or_default()["spec"]["taints"].clone();
    let keys: Vec<&str> = taints.as_array().into_iter().flatten().filter_map(|taint| taint["key"].as_str()).collect();
    expect(keys == ["example.com/was-fenced"], &format!("only the admin's taint is left: {keys:?}"))
}
