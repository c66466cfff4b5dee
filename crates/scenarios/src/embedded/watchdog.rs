//! Embedded / watchdog: looks on at every event of nature, and notes when two nodes could write to one volume.
//!
//! Promise (I1): no instant is missed, since nobody becomes the second writer without the event that makes it one, and the truth
//! is looked at inside that event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use palisade_cluster::Cluster;
use palisade_cluster::truth::{Event, Name, What, World};

/// What was seen.
#[derive(Clone, Default)]
pub(super) struct Watchdog {
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    bites: Vec<String>,
    /// When each node was last given a volume.
    given: BTreeMap<(Name, Name), Duration>,
}

impl Watchdog {
    /// A watchdog that looks on from now on.
    pub(super) fn over(cluster: &Cluster) -> Self {
        let dog = Self::default();
        let looks = dog.clone();
        cluster.truth().on_event(Box::new(move |world, event| looks.look(world, event)));
        dog
    }

    /// Everything that must not have been.
    pub(super) fn bites(&self) -> Vec<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).bites.clone()
    }

    fn look(&self, world: &World, event: &Event) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &event.what {
            What::CanWrite { volume, writer } => {
                for volume in world.volumes_with_two_writers() {
                    let nodes: Vec<String> =
                        world.writers(&volume).iter().map(|writer| writer.node.to_string()).collect();
                    seen.note(format!("{:?}: {volume} could be written by {}", world.now, nodes.join(" and ")));
                }
                seen.given.insert((volume.clone(), writer.node.clone()), world.now);
            }
            What::Flushed { volume, writer, since } => {
                let later =
                    |(key, at): (&(Name, Name), &Duration)| key.0 == *volume && key.1 != writer.node && at > since;
                let shared = world.storage.volumes.get(volume).is_some_and(|volume| volume.many_nodes);
                if !shared && seen.given.iter().any(later) {
                    seen.note(format!("{:?}: a write of {} from {since:?} reached {volume}", world.now, writer.node));
                }
            }
            _ => {}
        }
    }
}

impl Seen {
    fn note(&mut self, bite: String) {
        // The first few tell the story.
        if self.bites.len() < 8 && self.bites.last() != Some(&bite) {
            self.bites.push(bite);
        }
    }
}
