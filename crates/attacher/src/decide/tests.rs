//! The table of decisions, one row per situation.

use serde_json::{Value, json};

use super::*;

const FINALIZER: &str = "external-attacher/d";

fn driver() -> Traits {
    Traits { name: "d".to_owned(), finalizer: FINALIZER.to_owned(), publishes_readonly: true, tells_writers: false }
}

fn read<T: serde::de::DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).unwrap()
}

/// A situation, which rows change from the usual one: just made, everything there, nothing written down.
struct Case {
    attachment: Value,
    volume: Option<Value>,
    node_id: Option<&'static str>,
    driver: Traits,
}

impl Case {
    fn new() -> Self {
        Self {
            attachment: json!({"metadata": {"name": "va"},
                "spec": {"attacher": "d", "nodeName": "n1", "source": {"persistentVolumeName": "pv"}}}),
            volume: Some(json!({"metadata": {"name": "pv", "finalizers": [FINALIZER]}, "spec": {
                "accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "v1"}}})),
            node_id: Some("id-1"),
            driver: driver(),
        }
    }

    /// Everything is written down: the driver may have been asked already.
    fn recorded() -> Self {
        let mut case = Self::new();
        case.attachment["metadata"]["finalizers"] = json!(["other", FINALIZER]);
        case.attachment["metadata"]["annotations"] = json!({NODE_ID: "id-1", VOLUME_HANDLE: "v1"});
        case
    }

    fn attached() -> Self {
        let mut case = Self::recorded();
        case.attachment["status"] = json!({"attached": true});
        case
    }

    fn deleting(mut self) -> Self {
        self.attachment["metadata"]["deletionTimestamp"] = "2026-03-01T12:00:00Z".into();
        self
    }

    fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    fn set(self, pointer: &str, value: Value) -> Self {
        self.with(|case| *place(&mut case.attachment, pointer) = value)
    }

    fn set_volume(self, pointer: &str, value: Value) -> Self {
        self.with(|case| *place(case.volume.as_mut().unwrap(), pointer) = value)
    }

    fn next(&self) -> Next {
        let volume: Option<PersistentVolume> = self.volume.clone().map(read);
        let facts = Facts { volume: volume.as_ref(), node_id: self.node_id, driver: &self.driver };
        decide(&read(self.attachment.clone()), facts)
    }

    /// The decision in a few words.
    fn says(&self) -> String {
        match self.next() {
            Next::Rest => "rest".to_owned(),
            Next::GuardVolume => "guard the volume".to_owned(),
            Next::Record(intent) => format!("record {} on {}", intent.volume_handle, intent.node_id),
            Next::Move(old, intent) => {
                format!("unpublish {} from {}, record {}", old.volume_handle, old.node_id, intent.node_id)
            }
            Next::Publish(publish) => format!("publish {} to {}", publish.volume_handle, publish.node_id),
            Next::Unpublish(old) => format!("unpublish {} from {}", old.volume_handle, old.node_id),
            Next::Blocked(obstacle) => format!("blocked: {obstacle}"),
        }
    }
}

fn place<'a>(value: &'a mut Value, pointer: &str) -> &'a mut Value {
    pointer.split('/').skip(1).fold(value, |value, key| &mut value[key.replace("~1", "/")])
}

#[test]
fn attach() {
    let deletion = json!("2026-03-01T12:00:00Z");
    let table = [
        (Case::new(), "record v1 on id-1"),
        (Case::recorded(), "publish v1 to id-1"),
        (Case::attached(), "rest"),
        // The order: the volume is kept from going away before anything is written about it.
        (Case::new().set_volume("/metadata/finalizers", json!([])), "guard the volume"),
        (Case::recorded().set_volume("/metadata/finalizers", json!(["other"])), "guard the volume"),
        // Half of what has to be written down is not enough.
        (Case::recorded().set("/metadata/finalizers", json!(["other"])), "record v1 on id-1"),
        (Case::recorded().set("/metadata/annotations", json!({NODE_ID: "id-1"})), "record v1 on id-1"),
        (Case::recorded().set("/metadata/annotations", json!({VOLUME_HANDLE: "v1"})), "record v1 on id-1"),
        // The node came back under another ID: whatever the old one may have is taken away first.
        (Case::recorded().with(|case| case.node_id = Some("id-2")), "unpublish v1 from id-1, record id-2"),
        // Another volume has the object's name now: the same.
        (Case::recorded().set_volume("/spec/csi/volumeHandle", json!("v2")), "unpublish v1 from id-1, record id-1"),
        // Without our finalizer nothing was asked for the old one.
        (
            Case::recorded().set("/metadata/finalizers", json!([])).with(|case| case.node_id = Some("id-2")),
            "record v1 on id-2",
        ),
        // What has to be there is not.
        (Case::new().with(|case| case.volume = None), "blocked: there is no PersistentVolume pv"),
        (
            Case::new().set_volume("/metadata/deletionTimestamp", deletion),
            "blocked: PersistentVolume pv is being deleted",
        ),
        (Case::new().with(|case| case.node_id = None), "blocked: driver d is not registered on node n1 (CSINode)"),
        (Case::new().set_volume("/spec/csi/driver", json!("e")), "blocked: the volume belongs to driver e"),
        (Case::new().set_volume("/spec", json!({})), "blocked: the volume is not a CSI volume"),
        (
            Case::new().set("/spec/source", json!({})),
            "blocked: it has to name either a PersistentVolume or an inline volume",
        ),
        (
            Case::new().set_volume("/spec/accessModes", json!([])),
            "blocked: the PersistentVolume has no access mode that is known",
        ),
    ];
    for (case, expected) in table {
        assert_eq!(case.says(), expected, "{} {:?}", case.attachment, case.volume);
    }
}

#[test]
fn detach() {
    let table = [
        (Case::attached().deleting(), "unpublish v1 from id-1"),
        // A lost answer: nobody knows whether it was published.
        (Case::recorded().deleting(), "unpublish v1 from id-1"),
        // Never ours, or done with.
        (Case::new().deleting(), "rest"),
        (Case::attached().deleting().set("/metadata/finalizers", json!(["other"])), "rest"),
        // The node is gone: what was written down stands.
        (Case::attached().deleting().with(|case| case.node_id = None), "unpublish v1 from id-1"),
        // The node came back under another ID: the volume is still where it was published.
        (Case::attached().deleting().with(|case| case.node_id = Some("id-2")), "unpublish v1 from id-1"),
        // Attached by somebody who wrote nothing down.
        (Case::attached().deleting().set("/metadata/annotations", json!({})), "unpublish v1 from id-1"),
        (
            Case::attached().deleting().set("/metadata/annotations", json!({})).with(|case| case.node_id = None),
            "blocked: driver d is not registered on node n1 (CSINode)",
        ),
        // The PersistentVolume is being deleted, gone, or another one.
        (
            Case::attached().deleting().set_volume("/metadata/deletionTimestamp", json!("2026-03-01T12:00:00Z")),
            "unpublish v1 from id-1",
        ),
        (Case::attached().deleting().with(|case| case.volume = None), "unpublish v1 from id-1"),
        (Case::attached().deleting().set_volume("/spec/csi/volumeHandle", json!("v2")), "unpublish v1 from id-1"),
        (
            Case::attached()
                .deleting()
                .set("/metadata/annotations", json!({NODE_ID: "id-1"}))
                .with(|case| case.volume = None),
            "blocked: there is no PersistentVolume pv",
        ),
    ];
    for (case, expected) in table {
        assert_eq!(case.says(), expected, "{} {:?}", case.attachment, case.volume);
    }
}

#[test]
fn an_inline_volume_needs_no_object() {
    let inline =
        json!({"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "d", "volumeHandle": "v1"}}});
    let case = Case::recorded().set("/spec/source", inline.clone()).with(|case| case.volume = None);
    assert_eq!(case.says(), "publish v1 to id-1");
    let case = Case::attached().deleting().set("/spec/source", inline).with(|case| case.volume = None);
    assert_eq!(case.says(), "unpublish v1 from id-1");
}

#[test]
fn reading_only_is_asked_for_only_where_the_driver_knows_it() {
    let readonly = |knows| {
        let case = Case::recorded().set_volume("/spec/csi/readOnly", json!(true));
        match case.with(|case| case.driver.publishes_readonly = knows).next() {
            Next::Publish(publish) => publish.readonly,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((readonly(true), readonly(false)), (true, false));
}

#[test]
fn a_secret_is_named_on_both_ways() {
    let secret = json!({"namespace": "kube-system", "name": "array"});
    let named = Some(SecretName { namespace: "kube-system".to_owned(), name: "array".to_owned() });
    let with_secret = |case: Case| case.set_volume("/spec/csi/controllerPublishSecretRef", secret.clone());
    match with_secret(Case::recorded()).next() {
        Next::Publish(publish) => assert_eq!(publish.secret, named),
        other => panic!("{other:?}"),
    }
    match with_secret(Case::attached().deleting()).next() {
        Next::Unpublish(unpublish) => assert_eq!(unpublish.secret, named),
        other => panic!("{other:?}"),
    }
}
