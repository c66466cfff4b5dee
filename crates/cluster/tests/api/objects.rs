//! The good, the bad and the moving objects of `crates/api`, judged by this API server.
//!
//! The tables are those that the schemas themselves are tested with.

use std::{fs, path::PathBuf};

use palisade_cluster::api::{DeleteOptions, Key, Kind, Part, Status};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::world::{World, refusal};

#[derive(Deserialize)]
struct Table {
    base: Value,
    #[serde(default)]
    cases: Vec<Case>,
    #[serde(default)]
    moves: Vec<Move>,
}

#[derive(Deserialize)]
struct Case {
    story: String,
    was: Option<Value>,
    change: Value,
    at: String,
    because: Option<String>,
    breaks: Option<String>,
}

impl Case {
    /// Its only fault is a field that nobody knows: it is dropped, unless one asks for strictness.
    fn is_unknown(&self) -> bool {
        self.breaks.as_deref() == Some("unknown")
    }
}

#[derive(Deserialize)]
struct Move {
    story: String,
    change: Value,
}

fn files(folder: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../api/tests/objects").join(folder);
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn tables(folder: &str) -> Vec<Table> {
    files(folder).iter().map(|file| serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap()).collect()
}

fn merged(base: &Value, change: &Value) -> Value {
    let mut object = base.clone();
    json_patch::merge(&mut object, change);
    object
}

impl World {
    /// Stores an object with its status, as somebody with all rights would; fields that nobody knows are refused.
    fn store(&self, object: &Value) -> Result<(), Status> {
        let kind = self.kind_of(object);
        let key = Key::of(kind, object);
        if let Some(namespace) = object["metadata"]["namespace"].as_str() {
            let _ = self.api.create(Kind::NAMESPACE, json!({"metadata": {"name": namespace}}));
        }
        if self.api.get(&key).is_none() {
            let made = self.api.create(kind, object.clone())?;
            if object.get("status").is_none() {
                return Ok(());
            }
            let mut whole = object.clone();
            whole["metadata"] = made["metadata"].clone();
            return self.api.replace(&key, Part::Whole, whole).map(drop);
        }
        let mut next = object.clone();
        next["metadata"]["resourceVersion"] = self.api.get(&key).unwrap()["metadata"]["resourceVersion"].clone();
        self.api.replace(&key, Part::Whole, next).map(drop)
    }

    fn kind_of(&self, object: &Value) -> Kind {
        let group = object["apiVersion"].as_str().unwrap().split('/').next().unwrap();
        self.api.kind(group, object["kind"].as_str().unwrap()).unwrap()
    }

    fn forget(&self, object: &Value) {
        let key = Key::of(self.kind_of(object), object);
        if self.api.get(&key).is_some() {
            self.api
                .update(&key, |object| drop(object["metadata"].as_object_mut().unwrap().remove("finalizers")))
                .unwrap();
            self.api.delete(&key, &DeleteOptions::default()).unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_good_object_is_accepted() {
    let world = World::new().with_crds();
    for file in files("good") {
        let documents: Vec<Value> = serde_saphyr::from_multiple(&fs::read_to_string(&file).unwrap()).unwrap();
        for object in documents {
            world.store(&object).unwrap_or_else(|status| panic!("{}: {status}", file.display()));
            world.forget(&object);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn every_rightful_move_is_accepted() {
    let world = World::new().with_crds();
    for Table { base, moves, .. } in tables("moves") {
        world.store(&base).unwrap();
        let mut now = base;
        for Move { story, change } in moves {
            now = merged(&now, &change);
            world.store(&now).unwrap_or_else(|status| panic!("{story}: {status}"));
        }
        world.forget(&now);
    }
}

#[tokio::test(start_paused = true)]
async fn every_bad_object_is_refused_where_it_is_bad() {
    let world = World::new().with_crds();
    let mut wrong = Vec::new();
    let mut count = 0;
    for Table { base, cases, .. } in tables("bad") {
        for case in cases {
            if case.is_unknown() {
                continue;
            }
            count += 1;
            let old = case.was.as_ref().map(|was| merged(&base, was));
            if let Some(old) = &old {
                world.store(old).unwrap_or_else(|status| panic!("{}: was: {status}", case.story));
            }
            let mut bad = merged(old.as_ref().unwrap_or(&base), &case.change);
            if let Some(old) = &old {
                // Nothing can be renamed: under another name it would be a new object.
                bad["metadata"]["name"] = old["metadata"]["name"].clone();
            }
            let judged = world.store(&bad);
            let told = judged.as_ref().err().map(|status| &status.details.causes[..]).unwrap_or_default();
            let at = if case.at.is_empty() { "<nil>" } else { case.at.as_str() };
            let because = case.because.as_deref().unwrap_or_default();
            let plain =
                |field: &str| field.replace(['[', ']'], ".").replace("..", ".").trim_end_matches('.').to_owned();
            if !told.iter().any(|cause| plain(&cause.field) == plain(at) && cause.message.contains(because)) {
                wrong.push(format!("{}\n  wanted {at}: {because}\n  found  {judged:?}", case.story));
            }
            world.forget(&bad);
            world.forget(&base);
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 40);
}

#[tokio::test(start_paused = true)]
async fn every_misspelt_field_is_refused_by_whoever_is_strict() {
    let world = World::new().with_crds();
    let mut count = 0;
    for Table { base, cases, .. } in tables("bad") {
        for case in cases.iter().filter(|case| case.is_unknown()) {
            count += 1;
            let bad = merged(&base, &case.change);
            let plural = &world.api.definition(world.kind_of(&bad)).unwrap().plural;
            let path = format!("/apis/{}/{plural}?fieldValidation=Strict", bad["apiVersion"].as_str().unwrap());
            let request = http::Request::post(path).body(serde_json::to_vec(&bad).unwrap()).unwrap();
            let status = refusal(world.client.request::<Value>(request).await);
            assert_eq!(status.code, 400, "{}", case.story);
            let told = format!("strict decoding error: unknown field \"{}\"", case.at);
            assert!(status.message.contains(&told), "{}: {}", case.story, status.message);
        }
    }
    assert!(count >= 5);
}
