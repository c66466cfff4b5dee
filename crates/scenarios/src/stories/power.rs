//! Power: machines that lose it.

use palisade_api::fence::ProofClass;
use palisade_api::request::RequestResult;

use super::{clean, database, expect, moved, moved_and_clean, one_writer};
use crate::world::{Kind, Look, Power, Switched, Told, World};

/// A power supply burns out under the only pod of a database. Kubernetes alone would leave the pod Terminating until somebody
/// comes in: the volume cannot move while nobody knows whether the old node still writes. Palisade knows after a read-back.
pub async fn power_failure(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    // Our own part ends here; how soon the next kubelet finds the volume and mounts it is not ours.
    let given = |world: &dyn Look| !world.node_of("db-0").is_empty() && world.node_of("db-0") != home;
    let took = world.run_until(60, "db-0 is given to another node", given).await?;
    expect(took.as_secs() <= 24, "the pod is given up within 24 s")?;
    moved(world, &home, 60).await?;
    clean(world, &home, 600).await?;
    expect(world.result_of(&home) == Some(RequestResult::Recovered), "the request says Recovered")?;
    let told = world.commands_to(&home);
    expect(told.last() == Some(&Switched::On), "the machine was switched on again")?;
    expect(!told.contains(&Switched::Cycle), "it was never cycled in one call")?;
    one_writer(world).await
}

/// While the database moves, everything that is given up stands on a recorded power proof of that very boot.
pub async fn power_failure_is_proven_first(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    let marked = |world: &dyn Look| world.pod("db-0").is_none_or(|pod| pod.metadata.deletion_timestamp.is_some());
    world.run_until(60, "db-0 is marked", marked).await?;
    let status = world.fence_of(&home).and_then(|fence| fence.status).unwrap_or_default();
    expect(status.proofs.iter().any(|proof| proof.class == ProofClass::Power), "a power proof is on record")?;
    expect(world.is_quarantined(&home), "the node is quarantined")?;
    expect(world.power_of(&home) == Power::Off, "the machine is off in truth")?;
    moved_and_clean(world, &home).await
}

/// The whole feed of a machine fails, and its BMC with it: nobody can say whether the machine is off. The database stays down
/// until the feed is back; then the fence goes on by itself.
pub async fn feed_fails_and_takes_the_bmc_along(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.cut_feed(&home).await?;
    super::nothing_released(world, 600).await?;
    expect(world.fence_of(&home).is_some(), "the fence is still there")?;
    world.restore_feed(&home).await?;
    let up = |world: &dyn Look| world.is_ready("db-0") && world.node_is_clean(&home);
    world.run_until(1200, "the database runs and the node is clean", up).await?;
    Ok(())
}

/// A machine hibernates under the operator's eyes. Its BMC cannot tell that from off, the template says so, and a machine that
/// was found off proves nothing: it could wake up in the middle of a write.
pub async fn hibernated_machine_is_not_off(world: &mut impl World) -> Told {
    let patch = serde_json::json!({ "spec": { "proves": { "hibernation": "Possible" } } });
    world.patch(Kind::Template, "bmc", patch).await?;
    let home = database(world).await?;
    world.hibernate(&home).await?;
    super::nothing_released(world, 900).await?;
    world.outside_on(&home).await?;
    clean(world, &home, 900).await?;
    expect(world.is_ready("db-0"), "the database goes on")
}
