//! Config: objects that make no sense, and objects that nobody can read.

use palisade_api::fence::FencePhase;
use serde_json::{Value, json};

use super::{clean, database, expect, moved, moved_and_clean, nothing_released};
use crate::world::{Kind, Look, Told, World};

/// A FenceConfig names a template that is not there. Its nodes are held with a reason; the others go on.
pub async fn config_that_makes_no_sense(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.patch(Kind::Node, &home, json!({ "metadata": { "labels": { "rack": "bad" } } })).await?;
    let level = json!({ "name": "bmc", "methods": [{ "name": "bmc", "template": "no-such-template" }] });
    let spec = json!({
        "nodeSelector": { "matchLabels": { "rack": "bad" } },
        "priority": 10,
        "powerManagement": { "levels": [level] },
    });
    world.create(Kind::Config, json!({ "metadata": { "name": "bad" }, "spec": spec })).await?;
    let refused = |world: &dyn Look| is_refused(world, "bad", "no-such-template");
    world.run_until(30, "the config says itself that it cannot be used", refused).await?;
    world.power_off(&home).await?;
    nothing_released(world, 300).await?;
    expect(world.was_told("ConfigUnusable", &home), "somebody was told why")?;
    let says = |world: &dyn Look| {
        let fence = world.fence_of(&home).and_then(|fence| fence.status).unwrap_or_default();
        fence.reason.as_deref() == Some("ConfigUnusable") && fence.message.contains("no-such-template")
    };
    world.run_until(900, "the fence says why", says).await?;
    let goes_on = |world: &dyn Look| world.phase_of(&home) != Some(FencePhase::Failed) || says(world);
    world.hold_for(600, "and goes on saying so for as long as it has failed", goes_on).await?;
    world.delete(Kind::Config, "bad").await?;
    moved(world, &home, 900).await?;
    clean(world, &home, 900).await?;
    Ok(())
}

/// An object that an older schema let through cannot be understood. It is reported and left out, and the others go on.
pub async fn object_that_cannot_be_understood(world: &mut impl World) -> Told {
    let home = database(world).await?;
    let definition = "fenceconfigs.palisade.dev";
    let strict = world.get(Kind::Definition, definition).unwrap_or_default();
    let mut loose = strict["spec"]["versions"].clone();
    for version in loose.as_array_mut().into_iter().flatten() {
        version["schema"] =
            json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    }
    world.patch(Kind::Definition, definition, json!({ "spec": { "versions": loose } })).await?;
    let nonsense = json!({ "nodeSelector": [1, 2, 3], "powerManagement": "yes, please" });
    world.create(Kind::Config, json!({ "metadata": { "name": "nonsense" }, "spec": nonsense })).await?;
    world.run_until(120, "somebody is told", |world| world.was_told("NotUnderstood", "nonsense")).await?;
    let refused = |world: &dyn Look| is_refused(world, "nonsense", "");
    world.run_until(30, "it says so itself", refused).await?;
    world.patch(Kind::Definition, definition, json!({ "spec": { "versions": strict["spec"]["versions"] } })).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await
}

/// A request that names no node that there is gets its answer, and the others go on.
pub async fn request_for_nobody(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.create(Kind::Request, super::things::request("who", "n99", "Fence")).await?;
    // The request may be older news than the node.
    world.run_until(10, "it is looked for", |world| world.is_held("n99", "TargetNotSeen")).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await?;
    expect(world.result_of("n99") == Some(palisade_api::request::RequestResult::NodeGone), "the request is answered")
}

/// History is kept for people, and not for ever: of many requests that are answered, the oldest go.
pub async fn history_is_not_kept_for_ever(world: &mut impl World) -> Told {
    let home = database(world).await?;
    for number in 0..104 {
        world.create(Kind::Request, super::things::request(&format!("who-{number}"), "n99", "Fence")).await?;
    }
    let answered = |world: &dyn Look| {
        let all = world.requests_of("n99");
        all.iter().all(|request| request.status.as_ref().is_some_and(|status| status.result.is_some()))
    };
    world.run_until(120, "all of them are answered", answered).await?;
    world.run_until(180, "a hundred are left", |world| world.requests_of("n99").len() == 100).await?;
    world.hold_for(180, "no more of them go", |world| world.requests_of("n99").len() == 100).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await
}

/// A request is seen before the node that it names, as happens when both are new. It waits for the node, and is taken up.
pub async fn request_ahead_of_its_node(world: &mut impl World) -> Told {
    database(world).await?;
    world.create(Kind::Request, super::things::request("early", "n99", "Fence")).await?;
    world.run_until(10, "it is looked for", |world| world.is_held("n99", "TargetNotSeen")).await?;
    world.create(Kind::Node, json!({ "metadata": { "name": "n99" }, "spec": {}, "status": {} })).await?;
    world.run_until(60, "it is taken up", |world| world.fence_of("n99").is_some()).await?;
    expect(world.result_of("n99").is_none(), "it was not closed before")
}

/// A request from a namespace that the policy does not list is refused, whoever made it.
pub async fn request_from_a_stranger(world: &mut impl World) -> Told {
    let home = database(world).await?;
    let mut request: Value = super::things::request("sneaky", &home, "PowerOff");
    request["metadata"]["namespace"] = "default".into();
    world.create(Kind::Request, request).await?;
    world.hold_for(120, "nobody is fenced", |world| world.fence_of(&home).is_none()).await?;
    let phase = world.request_of(&home).map(|request| request.status.unwrap_or_default().phase);
    expect(phase == Some(palisade_api::request::Phase::Rejected), "the request is rejected")
}

/// The Secret of a device is wrong: the BMC refuses the login, nothing is released, and when it is put right the fence goes on.
pub async fn template_with_a_wrong_address(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.patch(Kind::Template, "bmc", json!({ "spec": { "parameters": { "ip": "bmc-nowhere" } } })).await?;
    world.power_off(&home).await?;
    nothing_released(world, 300).await?;
    world.patch(Kind::Template, "bmc", json!({ "spec": { "parameters": { "ip": "bmc-{node}" } } })).await?;
    moved(world, &home, 900).await?;
    clean(world, &home, 900).await?;
    Ok(())
}

/// Whether a FenceConfig says that it cannot be used, and why.
fn is_refused(world: &dyn Look, name: &str, why: &str) -> bool {
    let object = world.get(Kind::Config, name).unwrap_or_default();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        let says = one["message"].as_str().is_some_and(|message| message.contains(why));
        one["type"] == palisade_api::conditions::ACCEPTED && one["status"] == "False" && says
    })
}
