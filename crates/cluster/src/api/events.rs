//! Events stand in the store once, as core/v1; `events.k8s.io/v1` shows the same ones in a newer dress.

use serde_json::Value;

/// The words of core/v1, and of `events.k8s.io/v1` for the same thing.
const WORDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("count", "deprecatedCount"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("source", "deprecatedSource"),
];

/// As `events.k8s.io/v1` shows it.
pub(crate) fn newer(event: &Value) -> Value {
    let mut event = event.clone();
    rename(&mut event, |(old, new)| (old, new));
    event["apiVersion"] = "events.k8s.io/v1".into();
    event
}

/// As it stands in the store, whichever way it came.
pub(crate) fn older(mut event: Value) -> Value {
    rename(&mut event, |(old, new)| (new, old));
    event["apiVersion"] = "v1".into();
    event
}

fn rename(event: &mut Value, direction: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(fields) = event.as_object_mut() else { return };
    for (from, to) in WORDS.into_iter().map(direction) {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_can_change_its_dress_and_back() {
        let core = json!({"apiVersion": "v1", "kind": "Event", "involvedObject": {"name": "n1"}, "message": "off",
            "reason": "Fenced", "count": 2});
        let new = newer(&core);
        assert_eq!(new["regarding"]["name"], "n1");
        assert_eq!(new["note"], "off");
        assert_eq!(older(new), core);
    }
}
