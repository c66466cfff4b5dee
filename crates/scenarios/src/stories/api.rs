//! Api: the API server itself is gone.

use super::{clean, database, expect, moved};
use crate::world::{Look, Told, World};

/// The API server is away for five minutes. Every lease stands still, and nobody is dead. Nobody is fenced during it, and
/// afterwards every window starts anew.
pub async fn api_outage_fences_nobody(world: &mut impl World) -> Told {
    database(world).await?;
    world.api_down().await?;
    world.run_for(300).await;
    world.api_up().await?;
    let none = |world: &dyn Look| world.nodes().iter().all(|node| world.fence_of(node).is_none());
    world.hold_for(600, "nobody is fenced", none).await?;
    let nodes = world.nodes();
    expect(nodes.iter().all(|node| world.commands_to(node).is_empty()), "nothing was sent to a BMC")
}

/// A node dies during an outage of the API server. It is fenced all the same, but only after it was seen dead for a whole
/// window that nobody slept through.
pub async fn node_dies_during_an_api_outage(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.api_down().await?;
    world.power_off(&home).await?;
    world.run_for(120).await;
    expect(world.fence_of(&home).is_none(), "no fence during the outage")?;
    world.api_up().await?;
    let early = |world: &dyn Look| world.fence_of(&home).is_none();
    world.hold_for(20, "a fresh window comes first", early).await?;
    moved(world, &home, 300).await?;
    clean(world, &home, 900).await?;
    Ok(())
}

/// The API server goes away in the middle of a fence and comes back: the fence goes on where it stood.
pub async fn api_outage_in_the_middle(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    world
        .run_until(120, "there is a proof", |world| {
            world.fence_of(&home).and_then(|fence| fence.status).is_some_and(|status| !status.proofs.is_empty())
        })
        .await?;
    world.api_down().await?;
    world.run_for(180).await;
    world.api_up().await?;
    moved(world, &home, 600).await?;
    clean(world, &home, 1200).await?;
    Ok(())
}
