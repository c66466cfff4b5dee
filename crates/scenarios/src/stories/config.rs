//! Config: objects that make no sense, and objects that nobody can read.

use palisade_api::fence::FencePhase;
use palisade_api::request::RequestResult;
use serde_json::{Value, json};

use super::{clean, database, expect, moved, moved_and_clean, nothing_released};
use crate::world::{Kind, Look, Switched, Told, World};

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

/// Where machines come and go, a Node goes with its machine: when that is proven off and nothing with a volume is left on it, the
/// Node is deleted and the machine stays off. Whoever switches it on again gets a Node of its own making.
pub async fn config_that_deletes_the_node(world: &mut impl World) -> Told {
    let home = database(world).await?;
    let forget = json!({ "metadata": { "name": "forget" }, "spec": { "builtin": { "name": "delete-node" } } });
    world.create(Kind::Template, forget).await?;
    let config = world.get(Kind::Config, "bare-metal").unwrap_or_default();
    let mut levels = config["spec"]["powerManagement"]["levels"].clone();
    if let Some(methods) = levels.pointer_mut("/0/methods").and_then(Value::as_array_mut) {
        methods.push(json!({ "name": "forget", "template": "forget" }));
    }
    world.patch(Kind::Config, "bare-metal", json!({ "spec": { "powerManagement": { "levels": levels } } })).await?;
    world.power_off(&home).await?;
    moved(world, &home, 300).await?;
    let over = |world: &dyn Look| world.node(&home).is_none() && world.fence_of(&home).is_none();
    world.run_until(120, "the Node is gone, and the fence is over", over).await?;
    expect(world.result_of(&home) == Some(RequestResult::NodeGone), "the request says so")?;
    expect(!world.commands_to(&home).contains(&Switched::On), "the machine was left off")?;
    world.outside_on(&home).await?;
    clean(world, &home, 300).await.map(drop)
}

/// A NodeRemedy that looks at nothing but `Ready=Unknown`: the lease's silence counts for nothing, and the control plane's word for
/// everything. The remedy says that it is accepted.
pub async fn remedy_of_its_own(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.create(Kind::Remedy, super::things::ready_only()).await?;
    let accepted = |world: &dyn Look| is_accepted(world, Kind::Remedy, super::things::READY_ONLY, "True", "");
    world.run_until(30, "the remedy says that it can be used", accepted).await?;
    world.power_off(&home).await?;
    let mut early = false;
    let given_up = |world: &dyn Look| {
        let ready = world.node_is_ready(&home);
        early |= ready && world.fence_of(&home).is_some();
        !ready
    };
    world.run_until(90, "the control plane gives the node up", given_up).await?;
    expect(!early, "nobody is fenced while the control plane calls the node Ready")?;
    moved_and_clean(world, &home).await
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
    expect(world.result_of("n99") == Some(RequestResult::NodeGone), "the request is answered")
}

/// History is kept for people, and not for ever: of the requests about a node that are answered, the oldest go, as the policy says.
pub async fn history_is_not_kept_for_ever(world: &mut impl World) -> Told {
    database(world).await?;
    let few = json!({ "spec": { "history": { "count": 3 } } });
    world.patch(Kind::Policy, palisade_api::names::POLICY_NAME, few).await?;
    for number in 0..5 {
        world.create(Kind::Request, super::things::request(&format!("who-{number}"), "n99", "Fence")).await?;
    }
    world.create(Kind::Request, super::things::request("other", "n98", "Fence")).await?;
    let answered = |world: &dyn Look| {
        let all = world.requests_of("n99").into_iter().chain(world.requests_of("n98"));
        all.into_iter().all(|request| request.status.is_some_and(|status| status.result.is_some()))
    };
    world.run_until(120, "all of them are answered", answered).await?;
    world.run_until(120, "three are left", |world| world.requests_of("n99").len() == 3).await?;
    let kept = |world: &dyn Look| world.requests_of("n99").len() == 3 && world.requests_of("n98").len() == 1;
    world.hold_for(70, "no more of them go, and none of another node", kept).await
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
    is_accepted(world, Kind::Config, name, "False", why)
}

/// Whether an object says with this status that it can be used, in words that contain these.
fn is_accepted(world: &dyn Look, kind: Kind, name: &str, status: &str, why: &str) -> bool {
    let object = world.get(kind, name).unwrap_or_default();
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|one| {
        let says = one["message"].as_str().unwrap_or_default().contains(why);
        one["type"] == palisade_api::conditions::ACCEPTED && one["status"] == status && says
    })
}
