//! Audit: what Palisade's account asked the API server for, against what `deploy/palisade.yaml` lets it do.
//!
//! Promise: a request that was denied is found, and so is a right that nobody used.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::install;
use crate::lab::Lab;

/// A verb on a resource, in a namespace where the right is for one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    group: String,
    resource: String,
    verb: String,
    namespace: Option<String>,
}

impl fmt::Display for Use {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " in {namespace}"))
    }
}

/// The log of one lab, read as it grows.
#[derive(Debug)]
pub struct Audit {
    log: PathBuf,
    read: u64,
    used: BTreeSet<Use>,
}

impl Audit {
    /// The log of a lab, from its beginning.
    pub fn of(lab: &Lab) -> Self {
        Self { log: lab.run().dir().join("audit.log"), read: 0, used: BTreeSet::new() }
    }

    /// Reads what was written since the last look, and says what of it was denied.
    pub fn look(&mut self) -> Result<BTreeSet<Use>> {
        let mut text = String::new();
        let mut file = File::open(&self.log).with_context(|| format!("cannot read {}", self.log.display()))?;
        file.seek(SeekFrom::Start(self.read))?;
        file.read_to_string(&mut text)?;
        // Half a line is left for the next look.
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole as u64;
        let events = text[..whole].lines().filter_map(|line| serde_json::from_str(line).ok());
        Ok(events.filter_map(|event: Value| self.take(&event)).collect())
    }

    /// Everything that was asked for.
    pub fn used(&self) -> &BTreeSet<Use> {
        &self.used
    }

    /// Notes a request; says what was denied, if it was.
    fn take(&mut self, event: &Value) -> Option<Use> {
        let text = |path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        let resource = match text("/objectRef/subresource") {
            part if part.is_empty() => text("/objectRef/resource"),
            part => format!("{}/{part}", text("/objectRef/resource")),
        };
        let namespace = Some(text("/objectRef/namespace")).filter(|namespace| !namespace.is_empty());
        let used = Use { group: text("/objectRef/apiGroup"), resource, verb: text("/verb"), namespace };
        self.used.insert(used.clone());
        (text("/annotations/authorization.k8s.io~1decision") == "forbid").then_some(used)
    }
}

/// Every right of `deploy/palisade.yaml` that nobody used.
pub fn unused(used: &BTreeSet<Use>) -> Result<Vec<Use>> {
    let is_used = |right: &Use| {
        used.iter().any(|used| {
            (&used.group, &used.resource, &used.verb) == (&right.group, &right.resource, &right.verb)
                && (right.namespace.is_none() || right.namespace == used.namespace)
        })
    };
    Ok(granted()?.into_iter().filter(|right| !is_used(right)).collect())
}

/// Everything that is granted.
fn granted() -> Result<Vec<Use>> {
    let mut all = Vec::new();
    for object in install::deploy()? {
        if object["kind"] != "ClusterRole" && object["kind"] != "Role" {
            continue;
        }
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        for rule in object["rules"].as_array().into_iter().flatten() {
            let words = |field: &str| -> Vec<String> {
                let list = rule[field].as_array().into_iter().flatten();
                list.filter_map(Value::as_str).map(str::to_owned).collect()
            };
            for group in words("apiGroups") {
                for resource in words("resources") {
                    all.extend(words("verbs").into_iter().map(|verb| Use {
                        group: group.clone(),
                        resource: resource.clone(),
                        verb,
                        namespace: namespace.map(str::to_owned),
                    }));
                }
            }
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn audit() -> Audit {
        Audit { log: PathBuf::new(), read: 0, used: BTreeSet::new() }
    }

    fn event(verb: &str, resource: &str, namespace: &str, decision: &str) -> Value {
        json!({
            "verb": verb, "objectRef": { "resource": resource, "namespace": namespace },
            "annotations": { "authorization.k8s.io/decision": decision },
        })
    }

    #[test]
    fn a_right_is_used_only_where_it_is_granted() {
        let mut audit = audit();
        audit.take(&event("get", "secrets", "default", "allow"));
        let unused = |audit: &Audit| unused(&audit.used).unwrap().iter().any(|right| right.resource == "secrets");
        assert!(unused(&audit));
        audit.take(&event("get", "secrets", "palisade-system", "allow"));
        assert!(!unused(&audit));
    }

    #[test]
    fn what_was_denied_is_told() {
        let mut audit = audit();
        assert_eq!(audit.take(&event("list", "pods", "", "allow")), None);
        let denied = audit.take(&event("list", "secrets", "", "forbid")).unwrap();
        assert_eq!(denied.to_string(), "list secrets");
    }

    #[test]
    fn nothing_is_granted_by_a_wildcard() {
        let all = granted().unwrap();
        assert!(all.len() > 30, "{} rights", all.len());
        let words = |right: &Use| [right.group.clone(), right.resource.clone(), right.verb.clone()].concat();
        assert!(!all.iter().any(|right| words(right).contains('*')));
    }
}
