//! What must be doable: lives of objects, move by move. A rule that stops a rightful move would stop a failover.

use std::{fs, path::Path};

use serde::Deserialize;
use serde_json::Value;

use crate::{bad::merged, checker::Checker};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Life {
    base: Value,
    moves: Vec<Move>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Move {
    story: String,
    change: Value,
}

/// Every move with the object before and after it.
pub(crate) fn moves() -> Vec<(String, Value, Value)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects/moves");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let mut found = Vec::new();
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let life = serde_saphyr::from_str(&fs::read_to_string(&file).unwrap());
        let Life { base, moves } = life.unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut before = base;
        for Move { story, change } in moves {
            let after = merged(&before, &change);
            found.push((format!("{name}: {story}"), before, after.clone()));
            before = after;
        }
    }
    found
}

#[test]
fn every_rightful_move_is_accepted() {
    let checker = Checker::new();
    for (story, before, after) in moves() {
        let refusals = checker.refusals(&after, Some(&before));
        assert!(refusals.is_empty(), "{story}: {refusals:?}");
    }
}
