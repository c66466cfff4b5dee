//! `kubectl get` shows what is there: every column leads to a field of its type.

use serde_json::Value;

use crate::walk::{Kind, kinds};

/// The schema at a JSON path such as `.status.conditions[?(@.type=='Ready')].status`.
fn resolve<'a>(schema: &'a Value, path: &str) -> &'a Value {
    let mut plain = String::new();
    let mut inside = false;
    for c in path.chars() {
        match c {
            '[' => (plain.push_str(".[]"), inside = true).1,
            ']' => inside = false,
            _ if inside => {}
            _ => plain.push(c),
        }
    }
    plain.trim_start_matches('.').split('.').fold(schema, |schema, part| match part {
        "[]" => &schema["items"],
        name => &schema["properties"][name],
    })
}

fn columns(kind: &Kind) -> impl Iterator<Item = &Value> {
    kind.crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().into_iter().flatten()
}

#[test]
fn every_column_leads_to_a_field_of_its_type() {
    for kind in kinds() {
        for column in columns(&kind) {
            let path = column["jsonPath"].as_str().unwrap();
            if path == ".metadata.creationTimestamp" {
                continue;
            }
            let schema = resolve(&kind.schema, path);
            assert_eq!(schema["type"], column["type"], "{} {path}", kind.name);
        }
    }
}

/// An API server shows the first match of a path and leaves out the others.
#[test]
fn no_column_leads_to_more_than_one_value() {
    for kind in kinds() {
        for column in columns(&kind) {
            let path = column["jsonPath"].as_str().unwrap();
            assert!(!path.contains('*') && !path.contains(".."), "{} {path}", kind.name);
        }
    }
}

#[test]
fn every_kind_that_is_accepted_shows_it() {
    for kind in kinds() {
        let tells = kind.schema["properties"]["status"]["properties"]["conditions"]["description"].as_str();
        if tells.is_some_and(|text| text.contains("Accepted")) {
            let shows = |column: &Value| column["jsonPath"] == ".status.conditions[?(@.type=='Accepted')].status";
            assert!(columns(&kind).any(shows), "{}", kind.name);
        }
    }
}

#[test]
fn every_condition_in_a_column_is_a_known_one() {
    let known = [
        palisade_api::conditions::ACCEPTED,
        palisade_api::conditions::OBSERVING,
        palisade_api::conditions::DEVICES_HEALTHY,
        palisade_api::conditions::ATTENTION,
    ];
    for kind in kinds() {
        for column in columns(&kind) {
            if let Some((_, rest)) = column["jsonPath"].as_str().unwrap().split_once("@.type=='") {
                assert!(known.contains(&rest.split('\'').next().unwrap()), "{} {rest}", kind.name);
            }
        }
    }
}

#[test]
fn every_kind_is_easy_to_find() {
    for kind in kinds() {
        let names = &kind.crd["spec"]["names"];
        assert!(!names["shortNames"].as_array().unwrap().is_empty(), "{}", kind.name);
        assert_eq!(names["categories"][0], "palisade", "{}", kind.name);
        assert!(kind.crd["spec"]["versions"][0]["subresources"]["status"].is_object(), "{}", kind.name);
        assert_eq!(columns(&kind).last().unwrap()["name"], "Age", "{}", kind.name);
    }
}
