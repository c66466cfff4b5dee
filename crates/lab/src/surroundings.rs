//! Surroundings: what Palisade stands on breaks. It says so in words that a tired administrator understands, nothing is lost,
//! nothing is half released, and when the surroundings are back it goes on by itself.
//!
//! These are told in the lab alone: the embedded cluster has no etcd, no containerd and no disk that could be full.

use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use palisade_api::fence::{FencePhase, ReleaseState};
use palisade_api::names;
use palisade_scenarios::look::Look;
use palisade_scenarios::stories::{
    DATA, clean, comes_to, database, expect, moved, moved_and_clean, nothing_released, release_comes_to,
};
use palisade_scenarios::world::{Broken, Power, Told, World};
use serde_json::json;

use crate::control_plane::Part;
use crate::deployed::leader_dies_with_its_node;
use crate::papers::Papers;
use crate::world::LabWorld;
use crate::{install, objects};

/// One of them.
#[derive(Clone, Copy)]
pub struct Trouble {
    /// Its name.
    pub name: &'static str,
    /// What it is about, in one sentence.
    pub about: &'static str,
    /// Whether Palisade is denied something: on purpose, or by an API server that has just started and does not know the roles yet.
    pub denies: bool,
    tell: for<'a> fn(&'a mut LabWorld) -> LocalBoxFuture<'a, Told>,
}

impl Trouble {
    /// Tells it.
    pub async fn tell(&self, world: &mut LabWorld) -> Told {
        (self.tell)(world).await
    }
}

macro_rules! troubles {
    ($($name:ident, denies $denies:literal: $about:literal;)+) => {
        /// All of them.
        pub const TROUBLES: &[Trouble] = &[$(Trouble {
            name: stringify!($name),
            about: $about,
            denies: $denies,
            tell: |world| Box::pin($name(world)),
        }),+];
    };
}

troubles! {
    leader_dies_with_its_node, denies false: "of the Deployment's two replicas the one that leads dies with its node";
    api_server_restarts, denies true: "the API server is restarted in the middle of a fence";
    etcd_restarts, denies true: "etcd is restarted between the mark and the removal";
    controller_manager_away, denies false: "the controller manager is down while a node dies";
    containerd_away, denies false: "containerd does not answer for a while";
    san_full, denies false: "the SAN has no room for another byte while a node dies";
    kubeconfig_wrong, denies false: "an operator is started with a kubeconfig that is wrong";
    right_taken_away, denies true: "somebody takes the right to delete pods away";
}

/// The API server goes down right after the machine was told off, and comes back. The fence goes on where it stood.
async fn api_server_restarts(world: &mut LabWorld) -> Told {
    let home = database(world).await?;
    world.power_off(&home).await?;
    comes_to(world, &home, FencePhase::Isolating).await?;
    world.api_down().await?;
    world.run_for(3).await;
    world.api_up().await?;
    moved_and_clean(world, &home).await
}

/// etcd goes down between mark and removal, which is where half a release would be. What was acknowledged is still there.
async fn etcd_restarts(world: &mut LabWorld) -> Told {
    let home = database(world).await?;
    let uid = world.uid_of("db-0");
    world.power_off(&home).await?;
    release_comes_to(world, &home, ReleaseState::Marked).await?;
    world.part(Part::Etcd, false).await?;
    world.run_for(5).await;
    world.part(Part::Etcd, true).await?;
    moved_and_clean(world, &home).await?;
    expect(world.uid_of("db-0") != uid, "the old pod is gone")
}

/// Without a controller manager nobody says NotReady, nobody makes a new pod and nobody detaches a volume. The node is fenced and
/// its pod released all the same, the attachment is taken away by hand, and the database runs when the controller manager is back.
async fn controller_manager_away(world: &mut LabWorld) -> Told {
    let home = database(world).await?;
    world.part(Part::ControllerManager, false).await?;
    world.power_off(&home).await?;
    world.run_until(60, "db-0 is released", |world| world.pod("db-0").is_none()).await?;
    expect(world.power_of(&home) == Power::Off, "the machine is off")?;
    let detached = |world: &dyn Look| world.release_of(&home, "db-0") == Some(ReleaseState::Detached);
    world.run_until(90, "its volume is detached without the controller manager", detached).await?;
    world.part(Part::ControllerManager, true).await?;
    moved_and_clean(world, &home).await
}

/// containerd hangs for forty seconds: the node is not Ready for a moment, and its pods go on. That is no reason to switch off a
/// machine whose lease is renewed.
async fn containerd_away(world: &mut LabWorld) -> Told {
    let home = database(world).await?;
    let uid = world.uid_of("db-0");
    world.hang_containerd(&home, true)?;
    let stays = |world: &dyn Look| world.uid_of("db-0") == uid && world.power_of(&home) == Power::On;
    let held = world.hold_for(40, "the database stays where it is", stays).await;
    let writes = world.run_until(10, "it writes", |world| world.writers_of(DATA) == [home.clone()]).await;
    world.hang_containerd(&home, false)?;
    held.and(writes.map(drop))?;
    clean(world, &home, 120).await?;
    expect(world.commands_to(&home).is_empty(), "nothing was sent to the BMC")?;
    expect(world.uid_of("db-0") == uid && world.boots_of(&home) == 1, "the database went on all the time")
}

/// The SAN is full when the database has to move. The node is fenced and the pod released all the same; when there is room again
/// the database runs elsewhere, and the node is back.
async fn san_full(world: &mut LabWorld) -> Told {
    let home = database(world).await?;
    world.fill_san(true)?;
    world.power_off(&home).await?;
    let released = release_comes_to(world, &home, ReleaseState::Removed).await;
    world.run_for(20).await;
    world.fill_san(false)?;
    released?;
    moved_and_clean(world, &home).await
}

/// A kubeconfig that names nobody, nothing or no server: the operator says which file and what is wrong with it, and the one
/// beside it is not disturbed.
async fn kubeconfig_wrong(world: &mut LabWorld) -> Told {
    let home = database(world).await?;
    let papers = Papers::of(world.lab().run());
    let stranger = papers.write_kubeconfig("stranger", "not-a-token").map_err(broken)?;
    let text = std::fs::read_to_string(&stranger).map_err(|why| Broken(why.to_string()))?;
    let nowhere = stranger.with_file_name("nowhere.kubeconfig");
    let moved_away = text.replace(":6443", ":6442");
    std::fs::write(&nowhere, moved_away).map_err(|why| Broken(why.to_string()))?;
    let missing = stranger.with_file_name("missing.kubeconfig");
    let cases = [
        ("stranger", &stranger, "does not know us (401)"),
        ("nowhere", &nowhere, "6442"),
        ("missing", &missing, "missing.kubeconfig"),
    ];
    for (name, file, words) in cases {
        world.says_with(name, file, words).await?;
    }
    world.power_off(&home).await?;
    moved_and_clean(world, &home).await
}

/// Somebody takes the right to delete pods away. Palisade cuts the node off, finds that it may not go on, says which right it
/// lacks, and releases nothing; when it has the right again it goes on.
async fn right_taken_away(world: &mut LabWorld) -> Told {
    let home = database(world).await?;
    let client = world.lab().client().await.map_err(broken)?;
    let mut role = install::deploy().map_err(broken)?.into_iter().find(|object| object["kind"] == "ClusterRole");
    let Some(whole) = role.clone() else { return Err(Broken("deploy/palisade.yaml has no ClusterRole".to_owned())) };
    for rule in role.iter_mut().filter_map(|role| role["rules"].as_array_mut()).flatten() {
        if rule["resources"] == json!(["pods"]) {
            rule["verbs"] = json!(["list"]);
        }
    }
    objects::apply(&client, &role.unwrap_or_default()).await.map_err(broken)?;
    world.power_off(&home).await?;
    let told = |world: &dyn Look| world.was_told("Forbidden", names::POLICY_NAME);
    let lacking = world.run_until(90, "somebody is told which right is missing", told).await;
    let held = nothing_released(world, 20).await;
    objects::apply(&client, &whole).await.map_err(broken)?;
    lacking.and(held)?;
    moved(world, &home, 120).await?;
    clean(world, &home, 300).await.map(drop)
}

impl LabWorld {
    /// Takes a part of the control plane away, or gives it back.
    async fn part(&mut self, part: Part, there: bool) -> Told {
        let plane = self.lab().plane();
        if !there {
            return plane.kill(part).map_err(broken);
        }
        plane.start(part).map_err(broken)?;
        let client = self.lab().client().await.map_err(broken)?;
        self.lab().plane().wait(&client).await.map_err(broken)
    }

    fn hang_containerd(&self, node: &str, hung: bool) -> Told {
        self.lab().machine(node).map(|machine| machine.hang_containerd(hung)).map_err(broken)
    }

    fn fill_san(&self, full: bool) -> Told {
        self.lab().fill_san(full).map_err(broken)
    }

    /// An operator that is started with this file says these words.
    async fn says_with(&self, name: &str, kubeconfig: &std::path::Path, words: &str) -> Told {
        let lab = self.lab().clone();
        lab.start_operator(name, kubeconfig).map_err(broken)?;
        let daemon = lab.operator(name);
        let mut said = false;
        for _look in 0..150 {
            said = daemon.said().contains(words);
            if said {
                break;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        daemon.kill().map_err(broken)?;
        let file = kubeconfig.display();
        if said { Ok(()) } else { Err(Broken(format!("with {file} it never said {words:?}. {}", daemon.last_words()))) }
    }
}

#[allow(clippy::needless_pass_by_value, reason = "it stands in map_err")]
fn broken(why: anyhow::Error) -> Broken {
    Broken(format!("{why:#}"))
}
