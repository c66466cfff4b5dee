//! Storm: many nodes at once. It may be we who are blind.

use super::{clean, database, database_alone, expect, moved};
use crate::world::{Kind, Link, Look, Told, World};

/// A core switch reboots, and half of the nodes are silent at once, the database's among them. Fencing them would turn a
/// network fault into a power failure of half the cluster. Nobody is fenced; when the switch is back everything goes on.
pub async fn half_of_the_nodes_gone(world: &mut impl World) -> Told {
    let home = database(world).await?;
    let mut gone = world.nodes();
    gone.sort_by_key(|node| *node != home);
    gone.truncate(gone.len() / 2);
    for node in &gone {
        world.cut(node, Link::Api).await?;
        world.cut(node, Link::Peers).await?;
    }
    let none = |world: &dyn Look| gone.iter().all(|node| world.fence_of(node).is_none());
    world.hold_for(600, "nobody is fenced", none).await?;
    let braked = gone.iter().any(|node| world.is_held(node, "StormBrake"));
    expect(braked, "a request is held by the storm brake")?;
    for node in &gone {
        world.heal(node, Link::Peers).await?;
        world.heal(node, Link::Api).await?;
    }
    let back = |world: &dyn Look| world.is_ready("db-0") && gone.iter().all(|node| world.node_is_clean(node));
    world.run_until(600, "the database runs, and every node is back clean", back).await?;
    expect(gone.iter().all(|node| world.commands_to(node).is_empty()), "nothing was sent to a BMC")
}

/// A whole zone is silent while others live: a switch is likelier to have failed than every machine in it.
pub async fn whole_zone_gone(world: &mut impl World) -> Told {
    let home = database(world).await?;
    let zone = zone_of(world, &home);
    let gone: Vec<String> = world.nodes().into_iter().filter(|node| zone_of(world, node) == zone).collect();
    for node in &gone {
        world.cut(node, Link::Api).await?;
    }
    let none = |world: &dyn Look| gone.iter().all(|node| world.fence_of(node).is_none());
    world.hold_for(600, "nobody is fenced", none).await?;
    for node in &gone {
        world.heal(node, Link::Api).await?;
    }
    let back = |world: &dyn Look| gone.iter().all(|node| world.node_is_clean(node));
    world.run_until(600, "every node is back clean", back).await?;
    Ok(())
}

/// Every node is silent: it is we who are blind, whatever the limits say.
pub async fn all_nodes_gone(world: &mut impl World) -> Told {
    database(world).await?;
    let nodes = world.nodes();
    for node in &nodes {
        world.cut(node, Link::Api).await?;
    }
    let none = |world: &dyn Look| nodes.iter().all(|node| world.fence_of(node).is_none());
    world.hold_for(600, "nobody is fenced", none).await?;
    for node in &nodes {
        world.heal(node, Link::Api).await?;
    }
    let back = |world: &dyn Look| nodes.iter().all(|node| world.node_is_clean(node));
    world.run_until(600, "every node is back clean", back).await?;
    Ok(())
}

/// Two nodes die at once and the budget is one: they are fenced one after the other, never both at once.
pub async fn budget_of_one_with_two_dead(world: &mut impl World) -> Told {
    let both = two_databases(world).await?;
    for (_, node) in &both {
        world.power_off(node).await?;
    }
    one_after_the_other(world, &both).await
}

/// Two nodes die while the policy is paused, and somebody lifts the pause: both are admitted at the same instant, and there is
/// one slot. Whoever has to wait for it says so.
pub async fn pause_lifted_with_two_dead(world: &mut impl World) -> Told {
    let both = two_databases(world).await?;
    let mode = |mode: &str| serde_json::json!({ "spec": { "mode": mode } });
    world.patch(Kind::Policy, palisade_api::names::POLICY_NAME, mode("Paused")).await?;
    for (_, node) in &both {
        world.power_off(node).await?;
    }
    world.run_for(60).await;
    world.patch(Kind::Policy, palisade_api::names::POLICY_NAME, mode("Enforce")).await?;
    one_after_the_other(world, &both).await?;
    expect(both.iter().any(|(_, node)| world.was_told("VettingClosed", node)), "one of them said why it waited")
}

/// A StatefulSet of two, on two nodes: each pod with its node.
async fn two_databases(world: &mut impl World) -> Told<[(&'static str, String); 2]> {
    world.operator_start(super::FIRST).await?;
    world.create(Kind::StatefulSet, super::things::stateful_set("web", 2)).await?;
    let ready = |world: &dyn Look| world.is_ready("web-0") && world.is_ready("web-1");
    world.run_until(120, "both pods are ready", ready).await?;
    world.settle().await;
    let both = ["web-0", "web-1"].map(|pod| (pod, world.node_of(pod)));
    expect(both[0].1 != both[1].1, "the pods are on two nodes")?;
    Ok(both)
}

/// Each pod is replaced and each node comes back, and never do two fences have a slot. (The second pod of the set waits for the
/// first, so it may well go back to its node.)
async fn one_after_the_other(world: &mut impl World, both: &[(&str, String)]) -> Told {
    let mut most = 0;
    let before: Vec<_> = both.iter().map(|(pod, _)| world.uid_of(pod)).collect();
    let over = |world: &dyn Look| {
        let held = |node: &String| {
            let status = world.fence_of(node).and_then(|fence| fence.status).unwrap_or_default();
            status.slot == palisade_api::fence::Slot::Held
        };
        most = most.max(both.iter().filter(|(_, node)| held(node)).count());
        let replaced = |(pod, was): (&str, &_)| world.is_ready(pod) && world.uid_of(pod) != *was;
        both.iter().zip(&before).all(|((pod, _), was)| replaced((pod, was)))
            && both.iter().all(|(_, node)| world.node_is_clean(node))
    };
    world.run_until(1800, "both pods run, both nodes are clean", over).await?;
    expect(most == 1, "never two slots at once")
}

/// The first failure of a zone is never blocked, however small the zone is.
pub async fn first_failure_of_a_small_zone(world: &mut impl World) -> Told {
    world.operator_start(super::FIRST).await?;
    let home = database_alone(world).await?;
    world.power_off(&home).await?;
    moved(world, &home, 60).await?;
    clean(world, &home, 600).await?;
    Ok(())
}

fn zone_of(world: &impl World, node: &str) -> String {
    let labels = world.node(node).and_then(|node| node.metadata.labels).unwrap_or_default();
    labels.get(palisade_api::names::labels::ZONE).cloned().unwrap_or_default()
}
