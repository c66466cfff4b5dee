//! I1: at no instant can two nodes write to a volume that is not ReadWriteMany, and no write from before reaches a volume that
//! another node has had since.
//!
//! We are charged if an act of ours took the volume from a node before; Kubernetes alone breaks this promise in some worlds.

use std::collections::BTreeMap;
use std::time::Duration;

use palisade_cluster::truth::{Event, Name, What, World};

use super::Seen;

/// When each node was last given a volume.
#[derive(Default)]
pub(super) struct Given(BTreeMap<(Name, Name), Duration>);

pub(super) fn event(seen: &mut Seen, world: &World, event: &Event) {
    // Nobody becomes the second writer without becoming a writer.
    let more = matches!(event.what, What::CanWrite { .. });
    for volume in more.then(|| world.volumes_with_two_writers()).into_iter().flatten() {
        let who: Vec<String> =
            world.writers(&volume).iter().map(|writer| format!("{} (pod {})", writer.node, writer.pod)).collect();
        charge(seen, &volume, format!("I1: {volume} has two writers: {}", who.join(", ")));
    }
    match &event.what {
        What::CanWrite { volume, writer } => {
            seen.writers.0.insert((Name::clone(volume), Name::clone(&writer.node)), world.now);
        }
        What::Flushed { volume, writer, since } => {
            let later = |(key, at): (&(Name, Name), &Duration)| key.0 == *volume && key.1 != writer.node && at > since;
            let shared = world.storage.volumes.get(volume).is_some_and(|volume| volume.many_nodes);
            if !shared && seen.writers.0.iter().any(later) {
                charge(seen, volume, format!("I1: a write of {} from {since:?} reached {volume}", writer.node));
            }
        }
        _ => {}
    }
}

fn charge(seen: &mut Seen, volume: &Name, what: String) {
    if seen.moved.contains(volume) {
        seen.broken(what);
    } else if !seen.unexplained.contains(&what) {
        seen.unexplained.push(what);
    }
}
