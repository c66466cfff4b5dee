//! Golden cases of release: who may go and why the others stay, then mark, verify, remove and detach.

use palisade_core::reason::release::KeepReason;
use palisade_core::release::{Lane, may_go, plan};

use crate::golden::{Fact, Room};
use crate::world::{self, show};

/// Reasons to keep a pod that another file than the pod lane's shows.
const SHOWN_ELSEWHERE: [&str; 5] = ["Paced", "GroupHeld", "DaemonSet", "StaticPod", "HeldByFinalizer"];

pub fn rooms() -> Vec<Room> {
    let room =
        |files, run, words: &[&str]| Room { files, run, must_show: words.iter().map(|w| (*w).to_owned()).collect() };
    let pod_lane: Vec<&str> =
        KeepReason::NAMES.iter().copied().filter(|name| !SHOWN_ELSEWHERE.contains(name)).collect();
    vec![
        room(
            "release/node_lane",
            planned,
            &[
                "go",
                "Node",
                "NoController",
                "DaemonSet",
                "StaticPod",
                "Completed",
                "LocalVolume",
                "AfterTaint",
                "HeldByFinalizer",
            ],
        ),
        room("release/pod_lane", planned, &[&["go", "Pod"], &pod_lane[..]].concat()),
        room("release/groups", planned, &["go", "GroupHeld"]),
        room("release/pace", planned, &["go", "Paced", "DisruptionBudget"]),
        room(
            "release/steps",
            world::run,
            &[
                "QuarantineIntended",
                "ReleaseIntended",
                "PodMarked",
                "PodGone",
                "Unpublished",
                "MarkPod",
                "RemovePod",
                "Unpublish",
                "ReadBack",
                "AwaitingMark",
                "AwaitingReadBack",
                "KubeletContradicts",
                "GroupJoined",
            ],
        ),
        room(
            "release/detach",
            world::run,
            &[
                "DetachIntended",
                "VolumesOut",
                "PodDetached",
                "DetachForbidden",
                "DetachVolumes",
                "TouchNode",
                "DeleteAttachment",
                "AwaitingDetach",
                "DriverRefuses",
            ],
        ),
        room(
            "release/out_of_service",
            world::run,
            &["OutOfServiceIntended", "OutOfServiceLifted", "OutOfService", "LiftOutOfService", "AwaitingTaint"],
        ),
    ]
}

/// The batch that may go now, and why each other pod stays.
fn planned(facts: &mut Vec<Fact>) -> Result<Vec<String>, String> {
    let world = world::read(facts)?;
    let pods = world.seen.pods.clone().unwrap_or_default();
    let made = plan(&world.fence, &pods, &world.seen);
    let mut lines = Vec::new();
    for release in &made.start {
        let pod = pods.iter().find(|pod| pod.pod.uid == release.pod.uid);
        let lane = pod.and_then(|pod| may_go(&world.fence, pod, &world.seen).ok());
        let lane = lane.map_or("none", |(lane, _)| match lane {
            Lane::Node => "Node",
            Lane::Pod => "Pod",
        });
        lines.push(format!("go by the {lane} lane: {}", show::release(release)));
    }
    lines.extend(made.kept.iter().map(|kept| format!("keep {}: {}", kept.pod, kept.why.brief())));
    Ok(lines)
}
