//! PATCH: merge patches and JSON patches. Strategic merge and server-side apply are refused.

use serde_json::{Map, Value};

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
            "application/merge-patch+json" => {
                let changes: Map<String, Value> = serde_json::from_slice(body).map_err(broken)?;
                Ok(Self::Merge(changes.into()))
            }
            "application/json-patch+json" => serde_json::from_slice(body).map(Self::Json).map_err(broken),
            _ => Err(Status::unsupported_patch()),
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
        // A custom object may be anything until somebody looks; a built-in one cannot even be read as another kind.
        let mut wrong = Vec::new();
        for field in ["apiVersion", "kind"].into_iter().filter(|_| definition.custom.is_some()) {
            if let Some(stated) = new.get(field).filter(|stated| *stated != &old[field]) {
                wrong.push(Cause::invalid(field, stated, &format!("must be {}", text(&old, field))));
            }
        }
        if !wrong.is_empty() {
            return Err(Status::invalid_of((text(&new, "kind"), &definition.group), &key.name, wrong));
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

fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}
