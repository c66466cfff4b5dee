//! PATCH: merge patches and JSON patches. Strategic merge and server-side apply are refused.

use serde_json::Value;

use super::{
    create::Options,
    metadata,
    status::{Cause, Status},
    store::{Actor, Key, Object, Store},
    update::Part,
};

/// A change, written down.
#[derive(Clone, Debug, PartialEq)]
pub enum Patch {
    /// RFC 7396: an object to lay over.
    Merge(Value),
    /// RFC 6902: a list of operations.
    Json(json_patch::Patch),
}

impl Patch {
    /// Reads the body of a PATCH request.
    pub(crate) fn read(media_type: &str, body: &[u8]) -> Result<Self, Status> {
        let broken = |error: serde_json::Error| Status::bad_request(format!("error decoding patch: {error}"));
        match media_type.split(';').next().unwrap_or_default().trim() {
            "application/merge-patch+json" => serde_json::from_slice(body).map(Self::Merge).map_err(broken),
            "application/json-patch+json" => serde_json::from_slice(body).map(Self::Json).map_err(broken),
            other => Err(Status::unsupported_patch(other)),
        }
    }
}

impl Store {
    pub(crate) fn patch(
        &mut self,
        by: &Actor,
        key: &Key,
        part: Part,
        patch: &Patch,
        options: Options,
    ) -> Result<Object, Status> {
        let (definition, old) = self.existing(key)?;
        let mut new = Value::clone(&old);
        match patch {
            Patch::Merge(changes) => json_patch::merge(&mut new, changes),
            Patch::Json(operations) => json_patch::patch(&mut new, operations)
                .map_err(|error| Status::unprocessable(&definition, &key.name, error.to_string()))?,
        }
        // A patch that took the version away did not mean any version: a patch is always about what is there now.
        if metadata::text(&new, "resourceVersion").is_empty() {
            metadata::copy(&old, &mut new, "resourceVersion");
        }
        // An update names the UID as a precondition (409); a patch that would change it breaks a rule (422).
        let (uid, asked) = (metadata::uid(&old), metadata::uid(&new));
        if !asked.is_empty() && asked != uid {
            let cause = Cause::invalid("metadata.uid", &Value::from(asked), "field is immutable");
            return Err(Status::invalid(&definition, &key.name, vec![cause]));
        }
        self.update(by, key, part, new, options)
    }
}
