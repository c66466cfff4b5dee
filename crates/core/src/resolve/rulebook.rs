//! Resolve / rulebook: which rules a node is watched by. Made when remedies change, and not at every look.

use std::collections::BTreeMap;

use palisade_api::remedy::NodeRemedySpec;
use palisade_api::selector::LabelSelector;

use super::remedy::{Look, Rule, default_rules, rules};
use super::selects;
use crate::vet::Source;

/// The rules of all remedies.
#[derive(Debug)]
pub struct Rulebook {
    remedies: Vec<Chapter>,
    /// For a cluster without any remedy.
    built_in: Vec<Rule>,
}

/// One remedy.
#[derive(Debug)]
struct Chapter {
    priority: i32,
    selector: Option<LabelSelector>,
    rules: Vec<Rule>,
}

impl Default for Rulebook {
    fn default() -> Self {
        Self { remedies: Vec::new(), built_in: default_rules() }
    }
}

impl Rulebook {
    /// The rules of these remedies, by name.
    pub fn of<'a>(remedies: impl IntoIterator<Item = (&'a str, &'a NodeRemedySpec)>) -> Self {
        let chapter = |(name, spec): (&str, &NodeRemedySpec)| Chapter {
            priority: spec.priority,
            selector: spec.node_selector.clone(),
            rules: rules(name, spec),
        };
        Self { remedies: remedies.into_iter().map(chapter).collect(), ..Self::default() }
    }

    /// What kind of evidence a rule brings. Of a rule that is gone the kind that has to show most: a lease's silence needs a witness.
    pub fn source(&self, name: &str) -> Source {
        let all = self.remedies.iter().flat_map(|chapter| &chapter.rules).chain(&self.built_in);
        match all.into_iter().find(|rule| *rule.name == *name).map(|rule| &rule.look) {
            Some(Look::Condition(_) | Look::Nothing) => Source::Condition,
            Some(Look::Lease(_)) | None => Source::Lease,
        }
    }

    /// The rules for a node: those of the remedies with the highest priority that select it; without any remedy, the built-in
    /// ones.
    pub fn rules_for(&self, labels: &BTreeMap<String, String>) -> Vec<&Rule> {
        if self.remedies.is_empty() {
            return self.built_in.iter().collect();
        }
        let selected = |chapter: &&Chapter| chapter.selector.as_ref().is_none_or(|one| selects(one, labels));
        let chosen: Vec<_> = self.remedies.iter().filter(selected).collect();
        let highest = chosen.iter().map(|chapter| chapter.priority).max();
        chosen
            .into_iter()
            .filter(|chapter| Some(chapter.priority) == highest)
            .flat_map(|chapter| &chapter.rules)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> NodeRemedySpec {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn a_rule_is_known_by_what_it_looks_at_and_not_by_its_name() {
        let quiet = spec("thresholds: [{name: gone-quiet, lease: {missed: 3}, first: {name: off}}]");
        let book = Rulebook::of([("r", &quiet)]);
        let rules = book.rules_for(&BTreeMap::new());
        assert_eq!(rules.len(), 1);
        assert_eq!(book.source(&rules[0].name), Source::Lease);
        assert_eq!(book.source("built-in/ready-unknown"), Source::Condition);
        assert_eq!(book.source("nobody/knows"), Source::Lease);
    }

    #[test]
    fn of_the_remedies_that_select_a_node_those_of_the_highest_priority_count() {
        let all = spec("thresholds: [{name: quiet, lease: {}, first: {name: off}}]");
        let some = spec(
            "{priority: 1, nodeSelector: {matchLabels: {disk: ssd}}, thresholds: [{name: fast, lease: {}, first: {name: off}}]}",
        );
        let book = Rulebook::of([("all", &all), ("some", &some)]);
        let names = |labels: &[(&str, &str)]| -> Vec<String> {
            let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            book.rules_for(&labels).into_iter().map(|rule| rule.name.to_string()).collect()
        };
        assert_eq!(names(&[]), ["all/quiet"]);
        assert_eq!(names(&[("disk", "ssd")]), ["some/fast"]);
    }
}
