//! PUT, and what PATCH ends in: how an object changes.

use serde_json::{Map, Value};

use super::{
    create::Options,
    custom, defaults,
    kinds::{Definition, Kind},
    metadata, metadata_rules, rules,
    status::Status,
    store::{Actor, Key, Object, Store},
};

/// Which part of an object a write is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Everything but the status, where the kind keeps it apart.
    Main,
    /// The status alone.
    Status,
    /// Both at once, as no client can: for what stands for a controller with all rights.
    Whole,
}

/// What stays as it is, whatever a client sends.
const KEPT: [&str; 8] = [
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
];

impl Store {
    pub(crate) fn update(
        &mut self,
        by: &Actor,
        key: &Key,
        part: Part,
        mut new: Value,
        options: Options,
    ) -> Result<Object, Status> {
        let (definition, old) = match self.existing(key) {
            Err(missing) if missing.code == 404 && key.kind == Kind::LEASE && part == Part::Main => {
                return self.make_lease(by, key, new, options);
            }
            found => found?,
        };
        if part == Part::Status && !definition.has_status {
            return Err(Status::no_such_page());
        }
        same_object(&definition, key, &old, &new)?;
        let mut wrong = metadata_rules::check_update(&old, &new);
        keep_apart(&definition, part, &old, &mut new);
        for field in KEPT {
            metadata::copy(&old, &mut new, field);
        }
        metadata::remove(&mut new, "managedFields");
        metadata::set(&mut new, "resourceVersion", metadata::text(&old, "resourceVersion"));
        if part != Part::Status {
            defaults::on_update(&definition, &mut new);
        }

        metadata_rules::tidy(&mut new);
        wrong.extend(rules::finalizers(&old, &new));
        if part != Part::Whole {
            wrong.extend(metadata_rules::check(&new, definition.custom.is_some()));
        }
        if let Some(custom) = &definition.custom {
            wrong.extend(custom.admit(&mut new, Some(&old), options.fields, &mut self.warnings)?);
        } else {
            rules::drop_nulls(&mut new);
            if part == Part::Main {
                wrong.extend(rules::built_in(key.kind, Some(&old), &new));
            }
        }
        if !wrong.is_empty() {
            return Err(Status::invalid(&definition, &key.name, wrong));
        }
        // To bind a pod is no wish of anybody who could see it fulfilled.
        let is_wish = key.kind != Kind::POD || part == Part::Main;
        if definition.has_generation && is_wish && wishes_differ(&definition, &old, &new) {
            metadata::set(&mut new, "generation", metadata::generation(&old) + 1);
        }
        if new == *old {
            return Ok(old);
        }
        let reading = match (key.kind, part) {
            (Kind::CUSTOM_RESOURCE_DEFINITION, Part::Main) => Some(custom::read(&definition, &mut new, &self.clock)?),
            _ => None,
        };
        if options.dry_run {
            return Ok(new.into());
        }
        if let Some(reading) = reading {
            reading.establish(&mut self.registry);
        }
        if is_released(key.kind, &old, &new) {
            self.take(by, key);
            return Ok(new.into());
        }
        Ok(self.put(by, key.clone(), new))
    }

    /// A Lease that is replaced and is not there is made, whatever version the caller names, unless it names a UID.
    fn make_lease(&mut self, by: &Actor, key: &Key, mut lease: Value, options: Options) -> Result<Object, Status> {
        let definition = self.definition(key.kind)?;
        let expected = metadata::uid(&lease);
        if !expected.is_empty() {
            return Err(Status::another_uid(&definition, key, expected, ""));
        }
        metadata::remove(&mut lease, "resourceVersion");
        self.create(by, key.kind, &key.namespace, lease, options)
    }
}

/// Whether the caller means the object that is there, as it is there.
fn same_object(definition: &Definition, key: &Key, old: &Value, new: &Value) -> Result<(), Status> {
    metadata_rules::same_place(old, new)?;
    let name = metadata::name(old);
    let (uid, expected) = (metadata::uid(old), metadata::uid(new));
    if !expected.is_empty() && uid != expected {
        return Err(Status::another_uid(definition, key, expected, uid));
    }
    match metadata::text(new, "resourceVersion") {
        "" | "0" if definition.blind_updates => Ok(()),
        "" | "0" => Err(Status::without_version(definition, name)),
        version if version == metadata::text(old, "resourceVersion") => Ok(()),
        _ => Err(Status::modified(definition, name)),
    }
}

/// A write to one part leaves the other as it was.
fn keep_apart(definition: &Definition, part: Part, old: &Value, new: &mut Value) {
    let (Some(before), Some(after)) = (old.as_object(), new.as_object_mut()) else { return };
    match part {
        Part::Main if definition.has_status => carry(before, after, "status"),
        Part::Main | Part::Whole => {}
        Part::Status => {
            let status = after.remove("status");
            // Of a built-in kind, /status also takes labels and annotations; of a custom one, not even those.
            let metadata = after.remove("metadata").filter(|_| definition.custom.is_none());
            after.clone_from(before);
            after.remove("status");
            after.extend(status.map(|status| ("status".to_owned(), status)));
            if let (Some(Value::Object(wished)), Some(Value::Object(kept))) = (metadata, after.get_mut("metadata")) {
                for field in ["labels", "annotations"] {
                    carry(&wished, kept, field);
                }
            }
        }
    }
    for field in ["apiVersion", "kind"] {
        carry(before, after, field);
    }
}

fn carry(from: &Map<String, Value>, to: &mut Map<String, Value>, field: &str) {
    match from.get(field) {
        Some(value) => drop(to.insert(field.to_owned(), value.clone())),
        None => drop(to.remove(field)),
    }
}

/// Whether something changed that `metadata.generation` counts.
fn wishes_differ(definition: &Definition, old: &Value, new: &Value) -> bool {
    if definition.custom.is_none() {
        return old.get("spec") != new.get("spec");
    }
    let counts = |name: &&String| *name != "metadata" && !(definition.has_status && *name == "status");
    let (Some(old), Some(new)) = (old.as_object(), new.as_object()) else { return false };
    old.keys().chain(new.keys()).filter(counts).any(|name| old.get(name) != new.get(name))
}

/// Whether this was the last thing that kept a deleted object alive.
fn is_released(kind: Kind, old: &Value, new: &Value) -> bool {
    let held_by_spec = kind == Kind::NAMESPACE
        && new.pointer("/spec/finalizers").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    metadata::is_deleting(old)
        && metadata::grace(old).unwrap_or_default() == 0
        && metadata::finalizers(new).next().is_none()
        && !held_by_spec
}
