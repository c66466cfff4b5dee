//! Label and field selectors: which objects a list, a watch or a budget is about.

use serde_json::Value;

use super::{jsonpath::is_text, kinds::Kind, metadata, status::Status};

/// A selector over labels. The empty one selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels(Vec<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    test: Test,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
}

impl Labels {
    /// Reads a selector of a query: `app=db,tier in (a, b),!canary`.
    pub fn parse(text: &str) -> Result<Self, Status> {
        split(text)
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(Requirement::parse)
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Reads a `LabelSelector` of an object; nothing selects nothing, and an empty one everything.
    pub fn of(selector: Option<&Value>) -> Option<Self> {
        let selector = selector?;
        let words = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let equal = selector["matchLabels"].as_object().into_iter().flatten().map(|(key, value)| Requirement {
            key: key.clone(),
            test: Test::In(vec![value.as_str().unwrap_or_default().to_owned()]),
        });
        let expressions = selector["matchExpressions"].as_array().into_iter().flatten().filter_map(|expression| {
            let values = words(&expression["values"]);
            let test = match expression["operator"].as_str()? {
                "In" => Test::In(values),
                "NotIn" => Test::NotIn(values),
                "Exists" => Test::Exists,
                "DoesNotExist" => Test::Missing,
                _ => return None,
            };
            Some(Requirement { key: expression["key"].as_str()?.to_owned(), test })
        });
        Some(Self(equal.chain(expressions).collect()))
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it selects an object.
    pub fn select(&self, object: &Value) -> bool {
        self.0.iter().all(|requirement| requirement.holds(metadata::label(object, &requirement.key)))
    }
}

impl Requirement {
    fn parse(text: &str) -> Result<Self, Status> {
        let text = text.trim();
        let new = |key: &str, test| Ok(Self { key: key.trim().to_owned(), test });
        let one = |value: &str| vec![value.trim().to_owned()];
        if let Some(key) = text.strip_prefix('!') {
            return new(key, Test::Missing);
        }
        if let Some((head, list)) = text.split_once('(') {
            let Some(list) = list.strip_suffix(')') else { return Err(unreadable(text)) };
            let values = list.split(',').map(|value| value.trim().to_owned()).collect();
            let head = head.trim();
            return match head.rsplit_once(char::is_whitespace) {
                Some((key, "in")) => new(key, Test::In(values)),
                Some((key, "notin")) => new(key, Test::NotIn(values)),
                _ => Err(unreadable(text)),
            };
        }
        if let Some((key, value)) = text.split_once("!=") {
            return new(key, Test::NotIn(one(value)));
        }
        if let Some((key, value)) = text.split_once('=') {
            return new(key, Test::In(one(value.trim_start_matches('='))));
        }
        if text.contains(char::is_whitespace) { Err(unreadable(text)) } else { new(text, Test::Exists) }
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let is_one_of = |values: &[String]| label.is_some_and(|label| values.iter().any(|value| value == label));
        match &self.test {
            Test::In(values) => is_one_of(values),
            // An object without the label is not one of those either.
            Test::NotIn(values) => !is_one_of(values),
            Test::Exists => label.is_some(),
            Test::Missing => label.is_none(),
        }
    }
}

fn unreadable(text: &str) -> Status {
    Status::bad_request(format!("unable to parse requirement: {text:?}"))
}

/// At commas, but not at those in parentheses.
fn split(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_u32);
    for (index, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

/// A selector over fields: a few of each kind, equal or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fields(Vec<FieldTest>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct FieldTest {
    pointer: String,
    value: String,
    equal: bool,
}

impl Fields {
    /// Reads a selector such as `spec.nodeName=n1,status.phase!=Failed`.
    pub fn parse(kind: Kind, text: &str) -> Result<Self, Status> {
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts
            .map(|part| {
                let (field, value, equal) = match (part.split_once("!="), part.split_once('=')) {
                    (Some((field, value)), _) => (field, value, false),
                    (None, Some((field, value))) => (field, value.trim_start_matches('='), true),
                    (None, None) => {
                        let why = format!("invalid selector: '{part}'; can't understand '{part}'");
                        return Err(Status::bad_request(why));
                    }
                };
                // events.k8s.io calls it so; the store keeps events as core/v1 does.
                let field = &field.replace("regarding.", "involvedObject.");
                if !is_selectable(kind, field) {
                    return Err(Status::bad_request(format!("field label not supported: {field}")));
                }
                let pointer = format!("/{}", field.replace('.', "/"));
                Ok(FieldTest { pointer, value: value.to_owned(), equal })
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Whether it selects everything.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether it selects an object.
    pub fn select(&self, object: &Value) -> bool {
        self.0.iter().all(|test| {
            let is_equal = match object.pointer(&test.pointer) {
                None | Some(Value::Null) if test.pointer == "/spec/unschedulable" => test.value == "false",
                None | Some(Value::Null) => test.value.is_empty(),
                Some(other) => is_text(other, &test.value),
            };
            is_equal == test.equal
        })
    }
}

fn is_selectable(kind: Kind, field: &str) -> bool {
    if matches!(field, "metadata.name" | "metadata.namespace") {
        return true;
    }
    match kind {
        Kind::POD => matches!(
            field,
            "spec.nodeName"
                | "spec.restartPolicy"
                | "spec.schedulerName"
                | "spec.serviceAccountName"
                | "status.phase"
                | "status.podIP"
                | "status.nominatedNodeName"
        ),
        Kind::NODE => field == "spec.unschedulable",
        Kind::EVENT => {
            field.starts_with("involvedObject.") || matches!(field, "reason" | "type" | "reportingComponent")
        }
        Kind::NAMESPACE => field == "status.phase",
        Kind::SECRET => field == "type",
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn selects(selector: &str, labels: &Value) -> bool {
        Labels::parse(selector).unwrap().select(&json!({"metadata": {"labels": labels}}))
    }

    #[test]
    fn labels_are_selected_as_kubectl_writes_it() {
        let db = json!({"app": "db", "tier": "a"});
        for yes in ["", "app=db", "app==db", "app!=web", "app in (web, db),tier", "tier notin (b,c)", "!canary", "x!=y"]
        {
            assert!(selects(yes, &db), "{yes}");
        }
        for no in ["app=web", "app!=db", "app in (web)", "!app", "canary", "tier notin (a,b)", "app=db,tier=b"] {
            assert!(!selects(no, &db), "{no}");
        }
        for broken in ["app in (a", "app of (a)", "app db"] {
            assert_eq!(Labels::parse(broken).unwrap_err().code, 400, "{broken}");
        }
    }

    #[test]
    fn a_selector_in_an_object_means_the_same() {
        let selector = json!({"matchLabels": {"app": "db"},
            "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["b"]}]});
        let labels = Labels::of(Some(&selector)).unwrap();
        assert!(labels.select(&json!({"metadata": {"labels": {"app": "db"}}})));
        assert!(!labels.select(&json!({"metadata": {"labels": {"app": "db", "tier": "b"}}})));
        assert_eq!(Labels::of(None), None);
        assert!(Labels::of(Some(&json!({}))).unwrap().is_empty());
    }

    #[test]
    fn fields_are_those_that_upstream_indexes() {
        let pod = json!({"metadata": {"name": "db-0"}, "spec": {"nodeName": "n1"}, "status": {"phase": "Running"}});
        let selects = |text| Fields::parse(Kind::POD, text).unwrap().select(&pod);
        assert!(selects("spec.nodeName=n1,status.phase!=Failed"));
        assert!(!selects("spec.nodeName=n2"));
        assert!(selects("status.nominatedNodeName="));
        assert_eq!(Fields::parse(Kind::POD, "spec.hostname=x").unwrap_err().code, 400);
        let open = Fields::parse(Kind::NODE, "spec.unschedulable=false").unwrap();
        assert!(open.select(&json!({"spec": {}})));
        assert!(!open.select(&json!({"spec": {"unschedulable": true}})));
    }
}
