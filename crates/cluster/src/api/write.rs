//! POST, PUT, PATCH and DELETE as they come over the wire: from a body to the store and back.

use serde_json::Value;

use super::{
    create::{Options, Unknown},
    deletion::{DeleteOptions, Deleted, Propagation},
    events,
    handle::Api,
    kinds::{Definition, EVENTS_GROUP, Kind},
    metadata,
    patch::Patch,
    path::{Place, Query},
    read::Selection,
    rules,
    status::{Cause, Status},
    store::{Key, Object},
    subresources,
    update::Part,
};

/// The answer to a write.
pub(crate) enum Written {
    /// With what the caller should hear besides.
    Created(Object, Vec<String>),
    Done(Object, Vec<String>),
    Deleted(Deleted),
    /// A Status that says that it went well.
    Success(Value),
}

/// The options of a request, which upstream calls by the verb.
pub(crate) fn options(query: &Query, kind: &str) -> Result<Options, Status> {
    let dry_run = query.text("dryRun");
    if !matches!(dry_run, "" | "All") {
        let message = format!("Unsupported value: [{dry_run:?}]: supported values: \"All\"");
        let cause = Cause { reason: "FieldValueNotSupported", message, field: "dryRun".to_owned() };
        return Err(Status::invalid_of((kind, "meta.k8s.io"), "", vec![cause]));
    }
    let fields = match query.text("fieldValidation") {
        "Strict" => Unknown::Strict,
        "Ignore" => Unknown::Ignore,
        _ => Unknown::Warn,
    };
    Ok(Options { dry_run: dry_run == "All", fields })
}

pub(crate) fn create(api: &Api, place: &Place, query: &Query, body: &[u8]) -> Result<Written, Status> {
    let body = json(body)?;
    let options = options(query, "CreateOptions")?;
    if !place.subresource.is_empty() {
        return subresources::create(api, place, &body, options);
    }
    let definition = &place.served.definition;
    if definition.namespaced && place.namespace.is_empty() {
        return Err(Status::bad_request("an empty namespace may not be set during creation"));
    }
    let object = received(place, body)?;
    api.write(|store, by| {
        let made = store.create(by, definition.kind, &place.namespace, object, options)?;
        Ok(Written::Created(made, std::mem::take(&mut store.warnings)))
    })
}

pub(crate) fn update(api: &Api, place: &Place, query: &Query, body: &[u8]) -> Result<Written, Status> {
    let object = received(place, json(body)?)?;
    let (part, options) = (part(place)?, options(query, "UpdateOptions")?);
    if metadata::name(&object).is_empty() {
        let name = &place.name;
        let why = format!("the name of the object ({name} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(why));
    }
    api.write(|store, by| {
        let was_there = store.get(&place.key()).is_some();
        let written = store.update(by, &place.key(), part, object, options)?;
        let warnings = std::mem::take(&mut store.warnings);
        Ok(if was_there { Written::Done(written, warnings) } else { Written::Created(written, warnings) })
    })
}

pub(crate) fn patch(api: &Api, place: &Place, query: &Query, media_type: &str, body: &[u8]) -> Result<Written, Status> {
    let patch = Patch::read(media_type, body)?;
    let (part, options) = (part(place)?, options(query, "PatchOptions")?);
    api.write(|store, by| {
        let written = store.patch(by, &place.key(), part, &patch, options)?;
        Ok(Written::Done(written, std::mem::take(&mut store.warnings)))
    })
}

pub(crate) fn delete(api: &Api, place: &Place, query: &Query, body: &[u8]) -> Result<Written, Status> {
    let options = delete_options(query, body)?;
    let deleted = api.delete(&place.key(), &options)?;
    let definition = &place.served.definition;
    if deleted.is_gone() && !definition.answers_deleted {
        return Ok(Written::Success(serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
            "details": {"name": place.name, "group": definition.group, "kind": definition.plural,
                "uid": metadata::uid(deleted.object())},
        })));
    }
    Ok(Written::Deleted(deleted))
}

/// Each object by itself, as upstream: what is gone meanwhile does not matter.
pub(crate) fn delete_collection(api: &Api, place: &Place, query: &Query, body: &[u8]) -> Result<Vec<Object>, Status> {
    let options = delete_options(query, body)?;
    let selection = Selection::read(place, query)?;
    api.write(|store, by| {
        let objects = selection.objects_at(store, store.revision())?;
        for object in &objects {
            match store.delete(by, &Key::of(selection.kind, object), &options) {
                Err(status) if status.code != 404 => return Err(status),
                _ => {}
            }
        }
        Ok(objects)
    })
}

fn part(place: &Place) -> Result<Part, Status> {
    match (place.served.definition.kind, place.subresource.as_str()) {
        (_, "") | (Kind::NAMESPACE, "finalize") => Ok(Part::Main),
        (_, "status") => Ok(Part::Status),
        _ => Err(Status::no_such_page()),
    }
}

fn json(body: &[u8]) -> Result<Value, Status> {
    serde_json::from_slice(body)
        .map_err(|error| Status::bad_request(format!("the object provided is unrecognized: {error}")))
}

/// The object of a body, as the store keeps it.
fn received(place: &Place, object: Value) -> Result<Value, Status> {
    if !object.is_object() {
        return Err(Status::bad_request("the object provided is unrecognized: not an object"));
    }
    let expected = place.served.api_version();
    match object["apiVersion"].as_str().unwrap_or_default() {
        "" => {}
        stated if stated == expected => {}
        stated => {
            let why =
                format!("the API version in the data ({stated}) does not match the expected API version ({expected})");
            return Err(Status::bad_request(why));
        }
    }
    let kind = object["kind"].as_str().unwrap_or_default();
    let Definition { name, group, version, custom, .. } = place.served.definition.as_ref();
    if !kind.is_empty() && kind != name {
        if custom.is_some() {
            let cause = Cause::invalid("kind", &kind.into(), &format!("must be {name}"));
            return Err(Status::invalid_of((kind, group), metadata::name(&object), vec![cause]));
        }
        let group = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or_default() };
        return Err(Status::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {name}: converting ({version}.{kind}) to ({group}.{name}): \
             unknown conversion"
        )));
    }
    rules::readable(place.served.definition.kind, &object).map_err(|why| {
        Status::bad_request(format!("{name} in version {version:?} cannot be handled as a {name}: {why}"))
    })?;
    Ok(if place.served.group == EVENTS_GROUP { events::older(object) } else { object })
}

/// Options stand in the body or, from older clients, in the query.
pub(crate) fn delete_options(query: &Query, body: &[u8]) -> Result<DeleteOptions, Status> {
    let body = if body.is_empty() { Value::Null } else { json(body)? };
    let mut read = delete_options_of(&body)?;
    if let Some(grace) = query.number("gracePeriodSeconds")? {
        read.grace = i64::try_from(grace).ok();
    }
    if !query.text("propagationPolicy").is_empty() {
        read.propagation = propagation(query.text("propagationPolicy"))?;
    }
    read.dry_run |= options(query, "DeleteOptions")?.dry_run;
    Ok(read)
}

pub(crate) fn delete_options_of(body: &Value) -> Result<DeleteOptions, Status> {
    let text = |pointer: &str| body.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    Ok(DeleteOptions {
        grace: body["gracePeriodSeconds"].as_i64(),
        uid: text("/preconditions/uid"),
        resource_version: text("/preconditions/resourceVersion"),
        propagation: propagation(body["propagationPolicy"].as_str().unwrap_or_default())?,
        dry_run: body["dryRun"].as_array().is_some_and(|words| words.iter().any(|word| word == "All")),
    })
}

fn propagation(word: &str) -> Result<Option<Propagation>, Status> {
    match word {
        "" => Ok(None),
        "Orphan" => Ok(Some(Propagation::Orphan)),
        "Background" => Ok(Some(Propagation::Background)),
        "Foreground" => Ok(Some(Propagation::Foreground)),
        other => Err(Status::bad_request(format!("invalid propagationPolicy: {other:?}"))),
    }
}
