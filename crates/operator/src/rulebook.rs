//! Rulebook: which rules a node is watched by. Made when remedies change, and not at every look.

use std::collections::BTreeMap;

use palisade_api::NodeRemedy;
use palisade_core::resolve::{Rule, default_rules, rules, selects};

/// The rules of all remedies.
#[derive(Debug)]
pub(crate) struct Rulebook {
    remedies: Vec<(NodeRemedy, Vec<Rule>)>,
    /// For a cluster without any remedy.
    built_in: Vec<Rule>,
}

impl Default for Rulebook {
    fn default() -> Self {
        Self { remedies: Vec::new(), built_in: default_rules() }
    }
}

impl Rulebook {
    pub(crate) fn of(remedies: &BTreeMap<String, NodeRemedy>) -> Self {
        let remedies = remedies.iter().map(|(name, remedy)| (remedy.clone(), rules(name, &remedy.spec)));
        Self { remedies: remedies.collect(), ..Self::default() }
    }

    /// The rules for a node: those of the remedies with the highest priority that select it; without any remedy, the built-in
    /// ones.
    pub(crate) fn rules_for(&self, labels: &BTreeMap<String, String>) -> Vec<&Rule> {
        if self.remedies.is_empty() {
            return self.built_in.iter().collect();
        }
        let selected = |remedy: &NodeRemedy| remedy.spec.node_selector.as_ref().is_none_or(|one| selects(one, labels));
        let chosen: Vec<_> = self.remedies.iter().filter(|(remedy, _)| selected(remedy)).collect();
        let highest = chosen.iter().map(|(remedy, _)| remedy.spec.priority).max();
        let best = chosen.into_iter().filter(|(remedy, _)| Some(remedy.spec.priority) == highest);
        best.flat_map(|(_, rules)| rules).collect()
    }
}
