//! Workload: what else is on the node.

use palisade_api::fence::ReleaseState;

use super::{FIRST, clean, expect, moved_and_clean, open_all, open_only, things};
use crate::world::{Kind, Look, Told, World};

/// Two databases share a node. Both move, each with its own volume.
pub async fn two_stateful_sets_on_one_node(world: &mut impl World) -> Told {
    two_databases_on_n1(world).await?;
    world.power_off("n1").await?;
    let both = |world: &dyn Look| world.has_left("db-0", "n1") && world.has_left("queue-0", "n1");
    world.run_until(90, "both run elsewhere", both).await?;
    clean(world, "n1", 600).await?;
    Ok(())
}

/// A ReplicaSet, a DaemonSet and a bare pod beside the database: the first is replaced, the second stays with its node, and
/// the third is nobody's to move.
pub async fn all_sorts_beside_the_database(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    open_only(world, "n1").await?;
    world.create(Kind::StatefulSet, things::stateful_set("db", 1)).await?;
    world.create(Kind::ReplicaSet, things::replica_set("web", 2, None)).await?;
    world.create(Kind::Pod, things::bare_pod("tool", None)).await?;
    world.daemon_set("agent").await?;
    let ready = |world: &dyn Look| world.is_ready("db-0") && world.is_ready("tool") && of_set(world, "web", "n1") == 2;
    world.run_until(120, "everything is ready", ready).await?;
    open_all(world).await?;
    world.settle().await;
    let (tool, agents) = (world.uid_of("tool"), of_set(world, "agent", "n1"));
    world.power_off("n1").await?;
    super::moved(world, "n1", 90).await?;
    let replaced = |world: &dyn Look| running(world, "web") == 2 && of_set(world, "web", "n1") == 0;
    world.run_until(120, "web runs twice, elsewhere", replaced).await?;
    expect(world.uid_of("tool") == tool, "the bare pod was not touched")?;
    expect(of_set(world, "agent", "n1") == agents, "the DaemonSet's pod was not touched")?;
    clean(world, "n1", 600).await?;
    Ok(())
}

/// Two pods share one volume for one node at a time. They go together: one of them elsewhere and the other still here would
/// be two nodes with one volume.
pub async fn pods_that_share_a_claim_go_together(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    open_only(world, "n1").await?;
    world.create(Kind::Claim, things::claim("shared")).await?;
    world.create(Kind::ReplicaSet, things::replica_set("pair", 2, Some("shared"))).await?;
    world.run_until(120, "both are ready", |world| running(world, "pair") == 2).await?;
    open_all(world).await?;
    world.settle().await;
    world.power_off("n1").await?;
    // Where the two new ones go is up to the scheduler; on two nodes, one of them waits for the volume.
    let both = |world: &dyn Look| running(world, "pair") >= 1 && of_set(world, "pair", "n1") == 0;
    world.run_until(180, "both have left, and one runs elsewhere", both).await?;
    // A pod is called Running before it has written its first line.
    world.run_until(30, "one node has the volume", |world| world.writers_of("shared").len() == 1).await?;
    clean(world, "n1", 600).await?;
    Ok(())
}

/// A bare pod shares the volume of a pod that could be released. Nobody would make the bare one again, so the group stays whole
/// and stays put, and starts again when the node is back.
pub async fn bare_pod_holds_its_group(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    open_only(world, "n1").await?;
    world.create(Kind::Claim, things::claim("shared")).await?;
    world.create(Kind::ReplicaSet, things::replica_set("one", 1, Some("shared"))).await?;
    world.create(Kind::Pod, things::bare_pod("other", Some("shared"))).await?;
    let ready = |world: &dyn Look| world.is_ready("other") && running(world, "one") == 1;
    world.run_until(120, "both are ready", ready).await?;
    open_all(world).await?;
    world.settle().await;
    let other = world.uid_of("other");
    world.power_off("n1").await?;
    world.run_until(120, "there is a fence", |world| world.fence_of("n1").is_some()).await?;
    clean(world, "n1", 900).await?;
    expect(world.uid_of("other") == other, "the bare pod is the same")?;
    let both = |world: &dyn Look| world.is_ready("other") && running(world, "one") == 1;
    world.run_until(300, "both run", both).await?;
    Ok(())
}

/// A finalizer of somebody else keeps the released pod in the API. That holds up the pod's replacement, not the machine.
pub async fn pod_with_a_finalizer(world: &mut impl World) -> Told {
    let home = super::database(world).await?;
    let patch = serde_json::json!({ "metadata": { "finalizers": ["example.com/audit"] } });
    world.patch(Kind::Pod, "db-0", patch).await?;
    world.power_off(&home).await?;
    let on = |world: &dyn Look| world.boots_of(&home) == 2;
    world.run_until(400, "the machine is switched on all the same", on).await?;
    expect(world.release_of(&home, "db-0") != Some(ReleaseState::Removed), "the pod is not called removed")?;
    world.patch(Kind::Pod, "db-0", serde_json::json!({ "metadata": { "finalizers": null } })).await?;
    moved_and_clean(world, &home).await
}

/// An admission rule keeps one of two databases from being deleted. The other one moves all the same, the API server is not
/// flooded with what it refuses, and when the rule is gone the first one moves too.
pub async fn deletion_refused_for_one_of_two(world: &mut impl World) -> Told {
    two_databases_on_n1(world).await?;
    world.forbid_deletion(Kind::Pod, "db-0", true).await?;
    world.power_off("n1").await?;
    let queue = |world: &dyn Look| world.has_left("queue-0", "n1");
    world.run_until(60, "the one that may go runs elsewhere", queue).await?;
    let db = world.uid_of("db-0");
    world.run_for(60).await;
    expect(world.uid_of("db-0") == db, "the other one is where it was")?;
    let asked = world.refused_deletions();
    expect((3..=12).contains(&asked), &format!("asked for seldom and on and on, not {asked} times"))?;
    world.forbid_deletion(Kind::Pod, "db-0", false).await?;
    super::moved(world, "n1", 120).await?;
    clean(world, "n1", 900).await?;
    Ok(())
}

/// A node without anything that needs fencing is left to Kubernetes.
pub async fn stateless_node_is_left_alone(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    open_only(world, "n1").await?;
    world.create(Kind::ReplicaSet, things::replica_set("web", 2, None)).await?;
    world.run_until(120, "both are ready", |world| running(world, "web") == 2).await?;
    open_all(world).await?;
    world.settle().await;
    world.power_off("n1").await?;
    world.hold_for(600, "nobody is fenced", |world| world.fence_of("n1").is_none()).await?;
    expect(world.is_held("n1", "NoStatefulWorkload"), "the request says why")
}

/// An operator that has watched long enough, and two databases of one pod each on one node.
async fn two_databases_on_n1(world: &mut impl World) -> Told {
    world.operator_start(FIRST).await?;
    open_only(world, "n1").await?;
    world.create(Kind::StatefulSet, things::stateful_set("db", 1)).await?;
    world.create(Kind::StatefulSet, things::stateful_set("queue", 1)).await?;
    let ready = |world: &dyn Look| world.is_ready("db-0") && world.is_ready("queue-0");
    world.run_until(120, "both are ready", ready).await?;
    open_all(world).await?;
    world.settle().await;
    Ok(())
}

fn pods_of(world: &dyn Look, set: &str) -> Vec<k8s_openapi::api::core::v1::Pod> {
    let all = world.list(Kind::Pod).into_iter().filter_map(|pod| serde_json::from_value(pod).ok());
    let of = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.metadata.owner_references.iter().flatten().any(|owner| owner.name == set)
    };
    all.filter(of).collect()
}

/// How many pods of a set are bound to a node.
fn of_set(world: &dyn Look, set: &str, node: &str) -> usize {
    let there = |pod: &k8s_openapi::api::core::v1::Pod| {
        pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) == Some(node)
    };
    pods_of(world, set).iter().filter(|pod| there(pod)).count()
}

/// How many pods of a set are ready.
fn running(world: &dyn Look, set: &str) -> usize {
    let names = pods_of(world, set).into_iter().filter_map(|pod| pod.metadata.name);
    names.filter(|name| world.is_ready(name)).count()
}
