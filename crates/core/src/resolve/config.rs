//! Resolve / config: which FenceConfig counts for a node.
//!
//! Promise: one, or a Problem that says why not. Two of the same priority are never chosen between: which of them the
//! cluster listed first says nothing about the machine.

use std::collections::BTreeMap;

use palisade_api::config::FenceConfigSpec;

use super::{Problem, selects};
use crate::ident::NodeName;

/// The FenceConfig that counts for a node, with its name. `configs` are all of them, by name.
pub fn config_for<'a>(
    node: &NodeName,
    labels: &BTreeMap<String, String>,
    configs: &BTreeMap<&'a str, &'a FenceConfigSpec>,
) -> Result<(&'a str, &'a FenceConfigSpec), Problem> {
    let meant = |spec: &FenceConfigSpec| {
        let by_label = spec.node_selector.as_ref().is_some_and(|selector| selects(selector, labels));
        by_label || spec.node_names.iter().any(|name| name == node.as_str())
    };
    let found: Vec<_> = configs.iter().filter(|(_, spec)| meant(spec)).collect();
    let highest = found.iter().map(|(_, spec)| spec.priority).max();
    let best: Vec<_> = found.into_iter().filter(|(_, spec)| Some(spec.priority) == highest).collect();
    match best.as_slice() {
        [] => Err(Problem {
            field: "FenceConfig".to_owned(),
            why: format!("none is for {node}; name it in nodeNames of one, or choose it by nodeSelector"),
        }),
        [(name, spec)] => Ok((*name, *spec)),
        [(_, spec), ..] => {
            let names: Vec<String> = best.iter().map(|(name, _)| format!("FenceConfig/{name}")).collect();
            Err(Problem {
                field: format!("{} priority", names.join(", ")),
                why: format!(
                    "all of them are for {node} with priority {}, and only one can count; raise that of the one which shall",
                    spec.priority
                ),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use palisade_api::selector::LabelSelector;

    use super::*;

    fn by_label(priority: i32) -> FenceConfigSpec {
        let match_labels = BTreeMap::from([("type".to_owned(), "bare-metal".to_owned())]);
        let node_selector = Some(LabelSelector { match_labels, ..LabelSelector::default() });
        FenceConfigSpec { node_selector, priority, ..FenceConfigSpec::default() }
    }

    fn by_name(priority: i32) -> FenceConfigSpec {
        FenceConfigSpec { node_names: vec!["host1".to_owned()], priority, ..FenceConfigSpec::default() }
    }

    fn chosen(configs: &[(&str, &FenceConfigSpec)]) -> Result<String, String> {
        let labels = BTreeMap::from([("type".to_owned(), "bare-metal".to_owned())]);
        let configs = configs.iter().copied().collect();
        let found = config_for(&NodeName::from("host1"), &labels, &configs);
        found.map(|(name, _)| name.to_owned()).map_err(|problem| problem.to_string())
    }

    #[test]
    fn a_node_is_meant_by_its_label_or_by_its_name() {
        assert_eq!(chosen(&[("racks", &by_label(0))]), Ok("racks".to_owned()));
        assert_eq!(chosen(&[("one", &by_name(0))]), Ok("one".to_owned()));
        let both = FenceConfigSpec { node_names: vec!["host9".to_owned()], ..by_label(0) };
        assert_eq!(chosen(&[("both", &both)]), Ok("both".to_owned()), "either of the two is enough");
    }

    #[test]
    fn the_highest_priority_counts() {
        let configs = [("all", &by_label(0)), ("one", &by_name(10)), ("old", &by_label(-5))];
        assert_eq!(chosen(&configs), Ok("one".to_owned()));
    }

    #[test]
    fn two_of_one_priority_hold_the_node_and_are_both_named() {
        let said = chosen(&[("a", &by_label(10)), ("b", &by_name(10)), ("c", &by_label(0))]);
        let wanted = "FenceConfig/a, FenceConfig/b priority: all of them are for host1 with priority 10, and only one \
                      can count; raise that of the one which shall";
        assert_eq!(said, Err(wanted.to_owned()));
    }

    #[test]
    fn a_node_that_nobody_means_is_told_so() {
        let elsewhere = FenceConfigSpec { node_names: vec!["host2".to_owned()], ..FenceConfigSpec::default() };
        let said = chosen(&[("other", &elsewhere)]);
        assert!(said.is_err_and(|why| why.starts_with("FenceConfig: none is for host1")));
    }
}
