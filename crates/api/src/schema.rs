//! Building blocks of the schemas: bounded strings and lists.
//!
//! Promise: nothing in a schema is without a bound. The API server multiplies bounds to estimate the cost of a
//! rule and refuses a CRD whose estimate is too high; a status without bounds would one day not fit into etcd.

use schemars::{Schema, SchemaGenerator, json_schema};

/// RFC 1123 subdomain: names of Nodes and of most objects.
pub(crate) const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// RFC 1123 label: names of namespaces, levels and methods.
pub(crate) const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// A label or annotation key, with or without a prefix.
pub(crate) const QUALIFIED: &str = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$";
/// A word that programs compare and people read, such as a reason.
pub(crate) const WORD: &str = "^[A-Z][A-Za-z0-9]*$";

/// The most that a counter of a record may say. No fence gets there, and the operator can count on from it for as long as
/// it likes: a record that somebody wrote by hand, or that came to harm, cannot make it overflow.
pub(crate) const MOST: u32 = 1_000_000;

fn string(pattern: &str, max: u32) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": max, "pattern": pattern })
}

fn free_text(max: u32) -> Schema {
    json_schema!({ "type": "string", "maxLength": max })
}

fn set_of(item: &Schema, max: u32) -> Schema {
    json_schema!({ "type": "array", "items": item, "maxItems": max, "x-kubernetes-list-type": "set" })
}

/// The name of a Node or another object.
pub(crate) fn object_name(_: &mut SchemaGenerator) -> Schema {
    string(SUBDOMAIN, 253)
}

/// A namespace, or one of our own short names.
pub(crate) fn label_name(_: &mut SchemaGenerator) -> Schema {
    string(LABEL, 63)
}

/// A label or taint key.
pub(crate) fn qualified_name(_: &mut SchemaGenerator) -> Schema {
    string(QUALIFIED, 317)
}

/// A label or taint value.
pub(crate) fn label_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "maxLength": 63, "pattern": "^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$" })
}

/// The id of a proof. Its numbers have no more digits than [`MOST`].
pub(crate) fn proof_id(_: &mut SchemaGenerator) -> Schema {
    string("^a[0-9]{1,7}-[0-9]{1,7}$", 16)
}

/// The number of a group of pods, with no more digits than [`MOST`].
pub(crate) fn group(_: &mut SchemaGenerator) -> Schema {
    string("^[0-9]+$", 7)
}

/// A UID of any object.
pub(crate) fn uid(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 64 })
}

/// A boot ID as the kubelet reports it.
pub(crate) fn boot_id(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 64 })
}

/// A reason: one word in `CamelCase`.
pub(crate) fn reason(_: &mut SchemaGenerator) -> Schema {
    string(WORD, 64)
}

/// A sentence for people.
pub(crate) fn message(_: &mut SchemaGenerator) -> Schema {
    free_text(1024)
}

/// A short free text: who or what something came from.
pub(crate) fn origin(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "string", "minLength": 1, "maxLength": 253 })
}

/// Names of Nodes.
pub(crate) fn node_names(make: &mut SchemaGenerator) -> Schema {
    set_of(&object_name(make), 1000)
}

/// Names of namespaces.
pub(crate) fn namespaces(make: &mut SchemaGenerator) -> Schema {
    set_of(&label_name(make), 32)
}

/// Names of CSI drivers.
pub(crate) fn csi_drivers(_: &mut SchemaGenerator) -> Schema {
    set_of(&string(SUBDOMAIN, 63), 32)
}

/// Names of FenceTemplates.
pub(crate) fn templates(make: &mut SchemaGenerator) -> Schema {
    set_of(&object_name(make), 32)
}

/// Names of storage providers.
pub(crate) fn providers(make: &mut SchemaGenerator) -> Schema {
    set_of(&label_name(make), 16)
}

/// Labels in the form `key=value`.
pub(crate) fn label_pairs(_: &mut SchemaGenerator) -> Schema {
    let pair = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?=[-A-Za-z0-9_.]*$";
    set_of(&string(pair, 381), 16)
}

/// Labels or annotations of a pod template, or labels to match.
pub(crate) fn labels(make: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "additionalProperties": label_value(make), "maxProperties": 32 })
}
