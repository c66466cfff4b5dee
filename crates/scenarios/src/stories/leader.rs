//! Leader: the operator itself dies, twice, or meets itself.

use super::{FIRST, SECOND, clean, database_alone, expect, moved, moved_and_clean};
use crate::world::{Link, Switched, Told, World};

/// The leader runs on the very node that dies. The standby has watched all the time and takes over within seconds.
pub async fn leader_on_the_dying_node(world: &mut impl World) -> Told {
    world.operator_start(SECOND).await?;
    world.operator_stop(SECOND).await?;
    let home = super::database(world).await?;
    // The first leader goes, the one on the node leads, and a standby waits elsewhere.
    world.operator_start_on("palisade-on-node", &home).await?;
    world.run_for(5).await;
    world.operator_stop(FIRST).await?;
    world.run_for(30).await;
    world.operator_start(SECOND).await?;
    world.settle().await;
    world.power_off(&home).await?;
    let took = moved(world, &home, 120).await?;
    expect(took.as_secs() <= 60, "the failover takes no more than a minute")?;
    clean(world, &home, 900).await?;
    Ok(())
}

/// The leader is cut off together with its node: it must not fence the healthy rest, and the standby fences it.
pub async fn leader_is_the_isolated_one(world: &mut impl World) -> Told {
    world.operator_start_on(FIRST, "n1").await?;
    world.run_for(10).await;
    world.operator_start(SECOND).await?;
    super::open_only(world, "n1").await?;
    let home = database_alone(world).await?;
    super::open_all(world).await?;
    world.cut(&home, Link::Api).await?;
    world.cut(&home, Link::Peers).await?;
    moved(world, &home, 200).await?;
    for other in world.nodes().iter().filter(|node| **node != home) {
        expect(world.commands_to(other).is_empty(), "no other machine was touched")?;
    }
    world.heal(&home, Link::Peers).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 900).await?;
    Ok(())
}

/// The leader crashes as the node dies; the standby takes over.
pub async fn leader_crashes_with_the_node(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    world.run_for(5).await;
    world.operator_start(SECOND).await?;
    let home = database_alone(world).await?;
    world.power_off(&home).await?;
    world.operator_crash(FIRST).await?;
    moved_and_clean(world, &home).await
}

/// Two operators at once all the time: one acts, the other watches, and every command is sent once.
pub async fn two_operators_at_once(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    world.operator_start(SECOND).await?;
    let home = database_alone(world).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await?;
    let told = world.commands_to(&home);
    expect(told.iter().filter(|command| **command == Switched::On).count() == 1, "on was sent once")
}

/// A rolling update replaces the leader in the middle of a fence: it resigns, and the next one goes on.
pub async fn rolling_update_in_the_middle(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    world.run_for(5).await;
    world.operator_start(SECOND).await?;
    let home = database_alone(world).await?;
    world.power_off(&home).await?;
    world.run_until(120, "there is a fence", |world| world.fence_of(&home).is_some()).await?;
    world.operator_stop(FIRST).await?;
    world.operator_start("palisade-2").await?;
    moved_and_clean(world, &home).await
}
