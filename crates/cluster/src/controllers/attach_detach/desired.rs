//! Attach/detach / desired: which volume which node should have, from the pods.

use std::collections::{BTreeMap, BTreeSet};

use super::{Place, place_of};
use crate::{
    api::{Change, Key, Kind, metadata},
    nature::Ctx,
    objects::{annotation, is_finished, items, text},
    volumes::{self, PodVolume},
};

/// Only nodes that say so are served; kubelets say so by default.
const MANAGED: &str = "volumes.kubernetes.io/controller-managed-attach-detach";

#[derive(Default)]
pub(super) struct Desired {
    started: bool,
    changed: BTreeSet<Key>,
    /// Pods with a claim that is not bound, or on a node that is not served yet.
    open: BTreeSet<Key>,
    pods: BTreeMap<Key, Vec<(Place, PodVolume)>>,
    /// Who wants what where.
    wanted: BTreeMap<Place, (PodVolume, BTreeSet<Key>)>,
}

impl Desired {
    pub(super) fn notice_pod(&mut self, change: &Change) -> bool {
        let ends = change.new.as_ref().is_none_or(|pod| is_over(pod));
        let known = self.pods.contains_key(&change.key) || self.open.contains(&change.key);
        let bound = change.new.as_ref().is_some_and(|pod| !text(pod, "/spec/nodeName").is_empty());
        let matters = if known { ends } else { bound && !ends };
        matters && self.changed.insert(change.key.clone())
    }

    pub(super) fn has_open_ends(&self) -> bool {
        !self.open.is_empty()
    }

    pub(super) fn wants(&self, place: &Place) -> bool {
        self.wanted.contains_key(place)
    }

    pub(super) fn all(&self) -> Vec<(Place, PodVolume)> {
        self.wanted.iter().map(|(place, (volume, _))| (place.clone(), volume.clone())).collect()
    }

    pub(super) fn pods_at(&self, place: &Place) -> impl Iterator<Item = &Key> {
        self.wanted.get(place).into_iter().flat_map(|(_, pods)| pods)
    }

    pub(super) fn refresh(&mut self, ctx: &Ctx<'_>) {
        if !std::mem::replace(&mut self.started, true) {
            let bound = ctx.index.nodes_with_pods().filter(|node| !node.is_empty());
            self.changed.extend(bound.flat_map(|node| ctx.index.pods_on(node)).cloned());
        }
        let mut changed = std::mem::take(&mut self.changed);
        changed.append(&mut self.open);
        for key in changed {
            self.look_at(key, ctx);
        }
    }

    fn look_at(&mut self, key: Key, ctx: &Ctx<'_>) {
        for (place, _) in self.pods.remove(&key).unwrap_or_default() {
            if let Some((_, pods)) = self.wanted.get_mut(&place) {
                pods.remove(&key);
                if pods.is_empty() {
                    self.wanted.remove(&place);
                }
            }
        }
        // One that is bound to nobody yet is noticed when it is; among the open ends its binding would be missed.
        let bound = |pod: &serde_json::Value| !text(pod, "/spec/nodeName").is_empty();
        let Some(pod) = ctx.api.get(&key).filter(|pod| bound(pod) && !is_over(pod)) else { return };
        let node = ctx.api.get(&Key::cluster(Kind::NODE, text(&pod, "/spec/nodeName")));
        let served = node.is_some_and(|node| annotation(&node, MANAGED) == "true");
        let Some(volumes) = ctx.api.read(|store| volumes::of_pod(store, &pod)).filter(|_| served) else {
            self.open.insert(key);
            return;
        };
        let places: Vec<(Place, PodVolume)> = volumes
            .into_iter()
            .filter(|volume| volume.attachable)
            .map(|volume| (place_of(&volume, &pod), volume))
            .collect();
        for (place, volume) in &places {
            let wanted = self.wanted.entry(place.clone()).or_insert_with(|| (volume.clone(), BTreeSet::new()));
            wanted.1.insert(key.clone());
        }
        self.pods.insert(key, places);
    }
}

/// Upstream's `IsPodTerminated`: it ended, or it is being deleted and none of its containers runs, as far as its status
/// says. One whose status says nothing of its containers is over with the mark.
fn is_over(pod: &serde_json::Value) -> bool {
    let runs = |status: &serde_json::Value| {
        status.pointer("/state/terminated").is_none() && status.pointer("/state/waiting").is_none()
    };
    is_finished(pod) || (metadata::is_deleting(pod) && !items(pod, "/status/containerStatuses").any(runs))
}
