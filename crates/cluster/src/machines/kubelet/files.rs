//! What a kubelet puts into a container before it starts it: the files of its Secrets.
//!
//! Promise: a pod whose Secret is not there, or lacks a key that it names, waits (`FailedMount`), unless it says that it can do without.
//! Left out: ConfigMaps and the downward API, which no program here reads.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    api::{Key, Kind, Store, metadata, secret},
    objects::{flag, items, text},
};

/// The files of a pod's first container, by path; nothing if one of its Secrets is not there.
pub(super) fn of_pod(store: &Store, pod: &Value) -> Option<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for volume in items(pod, "/spec/volumes") {
        let content = of_volume(store, metadata::namespace(pod), volume)?;
        let name = text(volume, "/name");
        for mount in items(pod, "/spec/containers/0/volumeMounts").filter(|mount| text(mount, "/name") == name) {
            let (place, only) = (text(mount, "/mountPath").trim_end_matches('/'), text(mount, "/subPath"));
            for (path, words) in &content {
                if only.is_empty() {
                    files.insert(format!("{place}/{path}"), words.clone());
                } else if only == path {
                    files.insert(place.to_owned(), words.clone());
                }
            }
        }
    }
    Some(files)
}

/// What is in a volume, by path inside it.
fn of_volume(store: &Store, namespace: &str, volume: &Value) -> Option<BTreeMap<String, String>> {
    let mut content = BTreeMap::new();
    if let Some(source) = volume.get("secret") {
        content.extend(of_secret(store, namespace, text(source, "/secretName"), source)?);
    }
    for source in items(volume, "/projected/sources").filter_map(|source| source.get("secret")) {
        content.extend(of_secret(store, namespace, text(source, "/name"), source)?);
    }
    Some(content)
}

fn of_secret(store: &Store, namespace: &str, name: &str, source: &Value) -> Option<BTreeMap<String, String>> {
    let optional = flag(source, "/optional");
    let Some(found) = store.get(&Key::new(Kind::SECRET, namespace, name)) else {
        return optional.then(BTreeMap::new);
    };
    let data = found.get("data").and_then(Value::as_object);
    let read = |key: &str| {
        let bytes = secret::bytes(data?.get(key)?.as_str()?)?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut wanted = items(source, "/items").peekable();
    let mut content = BTreeMap::new();
    if wanted.peek().is_none() {
        let keys = data.into_iter().flatten().map(|(key, _)| key);
        content.extend(keys.filter_map(|key| Some((key.clone(), read(key)?))));
    }
    for item in wanted {
        match read(text(item, "/key")) {
            Some(words) => drop(content.insert(text(item, "/path").to_owned(), words)),
            None if optional => {}
            None => return None,
        }
    }
    Some(content)
}
