//! Many seeds, any trouble: what Kubernetes alone promises has to hold in this world, too.

use std::time::Duration;

use palisade_cluster::{
    Cluster, Shape,
    dice::Dice,
    machines::machine::Link,
    truth::{Daemon, DaemonState},
    workloads::Claim,
};

use crate::world::seconds;

/// Something happens to somebody.
fn trouble(cluster: &Cluster, dice: &mut Dice) {
    let node = format!("n{}", dice.below(5) + 1);
    let link = [Link::Api, Link::Storage, Link::Peers][usize::try_from(dice.below(3)).unwrap()];
    match dice.below(12) {
        0 => cluster.power_off(&node),
        1 | 2 => cluster.outside_on(&node),
        3 => cluster.cut(&node, link),
        4 | 5 => cluster.heal(&node, link),
        6 => cluster.kubelet_hang(&node),
        7 => cluster.kubelet_resume(&node),
        8 => cluster.suspend(&node),
        9 => cluster.hibernate(&node),
        10 => cluster.kubelet_restart(&node),
        _ => {
            let states = [DaemonState::Down, DaemonState::Paused, DaemonState::Running, DaemonState::Running];
            let daemons = [Daemon::ApiServer, Daemon::ControllerManager, Daemon::Scheduler, Daemon::Csi];
            let pick = |dice: &mut Dice| usize::try_from(dice.below(4)).unwrap();
            cluster.set_daemon(daemons[pick(dice)], states[pick(dice)]);
        }
    }
}

fn heal_everything(cluster: &Cluster) {
    for daemon in [Daemon::ApiServer, Daemon::ControllerManager, Daemon::Scheduler, Daemon::Csi] {
        cluster.set_daemon(daemon, DaemonState::Running);
    }
    for node in ["n1", "n2", "n3", "n4", "n5"] {
        cluster.outside_on(node);
        cluster.kubelet_resume(node);
        for link in [Link::Api, Link::Storage, Link::Peers] {
            cluster.heal(node, link);
        }
    }
}

fn half_an_hour(seed: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let cluster = Cluster::up(&Shape { nodes: 5, zones: 2, seed, ..Shape::default() }).await;
        cluster.truth().on_event(Box::new(move |world, event| {
            let two = world.volumes_with_two_writers();
            assert!(two.is_empty(), "seed {seed}: two nodes can write to {two:?} after {event:?}");
        }));
        cluster.stateful_set("db", 3, Claim::ReadWriteOnce).unwrap();
        cluster.stateful_set("queue", 2, Claim::ReadWriteOncePod).unwrap();
        cluster.replica_set("web", 4).unwrap();
        let mut dice = Dice::new(seed, "trouble");
        while cluster.elapsed() < seconds(1800) {
            cluster.run_for(Duration::from_secs(dice.below(60))).await;
            trouble(&cluster, &mut dice);
        }
        // A machine that is on its way off must be off before a button switches it on.
        cluster.run_for(seconds(20)).await;
        heal_everything(&cluster);
        let well = |c: &Cluster| ["db-0", "db-1", "db-2", "queue-0", "queue-1"].iter().all(|pod| c.is_ready(pod));
        let healed = cluster.run_until(seconds(1200), well).await;
        assert!(healed.is_some(), "seed {seed}: when faults stop, everything runs again");
    });
}

#[test]
fn kubernetes_alone_never_runs_a_database_twice_and_heals_when_faults_stop() {
    let seeds = std::env::var("SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    (0..seeds).for_each(half_an_hour);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the clockwork was left by a panic")]
async fn a_hook_that_panics_ends_the_story() {
    let cluster = Cluster::up(&Shape::default()).await;
    cluster.truth().on_event(Box::new(|_, event| panic!("{event:?}")));
    cluster.stateful_set("db", 1, Claim::None).unwrap();
    cluster.run_for(seconds(60)).await;
}
