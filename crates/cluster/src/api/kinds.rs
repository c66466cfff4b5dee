//! Which kinds there are: the built-in ones, and those that custom resource definitions add while the cluster runs.
//!
//! Promise: a [`Kind`] never changes its meaning, also not when its definition is deleted and made again.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use super::custom::Custom;

/// A kind of object, as a small number that can be copied and ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind(u16);

type Text = Cow<'static, str>;

/// What the API server knows about a kind.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "a kind has many habits that it has or has not")]
pub struct Definition {
    /// The kind that this defines.
    pub kind: Kind,
    /// The API group; empty for the core group.
    pub group: Text,
    /// The version in which objects are stored and, unless another is asked for, served.
    pub version: Text,
    /// Every version that is served, the stored one among them.
    pub served: Vec<Text>,
    /// `NodeFence`.
    pub name: Text,
    /// `nodefences`, as in a path.
    pub plural: Text,
    /// `nodefence`.
    pub singular: Text,
    /// `nf`, for kubectl.
    pub short_names: Vec<Text>,
    /// Groups of kinds that kubectl shows together, such as `all`.
    pub categories: Vec<Text>,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
    /// Whether `/status` is written apart from the rest.
    pub has_status: bool,
    /// Whether `metadata.generation` counts the changes of what is wished for.
    pub has_generation: bool,
    /// Whether a PUT may leave out the resourceVersion.
    pub blind_updates: bool,
    /// Whether DELETE answers with the deleted object rather than with a Status.
    pub answers_deleted: bool,
    /// Schema, rules and columns, where a custom resource definition gave them.
    pub custom: Option<Arc<Custom>>,
}

impl Definition {
    /// `v1` or `apps/v1`.
    pub fn api_version(&self) -> String {
        self.api_version_of(&self.version)
    }

    /// The same for another version than the stored one.
    pub(crate) fn api_version_of(&self, version: &str) -> String {
        if self.group.is_empty() { version.to_owned() } else { format!("{}/{version}", self.group) }
    }

    /// `pods` or `nodefences.palisade.dev`, as in messages.
    pub fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.to_string() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// A row of the table below.
struct BuiltIn {
    group: &'static str,
    version: &'static str,
    name: &'static str,
    plural: &'static str,
    short_names: &'static [&'static str],
    traits: &'static [Trait],
}

#[derive(Clone, Copy, PartialEq)]
enum Trait {
    Namespaced,
    Status,
    Generation,
    /// A PUT without resourceVersion is refused.
    Careful,
    /// DELETE answers with the object.
    AnswersDeleted,
    /// Member of kubectl's category `all`.
    All,
}
use Trait::{All, AnswersDeleted, Careful, Generation, Namespaced, Status};

macro_rules! built_in {
    ($($id:ident $group:literal $version:literal $name:literal $plural:literal [$($short:literal)*] [$($trait:ident)*])*) => {
        #[allow(clippy::upper_case_acronyms, reason = "these are the names of the constants below")]
        #[allow(non_camel_case_types, reason = "these are the names of the constants below")]
        enum Row { $($id),* }

        impl Kind {
            $(#[doc = concat!("`", $name, "`")] pub const $id: Kind = Kind(Row::$id as u16);)*
        }

        const BUILT_IN: &[BuiltIn] = &[$(BuiltIn {
            group: $group, version: $version, name: $name, plural: $plural,
            short_names: &[$($short),*], traits: &[$($trait),*],
        }),*];
    };
}

built_in! {
    NAMESPACE "" "v1" "Namespace" "namespaces" ["ns"] [Status]
    NODE "" "v1" "Node" "nodes" ["no"] [Status]
    POD "" "v1" "Pod" "pods" ["po"] [Namespaced Status Generation AnswersDeleted All]
    LEASE "coordination.k8s.io" "v1" "Lease" "leases" [] [Namespaced Careful]
    EVENT "" "v1" "Event" "events" ["ev"] [Namespaced]
    PERSISTENT_VOLUME "" "v1" "PersistentVolume" "persistentvolumes" ["pv"] [Status AnswersDeleted]
    PERSISTENT_VOLUME_CLAIM "" "v1" "PersistentVolumeClaim" "persistentvolumeclaims" ["pvc"] [Namespaced Status AnswersDeleted]
    STORAGE_CLASS "storage.k8s.io" "v1" "StorageClass" "storageclasses" ["sc"] [AnswersDeleted]
    CSI_DRIVER "storage.k8s.io" "v1" "CSIDriver" "csidrivers" [] [AnswersDeleted]
    CSI_NODE "storage.k8s.io" "v1" "CSINode" "csinodes" [] [AnswersDeleted]
    VOLUME_ATTACHMENT "storage.k8s.io" "v1" "VolumeAttachment" "volumeattachments" [] [Status AnswersDeleted]
    STATEFUL_SET "apps" "v1" "StatefulSet" "statefulsets" ["sts"] [Namespaced Status Generation All]
    REPLICA_SET "apps" "v1" "ReplicaSet" "replicasets" ["rs"] [Namespaced Status Generation All]
    DAEMON_SET "apps" "v1" "DaemonSet" "daemonsets" ["ds"] [Namespaced Status Generation All]
    DEPLOYMENT "apps" "v1" "Deployment" "deployments" ["deploy"] [Namespaced Status Generation All]
    CONTROLLER_REVISION "apps" "v1" "ControllerRevision" "controllerrevisions" [] [Namespaced]
    JOB "batch" "v1" "Job" "jobs" [] [Namespaced Status Generation All]
    POD_DISRUPTION_BUDGET "policy" "v1" "PodDisruptionBudget" "poddisruptionbudgets" ["pdb"] [Namespaced Status Generation Careful]
    SECRET "" "v1" "Secret" "secrets" [] [Namespaced]
    CONFIG_MAP "" "v1" "ConfigMap" "configmaps" ["cm"] [Namespaced]
    SERVICE "" "v1" "Service" "services" ["svc"] [Namespaced Status AnswersDeleted All]
    ENDPOINTS "" "v1" "Endpoints" "endpoints" ["ep"] [Namespaced]
    SERVICE_ACCOUNT "" "v1" "ServiceAccount" "serviceaccounts" ["sa"] [Namespaced AnswersDeleted]
    PRIORITY_CLASS "scheduling.k8s.io" "v1" "PriorityClass" "priorityclasses" ["pc"] []
    CUSTOM_RESOURCE_DEFINITION "apiextensions.k8s.io" "v1" "CustomResourceDefinition" "customresourcedefinitions" ["crd" "crds"] [Status Generation Careful]
}

/// The group that serves Events a second time, in a newer dress (`events.rs`).
pub(crate) const EVENTS_GROUP: &str = "events.k8s.io";

/// All kinds that there are at the moment.
#[derive(Debug)]
pub struct Registry {
    definitions: BTreeMap<Kind, Arc<Definition>>,
    /// Group and plural of every kind that there ever was: a definition that comes back gets its number again.
    numbers: BTreeMap<(Text, Text), Kind>,
}

impl Registry {
    /// The built-in kinds.
    pub(crate) fn new() -> Self {
        let mut registry = Self { definitions: BTreeMap::new(), numbers: BTreeMap::new() };
        for row in BUILT_IN {
            let kind = registry.number(row.group.into(), row.plural.into());
            registry.definitions.insert(kind, Arc::new(row.definition(kind)));
        }
        registry
    }

    /// What is known about a kind; nothing if its definition is gone.
    pub fn get(&self, kind: Kind) -> Option<&Arc<Definition>> {
        self.definitions.get(&kind)
    }

    /// All definitions, built-in ones first, then in the order in which they came.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Definition>> {
        self.definitions.values()
    }

    /// The kind of a group with a name such as `NodeFence`.
    pub fn named(&self, group: &str, name: &str) -> Option<&Arc<Definition>> {
        self.all().find(|definition| definition.name == name && definition.group == group)
    }

    /// The kind that a path names, if it is served in that version.
    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Definition>> {
        let group = if group == EVENTS_GROUP && plural == "events" { "" } else { group };
        self.all().find(|definition| {
            definition.plural == plural && definition.group == group && definition.served.iter().any(|v| v == version)
        })
    }

    /// Adds or changes a kind. The definition is made with the number that the kind has.
    pub(crate) fn define(&mut self, group: &str, plural: &str, make: impl FnOnce(Kind) -> Definition) -> Kind {
        let kind = self.number(group.to_owned().into(), plural.to_owned().into());
        self.definitions.insert(kind, Arc::new(make(kind)));
        kind
    }

    /// Forgets a kind, but not its number.
    pub(crate) fn forget(&mut self, kind: Kind) {
        self.definitions.remove(&kind);
    }

    fn number(&mut self, group: Text, plural: Text) -> Kind {
        let next = Kind(u16::try_from(self.numbers.len()).unwrap_or(u16::MAX));
        *self.numbers.entry((group, plural)).or_insert(next)
    }
}

impl BuiltIn {
    fn definition(&self, kind: Kind) -> Definition {
        let is = |wanted| self.traits.contains(&wanted);
        Definition {
            kind,
            group: self.group.into(),
            version: self.version.into(),
            served: vec![self.version.into()],
            name: self.name.into(),
            plural: self.plural.into(),
            singular: self.name.to_lowercase().into(),
            short_names: self.short_names.iter().map(|&name| name.into()).collect(),
            categories: if is(All) { vec!["all".into()] } else { Vec::new() },
            namespaced: is(Namespaced),
            has_status: is(Status),
            has_generation: is(Generation),
            blind_updates: !is(Careful),
            answers_deleted: is(AnswersDeleted),
            custom: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_and_table_agree() {
        let registry = Registry::new();
        assert_eq!(registry.get(Kind::POD).unwrap().name, "Pod");
        assert_eq!(registry.get(Kind::CUSTOM_RESOURCE_DEFINITION).unwrap().name, "CustomResourceDefinition");
        assert_eq!(registry.all().count(), BUILT_IN.len());
    }

    #[test]
    fn events_are_one_kind_in_two_groups() {
        let registry = Registry::new();
        assert_eq!(registry.resource("events.k8s.io", "v1", "events").unwrap().kind, Kind::EVENT);
        assert_eq!(registry.resource("", "v1", "events").unwrap().kind, Kind::EVENT);
        assert!(registry.resource("events.k8s.io", "v1", "pods").is_none());
    }

    #[test]
    fn a_kind_that_comes_back_keeps_its_number() {
        let mut registry = Registry::new();
        let pod = registry.get(Kind::POD).unwrap().as_ref().clone();
        let first = registry.define("x.dev", "things", |kind| Definition { kind, ..pod.clone() });
        let other = registry.define("x.dev", "others", |kind| Definition { kind, ..pod.clone() });
        registry.forget(first);
        assert!(registry.get(first).is_none());
        assert_eq!(registry.define("x.dev", "things", |kind| Definition { kind, ..pod.clone() }), first);
        assert_ne!(first, other);
    }
}
