//! `docs/internals/lying-devices.md` says where each lie is tried: every name in its tables has to exist, as a test, a story or both.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};

use palisade_scenarios::catalogue::NAMES;

/// As many as the page promises at least.
const AT_LEAST: usize = 45;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The text of every Rust file below a directory.
fn sources(directory: &Path, all: &mut String) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            all.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

/// The two names of each row: the test on the wire, and what becomes of a fence.
fn rows(page: &str) -> Vec<(String, String)> {
    let cell = |cell: &str| cell.trim().strip_prefix('`')?.strip_suffix('`').map(ToOwned::to_owned);
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').collect();
        let [_, wire, fence] = cells.as_slice() else { return None };
        Some((cell(wire)?, cell(fence)?))
    };
    page.lines().filter(|line| line.starts_with('|')).filter_map(row).collect()
}

#[test]
fn every_lie_has_a_test_on_the_wire_and_a_story() {
    let page = fs::read_to_string(root().join("docs/internals/lying-devices.md")).unwrap();
    let rows = rows(&page);
    assert!(rows.len() >= AT_LEAST, "{} cases", rows.len());
    let mut tests = String::new();
    for crate_name in ["cluster", "core", "devices", "operator", "palisade"] {
        for place in ["src", "tests"] {
            sources(&root().join("crates").join(crate_name).join(place), &mut tests);
        }
    }
    let is_test = |name: &str| tests.contains(&format!("fn {name}("));
    for (wire, fence) in rows {
        assert!(is_test(&wire), "{wire} is no test");
        assert!(NAMES.contains(&fence.as_str()) || is_test(&fence), "{fence} is neither a story nor a test");
    }
}
