//! The JSONPath of printer columns: fields, indexes, `[*]` and filters such as `[?(@.type=="Ready")]`.

use serde_json::Value;

/// A path, read once and followed many times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Field(String),
    Index(usize),
    Each,
    Where { field: Vec<String>, is: String },
}

impl JsonPath {
    /// Reads `.status.conditions[?(@.type=="Ready")].status`; nothing if it is something else.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim().trim_start_matches('{').trim_end_matches('}').trim_start_matches('$');
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('[') {
                let end = after.find(")]").map(|end| end + 1).filter(|_| after.starts_with('?'));
                let end = end.or_else(|| after.find(']'))?;
                steps.push(bracket(&after[..end])?);
                rest = &after[end + 1..];
            } else {
                let after = rest.strip_prefix('.').unwrap_or(rest);
                let end = after.find(['.', '[']).unwrap_or(after.len());
                match &after[..end] {
                    "" => return None,
                    "*" => steps.push(Step::Each),
                    name => steps.push(Step::Field(name.to_owned())),
                }
                rest = &after[end..];
            }
        }
        Some(Self(steps))
    }

    /// Everything that the path leads to.
    pub(crate) fn follow<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.0 {
            found = found.into_iter().flat_map(|value| step.take(value)).collect();
        }
        found
    }
}

fn bracket(text: &str) -> Option<Step> {
    let unquoted = |text: &str| text.trim().trim_matches(['\'', '"']).to_owned();
    if let Some(filter) = text.strip_prefix("?(") {
        let (left, right) = filter.strip_suffix(')')?.split_once("==")?;
        let field = left.trim().strip_prefix("@.")?.split('.').map(str::to_owned).collect();
        return Some(Step::Where { field, is: unquoted(right) });
    }
    match text {
        "*" => Some(Step::Each),
        quoted if quoted.starts_with(['\'', '"']) => Some(Step::Field(unquoted(quoted))),
        index => index.parse().ok().map(Step::Index),
    }
}

impl Step {
    fn take<'a>(&self, value: &'a Value) -> Vec<&'a Value> {
        let each = |value: &'a Value| -> Vec<&'a Value> {
            match value {
                Value::Array(items) => items.iter().collect(),
                Value::Object(fields) => fields.values().collect(),
                _ => Vec::new(),
            }
        };
        match self {
            Self::Field(name) => value.get(name).into_iter().collect(),
            Self::Index(index) => value.get(index).into_iter().collect(),
            Self::Each => each(value),
            Self::Where { field, is } => {
                let matches = |item: &&'a Value| {
                    let found = field.iter().try_fold(*item, |value, name| value.get(name));
                    found.is_some_and(|found| is_text(found, is))
                };
                each(value).into_iter().filter(matches).collect()
            }
        }
    }
}

/// Whether a value reads as a text, be it one or a number.
pub(crate) fn is_text(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => own == text,
        other => other.to_string().as_str() == text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_of_printer_columns_lead_somewhere() {
        let object = json!({"spec": {"levels": [{"name": "a"}, {"name": "b"}], "a.b": 3},
            "status": {"conditions": [{"type": "Ready", "status": "False"}, {"type": "Other", "status": "True"}]}});
        let follow = |path: &str| -> Vec<String> {
            JsonPath::parse(path).unwrap().follow(&object).into_iter().map(ToString::to_string).collect()
        };
        assert_eq!(follow(".spec.levels[*].name"), ["\"a\"", "\"b\""]);
        assert_eq!(follow(".spec.levels[1].name"), ["\"b\""]);
        assert_eq!(follow(".spec['a.b']"), ["3"]);
        assert_eq!(follow(".status.conditions[?(@.type=='Other')].status"), ["\"True\""]);
        assert_eq!(follow("{.status.conditions[?(@.type==\"Ready\")].status}"), ["\"False\""]);
        assert_eq!(follow(".status.missing"), [""; 0]);
        assert_eq!(JsonPath::parse(".a[b]"), None);
    }
}
