//! Resolve / claims: what a template says that it proves, and what its kind can back.
//!
//! Promise (I6): nobody claims more than can be shown. The schema refuses most of it already; here it is refused also
//! for objects that are older than the schema.

use palisade_api::template::ProvesClass;

use super::Problem;
use super::call::{Call, Mechanism};
use super::method::Template;
use crate::ident::DriverName;
use crate::prove::{Class, ReadPath, Scope};

/// The class that a template claims.
pub(super) const fn class(class: ProvesClass) -> Option<Class> {
    match class {
        ProvesClass::Power => Some(Class::Power),
        ProvesClass::Storage => Some(Class::Storage),
        ProvesClass::Driver => Some(Class::Driver),
        ProvesClass::Network => Some(Class::Network),
        ProvesClass::None => None,
    }
}

/// What a proof of this class covers, if a template of this kind can make one.
pub(super) fn scope(template: &Template<'_>, class: Class) -> Result<Scope, Problem> {
    let drivers = &template.spec.proves.drivers;
    let refused = |field: &str, why: &str| Err(Problem { field: template.at(field), why: why.to_owned() });
    match (&template.mechanism, class) {
        (Mechanism::Storage(_), Class::Storage) if !drivers.is_empty() => {
            refused("proves.drivers", "a storage provider knows which volumes are its own; remove them")
        }
        (Mechanism::Storage(provider), Class::Storage | Class::Driver) => Ok(Scope::Provider(provider.clone())),
        (Mechanism::Native(_) | Mechanism::Agent(_) | Mechanism::Pod(_), Class::Power) => Ok(Scope::Node),
        (Mechanism::Native(_) | Mechanism::Agent(_) | Mechanism::Pod(_), Class::Network) => Ok(Scope::Network),
        (Mechanism::Native(_) | Mechanism::Agent(_) | Mechanism::Pod(_), Class::Storage) if drivers.is_empty() => {
            refused("proves.drivers", "a Storage proof needs the CSI drivers whose volumes it covers")
        }
        (Mechanism::Native(_) | Mechanism::Agent(_) | Mechanism::Pod(_), Class::Storage) => {
            Ok(Scope::Drivers(drivers.iter().map(|name| DriverName::from(name.as_str())).collect()))
        }
        (Mechanism::Builtin(_), _)
        | (_, Class::Power | Class::Network | Class::Driver | Class::Confirmed | Class::Kdump) => {
            refused("proves.class", "a template of this kind cannot prove that; set it to what its device can show")
        }
    }
}

/// By which path the result is read back.
pub(super) fn path(call: &Call) -> ReadPath {
    let by_itself = match &call.device.mechanism {
        // The operator's own hand: the API server says what became of it.
        Mechanism::Native(_) | Mechanism::Builtin(_) | Mechanism::Storage(_) => ReadPath::SameDriver,
        Mechanism::Agent(_) => ReadPath::SameAgent,
        Mechanism::Pod(_) => ReadPath::Declared,
    };
    match &call.read_back {
        Some(reader) if !reader.is_the_path_of(&call.device) => ReadPath::Independent,
        Some(_) | None => by_itself,
    }
}
