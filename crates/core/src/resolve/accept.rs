//! Resolve / accept: whether a FenceConfig, a FenceTemplate or a NodeRemedy can be used as it stands, for its `Accepted` condition.
//!
//! Promise: what would hold a fence in the night (a template that is missing, a node without its plug, two configs of one priority)
//! is said by the object that has to be put right, as soon as it is there. A remedy that asks for more than is done says so.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::config::FenceConfigSpec;
use palisade_api::remedy::NodeRemedySpec;

use super::remedy::not_carried_out;
use super::{Problem, Templates, Wanted, config_for, selects, settings};
use crate::ident::NodeName;

/// What is said of one object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Whether it can be used.
    pub standing: Standing,
    /// For how many nodes it counts.
    pub nodes: u32,
}

/// Whether an object can be used as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It can.
    Usable,
    /// It cannot, for this reason.
    NotUsable(String),
    /// It is used, but for these parts, which nobody carries out yet.
    InPart(String),
}

impl Standing {
    /// By its problem, if it has one.
    pub fn of(problem: Option<String>) -> Self {
        problem.map_or(Self::Usable, Self::NotUsable)
    }
}

/// What is said of every config, template and remedy, by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acceptance<'a> {
    /// FenceConfigs.
    pub configs: BTreeMap<&'a str, Accepted>,
    /// FenceTemplates. They count for no node by themselves.
    pub templates: BTreeMap<&'a str, Accepted>,
    /// NodeRemedies.
    pub remedies: BTreeMap<&'a str, Accepted>,
}

/// All nodes, by name, with their labels.
pub type Nodes<'a> = BTreeMap<&'a NodeName, &'a BTreeMap<String, String>>;

/// Looks at everything at once: a config is wrong by what it says about a node. `declared_power`: as the policy has it.
pub fn acceptance<'a>(
    nodes: &Nodes<'_>,
    configs: &BTreeMap<&'a str, &'a FenceConfigSpec>,
    templates: &Templates<'a>,
    remedies: &BTreeMap<&'a str, &'a NodeRemedySpec>,
    declared_power: &[String],
) -> Acceptance<'a> {
    let mut used: BTreeMap<&str, u32> = BTreeMap::new();
    let mut problems = Problems::default();
    let revoking = BTreeSet::new();
    for (node, labels) in nodes {
        match config_for(node, labels, configs) {
            Ok((name, spec)) => {
                *used.entry(name).or_default() += 1;
                let wanted = Wanted { node, stay_off: false, revoking: &revoking, declared_power };
                if let Err(problem) = settings(name, spec, templates, wanted) {
                    problems.note(&format!("FenceConfig/{name}"), &problem);
                    problems.note_all(&problem);
                }
            }
            Err(problem) => problems.note_all(&problem),
        }
    }
    let count = |name: &str| used.get(name).copied().unwrap_or(0);
    let standing = |kind: &str, name: &str| Standing::of(problems.of(kind, name));
    let config = |name: &&'a str| Accepted { standing: standing("FenceConfig", name), nodes: count(name) };
    let template = |name: &&'a str| Accepted { standing: standing("FenceTemplate", name), nodes: 0 };
    let remedy = |spec: &NodeRemedySpec| Accepted { standing: of_remedy(spec), nodes: watched(spec, nodes) };
    Acceptance {
        configs: configs.keys().map(|name| (*name, config(name))).collect(),
        templates: templates.keys().map(|name| (*name, template(name))).collect(),
        remedies: remedies.iter().map(|(name, spec)| (*name, remedy(spec))).collect(),
    }
}

fn of_remedy(spec: &NodeRemedySpec) -> Standing {
    let parts = not_carried_out(spec);
    if parts.is_empty() {
        return Standing::Usable;
    }
    Standing::InPart(format!("this version does not carry out all of it: {}", parts.join("; ")))
}

fn watched(spec: &NodeRemedySpec, nodes: &Nodes<'_>) -> u32 {
    let watches = |labels: &BTreeMap<String, String>| {
        spec.node_selector.as_ref().is_none_or(|selector| selects(selector, labels))
    };
    u32::try_from(nodes.values().filter(|labels| watches(labels)).count()).unwrap_or(u32::MAX)
}

/// The first problem of each object, and for how many nodes it has any.
#[derive(Default)]
struct Problems(BTreeMap<String, (String, u32)>);

impl Problems {
    fn note(&mut self, object: &str, problem: &Problem) {
        self.0.entry(object.to_owned()).or_insert_with(|| (problem.to_string(), 0)).1 += 1;
    }

    /// Notes it for every object that its field names, but for a config that has been noted as its own.
    fn note_all(&mut self, problem: &Problem) {
        for word in problem.field.split([' ', ',']).filter(|word| word.starts_with("FenceTemplate/")) {
            self.note(word, problem);
        }
        let rivals = problem.field.split([' ', ',']).filter(|word| word.starts_with("FenceConfig/"));
        // One name is the place where something stands; several are rivals.
        let rivals: Vec<&str> = rivals.collect();
        if rivals.len() > 1 {
            for word in rivals {
                self.note(word, problem);
            }
        }
    }

    fn of(&self, kind: &str, name: &str) -> Option<String> {
        let (first, nodes) = self.0.get(&format!("{kind}/{name}"))?;
        Some(if *nodes > 1 { format!("{first} (and so for {} more nodes)", nodes - 1) } else { first.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METAL: &str = "
nodeSelector: {}
powerManagement: { levels: [{ name: bmc, methods: [{ name: bmc, template: bmc }] }] }
";

    fn config() -> FenceConfigSpec {
        serde_saphyr::from_str(METAL).unwrap()
    }

    fn look<'a>(
        configs: &[(&'a str, &'a FenceConfigSpec)],
        templates: &Templates<'a>,
        remedies: &[(&'a str, &'a NodeRemedySpec)],
    ) -> Acceptance<'a> {
        let (one, other) = (NodeName::from("n1"), NodeName::from("n2"));
        let (none, fast) = (BTreeMap::new(), BTreeMap::from([("disk".to_owned(), "fast".to_owned())]));
        let nodes = Nodes::from([(&one, &none), (&other, &fast)]);
        let (configs, remedies) = (configs.iter().copied().collect(), remedies.iter().copied().collect());
        acceptance(&nodes, &configs, templates, &remedies, &[])
    }

    fn problem(accepted: &Accepted) -> &str {
        match &accepted.standing {
            Standing::NotUsable(problem) => problem,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_config_without_its_template_says_so_for_all_its_nodes() {
        let metal = config();
        let accepted = &look(&[("metal", &metal)], &Templates::new(), &[]).configs["metal"];
        assert_eq!(accepted.nodes, 2);
        let problem = problem(accepted);
        assert!(problem.starts_with("FenceConfig/metal powerManagement"), "{problem}");
        assert!(problem.contains("there is no FenceTemplate `bmc`"), "{problem}");
        assert!(problem.ends_with("(and so for 1 more nodes)"), "{problem}");
    }

    #[test]
    fn a_template_that_makes_no_sense_is_told_itself_and_so_is_its_config() {
        let (metal, bmc) = (config(), serde_saphyr::from_str("{}").unwrap());
        let all = look(&[("metal", &metal)], &Templates::from([("bmc", &bmc)]), &[]);
        for accepted in [&all.configs["metal"], &all.templates["bmc"]] {
            let problem = problem(accepted);
            assert!(problem.starts_with("FenceTemplate/bmc: give exactly one of"), "{problem}");
        }
    }

    #[test]
    fn a_parameter_that_no_driver_reads_is_told_where_it_is_written() {
        let wrong = "{native: {driver: ipmi}, parameters: {ip: '{node}', cypher: '3'}, proves: {class: Power}}";
        let (metal, bmc) = (config(), serde_saphyr::from_str(wrong).unwrap());
        let all = look(&[("metal", &metal)], &Templates::from([("bmc", &bmc)]), &[]);
        for accepted in [&all.configs["metal"], &all.templates["bmc"]] {
            let problem = problem(accepted);
            assert!(
                problem.starts_with("FenceTemplate/bmc parameters: the driver ipmi does not understand `cypher`"),
                "{problem}"
            );
        }
        let (right, spelt) = (
            wrong.replace("cypher", "cipher"),
            METAL.replace("template: bmc }", "template: bmc, parameters: { lanplus: '1' } }"),
        );
        let (metal, bmc) = (serde_saphyr::from_str(&spelt).unwrap(), serde_saphyr::from_str(&right).unwrap());
        let all = look(&[("metal", &metal)], &Templates::from([("bmc", &bmc)]), &[]);
        assert!(problem(&all.configs["metal"]).contains("does not understand `lanplus`"));
        assert_eq!(all.templates["bmc"].standing, Standing::Usable, "it is the config's mistake");
    }

    #[test]
    fn a_pod_that_nobody_vouches_for_is_told_where_it_claims_to_be_believed() {
        let pod =
            "{podTemplate: {spec: {containers: [{name: a, image: a}]}}, proves: {class: Power, withoutReadBack: true}}";
        let (metal, pod) = (config(), serde_saphyr::from_str(pod).unwrap());
        let all = look(&[("metal", &metal)], &Templates::from([("bmc", &pod)]), &[]);
        for accepted in [&all.configs["metal"], &all.templates["bmc"]] {
            let problem = problem(accepted);
            assert!(problem.starts_with("FenceTemplate/bmc proves.withoutReadBack: nobody reads back"), "{problem}");
            assert!(problem.contains("add `bmc` to spec.declaredPower"), "{problem}");
        }
    }

    #[test]
    fn two_configs_of_one_priority_are_both_told() {
        let (one, other) = (config(), config());
        let accepted = look(&[("one", &one), ("other", &other)], &Templates::new(), &[]).configs;
        for name in ["one", "other"] {
            let problem = problem(&accepted[name]);
            assert!(problem.contains("only one can count"), "{name}: {problem}");
            assert_eq!(accepted[name].nodes, 0);
        }
    }

    #[test]
    fn a_config_for_nobody_and_a_template_of_nobody_are_accepted() {
        let nobody = serde_saphyr::from_str("nodeNames: [n99]").unwrap();
        let bmc = serde_saphyr::from_str("{}").unwrap();
        let all = look(&[("nobody", &nobody)], &Templates::from([("bmc", &bmc)]), &[]);
        assert_eq!(all.configs["nobody"], Accepted { standing: Standing::Usable, nodes: 0 });
        assert_eq!(all.templates["bmc"], Accepted { standing: Standing::Usable, nodes: 0 });
    }

    #[test]
    fn a_remedy_says_how_many_nodes_it_watches() {
        let all = serde_saphyr::from_str("thresholds: []").unwrap();
        let fast = serde_saphyr::from_str("{ nodeSelector: { matchLabels: { disk: fast } }, thresholds: [] }").unwrap();
        let remedies = look(&[], &Templates::new(), &[("all", &all), ("fast", &fast)]).remedies;
        assert_eq!((remedies["all"].nodes, remedies["fast"].nodes), (2, 1));
    }

    #[test]
    fn a_remedy_that_asks_for_more_than_is_done_is_not_called_accepted() {
        let plain = "thresholds: [{name: gone, lease: {}, first: {name: fence}}]";
        let more = "thresholds: [{name: gone, lease: {}, first: {name: fence, period: 5m}, second: {name: repair}}]";
        let (plain, more) = (serde_saphyr::from_str(plain).unwrap(), serde_saphyr::from_str(more).unwrap());
        let remedies = look(&[], &Templates::new(), &[("plain", &plain), ("more", &more)]).remedies;
        assert_eq!(remedies["plain"].standing, Standing::Usable);
        let told = "this version does not carry out all of it: gone.second: `repair` is not tried, however long first.period is over";
        assert_eq!(remedies["more"].standing, Standing::InPart(told.to_owned()));
        assert_eq!(remedies["more"].nodes, 2, "what is carried out counts");
    }
}
