//! What a URL asks for.

use std::{collections::BTreeMap, sync::Arc};

use http::Method;

use super::{
    kinds::{Definition, Registry},
    status::Status,
    store::Key,
};

/// What somebody wants to do, in the words of RBAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verb {
    /// One object.
    Get,
    /// Many objects.
    List,
    /// Changes as they happen.
    Watch,
    /// A new object, or one below another (`pods/eviction`).
    Create,
    /// PUT.
    Update,
    /// PATCH.
    Patch,
    /// One object.
    Delete,
    /// Many objects.
    DeleteCollection,
}

impl Verb {
    /// Whether the store may change.
    pub fn is_write(self) -> bool {
        !matches!(self, Self::Get | Self::List | Self::Watch)
    }

    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        }
    }
}

/// A kind as a path names it: Events have two groups, and a custom resource may have several versions.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) definition: Arc<Definition>,
    pub(crate) group: String,
    pub(crate) version: String,
}

/// What a path points to.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) served: Served,
    /// Empty: objects of the cluster, or of all namespaces.
    pub(crate) namespace: String,
    /// Empty: all of them.
    pub(crate) name: String,
    /// Empty: the object itself.
    pub(crate) subresource: String,
}

impl Place {
    pub(crate) fn key(&self) -> Key {
        Key::new(self.served.definition.kind, &self.namespace, &self.name)
    }

    /// Reads a path below `/api` or `/apis`; nothing if it is not about objects.
    pub(crate) fn read(registry: &Registry, path: &str) -> Option<Result<Self, Status>> {
        let segments: Vec<String> = path.split('/').filter(|segment| !segment.is_empty()).map(decoded).collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        let (group, version, rest) = match segments.as_slice() {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        let (namespace, rest) = match rest {
            [] => return None,
            // The namespace itself, not something in it.
            ["namespaces"] | ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
            ["namespaces", namespace, rest @ ..] => (*namespace, rest),
            rest => ("", rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, "", ""),
            [plural, name] => (*plural, *name, ""),
            [plural, name, subresource] => (*plural, *name, *subresource),
            _ => return Some(Err(Status::no_such_page())),
        };
        let Some(definition) = registry.resource(group, version, plural) else {
            return Some(Err(Status::no_such_page()));
        };
        if definition.namespaced == namespace.is_empty() && !(namespace.is_empty() && name.is_empty()) {
            return Some(Err(Status::no_such_page()));
        }
        let served =
            Served { definition: Arc::clone(definition), group: group.to_owned(), version: version.to_owned() };
        Some(Ok(Self {
            served,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            subresource: subresource.to_owned(),
        }))
    }

    /// What a method means here.
    pub(crate) fn verb(&self, method: &Method, query: &Query) -> Result<Verb, Status> {
        let one = !self.name.is_empty();
        match *method {
            Method::GET if !one && query.flag("watch") => Ok(Verb::Watch),
            Method::GET => Ok(if one { Verb::Get } else { Verb::List }),
            Method::POST if !one || !self.subresource.is_empty() => Ok(Verb::Create),
            Method::PUT if one => Ok(Verb::Update),
            Method::PATCH if one => Ok(Verb::Patch),
            Method::DELETE => Ok(if one { Verb::Delete } else { Verb::DeleteCollection }),
            _ => Err(Status::method_not_allowed()),
        }
    }
}

/// The parameters after the question mark.
#[derive(Clone, Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn read(text: Option<&str>) -> Self {
        Self(form_urlencoded::parse(text.unwrap_or_default().as_bytes()).into_owned().collect())
    }

    /// A parameter; empty if it is not there.
    pub(crate) fn text(&self, name: &str) -> &str {
        self.0.get(name).map_or("", String::as_str)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1")
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        match self.text(name) {
            "" => Ok(None),
            text => {
                let broken = |_| Status::bad_request(format!("invalid value for {name}: {text:?}"));
                text.parse().map(Some).map_err(broken)
            }
        }
    }
}

/// A segment without its percent signs. A plus stays a plus, other than in a query.
fn decoded(segment: &str) -> String {
    let escaped = segment.replace('+', "%2B");
    let mut pairs = form_urlencoded::parse(escaped.as_bytes());
    pairs.next().map(|(name, _)| name.into_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(path: &str) -> Option<Words> {
        let registry = Registry::new();
        let place = Place::read(&registry, path)?.ok()?;
        Some((place.served.definition.plural.to_string(), place.namespace, place.name, place.subresource))
    }

    type Words = (String, String, String, String);

    fn words(plural: &str, namespace: &str, name: &str, subresource: &str) -> Words {
        (plural.to_owned(), namespace.to_owned(), name.to_owned(), subresource.to_owned())
    }

    #[test]
    fn paths_name_kinds_objects_and_their_parts() {
        assert_eq!(read("/api/v1/nodes"), Some(words("nodes", "", "", "")));
        assert_eq!(read("/api/v1/nodes/n1/status"), Some(words("nodes", "", "n1", "status")));
        assert_eq!(read("/api/v1/pods"), Some(words("pods", "", "", "")));
        assert_eq!(read("/api/v1/namespaces/shop/pods/db-0/eviction"), Some(words("pods", "shop", "db-0", "eviction")));
        assert_eq!(read("/api/v1/namespaces/shop"), Some(words("namespaces", "", "shop", "")));
        assert_eq!(read("/api/v1/namespaces/shop/finalize"), Some(words("namespaces", "", "shop", "finalize")));
        let lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n1";
        assert_eq!(read(lease), Some(words("leases", "kube-node-lease", "n1", "")));
    }

    #[test]
    fn paths_that_point_nowhere_point_nowhere() {
        for path in ["/api/v1/dogs", "/api/v2/pods", "/api/v1/pods/db-0", "/api/v1/namespaces/shop/nodes/n1"] {
            assert_eq!(read(path), None, "{path}");
        }
        assert!(Place::read(&Registry::new(), "/version").is_none());
        assert!(Place::read(&Registry::new(), "/api/v1").is_none());
    }
}
