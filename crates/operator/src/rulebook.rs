//! Rulebook: which rules a node is watched by. Made when remedies change, and not at every look.

use std::collections::BTreeMap;

use palisade_api::NodeRemedy;
use palisade_core::resolve::{Look, Rule, default_rules, rules, selects};
use palisade_core::vet::Source;

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

    /// What kind of evidence a rule brings. Of a rule that is gone the kind that has to show most: a lease's silence needs a witness.
    pub(crate) fn source(&self, name: &str) -> Source {
        let all = self.remedies.iter().flat_map(|(_, rules)| rules).chain(&self.built_in);
        match all.into_iter().find(|rule| *rule.name == *name).map(|rule| &rule.look) {
            Some(Look::Condition(_) | Look::Nothing) => Source::Condition,
            Some(Look::Lease(_)) | None => Source::Lease,
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_is_known_by_what_it_looks_at_and_not_by_its_name() {
        let remedy = |thresholds: serde_json::Value| -> NodeRemedy {
            serde_json::from_value(serde_json::json!({
                "apiVersion": "palisade.dev/v1alpha1", "kind": "NodeRemedy", "metadata": { "name": "r" },
                "spec": { "thresholds": thresholds },
            }))
            .unwrap()
        };
        let silent =
            serde_json::json!([{ "name": "gone-quiet", "lease": { "missed": 3 }, "first": { "name": "off" } }]);
        let book = Rulebook::of(&BTreeMap::from([("r".to_owned(), remedy(silent))]));
        let names: Vec<_> = book.rules_for(&BTreeMap::new()).into_iter().map(|rule| rule.name.clone()).collect();
        assert_eq!(book.source(&names[0]), Source::Lease);
        assert_eq!(book.source("built-in/ready-unknown"), Source::Condition);
        assert_eq!(book.source("nobody/knows"), Source::Lease);
    }
}
