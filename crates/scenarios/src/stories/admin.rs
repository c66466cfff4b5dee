//! Admin: people who ask, stop, hold off and resume.

use palisade_api::NodeFencingRequest;
use palisade_api::fence::{End, FencePhase, ReleaseState};
use palisade_api::request::RequestResult;
use serde_json::json;

use super::{clean, comes_to, database, expect, moved, moved_and_clean, release_comes_to, things};
use crate::world::{Bmc, Kind, Link, Look, Power, Switched, Told, World};

/// An admin wants a healthy node fenced. That is done like any other fence: off, proof, release, on, and back clean.
pub async fn request_on_a_healthy_node(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.create(Kind::Request, things::request("please", &home, "PowerStep")).await?;
    moved_and_clean(world, &home).await?;
    let answered =
        world.requests_of(&home).into_iter().find(|request| request.metadata.name.as_deref() == Some("please"));
    let result = answered.and_then(|request| request.status?.result);
    expect(result == Some(RequestResult::Recovered), "the request says Recovered")?;
    expect(world.boots_of(&home) == 2, "the machine was restarted")
}

/// A machine is to be taken out for repair: switched off, and left off until somebody says resume.
pub async fn power_off_and_resume(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.create(Kind::Request, things::request("repair", &home, "PowerOff")).await?;
    moved(world, &home, 120).await?;
    let held = |world: &dyn Look| {
        world.fence_of(&home).and_then(|fence| fence.status).is_some_and(|status| status.end == Some(End::HeldOff))
    };
    world.run_until(300, "it is held off", held).await?;
    let stays = |world: &dyn Look| world.power_of(&home) == Power::Off && world.is_quarantined(&home);
    world.hold_for(1800, "it stays off and quarantined", stays).await?;
    expect(!world.commands_to(&home).contains(&Switched::On), "nobody sent on")?;
    // The silence of a machine that is held off is found by our own detector as well.
    expect(world.requests_of(&home).len() > 1, "there is a request of ours beside the admin's")?;
    world.patch(Kind::Fence, &home, json!({ "spec": { "admin": { "resume": 1 } } })).await?;
    clean(world, &home, 900).await?;
    let results = |world: &dyn Look| -> Vec<_> {
        world.requests_of(&home).into_iter().map(|request| request.status.and_then(|status| status.result)).collect()
    };
    world.run_until(60, "every request has its end", |world| results(world).iter().all(Option::is_some)).await?;
    let fenced = |result: &Option<_>| matches!(result, Some(RequestResult::HeldOff | RequestResult::Recovered));
    expect(results(world).iter().all(fenced), "none of them says that the node was healthy before")
}

/// A second admin asks for what is already being done. The node is fenced once, and both hear of it.
pub async fn two_admins_ask_for_the_same(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.create(Kind::Request, things::request("first", &home, "PowerStep")).await?;
    comes_to(world, &home, FencePhase::Isolating).await?;
    world.create(Kind::Request, things::request("second", &home, "PowerStep")).await?;
    moved_and_clean(world, &home).await?;
    let all = |world: &dyn Look| {
        let recovered = |request: &NodeFencingRequest| {
            request.status.as_ref().and_then(|status| status.result) == Some(RequestResult::Recovered)
        };
        world.requests_of(&home).iter().all(recovered)
    };
    world.run_until(60, "every request says Recovered", all).await?;
    world.run_for(120).await;
    expect(world.boots_of(&home) == 2, "the machine was restarted once")
}

/// An admin wants a machine taken out while it is being fenced for its silence. That fence goes on to its end, and then the
/// machine is switched off and stays so: joining the first one would have brought it back.
pub async fn power_off_asked_for_in_the_middle(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    comes_to(world, &home, FencePhase::Isolated).await?;
    world.create(Kind::Request, things::request("repair", &home, "PowerOff")).await?;
    moved(world, &home, 120).await?;
    let held = |world: &dyn Look| {
        world.fence_of(&home).and_then(|fence| fence.status).is_some_and(|status| status.end == Some(End::HeldOff))
    };
    world.run_until(1800, "it is held off", held).await?;
    expect(world.power_of(&home) == Power::Off, "the machine is off")
}

/// An admin deletes the NodeFence while it is failing. It ends, and nothing of it is left.
pub async fn fence_deleted_while_it_fails(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Refuses).await?;
    world.cut(&home, Link::Api).await?;
    comes_to(world, &home, FencePhase::Failed).await?;
    let uid = world.fence_of(&home).and_then(|fence| fence.metadata.uid);
    world.delete(Kind::Fence, &home).await?;
    world.heal(&home, Link::Api).await?;
    let gone = |world: &dyn Look| world.fence_of(&home).and_then(|fence| fence.metadata.uid) != uid;
    world.run_until(900, "that fence is gone", gone).await?;
    clean(world, &home, 900).await?;
    expect(world.is_ready("db-0") && world.boots_of(&home) == 1, "the database went on all the time")
}

/// An admin deletes the NodeFence after the pod was marked: what is half done is finished, and the machine comes back.
pub async fn fence_deleted_after_the_mark(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    release_comes_to(world, &home, ReleaseState::Marked).await?;
    world.delete(Kind::Fence, &home).await?;
    let well = |world: &dyn Look| world.is_ready("db-0") && world.node_is_clean(&home);
    world.run_until(900, "the database runs and the node is clean", well).await?;
    Ok(())
}

/// An admin tears a NodeFence out, finalizer and all, while it has the only slot of the budget. The slot is found to be nobody's,
/// and the node is fenced anew.
pub async fn fence_torn_out_with_its_slot(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Refuses).await?;
    world.power_off(&home).await?;
    comes_to(world, &home, FencePhase::Isolating).await?;
    let uid = world.fence_of(&home).and_then(|fence| fence.metadata.uid);
    world.patch(Kind::Fence, &home, json!({ "metadata": { "finalizers": null } })).await?;
    world.delete(Kind::Fence, &home).await?;
    world.bmc(&home, Bmc::Honest).await?;
    let anew = |world: &dyn Look| world.fence_of(&home).is_some_and(|fence| fence.metadata.uid != uid);
    world.run_until(120, "there is another fence", anew).await?;
    moved_and_clean(world, &home).await
}

/// An admin says stop before the machine is off. Nothing is released; the machine is left, or brought, on.
pub async fn stop_before_the_off(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::AcceptsOnly).await?;
    world.cut(&home, Link::Api).await?;
    comes_to(world, &home, FencePhase::Isolating).await?;
    world.patch(Kind::Fence, &home, json!({ "spec": { "admin": { "stop": true } } })).await?;
    super::nothing_released(world, 300).await?;
    world.bmc(&home, Bmc::Honest).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 1200).await?;
    expect(world.is_ready("db-0"), "the database runs")
}

/// DryRun: the verdict is written to the request, and nothing else happens.
pub async fn dry_run_does_nothing(world: &mut impl World) -> Told {
    policy(world, json!({ "mode": "DryRun" })).await?;
    let home = database(world).await?;
    world.power_off(&home).await?;
    let untouched = |world: &dyn Look| world.fence_of(&home).is_none() && !world.is_quarantined(&home);
    world.hold_for(300, "nothing is done", untouched).await?;
    let verdict = world.request_of(&home).and_then(|request| request.status?.verdict);
    expect(verdict == Some(palisade_api::request::Verdict::WouldAdmit), "the request says WouldAdmit")?;
    expect(world.commands_to(&home).is_empty(), "nothing was sent to the BMC")
}

/// Paused: nothing new is admitted until somebody lifts it; then the node that is still dead is fenced.
pub async fn paused_until_somebody_lifts_it(world: &mut impl World) -> Told {
    policy(world, json!({ "mode": "Paused" })).await?;
    let home = database(world).await?;
    world.power_off(&home).await?;
    world.hold_for(300, "nobody is fenced", |world| world.fence_of(&home).is_none()).await?;
    expect(world.is_held(&home, "Paused"), "the request says Paused")?;
    policy(world, json!({ "mode": "Enforce" })).await?;
    moved_and_clean(world, &home).await
}

/// Paused in the middle of a fence: what runs is finished.
pub async fn paused_in_the_middle(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    comes_to(world, &home, FencePhase::Isolating).await?;
    policy(world, json!({ "mode": "Paused" })).await?;
    moved_and_clean(world, &home).await
}

/// A node that the policy excludes is never fenced.
pub async fn excluded_node(world: &mut impl World) -> Told {
    let selector = json!({ "matchLabels": { "pet": "yes" } });
    policy(world, json!({ "exclusions": { "nodeSelector": selector } })).await?;
    let home = database(world).await?;
    world.patch(Kind::Node, &home, json!({ "metadata": { "labels": { "pet": "yes" } } })).await?;
    world.power_off(&home).await?;
    world.hold_for(600, "nobody is fenced", |world| world.fence_of(&home).is_none()).await?;
    expect(world.is_held(&home, "ExcludedByLabel"), "the request says why")?;
    world.patch(Kind::Node, &home, json!({ "metadata": { "labels": { "pet": null } } })).await?;
    moved_and_clean(world, &home).await
}

/// A node in maintenance is left alone for as long as people are at work on it.
pub async fn node_in_maintenance(world: &mut impl World) -> Told {
    let home = database(world).await?;
    let mark =
        |value: serde_json::Value| json!({ "metadata": { "annotations": { "palisade.dev/maintenance": value } } });
    world.patch(Kind::Node, &home, mark("new fans".into())).await?;
    world.power_off(&home).await?;
    world.hold_for(600, "nobody is fenced", |world| world.fence_of(&home).is_none()).await?;
    expect(world.is_held(&home, "InMaintenance"), "the request says why")?;
    world.patch(Kind::Node, &home, mark(serde_json::Value::Null)).await?;
    moved_and_clean(world, &home).await
}

async fn policy(world: &mut impl World, spec: serde_json::Value) -> Told {
    world.patch(Kind::Policy, palisade_api::names::POLICY_NAME, json!({ "spec": spec })).await
}
