//! Resolve: the objects of `api`, checked once and brought into the units of `core`.
//!
//! Promise: what the schema lets through and still makes no sense is refused here with the field named; nothing is guessed.
//! From here on no text has to be parsed any more.

use std::collections::BTreeMap;
use std::fmt;

use palisade_api::Span as ApiSpan;
use palisade_api::selector::{LabelSelector, Operator};
use palisade_api::template::FenceTemplateSpec;

use crate::time::Span;

pub mod accept;
pub mod call;
mod claims;
mod config;
mod known;
mod method;
mod parameters;
mod policy;
mod remedy;
mod rulebook;
mod settings;

pub use config::config_for;
pub use policy::policy;
pub use remedy::{Look, Rule, default_rules, rules};
pub use rulebook::Rulebook;
pub use settings::{Resolved, Wanted, settings};

/// All FenceTemplates, by name.
pub type Templates<'a> = BTreeMap<&'a str, &'a FenceTemplateSpec>;

/// What is wrong with an object, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field.
    pub field: String,
    /// What is wrong, and what to do.
    pub why: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.why)
    }
}

impl std::error::Error for Problem {}

const fn span(span: ApiSpan) -> Span {
    Span::millis(span.as_millis())
}

/// Whether a selector selects these labels, as Kubernetes would: everything it says has to hold.
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let exact = selector.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value));
    exact
        && selector.match_expressions.iter().all(|wanted| {
            let value = labels.get(&wanted.key);
            match wanted.operator {
                Operator::In => value.is_some_and(|value| wanted.values.contains(value)),
                Operator::NotIn => value.is_none_or(|value| !wanted.values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::DoesNotExist => value.is_none(),
            }
        })
}

#[cfg(test)]
mod tests {
    use palisade_api::selector::Requirement;

    use super::*;

    #[test]
    fn a_selector_means_what_it_means_to_kubernetes() {
        let labels = BTreeMap::from([("tier".to_owned(), "edge".to_owned())]);
        let says = |operator, values: &[&str]| {
            let values = values.iter().map(ToString::to_string).collect();
            let wanted = Requirement { key: "tier".to_owned(), operator, values };
            LabelSelector { match_expressions: vec![wanted], ..LabelSelector::default() }
        };
        assert!(selects(&LabelSelector::default(), &labels), "an empty selector selects everything");
        assert!(selects(&says(Operator::In, &["core", "edge"]), &labels));
        assert!(!selects(&says(Operator::NotIn, &["edge"]), &labels));
        assert!(selects(&says(Operator::NotIn, &["edge"]), &BTreeMap::new()), "what is absent is not among the values");
        assert!(
            selects(&says(Operator::Exists, &[]), &labels) && !selects(&says(Operator::DoesNotExist, &[]), &labels)
        );
    }
}
