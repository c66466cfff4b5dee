//! The definitions as they are printed: each change of the API is a change of this file.

use std::{env, fs, path::Path};

/// Compares with a file, or rewrites it if `UPDATE_GOLDEN` is set.
pub(crate) fn compare(file: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, actual).unwrap();
        return;
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    if expected == actual {
        return;
    }
    let differs =
        |(line, (old, new)): (usize, (&str, &str))| (old != new).then(|| (line + 1, old.to_owned(), new.to_owned()));
    let first = expected.lines().zip(actual.lines()).enumerate().find_map(differs);
    panic!("{file} is stale, first at {first:?}; rewrite it with UPDATE_GOLDEN=1 and look at the diff");
}

#[test]
fn the_definitions_are_the_reviewed_ones() {
    let documents: Vec<String> =
        palisade_api::crds().iter().map(|crd| format!("---\n{}", serde_saphyr::to_string(crd).unwrap())).collect();
    compare("tests/golden/crds.yaml", &documents.concat());
}

/// `kubectl` reads YAML 1.1, where an unquoted `on` is a boolean.
#[test]
fn words_that_old_yaml_takes_for_booleans_are_quoted() {
    assert_eq!(serde_saphyr::to_string(&["on", "off", "yes", "no", "y"]).unwrap().matches('"').count(), 10);
}
