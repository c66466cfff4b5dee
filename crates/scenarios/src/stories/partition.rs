//! Partition: machines that live on where nobody hears them.

use super::{clean, database, expect, moved, moved_and_clean, nothing_released, one_writer};
use crate::world::{Bmc, Link, Look, Power, Switched, Told, World};

/// A switch port loses its way to the API server, but not to the storage: the old pod goes on writing. Whoever starts it
/// elsewhere now has two writers. The machine is switched off first, and only then the volume moves.
pub async fn partition_that_still_writes(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.cut(&home, Link::Api).await?;
    world.run_until(200, "the machine is off", |world| world.power_of(&home) == Power::Off).await?;
    moved(world, &home, 60).await?;
    expect(world.commands_to(&home).first() == Some(&Switched::Off), "off was sent")?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 900).await?;
    one_writer(world).await
}

/// The node is cut off from the API server and from its peers, but not from its storage and its BMC: it goes on writing until
/// it is switched off.
pub async fn partition_from_peers_too(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.cut(&home, Link::Api).await?;
    world.cut(&home, Link::Peers).await?;
    moved(world, &home, 200).await?;
    expect(world.commands_to(&home).contains(&Switched::Off), "off was sent")?;
    world.heal(&home, Link::Peers).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 900).await?;
    one_writer(world).await
}

/// A process hangs in a write through the whole partition. If its machine came back with its memory, the old page would land
/// on a volume that belongs to another node by then. It loses its memory instead.
pub async fn process_hangs_in_a_write(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.cut(&home, Link::Api).await?;
    world.cut(&home, Link::Peers).await?;
    world.cut(&home, Link::Storage).await?;
    moved(world, &home, 200).await?;
    for link in [Link::Storage, Link::Peers, Link::Api] {
        world.heal(&home, link).await?;
    }
    clean(world, &home, 900).await?;
    expect(world.boots_of(&home) == 2, "it came back with a new boot")
}

/// The partition heals after ten seconds: nobody is fenced for a hiccup.
pub async fn short_partition_is_forgiven(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.cut(&home, Link::Api).await?;
    world.run_for(10).await;
    world.heal(&home, Link::Api).await?;
    world.hold_for(300, "nobody is fenced", |world| world.fence_of(&home).is_none()).await?;
    expect(world.commands_to(&home).is_empty(), "nothing was sent to the BMC")
}

/// A kubelet hangs while its pods go on. To the control plane that is a dead node, and to the storage a living one.
pub async fn kubelet_hangs(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.kubelet_hang(&home).await?;
    moved_and_clean(world, &home).await?;
    expect(world.commands_to(&home).first() == Some(&Switched::Off), "it was switched off first")
}

/// A kubelet hangs for eight seconds and goes on: a nuisance, not a failure.
pub async fn kubelet_hangs_for_a_moment(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.kubelet_hang(&home).await?;
    world.run_for(8).await;
    world.kubelet_resume(&home).await?;
    world.hold_for(300, "nobody is fenced", |world: &dyn Look| world.fence_of(&home).is_none()).await
}

/// Nothing of the node gets through and its BMC is gone too. Nobody knows anything, so nothing is released; when the network
/// is back the node goes on with what it had.
pub async fn everything_is_cut_and_nobody_knows(world: &mut impl World) -> Told {
    let home = database(world).await?;
    world.bmc(&home, Bmc::Unreachable).await?;
    world.cut(&home, Link::Api).await?;
    world.cut(&home, Link::Peers).await?;
    nothing_released(world, 900).await?;
    world.heal(&home, Link::Peers).await?;
    world.heal(&home, Link::Api).await?;
    clean(world, &home, 1200).await?;
    expect(world.is_ready("db-0") && world.boots_of(&home) == 1, "the database went on all the time")
}
