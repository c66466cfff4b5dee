//! How objects go over the wire: whole, as metadata only, or as the rows of a table.

use std::borrow::Cow;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{events, kinds::EVENTS_GROUP, metadata, path::Served, read::Page, table};

/// What the caller wants to see, from its `Accept` header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Metadata,
    Table(Include),
    /// A table whose columns the caller knows already.
    Rows(Include),
}

/// What a row of a table carries besides its cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Include {
    Nothing,
    Metadata,
    Object,
}

impl Form {
    pub(crate) fn read(accept: &str, include: &str) -> Self {
        // The first that we know counts; kubectl names the plain object last.
        for wish in accept.split(',') {
            if wish.contains("as=Table") && wish.contains("json") {
                return Self::Table(match include {
                    "None" => Include::Nothing,
                    "Object" => Include::Object,
                    _ => Include::Metadata,
                });
            }
            if wish.contains("as=PartialObjectMetadata") && wish.contains("json") {
                return Self::Metadata;
            }
        }
        Self::Whole
    }

    /// The same for the second line of a watch and those after it.
    pub(crate) fn without_columns(self) -> Self {
        if let Self::Table(include) = self { Self::Rows(include) } else { self }
    }

    /// One object.
    pub(crate) fn one(self, served: &Served, object: &Value, now: Timestamp) -> Vec<u8> {
        match self {
            Self::Whole => bytes(&dressed(served, object)),
            Self::Metadata => bytes(&only_metadata(object)),
            Self::Table(include) => {
                let list = json!({"resourceVersion": metadata::text(object, "resourceVersion")});
                bytes(&table::table(served, [object], &list, include, now))
            }
            Self::Rows(include) => {
                let list = json!({"resourceVersion": metadata::text(object, "resourceVersion")});
                let mut table = table::table(served, [object], &list, include, now);
                table["columnDefinitions"] = json!(null);
                bytes(&table)
            }
        }
    }

    /// Many objects.
    pub(crate) fn many(self, served: &Served, page: &Page, now: Timestamp) -> Vec<u8> {
        let mut list = json!({"resourceVersion": page.revision.to_string()});
        if let Some(more) = &page.more {
            list["continue"] = more.as_str().into();
        }
        if let Some(remaining) = page.remaining {
            list["remainingItemCount"] = remaining.into();
        }
        if let Self::Table(include) = self {
            return bytes(&table::table(served, page.items.iter().map(AsRef::as_ref), &list, include, now));
        }
        let (kind, api_version) = match self {
            Self::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
            _ => (format!("{}List", served.definition.name), served.api_version()),
        };
        // Written by hand: to build one value of a list would copy every object.
        let head =
            format!("{{\"kind\":{},\"apiVersion\":{},\"metadata\":{list},\"items\":[", json!(kind), json!(api_version));
        let mut text = head.into_bytes();
        for (index, object) in page.items.iter().enumerate() {
            if index > 0 {
                text.push(b',');
            }
            match self {
                Self::Metadata => text.extend(bytes(&only_metadata(object))),
                _ => write_item(&mut text, served, object),
            }
        }
        text.extend(b"]}");
        text
    }
}

/// An item of a list. One of a built-in kind does not say what it is: the list does.
fn write_item(text: &mut Vec<u8>, served: &Served, object: &Value) {
    let object = dressed(served, object);
    let Some(fields) = object.as_object().filter(|_| served.definition.custom.is_none()) else {
        text.extend(bytes(&object));
        return;
    };
    let told = fields.iter().filter(|(name, _)| !matches!(name.as_str(), "kind" | "apiVersion"));
    text.push(b'{');
    for (index, (name, field)) in told.enumerate() {
        if index > 0 {
            text.push(b',');
        }
        text.extend(bytes(&json!(name)));
        text.push(b':');
        text.extend(bytes(field));
    }
    text.push(b'}');
}

impl Served {
    /// `v1` or `palisade.dev/v1alpha1`, as the path named it.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// An object in the group and version that the path named.
pub(crate) fn dressed<'a>(served: &Served, object: &'a Value) -> Cow<'a, Value> {
    if served.group == EVENTS_GROUP {
        return Cow::Owned(events::newer(object));
    }
    if served.version == served.definition.version {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    object["apiVersion"] = served.api_version().into();
    Cow::Owned(object)
}

pub(crate) fn only_metadata(object: &Value) -> Value {
    json!({"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": object["metadata"]})
}

pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    // A value of JSON has no keys that are not text, so this cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}
