//! Custom resource definitions: how a kind comes to be while the cluster runs.

use serde_json::{Value, json};

use super::{
    kinds::{Definition, Registry},
    status::{Cause, Status},
};
use crate::clock::{Clock, seconds};

/// What a definition says about its objects.
#[derive(Debug)]
pub struct Custom {
    /// The columns that `kubectl get` shows.
    pub(crate) columns: Vec<Value>,
    /// The schema as it was given.
    pub(crate) schema: Value,
}

impl Custom {
    /// Makes an object what the schema makes of it, and tells what is wrong with it.
    #[expect(clippy::unused_self, clippy::unnecessary_wraps, reason = "the schema comes next")]
    pub(crate) fn admit(&self, _new: &mut Value, _old: Option<&Value>, _strict: bool) -> Result<Vec<Cause>, Status> {
        Ok(Vec::new())
    }
}

/// Makes the kind known that a definition defines, and says so in its status.
pub(crate) fn establish(
    registry: &mut Registry,
    own: &Definition,
    object: &mut Value,
    clock: &Clock,
) -> Result<(), Status> {
    let spec = &object["spec"];
    let text = |pointer: &str| spec.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    let texts = |pointer: &str| -> Vec<std::borrow::Cow<'static, str>> {
        let list = spec.pointer(pointer).and_then(Value::as_array).into_iter().flatten();
        list.filter_map(Value::as_str).map(|text| text.to_owned().into()).collect()
    };
    let (group, plural, kind_name) = (text("/group"), text("/names/plural"), text("/names/kind"));
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    if name != format!("{plural}.{group}") {
        let why = format!("must be spec.names.plural+\".\"+spec.group");
        return Err(Status::invalid(own, name, vec![Cause::invalid("metadata.name", &name.into(), &why)]));
    }
    let versions = || spec["versions"].as_array().into_iter().flatten();
    let Some(stored) = versions().find(|version| version["storage"] == true) else {
        let why = "must have exactly one version marked as storage version";
        return Err(Status::invalid(own, name, vec![Cause::invalid("spec.versions", &spec["versions"], why)]));
    };
    let word = |version: &Value| version["name"].as_str().unwrap_or_default().to_owned();
    let custom = Custom {
        columns: stored["additionalPrinterColumns"].as_array().cloned().unwrap_or_default(),
        schema: stored["schema"]["openAPIV3Schema"].clone(),
    };
    let singular = text("/names/singular");
    let singular = if singular.is_empty() { kind_name.to_lowercase() } else { singular };
    registry.define(&group, &plural, |kind| Definition {
        kind,
        group: group.clone().into(),
        version: word(stored).into(),
        served: versions().filter(|version| version["served"] == true).map(|version| word(version).into()).collect(),
        name: kind_name.clone().into(),
        plural: plural.clone().into(),
        singular: singular.clone().into(),
        short_names: texts("/names/shortNames"),
        categories: texts("/names/categories"),
        namespaced: text("/scope") == "Namespaced",
        has_status: stored.pointer("/subresources/status").is_some(),
        has_generation: true,
        blind_updates: false,
        answers_deleted: false,
        custom: Some(custom.into()),
    });
    let mut names = spec["names"].clone();
    names["singular"] = singular.into();
    if names.get("listKind").is_none() {
        names["listKind"] = format!("{kind_name}List").into();
    }
    let now = seconds(clock.now());
    let condition = |kind: &str, reason: &str, message: &str| json!({"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now});
    let status = json!({
        "acceptedNames": names,
        "storedVersions": [word(stored)],
        "conditions": [
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ],
    });
    object["spec"]["names"] = names;
    object["status"] = status;
    Ok(())
}
