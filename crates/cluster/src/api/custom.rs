//! Custom resource definitions: how a kind comes to be while the cluster runs.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use serde_json::{Value, json};

use super::{
    create::Unknown,
    kinds::{Definition, Registry},
    metadata,
    schema::Schema,
    status::{Cause, Status},
};
use crate::clock::{Clock, seconds};

/// What a definition says about its objects.
#[derive(Debug)]
pub struct Custom {
    /// The columns that `kubectl get` shows (`additionalPrinterColumns`).
    pub columns: Vec<Value>,
    /// The schema as it was given.
    pub openapi: Value,
    schema: Arc<Schema>,
    /// `NodeFence in version "v1alpha1"`.
    what: String,
}

impl Custom {
    /// Makes an object what the schema makes of it, and tells what is wrong with it.
    pub(crate) fn admit(
        &self,
        new: &mut Value,
        old: Option<&Value>,
        fields: Unknown,
        warnings: &mut Vec<String>,
    ) -> Result<Vec<Cause>, Status> {
        let unknown = self.schema.shape(new);
        let told = unknown.iter().map(|field| format!("unknown field \"{field}\""));
        if fields == Unknown::Warn {
            warnings.extend(told);
        } else if fields == Unknown::Strict && !unknown.is_empty() {
            let fields: Vec<String> = told.collect();
            let kind = self.what.split(' ').next().unwrap_or_default();
            return Err(Status::bad_request(format!(
                "{} cannot be handled as a {kind}: strict decoding error: {}",
                self.what,
                fields.join(", ")
            )));
        }
        Ok(self.schema.check(new, old))
    }
}

/// A definition that has been read, and not yet put into force.
pub(crate) struct Reading {
    definition: Box<Definition>,
}

impl Reading {
    /// Makes the kind known.
    pub(crate) fn establish(self, registry: &mut Registry) {
        let Definition { group, plural, .. } = &*self.definition;
        let (group, plural) = (group.clone(), plural.clone());
        registry.define(&group, &plural, |kind| Definition { kind, ..*self.definition });
    }
}

/// Reads a definition, fills in its names, and says in its status that it is in force.
pub(crate) fn read(own: &Definition, object: &mut Value, clock: &Clock) -> Result<Reading, Status> {
    let name = metadata::name(object).to_owned();
    let refuse = |causes| Status::invalid(own, &name, causes);
    complete_names(object);
    let spec = &object["spec"];
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let texts = |pointer: &str| -> Vec<Cow<'static, str>> {
        let list = spec.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(|text| text.to_owned().into()).collect()
    };
    let (group, plural, kind_name) = (text("/group"), text("/names/plural"), text("/names/kind"));
    if name != format!("{plural}.{group}") {
        let why = "must be spec.names.plural+\".\"+spec.group";
        return Err(refuse(vec![Cause::invalid("metadata.name", &name.as_str().into(), why)]));
    }
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let Some(stored) = versions().find(|version| version["storage"] == true) else {
        let why = "must have exactly one version marked as storage version";
        return Err(refuse(vec![Cause::invalid("spec.versions", &spec["versions"], why)]));
    };
    let version = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let openapi = stored["schema"]["openAPIV3Schema"].clone();
    let custom = Custom {
        columns: stored["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
        schema: compiled(&openapi).map_err(refuse)?,
        openapi,
        what: format!("{kind_name} in version \"{}\"", version(stored)),
    };
    let definition = Definition {
        // The registry gives the number.
        kind: own.kind,
        version: version(stored).into(),
        served: versions().filter(|one| one["served"] == true).map(|one| version(one).into()).collect(),
        singular: text("/names/singular").into(),
        short_names: texts("/names/shortNames"),
        categories: texts("/names/categories"),
        namespaced: text("/scope") == "Namespaced",
        has_status: stored.pointer("/subresources/status").is_some(),
        has_generation: true,
        blind_updates: false,
        answers_deleted: false,
        group: group.into(),
        name: kind_name.into(),
        plural: plural.into(),
        custom: Some(custom.into()),
    };
    let status = in_force(spec, &version(stored), clock);
    object["status"] = status;
    Ok(Reading { definition: definition.into() })
}

fn complete_names(object: &mut Value) {
    let names = &mut object["spec"]["names"];
    let kind = names["kind"].as_str().unwrap_or_default().to_owned();
    for (field, default) in [("singular", kind.to_lowercase()), ("listKind", format!("{kind}List"))] {
        if names[field].as_str().is_none_or(str::is_empty) {
            names[field] = default.into();
        }
    }
}

fn in_force(spec: &Value, stored: &str, clock: &Clock) -> Value {
    let now = seconds(clock.now());
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    json!({
        "acceptedNames": spec["names"],
        "storedVersions": [stored],
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    })
}

/// A simulation makes a new cluster several times a second, always with the same definitions: compiling their rules
/// each time would take longer than most of what they guard.
fn compiled(openapi: &Value) -> Result<Arc<Schema>, Vec<Cause>> {
    static KNOWN: Mutex<BTreeMap<String, Arc<Schema>>> = Mutex::new(BTreeMap::new());
    let text = openapi.to_string();
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = known.get(&text) {
        return Ok(Arc::clone(schema));
    }
    let schema = Arc::new(Schema::compile(openapi)?);
    known.insert(text, Arc::clone(&schema));
    Ok(schema)
}
