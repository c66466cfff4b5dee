//! Crash: the operator dies at each phase, and another one, which remembers nothing, finishes what it finds.

use palisade_api::fence::{FencePhase, ReleaseState};

use super::{FIRST, SECOND, comes_to, database, moved_and_clean, release_comes_to};
use crate::world::{Told, World};

/// The operator is gone for twenty seconds; then a new process starts.
async fn replaced(world: &mut impl World, home: &str) -> Told {
    world.operator_crash(FIRST).await?;
    world.run_for(20).await;
    world.operator_start(SECOND).await?;
    moved_and_clean(world, home).await
}

async fn crash_in(world: &mut impl World, phase: FencePhase) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    comes_to(world, &home, phase).await?;
    replaced(world, &home).await
}

async fn crash_when(world: &mut impl World, state: ReleaseState) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    release_comes_to(world, &home, state).await?;
    replaced(world, &home).await
}

/// The fence was just made and nothing was done yet.
pub async fn crash_in_new(world: &mut impl World) -> Told {
    crash_in(world, FencePhase::New).await
}

/// Off was recorded, and perhaps sent.
pub async fn crash_in_isolating(world: &mut impl World) -> Told {
    crash_in(world, FencePhase::Isolating).await
}

/// A level has succeeded, and nothing is released.
pub async fn crash_in_isolated(world: &mut impl World) -> Told {
    crash_in(world, FencePhase::Isolated).await
}

/// The release is recorded, and no pod is marked.
pub async fn crash_when_intended(world: &mut impl World) -> Told {
    crash_when(world, ReleaseState::Intended).await
}

/// A pod is marked, which cannot be undone, and not yet removed.
pub async fn crash_when_marked(world: &mut impl World) -> Told {
    crash_when(world, ReleaseState::Marked).await
}

/// The pod is removed, and its volume still attached.
pub async fn crash_when_removed(world: &mut impl World) -> Told {
    crash_when(world, ReleaseState::Removed).await
}

/// On was recorded, and perhaps sent.
pub async fn crash_in_powering_on(world: &mut impl World) -> Told {
    crash_in(world, FencePhase::PoweringOn).await
}

/// The machine is on its way up.
pub async fn crash_in_returning(world: &mut impl World) -> Told {
    crash_in(world, FencePhase::Returning).await
}

/// The node passed its checks and is being let in.
pub async fn crash_in_recovering(world: &mut impl World) -> Told {
    crash_in(world, FencePhase::Recovering).await
}

/// The operator crashes again and again, every fifteen seconds, through the whole failover.
pub async fn crash_again_and_again(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    world.run_until(120, "there is a fence", |world| world.fence_of(&home).is_some()).await?;
    let mut name = FIRST.to_owned();
    for round in 1..=8 {
        world.run_for(15).await;
        world.operator_crash(&name).await?;
        name = format!("palisade-{round}");
        world.operator_start(&name).await?;
    }
    moved_and_clean(world, &home).await
}
