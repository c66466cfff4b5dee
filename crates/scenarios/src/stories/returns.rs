//! Returns: nodes that come back by themselves, and machines that others switch on.

use palisade_api::fence::{FencePhase, ReleaseState};
use palisade_api::request::RequestResult;

use super::{clean, comes_to, database, expect, moved, moved_and_clean, release_comes_to};
use crate::world::{Bmc, Kind, Link, Look, Power, Told, World};

/// The node is back before anything was done to it. It is left alone, and the request says so.
pub async fn node_returns_before_the_fence(world: &mut impl World) -> Told {
    let patch = serde_json::json!({ "spec": { "grace": "2m" } });
    world.patch(Kind::Policy, palisade_api::names::POLICY_NAME, patch).await?;
    let home = database(world).await?;
    world.cut(&home, Link::Api).await?;
    world.run_until(200, "a request waits", |world| world.request_of(&home).is_some()).await?;
    world.run_for(30).await;
    world.heal(&home, Link::Api).await?;
    let over = |world: &dyn Look| world.result_of(&home) == Some(RequestResult::HealthyBefore);
    world.run_until(300, "the request says HealthyBefore", over).await?;
    expect(world.commands_to(&home).is_empty(), "nothing was sent to its BMC")?;
    clean(world, &home, 60).await?;
    Ok(())
}

/// The network heals in the instant in which off is on its way. From there only the device may speak: the machine goes off,
/// the pod is released under the proof, and the machine comes back clean.
pub async fn node_returns_during_the_fence(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.cut(&home, Link::Api).await?;
    world.cut(&home, Link::Peers).await?;
    comes_to(world, &home, FencePhase::Isolating).await?;
    world.heal(&home, Link::Peers).await?;
    world.heal(&home, Link::Api).await?;
    let well = |world: &dyn Look| world.is_ready("db-0") && world.node_is_clean(&home);
    world.run_until(900, "the database runs and the node is clean", well).await?;
    Ok(())
}

/// The BMC is dumb, the fence holds, and the node comes back by itself: it is believed, nothing is switched, nothing is left.
pub async fn node_returns_while_the_fence_fails(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Refuses).await?;
    world.cut(&home, Link::Api).await?;
    comes_to(world, &home, FencePhase::Failed).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 900).await?;
    expect(world.is_ready("db-0") && world.node_of("db-0") == home, "the database went on where it was")?;
    expect(world.boots_of(&home) == 1, "nobody switched the machine")
}

/// The pod has moved, and the machine comes back with the network. It stays quarantined until everything of the old pod is
/// gone from it.
pub async fn node_returns_after_the_release(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.cut(&home, Link::Api).await?;
    moved(world, &home, 200).await?;
    world.heal(&home, Link::Api).await?;
    let guarded = |world: &dyn Look| {
        let let_in = world.fence_of(&home).is_none() || !world.is_quarantined(&home);
        !let_in || world.node_is_ready(&home)
    };
    world.hold_for(60, "it is quarantined until it is ready", guarded).await?;
    clean(world, &home, 900).await?;
    Ok(())
}

/// Somebody in the machine room presses the button between the off and the release. The proof was true and is not any more:
/// it ends, the machine is cut off again, and only then the pod moves.
pub async fn somebody_switches_it_on_before_the_release(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    world
        .run_until(120, "there is a proof", |world| {
            world.fence_of(&home).and_then(|fence| fence.status).is_some_and(|status| !status.proofs.is_empty())
        })
        .await?;
    world.outside_on(&home).await?;
    let well = |world: &dyn Look| world.is_ready("db-0") && world.node_is_clean(&home);
    world.run_until(1200, "the database runs and the node is clean", well).await?;
    Ok(())
}

/// The button is pressed after the mark and before the removal: the worst instant, as a mark cannot be taken back.
pub async fn somebody_switches_it_on_after_the_mark(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    release_comes_to(world, &home, ReleaseState::Marked).await?;
    world.outside_on(&home).await?;
    let well = |world: &dyn Look| world.is_ready("db-0") && world.node_is_clean(&home);
    world.run_until(1200, "the database runs and the node is clean", well).await?;
    Ok(())
}

/// The button is pressed when the pod has already moved.
pub async fn somebody_switches_it_on_after_the_release(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    release_comes_to(world, &home, ReleaseState::Removed).await?;
    world.outside_on(&home).await?;
    moved_and_clean(world, &home).await?;
    expect(world.power_of(&home) == Power::On, "the machine is on")
}
