//! Preflight / health: what a FenceTemplate says of its devices.
//!
//! Promise: Healthy is said only of all nodes together; one that fails is named at once, with what to do. The same state has the
//! same words, so whoever writes it down writes on change alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::outcome::Outcome;
use crate::ident::NodeName;

/// How many nodes are named.
const NAMED: usize = 5;

/// How the devices of a template are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Not every one was checked yet, and none fails of those that were.
    Pending {
        /// Which one could not even be asked, and why, if that is so of any.
        unasked: Option<String>,
    },
    /// The last check of each was good.
    Healthy {
        /// Of so many nodes.
        nodes: u32,
    },
    /// Some fail.
    Failing {
        /// So many nodes were checked.
        checked: u32,
        /// So many of them have a device that fails.
        failing: u32,
        /// Why: the one reason, or that there are several.
        reason: &'static str,
        /// Which, and what to do.
        message: String,
    },
}

/// What is known of the devices of one node, by one template.
#[derive(Clone, Copy, Debug)]
enum OfNode<'a> {
    /// Why it could not be asked, if it was tried.
    Unchecked(Option<&'a str>),
    Good,
    Fails(&'a Outcome),
}

/// Puts together what is known of each device: node, template, the last outcome, if there is one, and why it could not be asked
/// after that.
pub(super) fn of<'a>(
    devices: impl Iterator<Item = (&'a NodeName, &'a Arc<str>, Option<&'a Outcome>, Option<&'a str>)>,
) -> BTreeMap<Arc<str>, Health> {
    let mut templates: BTreeMap<&Arc<str>, BTreeMap<&NodeName, OfNode<'_>>> = BTreeMap::new();
    for (node, template, outcome, unasked) in devices {
        let now = match outcome {
            None => OfNode::Unchecked(unasked),
            Some(Outcome::Good) => OfNode::Good,
            Some(fails) => OfNode::Fails(fails),
        };
        let known = templates.entry(template).or_default().entry(node).or_insert(now);
        *known = match (*known, now) {
            (OfNode::Fails(first), _) | (_, OfNode::Fails(first)) => OfNode::Fails(first),
            (OfNode::Unchecked(one), OfNode::Unchecked(other)) => OfNode::Unchecked(one.or(other)),
            (OfNode::Unchecked(why), OfNode::Good) | (OfNode::Good, OfNode::Unchecked(why)) => OfNode::Unchecked(why),
            (OfNode::Good, OfNode::Good) => OfNode::Good,
        };
    }
    templates.into_iter().map(|(template, nodes)| (Arc::clone(template), together(&nodes))).collect()
}

fn together(nodes: &BTreeMap<&NodeName, OfNode<'_>>) -> Health {
    let unchecked = count(nodes.values().filter(|node| matches!(node, OfNode::Unchecked(_))).count());
    let checked = count(nodes.len()).saturating_sub(unchecked);
    let failing: Vec<(&NodeName, &Outcome)> = nodes
        .iter()
        .filter_map(|(node, is)| match is {
            OfNode::Fails(outcome) => Some((*node, *outcome)),
            OfNode::Unchecked(_) | OfNode::Good => None,
        })
        .collect();
    let Some((_, first)) = failing.first() else {
        return if unchecked == 0 {
            Health::Healthy { nodes: checked }
        } else {
            Health::Pending { unasked: first_unasked(nodes) }
        };
    };
    let same = failing.iter().all(|(_, outcome)| outcome.name() == first.name());
    let reason = if same { first.name() } else { "SeveralReasons" };
    Health::Failing { checked, failing: count(failing.len()), reason, message: message(&failing, nodes.len()) }
}

fn first_unasked(nodes: &BTreeMap<&NodeName, OfNode<'_>>) -> Option<String> {
    nodes.iter().find_map(|(node, is)| match is {
        OfNode::Unchecked(why) => why.map(|why| format!("the device of {node} was not asked: {why}")),
        OfNode::Good | OfNode::Fails(_) => None,
    })
}

fn message(failing: &[(&NodeName, &Outcome)], nodes: usize) -> String {
    let named: Vec<String> =
        failing.iter().take(NAMED).map(|(node, outcome)| format!("the device of {node} {outcome}")).collect();
    let more = failing.len().saturating_sub(NAMED);
    let more = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{} of {nodes} nodes: {}{more}", failing.len(), named.join("; "))
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(devices: &[(&str, Option<Outcome>)]) -> Health {
        let template: Arc<str> = Arc::from("bmc");
        let nodes: Vec<NodeName> = devices.iter().map(|(node, _)| NodeName::from(*node)).collect();
        let all = nodes.iter().zip(devices).map(|(node, (_, outcome))| (node, &template, outcome.as_ref(), None));
        of(all).remove("bmc").unwrap()
    }

    fn silent() -> Outcome {
        Outcome::NoAnswer("no route".to_owned())
    }

    #[test]
    fn devices_are_healthy_when_all_were_checked_and_fail_as_soon_as_one_does() {
        assert_eq!(health(&[("n1", Some(Outcome::Good)), ("n2", None)]), Health::Pending { unasked: None });
        assert_eq!(health(&[("n1", Some(Outcome::Good)), ("n2", Some(Outcome::Good))]), Health::Healthy { nodes: 2 });
        let Health::Failing { checked: 1, failing: 1, reason: "NoAnswer", message } =
            health(&[("n1", None), ("n2", Some(silent()))])
        else {
            panic!("it fails");
        };
        assert_eq!(
            message,
            "1 of 2 nodes: the device of n2 does not answer (no route); look at its power, its network and `ip`"
        );
    }

    #[test]
    fn a_node_with_two_devices_is_well_only_with_both() {
        assert_eq!(health(&[("n1", Some(Outcome::Good)), ("n1", None)]), Health::Pending { unasked: None });
        assert!(matches!(
            health(&[("n1", Some(silent())), ("n1", Some(Outcome::Good))]),
            Health::Failing { checked: 1, failing: 1, .. }
        ));
    }

    #[test]
    fn what_could_not_even_be_asked_says_why_until_it_was() {
        let (template, node, other): (Arc<str>, _, _) =
            (Arc::from("agent"), NodeName::from("n1"), NodeName::from("n2"));
        let health = |outcome: Option<&Outcome>| {
            let devices =
                [(&node, &template, outcome, Some("no image")), (&other, &template, Some(&Outcome::Good), None)];
            of(devices.into_iter()).remove("agent").unwrap()
        };
        let unasked = Some("the device of n1 was not asked: no image".to_owned());
        assert_eq!(health(None), Health::Pending { unasked });
        assert_eq!(health(Some(&Outcome::Good)), Health::Healthy { nodes: 2 }, "what is known stands");
    }

    #[test]
    fn five_are_named_in_order_and_the_others_counted() {
        let names = ["n7", "n3", "n1", "n6", "n2", "n5", "n4"];
        let all: Vec<_> = names.map(|name| (name, Some(Outcome::CannotTell))).into();
        let Health::Failing { failing: 7, reason: "CannotTell", message, .. } = health(&all) else {
            panic!("all fail");
        };
        assert!(message.starts_with("7 of 7 nodes: the device of n1 has to show"), "{message}");
        assert!(message.contains("n5") && !message.contains("n6") && message.ends_with("; and 2 more"), "{message}");
        let mixed = health(&[("n1", Some(silent())), ("n2", Some(Outcome::OffWhileReady))]);
        assert!(matches!(mixed, Health::Failing { reason: "SeveralReasons", .. }));
    }
}
