//! Patches: what we write, each with the preconditions under which it was decided. Pure.
//!
//! Promise (I4): each patch names the UID. Where a change could alter the decision it names the resourceVersion too; a
//! finalizer is taken away only from where it was seen.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::storage::v1::VolumeAttachment;
use kube::{Resource, ResourceExt};
use serde_json::{Value, json};

use crate::decide::Intent;
use crate::names::{NODE_ID, VOLUME_HANDLE};

/// The longest message that the API server takes, in bytes.
const LONGEST: usize = 1024;

/// Which error of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// On the way in.
    Attach,
    /// On the way out.
    Detach,
}

/// JSON patch: the intent is written down, and holds the attachment.
pub(crate) fn record(attachment: &VolumeAttachment, finalizer: &str, intent: &Intent) -> Value {
    let mut operations = as_seen(attachment);
    operations.extend(with_finalizer(attachment, finalizer));
    let written = [(NODE_ID, &intent.node_id), (VOLUME_HANDLE, &intent.volume_handle)];
    if attachment.metadata.annotations.is_none() {
        operations.push(json!({"op": "add", "path": "/metadata/annotations", "value": {}}));
    }
    for (name, value) in written {
        let path = format!("/metadata/annotations/{}", name.replace('~', "~0").replace('/', "~1"));
        operations.push(json!({"op": "add", "path": path, "value": value}));
    }
    Value::Array(operations)
}

/// JSON patch: the object is held.
pub(crate) fn hold<K: Resource>(object: &K, finalizer: &str) -> Value {
    let mut operations = as_seen(object);
    operations.extend(with_finalizer(object, finalizer));
    Value::Array(operations)
}

/// JSON patch: the object is held no more. Nothing, if it is not.
pub(crate) fn let_go<K: Resource>(object: &K, finalizer: &str) -> Option<Value> {
    let at = object.finalizers().iter().position(|name| name == finalizer)?;
    let path = format!("/metadata/finalizers/{at}");
    Some(json!([
        {"op": "test", "path": "/metadata/uid", "value": object.uid()},
        {"op": "test", "path": path, "value": finalizer},
        {"op": "remove", "path": path},
    ]))
}

/// Merge patch of the status: attached, and what the driver wants to be told on the node.
pub(crate) fn attached(attachment: &VolumeAttachment, context: &BTreeMap<String, String>) -> Value {
    let mut metadata: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let before = attachment.status.as_ref().and_then(|status| status.attachment_metadata.as_ref());
    metadata.extend(before.into_iter().flatten().map(|(key, _)| (key.as_str(), None)));
    metadata.extend(context.iter().map(|(key, value)| (key.as_str(), Some(value.as_str()))));
    let status = json!({"attached": true, "attachError": null, "attachmentMetadata": metadata});
    merged(attachment, &status)
}

/// Merge patch of the status: detached.
pub(crate) fn detached(attachment: &VolumeAttachment) -> Value {
    merged(attachment, &json!({"attached": false, "detachError": null, "attachmentMetadata": null}))
}

/// Merge patch of the status: it did not work.
pub(crate) fn failed(attachment: &VolumeAttachment, way: Way, message: &str, at: Timestamp) -> Value {
    let error = json!({"message": cut(message), "time": at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()});
    // The API server wants to be told whether it is attached whenever it is told anything.
    let attached = attachment.status.as_ref().is_some_and(|status| status.attached);
    let name = match way {
        Way::Attach => "attachError",
        Way::Detach => "detachError",
    };
    merged(attachment, &json!({"attached": attached, name: error}))
}

fn merged(attachment: &VolumeAttachment, status: &Value) -> Value {
    let (uid, version) = (attachment.uid(), attachment.resource_version());
    json!({"metadata": {"uid": uid, "resourceVersion": version}, "status": status})
}

fn as_seen<K: Resource>(object: &K) -> Vec<Value> {
    vec![
        json!({"op": "test", "path": "/metadata/uid", "value": object.uid()}),
        json!({"op": "test", "path": "/metadata/resourceVersion", "value": object.resource_version()}),
    ]
}

fn with_finalizer<K: Resource>(object: &K, finalizer: &str) -> Option<Value> {
    if object.finalizers().iter().any(|name| name == finalizer) {
        return None;
    }
    Some(if object.finalizers().is_empty() {
        json!({"op": "add", "path": "/metadata/finalizers", "value": [finalizer]})
    } else {
        json!({"op": "add", "path": "/metadata/finalizers/-", "value": finalizer})
    })
}

fn cut(message: &str) -> &str {
    let end = message.floor_char_boundary(LONGEST);
    &message[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attachment(metadata: &Value, status: &Value) -> VolumeAttachment {
        let value =
            json!({"metadata": metadata, "status": status, "spec": {"attacher": "d", "nodeName": "n", "source": {}}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_intent_is_written_onto_the_very_version_that_was_seen() {
        let bare = attachment(&json!({"uid": "u", "resourceVersion": "7"}), &json!({"attached": false}));
        let intent = Intent { node_id: "id".to_owned(), volume_handle: "v".to_owned() };
        let expected = json!([
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
            {"op": "add", "path": "/metadata/finalizers", "value": ["f"]},
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/csi.alpha.kubernetes.io~1node-id", "value": "id"},
            {"op": "add", "path": "/metadata/annotations/palisade.dev~1volume-handle", "value": "v"},
        ]);
        assert_eq!(record(&bare, "f", &intent), expected);
        let full =
            attachment(&json!({"finalizers": ["other", "f"], "annotations": {"a": "b"}}), &json!({"attached": false}));
        assert_eq!(record(&full, "f", &intent).as_array().unwrap().len(), 4);
    }

    #[test]
    fn a_finalizer_is_taken_only_from_where_it_was_seen() {
        let held = attachment(&json!({"uid": "u", "finalizers": ["other", "f"]}), &json!({"attached": true}));
        let expected = json!([
            {"op": "test", "path": "/metadata/uid", "value": "u"},
            {"op": "test", "path": "/metadata/finalizers/1", "value": "f"},
            {"op": "remove", "path": "/metadata/finalizers/1"},
        ]);
        assert_eq!((let_go(&held, "f"), let_go(&held, "g")), (Some(expected), None));
    }

    #[test]
    fn what_the_driver_said_last_is_all_that_is_said() {
        let before = json!({"attached": false, "attachmentMetadata": {"old": "1", "both": "2"}});
        let before = attachment(&json!({"uid": "u", "resourceVersion": "7"}), &before);
        let context = BTreeMap::from([("both".to_owned(), "3".to_owned())]);
        let expected = json!({"metadata": {"uid": "u", "resourceVersion": "7"},
            "status": {"attached": true, "attachError": null, "attachmentMetadata": {"old": null, "both": "3"}}});
        assert_eq!(attached(&before, &context), expected);
    }

    #[test]
    fn a_long_message_is_cut_between_letters() {
        let object = attachment(&json!({}), &json!({"attached": true}));
        let at = "2026-03-01T12:00:00Z".parse().unwrap();
        let patch = failed(&object, Way::Detach, &"é".repeat(1_000), at);
        let error = &patch["status"]["detachError"];
        assert_eq!(error["message"].as_str().unwrap().len(), LONGEST);
        assert_eq!((&error["time"], &patch["status"]["attached"]), (&json!("2026-03-01T12:00:00Z"), &json!(true)));
    }
}
