//! Stories: what happens to a cluster, one file per theme.
//!
//! Each is told in the verbs of [`World`] and ends with `Ok` when everything came as told. That two nodes never wrote to one
//! volume is watched by the world itself, at every instant of every story.

pub mod admin;
pub mod agent;
pub mod api;
pub mod builtin;
pub mod config;
pub mod crash;
pub mod device;
pub mod leader;
pub mod meddling;
pub mod partition;
pub mod power;
pub mod preflight;
pub mod returns;
pub mod storm;
pub mod things;
pub mod workload;

use std::time::Duration;

use palisade_api::fence::{FencePhase, ReleaseState};

use crate::world::{Broken, Kind, Look, Told, World};

/// The first operator of a story.
pub const FIRST: &str = "palisade-0";
/// The second.
pub const SECOND: &str = "palisade-1";
/// The claim of the database of most stories.
pub const DATA: &str = "data-db-0";

/// Something has to be so now.
pub fn expect(so: bool, what: &str) -> Told {
    if so { Ok(()) } else { Err(Broken(format!("not so: {what}"))) }
}

/// An operator that has watched long enough, and a database of one pod; says on which node it is.
pub async fn database(world: &mut impl World) -> Told<String> {
    world.operator_start(FIRST).await?;
    database_alone(world).await
}

/// The same where operators were started before.
pub async fn database_alone(world: &mut impl World) -> Told<String> {
    world.create(Kind::StatefulSet, things::stateful_set("db", 1)).await?;
    world.run_until(120, "db-0 is ready", |world| world.is_ready("db-0")).await?;
    world.settle().await;
    Ok(world.node_of("db-0"))
}

/// Makes everything new go to one node, until [`open_all`].
pub async fn open_only(world: &mut impl World, node: &str) -> Told {
    for other in world.nodes() {
        world.patch(Kind::Node, &other, things::cordon(other != node)).await?;
    }
    Ok(())
}

/// Lets pods go to every node again.
pub async fn open_all(world: &mut impl World) -> Told {
    for node in world.nodes() {
        world.patch(Kind::Node, &node, things::cordon(false)).await?;
    }
    Ok(())
}

/// The database runs elsewhere; says how long that took.
pub async fn moved(world: &mut impl World, home: &str, within: u64) -> Told<Duration> {
    world.run_until(within, "db-0 runs on another node", |world| world.has_left("db-0", home)).await
}

/// The node is back, and nothing of the fence is left.
pub async fn clean(world: &mut impl World, node: &str, within: u64) -> Told<Duration> {
    world.run_until(within, "the node is back clean", |world| world.node_is_clean(node)).await
}

/// The database runs elsewhere, and the node is back clean.
pub async fn moved_and_clean(world: &mut impl World, home: &str) -> Told {
    moved(world, home, 300).await?;
    clean(world, home, 900).await?;
    expect(world.writers_of(DATA).iter().all(|node| node != home), "the old node writes no more")
}

/// The pod that there is now writes, and nobody else. A pod may be held up for a moment on a busy machine; a second writer is found
/// by the world itself, however short it was.
pub async fn one_writer(world: &mut impl World) -> Told {
    let node = world.node_of("db-0");
    let so = |world: &dyn Look| world.writers_of(DATA) == [node.clone()];
    world.run_until(10, "the new pod writes, and nobody else", so).await.map(drop)
}

/// The fence of a node comes to a phase.
pub async fn comes_to(world: &mut impl World, node: &str, phase: FencePhase) -> Told<Duration> {
    let what = format!("the fence of {node} comes to {phase:?}");
    world.run_until(300, &what, |world| world.phase_of(node) == Some(phase)).await
}

/// The release of the database comes to a state, or beyond it.
pub async fn release_comes_to(world: &mut impl World, node: &str, state: ReleaseState) -> Told<Duration> {
    let what = format!("the release of db-0 comes to {state:?}");
    let reached = |world: &dyn Look| world.release_of(node, "db-0").is_some_and(|is| is as u8 >= state as u8);
    world.run_until(300, &what, reached).await
}

/// For so long nothing is released: the same pod stays where it is, whatever becomes of the fence. (After five minutes
/// Kubernetes itself marks it, by its own taint; a mark that no kubelet hears moves nothing.)
pub async fn nothing_released(world: &mut impl World, seconds: u64) -> Told {
    let uid = world.uid_of("db-0");
    world.hold_for(seconds, "nothing is released", |world: &dyn Look| world.uid_of("db-0") == uid).await
}
