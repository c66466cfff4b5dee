//! Attach/detach / memory: what this controller believes to be attached.

use std::{collections::BTreeMap, time::Duration};

use super::{BACKOFF, BACKOFF_LIMIT};
use crate::{
    api::{Key, Kind, metadata},
    nature::Ctx,
    objects::{items, text},
    truth::Name,
    volumes::{self, PodVolume},
};

/// A volume, by the name that Nodes list it under, on a node.
pub(super) type Place = (String, Name);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Idle,
    Attaching,
    Detaching,
}

/// A volume that is, or may be, attached to a node.
#[derive(Clone, Debug)]
pub(super) struct Attached {
    pub(super) attachment: Key,
    pub(super) op: Op,
    /// Whether it is certain.
    pub(super) confirmed: bool,
    /// Whether the node may read that it is attached.
    pub(super) reported: bool,
    /// Whether the node may have it mounted. Assumed until its status says otherwise.
    pub(super) mounted: bool,
    pub(super) unwanted_since: Option<Duration>,
    pub(super) retry_at: Duration,
    backoff: Duration,
}

impl Attached {
    pub(super) fn new(volume: &PodVolume, node: &str) -> Self {
        let name = volumes::attachment_name(&volume.handle, &volume.driver, node);
        Self {
            attachment: Key::cluster(Kind::VOLUME_ATTACHMENT, &name),
            op: Op::Idle,
            confirmed: false,
            reported: false,
            mounted: true,
            unwanted_since: None,
            retry_at: Duration::ZERO,
            backoff: BACKOFF,
        }
    }

    pub(super) fn succeeded(&mut self) {
        (self.op, self.confirmed, self.reported, self.backoff) = (Op::Idle, true, true, BACKOFF);
    }

    pub(super) fn failed(&mut self, now: Duration) {
        self.op = Op::Idle;
        self.retry_at = now + self.backoff;
        self.backoff = (self.backoff * 2).min(BACKOFF_LIMIT);
    }
}

/// What a controller that has just started can know: what Nodes say is attached, and the attachments as a hint.
pub(super) fn rebuild(ctx: &Ctx<'_>) -> BTreeMap<Place, Attached> {
    let mut attached = BTreeMap::new();
    ctx.api.read(|store| {
        let volumes: BTreeMap<String, PodVolume> = store
            .list(Kind::PERSISTENT_VOLUME)
            .filter_map(|(_, pv)| volumes::of_pv(store, pv))
            .map(|volume| (volume.unique.clone(), volume))
            .collect();
        for (_, node) in store.list(Kind::NODE) {
            let names = items(node, "/status/volumesAttached").map(|volume| text(volume, "/name"));
            for volume in names.filter_map(|name| volumes.get(name)) {
                let mut entry = Attached::new(volume, metadata::name(node));
                entry.succeeded();
                entry.mounted = items(node, "/status/volumesInUse").any(|name| name == volume.unique.as_str());
                attached.insert((volume.unique.clone(), metadata::name(node).into()), entry);
            }
        }
        for (_, attachment) in store.list(Kind::VOLUME_ATTACHMENT) {
            let pv = text(attachment, "/spec/source/persistentVolumeName");
            let node = text(attachment, "/spec/nodeName");
            if let Some(volume) = volumes.values().find(|volume| volume.pv == pv) {
                attached.entry((volume.unique.clone(), node.into())).or_insert_with(|| Attached::new(volume, node));
            }
        }
    });
    attached
}
