//! POST: how an object comes to be.

use serde_json::{Value, json};

use super::{
    custom, defaults,
    kinds::{Definition, Kind},
    metadata, metadata_rules, rules,
    status::{Cause, Status},
    store::{Actor, Key, Object, Store},
};
use crate::clock::seconds;

/// How a write is meant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Options {
    /// Everything but the write itself.
    pub(crate) dry_run: bool,
    /// What becomes of fields that the schema does not know.
    pub(crate) fields: Unknown,
}

/// What becomes of fields that nobody knows (`fieldValidation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// They are dropped.
    Ignore,
    /// They are dropped, and the caller is told.
    #[default]
    Warn,
    /// The object is refused.
    Strict,
}

/// What only the API server may say about a new object.
const SYSTEM_FIELDS: [&str; 6] =
    ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields", "generation", "resourceVersion"];

impl Store {
    pub(crate) fn create(
        &mut self,
        by: &Actor,
        kind: Kind,
        namespace: &str,
        mut object: Value,
        options: Options,
    ) -> Result<Object, Status> {
        let definition = self.definition(kind)?;
        if metadata::revision(&object) != 0 {
            return Err(Status::unexpected("resourceVersion should not be set on objects to be created"));
        }
        self.place(&definition, namespace, &mut object)?;
        self.sign(&definition, &mut object);
        defaults::on_create(&definition, &mut object);

        let name = metadata::name(&object).to_owned();
        metadata_rules::tidy(&mut object);
        let mut wrong: Vec<Cause> = rules::name(&object).into_iter().collect();
        wrong.extend(metadata_rules::check(&object, definition.custom.is_some()));
        if let Some(custom) = &definition.custom {
            wrong.extend(custom.admit(&mut object, None, options.fields, &mut self.warnings)?);
            self.warnings.extend(metadata_rules::warnings(&object));
        } else {
            rules::drop_nulls(&mut object);
            wrong.extend(rules::built_in(kind, None, &object));
        }
        if !wrong.is_empty() {
            return Err(Status::invalid(&definition, &name, wrong));
        }
        let key = Key::of(kind, &object);
        if let Some(there) = self.get(&key) {
            return Err(Status::already_exists(&definition, &name, metadata::is_deleting(there)));
        }
        let reading = match kind {
            Kind::CUSTOM_RESOURCE_DEFINITION => Some(custom::read(&definition, &mut object, &self.clock)?),
            _ => None,
        };
        if options.dry_run {
            return Ok(object.into());
        }
        if let Some(reading) = reading {
            reading.establish(&mut self.registry);
        }
        Ok(self.put(by, key, object))
    }

    /// Namespace and name.
    fn place(&mut self, definition: &Definition, namespace: &str, object: &mut Value) -> Result<(), Status> {
        let stated = metadata::namespace(object);
        if !stated.is_empty() && stated != namespace {
            let why = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(why));
        }
        if metadata::name(object).is_empty() {
            let stem = metadata::text(object, "generateName").to_owned();
            if stem.is_empty() {
                let cause = Cause::required("metadata.name", "name or generateName is required");
                return Err(Status::invalid(definition, "", vec![cause]));
            }
            let name = loop {
                let name = format!("{stem}{}", self.new_suffix());
                if self.get(&Key::new(definition.kind, namespace, &name)).is_none() {
                    break name;
                }
            };
            metadata::set(object, "name", name);
        }
        if definition.namespaced {
            metadata::set(object, "namespace", namespace);
            self.namespace_takes(definition, namespace, metadata::name(object))?;
        } else {
            metadata::remove(object, "namespace");
        }
        Ok(())
    }

    fn namespace_takes(&self, definition: &Definition, namespace: &str, name: &str) -> Result<(), Status> {
        let (_, home) = self.existing(&Key::cluster(Kind::NAMESPACE, namespace))?;
        if !metadata::is_deleting(&home) {
            return Ok(());
        }
        let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut refusal = Status::forbidden(definition, name, &why);
        let message = format!("namespace {namespace} is being terminated");
        refusal.details.causes =
            vec![Cause { reason: "NamespaceTerminating", message, field: "metadata.namespace".to_owned() }];
        Err(refusal)
    }

    /// What the API server writes on every new object.
    fn sign(&mut self, definition: &Definition, object: &mut Value) {
        for field in SYSTEM_FIELDS {
            metadata::remove(object, field);
        }
        metadata::set(object, "uid", self.new_uid());
        metadata::set(object, "creationTimestamp", seconds(self.clock.now()));
        if definition.has_generation {
            metadata::set(object, "generation", 1);
        }
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), definition.api_version().into());
            fields.insert("kind".to_owned(), definition.name.as_ref().into());
            // A kubelet registers its Node with a status; nobody else starts with one.
            if definition.has_status && definition.kind != Kind::NODE {
                fields.remove("status");
            }
        }
    }

    /// The namespaces that every cluster has.
    pub(crate) fn make_first_namespaces(&mut self, by: &Actor) {
        for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
            let namespace = json!({"metadata": {"name": name}});
            // Cannot fail: the store is empty and the names are good.
            drop(self.create(by, Kind::NAMESPACE, "", namespace, Options::default()));
        }
    }
}
