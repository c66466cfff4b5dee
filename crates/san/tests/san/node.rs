//! What happens on a node: real bind mounts, so these need root. Without it they say so, and test nothing.

use std::fs;
use std::path::PathBuf;

use palisade_csi::messages::controller::ControllerPublishVolumeRequest;
use palisade_csi::messages::node::{
    NodeGetInfoRequest, NodeGetVolumeStatsRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest,
};
use palisade_csi::messages::volume::{Mode, VolumeCapability};
use palisade_csi::{Client, Code, Request};
use palisade_san::What;

use crate::world::{PATIENCE, World, publish};

/// A volume v, and n1, on which it can be mounted.
struct OnNode {
    world: World,
    node: Client,
    staging: PathBuf,
    target: PathBuf,
}

impl OnNode {
    /// None without root: then nothing can be mounted.
    async fn new(test: &str) -> Option<Self> {
        let mut world = World::new().await;
        if !may_mount(&world) {
            eprintln!("SKIPPED, NOTHING WAS TESTED: {test} mounts directories, and for that it has to run as root");
            return None;
        }
        let node = world.node("n1").await;
        world.volume("v").await;
        let (staging, target) = (world.dir.join("staging"), world.dir.join("pod/target"));
        fs::create_dir_all(&staging).unwrap();
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        Some(Self { world, node, staging, target })
    }

    fn stage(&self) -> NodeStageVolumeRequest {
        NodeStageVolumeRequest {
            volume_id: "v".to_owned(),
            staging_target_path: self.staging.display().to_string(),
            volume_capability: Some(VolumeCapability::mount(Mode::SingleNodeWriter)),
            ..NodeStageVolumeRequest::default()
        }
    }

    fn give(&self, readonly: bool) -> NodePublishVolumeRequest {
        NodePublishVolumeRequest {
            volume_id: "v".to_owned(),
            staging_target_path: self.staging.display().to_string(),
            target_path: self.target.display().to_string(),
            volume_capability: Some(VolumeCapability::mount(Mode::SingleNodeWriter)),
            readonly,
            ..NodePublishVolumeRequest::default()
        }
    }

    fn take(&self) -> NodeUnpublishVolumeRequest {
        let target_path = self.target.display().to_string();
        NodeUnpublishVolumeRequest { volume_id: "v".to_owned(), target_path }
    }

    fn unstage(&self) -> NodeUnstageVolumeRequest {
        let staging_target_path = self.staging.display().to_string();
        NodeUnstageVolumeRequest { volume_id: "v".to_owned(), staging_target_path }
    }

    async fn ask<R: Request>(&self, request: R) -> R::Reply {
        self.node.call(request, PATIENCE).await.unwrap()
    }

    async fn refused<R: Request>(&self, request: R) -> (Code, String) {
        let why = self.node.call(request, PATIENCE).await.expect_err("it should be refused");
        (why.code(), why.message().to_owned())
    }
}

impl Drop for OnNode {
    fn drop(&mut self) {
        for path in [&self.target, &self.staging] {
            // Never leave a mount over which the test's directory is removed: the data would go with it.
            let _ = std::process::Command::new("umount").arg("-q").arg("-l").arg(path).status();
        }
    }
}

/// Whether this process may mount: asked of the system, not guessed from a user ID.
fn may_mount(world: &World) -> bool {
    let (from, to) = (world.dir.join("from"), world.dir.join("to"));
    fs::create_dir_all(&from).unwrap();
    fs::create_dir_all(&to).unwrap();
    let mounted = std::process::Command::new("mount").arg("--bind").args([&from, &to]).output();
    let may = mounted.is_ok_and(|output| output.status.success());
    if may {
        assert!(std::process::Command::new("umount").arg(&to).status().unwrap().success());
    }
    may
}

#[tokio::test]
async fn a_volume_is_staged_given_and_taken_away_again() {
    let Some(on) = OnNode::new("a_volume_is_staged_given_and_taken_away_again").await else { return };
    on.world.publish("v", "n1").await;
    assert_eq!(on.ask(NodeGetInfoRequest {}).await.node_id, "n1");
    for _ in 0..2 {
        on.ask(on.stage()).await;
        on.ask(on.give(false)).await;
    }
    fs::write(on.target.join("file"), "written by a pod").unwrap();
    assert_eq!(fs::read_to_string(on.world.san().join("volumes/v/file")).unwrap(), "written by a pod");
    let asked = NodeGetVolumeStatsRequest {
        volume_id: "v".to_owned(),
        volume_path: on.target.display().to_string(),
        staging_target_path: String::new(),
    };
    assert_eq!(on.ask(asked.clone()).await.usage.len(), 2);
    for _ in 0..2 {
        on.ask(on.take()).await;
        on.ask(on.unstage()).await;
    }
    assert!(!on.target.exists() && on.staging.exists());
    assert!(fs::read_dir(&on.staging).unwrap().next().is_none());
    assert_eq!(on.refused(asked).await.0, Code::NotFound);
    let node = Some("n1".to_owned());
    let done = [What::Published, What::Staged, What::Mounted, What::Unmounted, What::Unstaged];
    let expected: Vec<_> = done.into_iter().map(|what| (what, node.clone())).collect();
    assert_eq!(on.world.history("v")[1..], expected);
}

#[tokio::test]
async fn a_node_that_a_volume_is_not_published_to_does_not_get_it() {
    let Some(on) = OnNode::new("a_node_that_a_volume_is_not_published_to_does_not_get_it").await else { return };
    on.world.publish("v", "n2").await;
    let (code, why) = on.refused(on.stage()).await;
    assert_eq!(code, Code::FailedPrecondition);
    assert_eq!(why, "v is not published to node n1: the SAN does not show it here");
    assert_eq!(on.world.history("v").last(), Some(&(What::Refused, Some("n1".to_owned()))));
    // Staged while it was ours: given to no workload once it is not.
    on.world.unpublish("v", "n2").await;
    on.world.publish("v", "n1").await;
    on.ask(on.stage()).await;
    on.world.unpublish("v", "n1").await;
    assert_eq!(on.refused(on.give(false)).await.0, Code::FailedPrecondition);
    // But what is not ours any more can be let go of.
    on.ask(on.unstage()).await;
}

#[tokio::test]
async fn what_is_published_for_reading_cannot_be_written() {
    let Some(on) = OnNode::new("what_is_published_for_reading_cannot_be_written").await else { return };
    on.world.ask(ControllerPublishVolumeRequest { readonly: true, ..publish("v", "n1") }).await.unwrap();
    on.ask(on.stage()).await;
    on.ask(on.give(false)).await;
    for path in [&on.staging, &on.target] {
        let why = fs::write(path.join("file"), "no").unwrap_err();
        assert_eq!(why.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    }
}

#[tokio::test]
async fn a_workload_that_reads_only_does_not_make_others_do_so() {
    let Some(on) = OnNode::new("a_workload_that_reads_only_does_not_make_others_do_so").await else { return };
    on.world.publish("v", "n1").await;
    on.ask(on.stage()).await;
    on.ask(on.give(true)).await;
    assert!(fs::write(on.target.join("file"), "no").is_err());
    fs::write(on.staging.join("file"), "yes").unwrap();
    assert_eq!(on.refused(on.give(false)).await.0, Code::AlreadyExists);
}

#[tokio::test]
async fn a_mount_in_use_is_refused_in_plain_words() {
    let Some(on) = OnNode::new("a_mount_in_use_is_refused_in_plain_words").await else { return };
    on.world.publish("v", "n1").await;
    on.ask(on.stage()).await;
    on.ask(on.give(false)).await;
    let open = fs::File::create(on.target.join("open")).unwrap();
    let (code, why) = on.refused(on.take()).await;
    assert_eq!(code, Code::FailedPrecondition);
    assert!(why.ends_with("is in use by a process of this node: stop it first"), "{why}");
    drop(open);
    on.ask(on.take()).await;
}

#[tokio::test]
async fn what_lies_in_the_way_is_never_deleted() {
    let Some(on) = OnNode::new("what_lies_in_the_way_is_never_deleted").await else { return };
    fs::create_dir_all(&on.target).unwrap();
    fs::write(on.target.join("precious"), "data").unwrap();
    assert_eq!(on.refused(on.take()).await.0, Code::Internal);
    assert!(on.target.join("precious").exists());
}

#[tokio::test]
async fn a_request_that_says_too_little_is_invalid() {
    let Some(on) = OnNode::new("a_request_that_says_too_little_is_invalid").await else { return };
    on.world.publish("v", "n1").await;
    let (id, path) = (String::new(), String::new());
    assert_eq!(
        on.refused(NodeStageVolumeRequest { volume_id: id.clone(), ..on.stage() }).await.0,
        Code::InvalidArgument
    );
    assert_eq!(
        on.refused(NodeStageVolumeRequest { volume_capability: None, ..on.stage() }).await.0,
        Code::InvalidArgument
    );
    let unstaged = NodePublishVolumeRequest { staging_target_path: path.clone(), ..on.give(false) };
    assert_eq!(on.refused(unstaged).await.0, Code::InvalidArgument);
    assert_eq!(on.refused(on.give(false)).await.0, Code::FailedPrecondition, "not staged");
    assert_eq!(
        on.refused(NodeUnpublishVolumeRequest { target_path: path, ..on.take() }).await.0,
        Code::InvalidArgument
    );
    assert_eq!(on.refused(NodeUnstageVolumeRequest { volume_id: id, ..on.unstage() }).await.0, Code::InvalidArgument);
    let unknown = NodeStageVolumeRequest { volume_id: "nothing".to_owned(), ..on.stage() };
    assert_eq!(on.refused(unknown).await.0, Code::NotFound);
}
