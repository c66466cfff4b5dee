//! Resolve / remedy: which thresholds a NodeRemedy sets, and what runs when one is reached.
//!
//! Without any NodeRemedy nodes are watched all the same ([`default_rules`]): whoever installs the operator expects that it
//! notices a dead node.

use std::num::NonZeroU64;

use palisade_api::conditions::Truth;
use palisade_api::names;
use palisade_api::remedy::{NodeRemedySpec, Threshold};
use palisade_api::request::{Operation, Trigger};

use super::span;
use crate::detect::conditions::{self, Status};
use crate::detect::lease::{LeaseThreshold, Needs};
use crate::request::record::rule_of;
use crate::time::Span;

/// A witness counts if it saw the node alive so shortly before the silence.
const TRUSTED: Span = Span::secs(60);

/// The name of the rules that nobody wrote.
const BUILT_IN: &str = "built-in";

/// One threshold, and what it triggers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The remedy and the threshold, as a request names them.
    pub trigger: Trigger,
    /// The same in one word.
    pub name: Box<str>,
    /// What is looked at.
    pub look: Look,
    /// How far the fence goes; none: a template is run instead of a fence.
    pub operation: Option<Operation>,
}

/// What a rule looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// A condition that holds.
    Condition(conditions::Threshold),
    /// A lease that is silent.
    Lease(LeaseThreshold),
    /// Something that this version does not look at yet: it finds nothing.
    Nothing,
}

/// The rules of a NodeRemedy.
pub fn rules(name: &str, spec: &NodeRemedySpec) -> Vec<Rule> {
    spec.thresholds.iter().map(|threshold| rule(name, threshold)).collect()
}

fn rule(remedy: &str, threshold: &Threshold) -> Rule {
    let look = match (&threshold.condition, &threshold.lease) {
        (Some(seen), _) => Look::Condition(conditions::Threshold {
            condition: seen.type_.as_str().into(),
            status: match seen.status {
                Truth::True => Status::True,
                Truth::False => Status::False,
                Truth::Unknown => Status::Unknown,
            },
            period: span(seen.period),
        }),
        (None, Some(lease)) => {
            let needs = if lease.require_witness { Needs::Witness } else { Needs::WitnessOrControlPlane };
            Look::Lease(silence(lease.missed, lease.missed_when_off, needs))
        }
        (None, None) => Look::Nothing,
    };
    let fences = threshold.first.name == names::REMEDY_FENCE;
    named(remedy, &threshold.name, look, fences.then(|| threshold.first.operation.unwrap_or(Operation::Fence)))
}

/// What a NodeRemedy asks for and this version does not do, one sentence for each part.
pub(super) fn not_carried_out(spec: &NodeRemedySpec) -> Vec<String> {
    spec.thresholds.iter().flat_map(left_out).collect()
}

fn left_out(threshold: &Threshold) -> Vec<String> {
    let name = &threshold.name;
    let mut parts = Vec::new();
    // Written out, so that a new part is either carried out or told.
    let Threshold { name: _, condition: _, lease: _, storage, event, first, second, recovery } = threshold;
    if storage.is_some() {
        parts.push(format!("{name}.storage: no storage system is asked, so nothing comes of this threshold"));
    }
    if event.is_some() {
        parts.push(format!("{name}.event: events are not looked at, so nothing comes of this threshold"));
    }
    if first.name != names::REMEDY_FENCE {
        let cleans = if first.clean_resources { ", and nothing is cleaned after it" } else { "" };
        parts.push(format!("{name}.first: the FenceTemplate `{}` is not run{cleans}", first.name));
    }
    if let Some(second) = second {
        parts.push(format!("{name}.second: `{}` is not tried, however long first.period is over", second.name));
    }
    if let Some(recovery) = recovery {
        parts.push(format!("{name}.recovery: the FenceTemplate `{}` is not run", recovery.name));
    }
    parts
}

fn silence(missed: u32, missed_when_off: u32, needs: Needs) -> LeaseThreshold {
    let at_least_one = |missed: u32| NonZeroU64::new(missed.into()).unwrap_or(NonZeroU64::MIN);
    LeaseThreshold {
        missed: at_least_one(missed),
        missed_when_off: at_least_one(missed_when_off),
        needs,
        trusted: TRUSTED,
    }
}

fn named(remedy: &str, threshold: &str, look: Look, operation: Option<Operation>) -> Rule {
    let trigger = Trigger { remedy: remedy.to_owned(), threshold: threshold.to_owned() };
    Rule { name: rule_of(&trigger), trigger, look, operation }
}

/// What is watched where nobody wrote a NodeRemedy: the lease, and the control plane's own word.
pub fn default_rules() -> Vec<Rule> {
    let lost = conditions::Threshold { condition: "Ready".into(), status: Status::Unknown, period: Span::secs(5) };
    vec![
        named(
            BUILT_IN,
            "lease-silent",
            Look::Lease(silence(2, 1, Needs::WitnessOrControlPlane)),
            Some(Operation::Fence),
        ),
        named(BUILT_IN, "ready-unknown", Look::Condition(lost), Some(Operation::Fence)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(thresholds: &str) -> Vec<String> {
        not_carried_out(&serde_saphyr::from_str(&format!("thresholds: [{thresholds}]")).unwrap())
    }

    #[test]
    fn a_fence_for_a_lease_or_a_condition_is_carried_out_whole() {
        let condition = "{name: c, condition: {type: Ready, status: Unknown, period: 5s}, first: {name: fence, cleanResources: true}}";
        let lease = "{name: l, lease: {missed: 3}, first: {name: fence, operation: PowerStep}}";
        assert_eq!(told(&format!("{condition}, {lease}")), Vec::<String>::new());
    }

    #[test]
    fn every_part_that_is_left_out_is_told_by_its_place() {
        let parts = [
            ("{name: t, storage: {provider: ceph}, first: {name: fence}}", vec!["t.storage: no storage system"]),
            ("{name: t, event: {reason: TaskHung, window: 5m}, first: {name: fence}}", vec!["t.event: events are not"]),
            ("{name: t, lease: {}, first: {name: repair}}", vec!["t.first: the FenceTemplate `repair` is not run"]),
            (
                "{name: t, lease: {}, first: {name: repair, period: 5m, cleanResources: true}, second: {name: fence}, recovery: {name: undo}}",
                vec![
                    "t.first: the FenceTemplate `repair` is not run, and nothing is cleaned",
                    "t.second: `fence` is not tried",
                    "t.recovery: the FenceTemplate `undo` is not run",
                ],
            ),
        ];
        for (threshold, expected) in parts {
            let told = told(threshold);
            assert_eq!(told.len(), expected.len(), "{told:?}");
            assert!(told.iter().zip(&expected).all(|(told, expected)| told.starts_with(expected)), "{told:?}");
        }
    }

    /// Whoever makes a rule do something has to take its part out of what is told, and the other way round.
    #[test]
    fn what_comes_of_nothing_is_told_and_nothing_else_is() {
        for (threshold, works) in [
            ("{name: t, storage: {provider: ceph}, first: {name: fence}}", false),
            ("{name: t, event: {reason: TaskHung, window: 5m}, first: {name: fence}}", false),
            ("{name: t, lease: {}, first: {name: repair}}", false),
            ("{name: t, lease: {}, first: {name: fence}}", true),
        ] {
            let spec = serde_saphyr::from_str(&format!("thresholds: [{threshold}]")).unwrap();
            let rule = &rules("r", &spec)[0];
            assert_eq!(rule.look != Look::Nothing && rule.operation.is_some(), works, "{threshold}");
            assert_eq!(not_carried_out(&spec).is_empty(), works, "{threshold}");
        }
    }

    #[test]
    fn a_dead_node_is_noticed_without_any_remedy() {
        let names: Vec<_> = default_rules().into_iter().map(|rule| rule.name).collect();
        assert_eq!(names, ["built-in/lease-silent".into(), Box::<str>::from("built-in/ready-unknown")]);
    }
}
