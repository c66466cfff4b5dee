//! Plans: how each node is fenced, worked out anew only when something that it is made of has changed.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use palisade_api::config::FenceConfigSpec;
use palisade_core::ident::{MethodName, NodeName};
use palisade_core::resolve::call::Call;
use palisade_core::resolve::{self, Wanted};
use palisade_core::settings::Settings;

use crate::view::View;

/// How one node is fenced.
#[derive(Debug)]
pub(crate) struct Plan {
    /// What `core` decides by.
    pub(crate) settings: Settings,
    /// What the executor needs besides.
    pub(crate) calls: Arc<BTreeMap<MethodName, Call>>,
}

/// The plan of a node, or why there is none.
pub(crate) type Made = Result<Arc<Plan>, String>;

/// The plans of all nodes that somebody asked for.
#[derive(Debug, Default)]
pub(crate) struct Plans {
    made: BTreeMap<NodeName, (Source, Made)>,
}

/// What a plan is made from, beside configs and templates.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    labels: BTreeMap<String, String>,
    /// The config that its fence began with, where there is no Node any more that could choose one.
    named: Option<String>,
    stay_off: bool,
    /// What the policy vouches for: a plan that rests on a word goes with it.
    declared_power: Vec<String>,
}

impl Source {
    fn is_still(&self, labels: &BTreeMap<String, String>, named: Option<&str>, view: &View) -> bool {
        self.labels == *labels && self.named.as_deref() == named && self.declared_power == view.declared_power()
    }
}

impl Plans {
    /// A FenceConfig or a FenceTemplate has changed.
    pub(crate) fn forget(&mut self) {
        self.made.clear();
    }

    /// Forgets the plans of nodes that are gone.
    pub(crate) fn tidy(&mut self, view: &View) {
        self.made.retain(|node, _| view.nodes().contains_key(node));
    }

    /// What the executor needs to reach this node's devices, for whoever asks now and then: thousands of plans that nobody needs
    /// otherwise are not kept for that. Nothing if the node cannot be fenced.
    pub(crate) fn calls_of(&self, node: &NodeName, view: &View) -> Option<Arc<BTreeMap<MethodName, Call>>> {
        let labels = &view.node(node)?.facts.as_ref()?.labels;
        if let Some((_, made)) = self.made.get(node).filter(|(from, _)| from.is_still(labels, None, view)) {
            return made.as_ref().ok().map(|plan| Arc::clone(&plan.calls));
        }
        make(node, labels, None, false, view).ok().map(|plan| Arc::clone(&plan.calls))
    }

    /// How this node is fenced.
    pub(crate) fn of(&mut self, node: &NodeName, view: &View) -> Made {
        let none = BTreeMap::new();
        let facts = view.node(node).and_then(|track| track.facts.as_ref());
        let labels = facts.map_or(&none, |facts| &facts.labels);
        let fence = view.fences.get(node);
        let stay_off = fence.is_some_and(|fence| fence.spec.stay_off);
        let named = fence.filter(|_| facts.is_none()).and_then(|fence| fence.spec.config.as_deref());
        match self.made.get(node) {
            Some((from, made)) if from.stay_off == stay_off && from.is_still(labels, named, view) => made.clone(),
            _ => {
                let made = make(node, labels, named, stay_off, view);
                let declared_power = view.declared_power().to_vec();
                let named = named.map(str::to_owned);
                let from = Source { labels: labels.clone(), named, stay_off, declared_power };
                self.made.insert(node.clone(), (from, made.clone()));
                made
            }
        }
    }
}

/// The name of the FenceConfig that counts for a node now, if there is one.
pub(crate) fn config_of(node: &NodeName, view: &View) -> Option<String> {
    let labels = &view.node(node)?.facts.as_ref()?.labels;
    resolve::config_for(node, labels, &configs(view)).ok().map(|(name, _)| name.to_owned())
}

fn configs(view: &View) -> BTreeMap<&str, &FenceConfigSpec> {
    view.configs.iter().map(|(name, one)| (name.as_str(), &one.spec)).collect()
}

fn make(node: &NodeName, labels: &BTreeMap<String, String>, named: Option<&str>, stay_off: bool, view: &View) -> Made {
    let configs = configs(view);
    let templates = view.templates.iter().map(|(name, one)| (name.as_str(), &one.spec)).collect();
    let wanted = Wanted { node, stay_off, revoking: &BTreeSet::new(), declared_power: view.declared_power() };
    let begun_with = named.and_then(|name| configs.get_key_value(name)).map(|(name, spec)| (*name, *spec));
    let resolved = begun_with
        .map_or_else(|| resolve::config_for(node, labels, &configs), Ok)
        .and_then(|(name, spec)| resolve::settings(name, spec, &templates, wanted))
        .map_err(|why| why.to_string())?;
    Ok(Arc::new(Plan { settings: resolved.settings, calls: Arc::new(resolved.calls) }))
}

#[cfg(test)]
mod tests {
    use palisade_api::{FenceConfig, FencePolicy, FenceTemplate};
    use serde_json::{Value, json};

    use super::*;

    fn object<K: serde::de::DeserializeOwned>(name: &str, spec: &Value) -> K {
        serde_json::from_value(json!({ "metadata": { "name": name }, "spec": spec })).unwrap()
    }

    fn by_word() -> View {
        let containers = json!([{ "name": "a", "image": "a" }]);
        let proves = json!({ "class": "Power", "withoutReadBack": true });
        let mine = json!({ "podTemplate": { "spec": { "containers": containers } }, "proves": proves });
        let methods = json!([{ "name": "mine", "template": "mine" }]);
        let levels = json!({ "levels": [{ "name": "a", "methods": methods }] });
        let config = json!({ "nodeSelector": {}, "stayOff": true, "powerManagement": levels });
        let mut view = View::default();
        view.templates.insert("mine".to_owned(), object::<FenceTemplate>("mine", &mine));
        view.configs.insert("c".to_owned(), object::<FenceConfig>("c", &config));
        view
    }

    #[test]
    fn a_node_that_is_gone_is_fenced_by_the_config_that_its_fence_began_with() {
        let (mut plans, mut view, node) = (Plans::default(), by_word(), NodeName::from("n1"));
        view.policy = Some(object::<FencePolicy>("cluster", &json!({ "declaredPower": ["mine"] })));
        let selects = json!({ "matchLabels": { "rack": "a" } });
        let config = view.configs.get_mut("c").unwrap();
        config.spec.node_selector = serde_json::from_value(selects).unwrap();
        assert!(plans.of(&node, &view).is_err(), "without its Node nobody knows the labels");
        let fence = json!({ "nodeName": "n1", "config": "c" });
        view.fences.insert(node.clone(), object::<palisade_api::NodeFence>("n1", &fence));
        assert!(plans.of(&node, &view).is_ok());
        let fence = json!({ "nodeName": "n1", "config": "gone-too" });
        view.fences.insert(node.clone(), object::<palisade_api::NodeFence>("n1", &fence));
        assert!(plans.of(&node, &view).is_err());
    }

    #[test]
    fn a_plan_by_a_pods_word_comes_and_goes_with_the_policy() {
        let (mut plans, mut view, node) = (Plans::default(), by_word(), NodeName::from("n1"));
        assert!(plans.of(&node, &view).is_err(), "without a policy nobody vouches");
        for (named, usable) in [(json!([]), false), (json!(["mine"]), true), (json!(["other"]), false)] {
            view.policy = Some(object::<FencePolicy>("cluster", &json!({ "declaredPower": named })));
            let made = plans.of(&node, &view);
            assert_eq!(made.is_ok(), usable, "{named}: {:?}", made.err());
        }
        view.policy = Some(object::<FencePolicy>("cluster", &json!({ "declaredPower": ["mine"] })));
        assert!(plans.of(&node, &view).is_ok());
        view.policy = None;
        assert!(plans.of(&node, &view).is_err(), "a policy that is gone vouches for nothing");
    }
}
