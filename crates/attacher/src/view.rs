//! View: what the watches saw, and whom a change concerns.
//!
//! Promise: what we wrote ourselves is not forgotten for an older event that is still on its way. What an object *means* for us
//! is told from what merely changed on it: our own notes about a failure wake nobody.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::PersistentVolume;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Resource, ResourceExt};

use crate::names::{NODE_ID, VOLUME_HANDLE};

/// What was seen of one kind.
#[derive(Debug)]
pub(crate) enum Change<K> {
    /// These are all.
    All(Vec<K>),
    /// This one is so now.
    Set(K),
    /// This one is gone.
    Gone(K),
}

/// Where a driver is on a node, as the CSINode has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NodeEntry {
    pub(crate) node: String,
    pub(crate) node_id: Option<String>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct View {
    pub(crate) attachments: BTreeMap<String, VolumeAttachment>,
    pub(crate) volumes: BTreeMap<String, PersistentVolume>,
    pub(crate) node_ids: BTreeMap<String, String>,
}

/// Whom news concern.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Concerned {
    /// Attachments that changed themselves.
    pub(crate) changed: Vec<String>,
    /// Attachments around which something changed.
    pub(crate) attachments: Vec<String>,
    /// PersistentVolumes.
    pub(crate) volumes: Vec<String>,
    /// Attachments that are gone.
    pub(crate) gone: Vec<String>,
}

impl View {
    /// Takes in an attachment that was read or written. Older than what is known: left aside. Says whether it means anything
    /// new.
    pub(crate) fn put(&mut self, attachment: &VolumeAttachment) -> bool {
        let name = attachment.name_any();
        match self.attachments.get(&name) {
            Some(known) if version(known) > version(attachment) => false,
            Some(known) => {
                let new = meaning(known) != meaning(attachment);
                self.attachments.insert(name, attachment.clone());
                new
            }
            None => {
                self.attachments.insert(name, attachment.clone());
                true
            }
        }
    }

    /// Whether something later is known of an attachment than this, and means something else.
    pub(crate) fn knows_better(&self, attachment: &VolumeAttachment) -> bool {
        let known = self.attachments.get(&attachment.name_any());
        known.is_some_and(|known| version(known) > version(attachment) && meaning(known) != meaning(attachment))
    }

    /// Takes in what was seen of attachments.
    pub(crate) fn attachments(&mut self, change: Change<VolumeAttachment>) -> Concerned {
        let mut concerned = Concerned::default();
        match change {
            Change::Set(attachment) => {
                if self.put(&attachment) {
                    concerned.changed.push(attachment.name_any());
                }
            }
            Change::Gone(attachment) => self.drop_attachment(&attachment.name_any(), &mut concerned),
            Change::All(all) => {
                let mut before = std::mem::take(&mut self.attachments);
                for attachment in all {
                    let name = attachment.name_any();
                    let known = before.remove(&name);
                    if known.is_none_or(|known| meaning(&known) != meaning(&attachment)) {
                        concerned.changed.push(name.clone());
                    }
                    self.attachments.insert(name, attachment);
                }
                for name in before.into_keys() {
                    concerned.gone.push(name);
                }
                // A volume that waited for the last of its attachments may have missed its end.
                concerned.volumes =
                    self.volumes.values().filter(|volume| goes(volume)).map(ResourceExt::name_any).collect();
            }
        }
        concerned
    }

    fn drop_attachment(&mut self, name: &str, concerned: &mut Concerned) {
        let Some(gone) = self.attachments.remove(name) else { return };
        concerned.gone.push(name.to_owned());
        if let Some(volume) = gone.spec.source.persistent_volume_name {
            // Whoever could not have the volume may have it now.
            concerned.attachments =
                self.waiting(|one| one.spec.source.persistent_volume_name.as_deref() == Some(&*volume));
            concerned.volumes.push(volume);
        }
    }

    /// Takes in what was seen of PersistentVolumes.
    pub(crate) fn volumes(&mut self, change: Change<PersistentVolume>) -> Concerned {
        let mut changed = BTreeSet::new();
        match change {
            Change::Set(volume) => {
                let name = volume.name_any();
                let known = self.volumes.get(&name);
                if known.is_none_or(|known| volume_meaning(known) != volume_meaning(&volume)) {
                    changed.insert(name.clone());
                }
                self.volumes.insert(name, volume);
            }
            Change::Gone(volume) => {
                let name = volume.name_any();
                self.volumes.remove(&name);
                changed.insert(name);
            }
            Change::All(all) => {
                self.volumes = all.into_iter().map(|volume| (volume.name_any(), volume)).collect();
                changed.extend(self.volumes.keys().cloned());
            }
        }
        let of = |one: &VolumeAttachment| {
            one.spec.source.persistent_volume_name.as_ref().is_some_and(|volume| changed.contains(volume))
        };
        Concerned { attachments: self.waiting(of), volumes: changed.into_iter().collect(), ..Concerned::default() }
    }

    /// Takes in what was seen of CSINodes.
    pub(crate) fn nodes(&mut self, change: Change<NodeEntry>) -> Concerned {
        let mut changed = BTreeSet::new();
        match change {
            Change::Set(entry) => {
                if self.node_ids.get(&entry.node) != entry.node_id.as_ref() {
                    changed.insert(entry.node.clone());
                }
                self.set_node(entry);
            }
            Change::Gone(entry) => {
                self.node_ids.remove(&entry.node);
                changed.insert(entry.node);
            }
            Change::All(all) => {
                self.node_ids.clear();
                changed.extend(all.iter().map(|entry| entry.node.clone()));
                for entry in all {
                    self.set_node(entry);
                }
            }
        }
        let attachments = self.waiting(|one| changed.contains(&one.spec.node_name));
        Concerned { attachments, ..Concerned::default() }
    }

    fn set_node(&mut self, entry: NodeEntry) {
        match entry.node_id {
            Some(id) => drop(self.node_ids.insert(entry.node, id)),
            None => drop(self.node_ids.remove(&entry.node)),
        }
    }

    /// The attachments that are meant and not as they should be.
    fn waiting(&self, meant: impl Fn(&VolumeAttachment) -> bool) -> Vec<String> {
        let waiting = self.attachments.values().filter(|one| !is_settled(one) && meant(one));
        waiting.map(ResourceExt::name_any).collect()
    }
}

/// Attached, and nobody wants it otherwise.
fn is_settled(attachment: &VolumeAttachment) -> bool {
    let attached = attachment.status.as_ref().is_some_and(|status| status.attached);
    attached && attachment.metadata.deletion_timestamp.is_none()
}

/// Whether a PersistentVolume is being deleted.
pub(crate) fn goes(volume: &PersistentVolume) -> bool {
    volume.metadata.deletion_timestamp.is_some()
}

/// What decisions depend on, of an attachment. Neither errors nor versions are among it.
pub(crate) fn meaning(attachment: &VolumeAttachment) -> impl PartialEq + '_ {
    let annotations = attachment.annotations();
    (
        attachment.metadata.uid.as_deref(),
        attachment.metadata.deletion_timestamp.is_some(),
        attachment.finalizers(),
        (annotations.get(NODE_ID), annotations.get(VOLUME_HANDLE)),
        attachment.status.as_ref().is_some_and(|status| status.attached),
        &attachment.spec,
    )
}

/// The same of a PersistentVolume. Finalizers are not among it: ours is of our own making.
fn volume_meaning(volume: &PersistentVolume) -> impl PartialEq + '_ {
    (volume.metadata.uid.as_deref(), goes(volume), &volume.spec)
}

/// Which of two versions of one object is the later one. Not to be relied on for more than what was there first.
fn version<K: Resource>(object: &K) -> u64 {
    object.meta().resource_version.as_deref().and_then(|version| version.parse().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn attachment(name: &str, version: &str, change: impl FnOnce(&mut Value)) -> VolumeAttachment {
        let mut value = json!({"metadata": {"name": name, "resourceVersion": version},
            "spec": {"attacher": "d", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}});
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    fn volume(change: impl FnOnce(&mut Value)) -> PersistentVolume {
        let mut value = json!({"metadata": {"name": "pv"}, "spec": {}});
        change(&mut value);
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn our_own_note_of_a_failure_wakes_nobody_and_a_deletion_does() {
        let mut view = View::default();
        let seen = |view: &mut View, one| view.attachments(Change::Set(one)).changed;
        assert_eq!(seen(&mut view, attachment("a", "1", |_| {})), ["a"]);
        let error = |value: &mut Value| value["status"] = json!({"attached": false, "attachError": {"message": "no"}});
        assert!(seen(&mut view, attachment("a", "2", error)).is_empty());
        let deleted = |value: &mut Value| value["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
        assert_eq!(seen(&mut view, attachment("a", "3", deleted)), ["a"]);
    }

    #[test]
    fn an_old_event_does_not_undo_what_we_know_better() {
        let mut view = View::default();
        let done = |value: &mut Value| value["status"] = json!({"attached": true});
        view.put(&attachment("a", "9", done));
        assert!(view.attachments(Change::Set(attachment("a", "8", |_| {}))).changed.is_empty());
        assert_eq!(view.attachments["a"].resource_version().as_deref(), Some("9"));
        // But a new list is the truth, whatever its numbers: a cluster may have been restored.
        assert_eq!(view.attachments(Change::All(vec![attachment("a", "8", |_| {})])).changed, ["a"]);
    }

    #[test]
    fn a_volume_that_comes_free_wakes_who_waits_for_it() {
        let mut view = View::default();
        let done = |value: &mut Value| value["status"] = json!({"attached": true});
        view.put(&attachment("old", "1", done));
        view.put(&attachment("new", "2", |_| {}));
        view.put(&attachment("else", "3", |value| value["spec"]["source"]["persistentVolumeName"] = "other".into()));
        let concerned = view.attachments(Change::Gone(attachment("old", "4", done)));
        let expected = Concerned {
            changed: vec![],
            attachments: vec!["new".to_owned()],
            volumes: vec!["pv".to_owned()],
            gone: vec!["old".to_owned()],
        };
        assert_eq!(concerned, expected);
    }

    #[test]
    fn volumes_and_nodes_wake_only_who_is_not_attached() {
        let mut view = View::default();
        let done = |value: &mut Value| value["status"] = json!({"attached": true});
        view.put(&attachment("attached", "1", done));
        view.put(&attachment("waits", "2", |_| {}));
        assert_eq!(view.volumes(Change::Set(volume(|_| {}))).attachments, ["waits"]);
        let guarded = |value: &mut Value| value["metadata"]["finalizers"] = json!(["f"]);
        assert!(view.volumes(Change::Set(volume(guarded))).attachments.is_empty());
        let entry = |id: &str| NodeEntry { node: "n1".to_owned(), node_id: Some(id.to_owned()) };
        assert_eq!(view.nodes(Change::Set(entry("id-1"))).attachments, ["waits"]);
        assert!(view.nodes(Change::Set(entry("id-1"))).attachments.is_empty());
        assert_eq!(view.nodes(Change::Set(entry("id-2"))).attachments, ["waits"]);
        assert_eq!(view.node_ids["n1"], "id-2");
    }
}
