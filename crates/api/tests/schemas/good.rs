//! What must be sayable: the examples of the documents that Palisade was built from, and its own.

use std::{fs, path::Path};

use serde_json::Value;

use crate::{checker::Checker, defaults::round_trip};

pub(crate) fn documents() -> Vec<(String, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects/good");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| -> Vec<(String, Value)> {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = fs::read_to_string(file).unwrap();
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        documents
            .into_iter()
            .map(|document| (format!("{name}/{}", document["metadata"]["name"].as_str().unwrap()), document))
            .collect()
    };
    files.iter().flat_map(read).collect()
}

#[test]
fn every_good_object_is_accepted() {
    let checker = Checker::new();
    for (name, object) in documents() {
        let refusals = checker.refusals(&object, None);
        assert!(refusals.is_empty(), "{name}: {refusals:?}");
    }
}

/// What Rust writes back, the API server takes; and it is the object that was read, defaults filled in.
#[test]
fn every_good_object_survives_a_round_trip() {
    let checker = Checker::new();
    for (name, object) in documents() {
        let written = round_trip(&object).unwrap_or_else(|error| panic!("{name}: {error}"));
        let refusals = checker.refusals(&written, Some(&object));
        assert!(refusals.is_empty(), "{name}: {refusals:?}");
        let filled = round_trip(&checker.with_defaults(&object)).unwrap();
        assert_eq!(filled, written, "{name}: Rust and the API server fill in different defaults");
    }
}

#[test]
fn every_kind_has_a_good_example() {
    let documents = documents();
    for kind in crate::walk::kinds() {
        assert!(documents.iter().any(|(_, object)| object["kind"] == kind.name), "{}", kind.name);
    }
}
