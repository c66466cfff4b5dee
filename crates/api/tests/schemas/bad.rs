//! What must not be sayable: a table of bad objects, each with the field and the reason that an API server gives.
//!
//! A file has a good object (`base`) and cases. A case changes it (JSON merge patch) and says where (`at`) and why it is
//! refused: `because` a part of a rule's message, or which schema keyword it `breaks`. With `was`, the change is an update
//! of the object that `was` makes of the base. `base` itself, and each `was`, must be accepted.
//! `EXPORT_OBJECTS=file` writes the table out as JSON, together with the good objects and moves (no `why`), for a run against a
//! real API server.

use std::{env, fs, path::Path};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::checker::Checker;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    base: Value,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    story: String,
    #[serde(default)]
    was: Option<Value>,
    change: Value,
    at: String,
    #[serde(default)]
    because: Option<String>,
    #[serde(default)]
    breaks: Option<String>,
}

/// A case with its objects written out.
#[derive(Serialize)]
struct Bad {
    story: String,
    at: String,
    why: Option<String>,
    old: Option<Value>,
    new: Value,
}

fn tables() -> Vec<(String, Table)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/objects/bad");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &std::path::PathBuf| {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let table = serde_saphyr::from_str(&fs::read_to_string(file).unwrap());
        (name.clone(), table.unwrap_or_else(|error| panic!("{name}: {error}")))
    };
    files.iter().map(read).collect()
}

fn cases() -> Vec<Bad> {
    let write_out = |(file, table): (String, Table)| {
        let Table { base, cases } = table;
        cases.into_iter().map(move |case| {
            let old = case.was.map(|was| merged(&base, &was));
            Bad {
                story: format!("{file}: {}", case.story),
                at: case.at,
                why: Some(case.because.or(case.breaks).expect("a case says because or breaks")),
                new: merged(old.as_ref().unwrap_or(&base), &case.change),
                old,
            }
        })
    };
    tables().into_iter().flat_map(write_out).collect()
}

/// RFC 7396.
pub(crate) fn merged(base: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut merged_map = base.as_object().cloned().unwrap_or_default();
    for (name, value) in patch {
        if value.is_null() {
            merged_map.remove(name);
        } else {
            let before = merged_map.get(name).cloned().unwrap_or_default();
            merged_map.insert(name.clone(), merged(&before, value));
        }
    }
    merged_map.into()
}

#[test]
fn every_bad_object_is_refused_for_its_reason_and_for_no_other() {
    let checker = Checker::new();
    let mut wrong = Vec::new();
    let cases = cases();
    for Bad { story, at, why, old, new } in &cases {
        let refusals = checker.refusals(new, old.as_ref());
        let why = why.as_deref().unwrap();
        let expected = |refusal: &crate::checker::Refusal| &refusal.at == at && refusal.why.contains(why);
        if refusals.is_empty() || !refusals.iter().all(expected) {
            wrong.push(format!("{story}\n  wanted {at}: {why}\n  found  {refusals:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases.len() >= 40, "only {} cases", cases.len());
}

#[test]
fn what_a_bad_object_was_made_from_is_good() {
    let checker = Checker::new();
    for (file, table) in tables() {
        assert_eq!(checker.refusals(&table.base, None), [], "{file}");
    }
    for Bad { story, old, .. } in cases() {
        if let Some(old) = old {
            assert_eq!(checker.refusals(&old, None), [], "{story}: was");
        }
    }
}

/// Each rule of each kind has at least one object that only it refuses: a rule that nothing breaks guards nothing.
#[test]
fn every_rule_refuses_something() {
    let whys: Vec<String> = cases().into_iter().filter_map(|case| case.why).collect();
    for kind in crate::walk::kinds() {
        let mut unused = Vec::new();
        crate::walk::each(&kind, &mut |place| {
            for rule in crate::walk::rules(place.schema) {
                let message = rule["message"].as_str().unwrap();
                if !whys.iter().any(|why| message.contains(why.as_str())) {
                    unused.push(format!("{} {message}", place.path));
                }
            }
        });
        assert!(unused.is_empty(), "no bad object for\n{}", unused.join("\n"));
    }
}

#[test]
fn the_table_can_be_exported() {
    let accepted = |(story, old, new)| Bad { story, at: String::new(), why: None, old, new };
    let good = crate::good::documents().into_iter().map(|(story, new)| (story, None, new));
    let moves = crate::moves::moves().into_iter().map(|(story, old, new)| (story, Some(old), new));
    let all: Vec<Bad> = good.chain(moves).map(accepted).chain(cases()).collect();
    let json = serde_json::to_string_pretty(&all).unwrap();
    if let Some(file) = env::var_os("EXPORT_OBJECTS") {
        fs::write(file, json).unwrap();
    }
}
