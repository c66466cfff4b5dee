//! Meddling: people and controllers who change things in the middle of a fence.

use palisade_api::fence::{FencePhase, ReleaseState};
use palisade_api::names;
use serde_json::json;

use super::{clean, comes_to, database, expect, moved_and_clean, one_writer, release_comes_to};
use crate::world::{Bmc, Kind, Link, Look, Told, World};

/// An admin deletes the Node in the middle of the fence. Nothing more is released by us; the machine is brought back when no
/// pod names the Node any more, and comes back as a new Node.
pub async fn node_deleted_in_the_middle(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    comes_to(world, &home, FencePhase::Isolated).await?;
    world.delete(Kind::Node, &home).await?;
    let well = |world: &dyn Look| world.is_ready("db-0") && world.node_is_clean(&home);
    world.run_until(1800, "the database runs and the node is back", well).await?;
    Ok(())
}

/// The Node is deleted and made again by a machine that lives, while a fence for the old one fails. The new object is another
/// Node: nobody asked to fence it.
pub async fn node_deleted_and_made_again(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Refuses).await?;
    world.cut(&home, Link::Api).await?;
    comes_to(world, &home, FencePhase::Failed).await?;
    world.delete(Kind::Node, &home).await?;
    world.heal(&home, Link::Api).await?;
    // A kubelet registers its Node when it starts, and never again.
    world.kubelet_restart(&home).await?;
    world.run_until(300, "the Node is there again", |world| world.node_is_ready(&home)).await?;
    world.bmc(&home, Bmc::Honest).await?;
    clean(world, &home, 1200).await?;
    expect(world.boots_of(&home) == 1, "its machine was not switched")?;
    world.run_until(600, "the database runs", |world| world.is_ready("db-0")).await?;
    Ok(())
}

/// The policy is deleted and applied again from git in the middle of a fence: its ledger is empty, and is rebuilt.
pub async fn policy_applied_again_in_the_middle(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    comes_to(world, &home, FencePhase::Isolating).await?;
    world.delete(Kind::Policy, names::POLICY_NAME).await?;
    world.run_for(2).await;
    if world.get(Kind::Policy, names::POLICY_NAME).is_none() {
        world.create(Kind::Policy, json!({ "metadata": { "name": names::POLICY_NAME }, "spec": {} })).await?;
    }
    moved_and_clean(world, &home).await?;
    let entries = |world: &dyn Look| {
        let policy = world.get(Kind::Policy, names::POLICY_NAME).unwrap_or_default();
        policy.pointer("/status/entries").and_then(|entries| entries.as_array().map(Vec::len)).unwrap_or_default()
    };
    world.run_until(60, "no slot is leaked", |world| entries(world) == 0).await?;
    Ok(())
}

/// The policy is deleted: within seconds there is one again, with all defaults, and its ledger is whole.
pub async fn policy_comes_back(world: &mut impl World) -> Told {
    database(world).await?;
    world.delete(Kind::Policy, names::POLICY_NAME).await?;
    let whole = |world: &dyn Look| {
        let policy = world.get(Kind::Policy, names::POLICY_NAME).unwrap_or_default();
        policy["spec"]["mode"] == "Enforce" && policy["status"]["policyUID"] == policy["metadata"]["uid"]
    };
    world.run_until(60, "there is a policy again, with a ledger of its own", whole).await.map(drop)
}

/// The policy is deleted and nobody applies it again: the default one takes its place.
pub async fn policy_deleted_for_good(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.delete(Kind::Policy, names::POLICY_NAME).await?;
    world.run_for(30).await;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await
}

/// An admin removes the quarantine taint in the middle of the fence: it is set again, since nothing may start there.
pub async fn quarantine_taint_removed(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    release_comes_to(world, &home, ReleaseState::Removed).await?;
    world.patch(Kind::Node, &home, json!({ "spec": { "taints": null } })).await?;
    world.run_until(120, "the taint is back", |world| world.is_quarantined(&home)).await?;
    moved_and_clean(world, &home).await
}

/// An admin force-deletes the pod of a node that still writes: that is the admin's word, and Kubernetes' own attach rules are
/// what is left. Palisade goes on and gets the node back.
pub async fn pod_deleted_by_an_admin(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    world.delete(Kind::Pod, "db-0").await?;
    moved_and_clean(world, &home).await?;
    one_writer(world).await
}
