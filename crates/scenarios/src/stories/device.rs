//! Device: BMCs that lie, refuse, are late, or are not there.

use palisade_api::fence::{FencePhase, ReleaseState};
use serde_json::json;

use super::{clean, comes_to, database, expect, moved, moved_and_clean, nothing_released, release_comes_to};
use crate::world::{Bmc, Kind, Link, Look, Switched, Told, World};

async fn cut_off_with(world: &mut impl World, behaves: Bmc) -> Told<String> {
    let home = database(world).await?;
    world.bmc(&home, behaves).await?;
    world.cut(&home, Link::Api).await?;
    Ok(home)
}

/// The node loses its network, and its BMC says yes to every off and does nothing. Its own read-back gives it away: nothing is released, and the fence says so.
pub async fn bmc_only_says_yes(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::AcceptsOnly).await?;
    world.cut(&home, Link::Peers).await?;
    nothing_released(world, 900).await?;
    let fence = world.fence_of(&home).and_then(|fence| fence.status).unwrap_or_default();
    expect(fence.proofs.is_empty(), "nothing is proven")?;
    expect(fence.restarts > 0, "it goes on trying")
}

/// The BMC says Off whatever is true, while the kubelet still answers its port: two witnesses contradict each other, and a
/// contradiction never leads to a release.
pub async fn bmc_says_off_while_the_kubelet_answers(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::SaysOff).await?;
    nothing_released(world, 900).await?;
    let says = |world: &dyn Look| {
        let status = world.fence_of(&home).and_then(|fence| fence.status).unwrap_or_default();
        status.reason.as_deref() == Some("KubeletAnswers")
    };
    world.run_until(900, "the fence says what contradicts the device", says).await?;
    world.bmc(&home, Bmc::Honest).await?;
    moved(world, &home, 900).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 1200).await?;
    Ok(())
}

/// The BMC takes every request and says nothing. Silence is not off.
pub async fn bmc_says_nothing(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::Silent).await?;
    nothing_released(world, 900).await?;
    expect(world.fence_of(&home).is_some(), "the fence is still there, and says why")
}

/// The BMC refuses every command.
pub async fn bmc_refuses(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::Refuses).await?;
    comes_to(world, &home, FencePhase::Failed).await?;
    nothing_released(world, 600).await?;
    expect(world.fence_of(&home).and_then(|fence| fence.status?.reason).is_some(), "the fence says why")
}

/// A BMC that takes two seconds for each answer is slow and nothing else.
pub async fn bmc_is_slow(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Slow(2)).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await
}

/// A BMC that takes four seconds for each answer is asked twice before it can be told anything. Whoever gives it the time to
/// answer gets a failover all the same.
pub async fn bmc_is_very_slow(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.patch(Kind::Template, "bmc", json!({ "spec": { "timeout": "25s" } })).await?;
    world.bmc(&home, Bmc::Slow(4)).await?;
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await?;
    expect(world.commands_to(&home).contains(&Switched::Off), "off was sent")
}

/// The BMC carries each command out a minute after it was told, long after the caller gave up. A late off may come in the
/// middle of anything; it must never come after a release that did not expect it.
pub async fn bmc_answers_late(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::Late(60)).await?;
    world.run_for(600).await;
    world.bmc(&home, Bmc::Honest).await?;
    world.heal(&home, Link::Api).await?;
    let well = |world: &dyn Look| world.is_ready("db-0") && world.node_is_clean(&home);
    world.run_until(1800, "the database runs and the node is clean", well).await?;
    Ok(())
}

/// The BMC switches off as it is told, and its answer gets lost. Nobody was told that it was done, so the off is sent again; that one is
/// answered, as there is nothing left to do, and the database moves.
pub async fn bmc_loses_the_reply(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::LosesReply).await?;
    world.cut(&home, Link::Peers).await?;
    moved(world, &home, 900).await?;
    world.bmc(&home, Bmc::Honest).await?;
    world.heal(&home, Link::Peers).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 1200).await.map(drop)
}

/// The BMC takes the off, does nothing, and shows Off from its cache for a second and a half. That is less than `stableOff`, so it
/// is found out each time; nothing is released while the machine runs.
pub async fn bmc_shows_off_from_its_cache(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::ShowsFor(1_500)).await?;
    world.cut(&home, Link::Peers).await?;
    nothing_released(world, 900).await?;
    world.bmc(&home, Bmc::Honest).await?;
    moved(world, &home, 900).await?;
    world.heal(&home, Link::Peers).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 1200).await.map(drop)
}

/// The machine comes back by itself two seconds after each off was sent, as a power-restore policy has it. It never is off for long enough to
/// be proven, so nothing is released; when it stays off, the database moves.
pub async fn machine_comes_back_by_itself(world: &mut impl World) -> Told {
    let home = cut_off_with(world, Bmc::Flaps(2_000)).await?;
    world.cut(&home, Link::Peers).await?;
    nothing_released(world, 600).await?;
    world.bmc(&home, Bmc::Honest).await?;
    moved(world, &home, 900).await?;
    world.heal(&home, Link::Peers).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 1200).await.map(drop)
}

/// The BMC needs eight seconds for each answer, and its template gives it no more than ten for a whole call. Nothing comes of that but
/// a reason; with time enough the database moves.
pub async fn bmc_needs_eight_seconds(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Slow(8)).await?;
    world.power_off(&home).await?;
    nothing_released(world, 300).await?;
    world.patch(Kind::Template, "bmc", json!({ "spec": { "timeout": "60s" } })).await?;
    moved(world, &home, 1200).await?;
    world.bmc(&home, Bmc::Honest).await?;
    clean(world, &home, 1200).await.map(drop)
}

/// The BMC is away for an hour while its machine is dead. The fence goes on trying, slower and slower, and succeeds.
pub async fn bmc_away_for_an_hour(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Unreachable).await?;
    world.power_off(&home).await?;
    nothing_released(world, 3600).await?;
    world.bmc(&home, Bmc::Honest).await?;
    moved(world, &home, 900).await?;
    clean(world, &home, 900).await?;
    Ok(())
}

/// The BMC of a dead machine refuses to switch it on again. The database has moved; the node stays quarantined and visible.
pub async fn bmc_refuses_to_switch_on(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    release_comes_to(world, &home, ReleaseState::Removed).await?;
    world.bmc(&home, Bmc::Refuses).await?;
    moved(world, &home, 60).await?;
    world.run_for(600).await;
    expect(world.fence_of(&home).is_some(), "the fence is still there")?;
    world.bmc(&home, Bmc::Honest).await?;
    clean(world, &home, 1800).await?;
    expect(world.commands_to(&home).contains(&Switched::On), "on was sent")
}
