//! The tiers, as data: what each one is called, what it shows, what it needs and what it runs.
//!
//! To add a tier, add an entry here; nothing else knows them by name.
//! Order: what fails fastest comes first.

use std::fmt::Write;

use crate::{files::Finding, install::Need, lab, links, tidy, workspace::Workspace};

/// A group of steps that shows one thing.
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    pub(crate) shows: &'static str,
    pub(crate) needs: &'static [Need],
    /// What some of its tests need, which leave themselves out where it is missing.
    pub(crate) wants: &'static [Need],
    pub(crate) steps: &'static [Step],
}

/// One command or one check.
pub(crate) struct Step {
    pub(crate) action: Action,
    pub(crate) counts: Counts,
    /// The longest that this may take in seconds; longer is told, but fails nothing: machines differ.
    pub(crate) bar: Option<u64>,
}

pub(crate) enum Action {
    /// cargo with these arguments, under these variables.
    Cargo(&'static [&'static str], &'static [(&'static str, &'static str)]),
    /// The lab with these arguments.
    Lab(&'static [&'static str]),
    /// cargo-deny with these arguments.
    Deny(&'static [&'static str]),
    /// cargo-deny against the advisory database, if that can be had.
    Advisories,
    /// A look at the committed files, by our own code.
    Look(&'static str, fn(&Workspace) -> anyhow::Result<Vec<Finding>>),
}

/// What a step adds to the sum.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counts {
    /// Nothing, unless it fails: it only prepares the next step.
    Nothing,
    /// One: it holds or it does not.
    One,
    /// As many tests as it reports; none at all is a failure, since then it shows nothing.
    Tests,
}

const fn step(action: Action, counts: Counts) -> Step {
    Step { action, counts, bar: None }
}

const fn cargo(args: &'static [&'static str]) -> Action {
    Action::Cargo(args, &[])
}

/// The simulation, optimised: a seed takes a fraction of a second so, and many seconds otherwise.
pub(crate) const SIMULATE: [&str; 7] = ["run", "--quiet", "--release", "-p", "palisade", "--", "sim"];

/// The model. Not `-p palisade-core`: that would select other features and build the dependencies once more.
pub(crate) const MODEL: [&str; 6] = ["test", "--workspace", "--test", "model", "--", "--nocapture"];

/// Real agents and services, in real time.
const DEVICES: [&str; 8] = ["test", "--workspace", "--test", "agent", "--test", "sushy", "--", "--nocapture"];

/// Kubernetes' own test of CSI drivers, against the lab's.
const SANITY: [&str; 6] = ["test", "--workspace", "--test", "sanity", "--", "--nocapture"];

pub(crate) const TIERS: &[Tier] = &[
    Tier {
        name: "format",
        shows: "one layout for all code",
        needs: &[Need::Component { name: "rustfmt", command: "fmt" }],
        wants: &[],
        steps: &[step(cargo(&["fmt", "--all", "--check"]), Counts::One)],
    },
    Tier {
        name: "lint",
        shows: "no warning, no forbidden clock, no unordered map",
        needs: &[Need::Component { name: "clippy", command: "clippy" }],
        wants: &[],
        steps: &[step(cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]), Counts::One)],
    },
    Tier {
        name: "supply-chain",
        shows: "licences, bans, sources and known vulnerabilities of what we depend on",
        needs: &[Need::CargoDeny],
        wants: &[],
        steps: &[
            step(Action::Deny(&["check", "licenses", "bans", "sources"]), Counts::One),
            step(Action::Advisories, Counts::One),
        ],
    },
    Tier {
        name: "tests",
        shows: "unit tests, golden tables, properties, a small model, the embedded cluster, stories, seeds, the demo",
        needs: &[],
        wants: &[
            Need::Program { name: "kubectl", package: "kubernetes-client" },
            // A BMC of somebody else's making, and a second reader.
            Need::Program { name: "ipmi_sim", package: "openipmi" },
            Need::Program { name: "ipmitool", package: "ipmitool" },
        ],
        steps: &[
            step(cargo(&["test", "--workspace", "--no-run"]), Counts::Nothing),
            Step { action: cargo(&["test", "--workspace", "--no-fail-fast"]), counts: Counts::Tests, bar: Some(180) },
        ],
    },
    Tier {
        name: "devices",
        shows: "fence agents as they are shipped, lies and all, and a Redfish service of somebody else's",
        needs: &[
            Need::Program { name: "fence_ipmilan", package: "fence-agents" },
            Need::Program { name: "ipmi_sim", package: "openipmi" },
            Need::Program { name: "ipmitool", package: "ipmitool" },
            // A PDU for those that speak SNMP.
            Need::Program { name: "snmpget", package: "snmp" },
            Need::Program { name: "snmpd", package: "snmpd" },
            // In which the Redfish service is installed.
            Need::PythonVenv,
        ],
        wants: &[],
        steps: &[step(Action::Cargo(&DEVICES, &[("PALISADE_DEVICES", "1")]), Counts::Tests)],
    },
    Tier {
        name: "model",
        shows: "the promises in every reachable state of small worlds",
        needs: &[],
        wants: &[],
        steps: &[step(Action::Cargo(&MODEL, &[("PALISADE_MODEL", "full")]), Counts::Tests)],
    },
    Tier {
        name: "seeds",
        shows: "the promises, by the truth, in 2,000 runs in virtual time with everything going wrong, and after every crash; that the runs reach everything, and would see a bug",
        needs: &[],
        wants: &[],
        steps: &[
            step(cargo(&["build", "--release", "-p", "palisade"]), Counts::Nothing),
            Step {
                action: cargo(&[
                    "run",
                    "--quiet",
                    "--release",
                    "-p",
                    "palisade",
                    "--",
                    "sim",
                    "--seeds",
                    "1..2000",
                    "--coverage",
                ]),
                counts: Counts::Tests,
                // 300 seeds a minute and core, on two cores.
                bar: Some(200),
            },
            // A crash after every single act; and the oracle sees each bug that somebody planted.
            step(
                Action::Cargo(
                    // With the binary, so that both select the same features of what they depend on.
                    &[
                        "test",
                        "--release",
                        "-p",
                        "palisade",
                        "-p",
                        "palisade-sim",
                        "--features",
                        "palisade-sim/planted",
                        "--test",
                        "crash_points",
                        "--test",
                        "planted",
                    ],
                    &[("PALISADE_CRASH_POINTS", "every")],
                ),
                Counts::Tests,
            ),
        ],
    },
    Tier {
        name: "lab",
        shows: "the same stories on a real Kubernetes whose machines can be switched off; that it does what the embedded one does",
        needs: lab::NEEDS,
        wants: &[],
        steps: &[
            step(Action::Cargo(&SANITY, &[("PALISADE_LAB", "1")]), Counts::Tests),
            Step { action: Action::Lab(&["test"]), counts: Counts::Tests, bar: Some(20 * 60) },
        ],
    },
    Tier {
        name: "docs",
        shows: "documentation that builds, links that lead somewhere, no trace of one machine",
        needs: &[Need::Program { name: "git", package: "git" }],
        wants: &[],
        steps: &[
            step(Action::Cargo(&["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")]), Counts::One),
            step(Action::Look("relative links in Markdown resolve", links::broken), Counts::One),
            step(Action::Look("no machine path, no registry host", tidy::traces), Counts::One),
            step(Action::Look("every crate takes the workspace's lints", tidy::unlinted), Counts::One),
        ],
    },
];

/// The names, for `--only`.
pub(crate) fn names() -> Vec<&'static str> {
    TIERS.iter().map(|tier| tier.name).collect()
}

/// What `--list` shows: enough to run each step by hand.
pub(crate) fn list() -> String {
    let mut text = String::new();
    for tier in TIERS {
        let _infallible = writeln!(text, "{}: {}", tier.name, tier.shows);
        for step in tier.steps {
            let _infallible = writeln!(text, "    {}", step.action.shown());
        }
    }
    text
}

impl Action {
    /// What a person would type, or what is looked at.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Cargo(args, variables) => {
                let set = |(name, value): &(&str, &str)| format!("{name}={} ", quoted(value));
                let variables: String = variables.iter().map(set).collect();
                format!("{variables}cargo {}", args.join(" "))
            }
            Self::Lab(args) => format!("cargo xtask lab {}", args.join(" ")),
            Self::Deny(args) => format!("cargo deny --locked {}", args.join(" ")),
            Self::Advisories => "cargo deny --locked check advisories".into(),
            Self::Look(what, _) => format!("(built in) {what}"),
        }
    }
}

fn quoted(value: &str) -> String {
    if value.contains(' ') { format!("'{value}'") } else { value.into() }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_means_one_tier() {
        let distinct: BTreeSet<_> = names().into_iter().collect();
        assert_eq!(distinct.len(), TIERS.len());
    }

    #[test]
    fn every_tier_runs_something() {
        assert!(TIERS.iter().all(|tier| tier.steps.iter().any(|step| step.counts != Counts::Nothing)));
    }

    #[test]
    fn the_seeds_of_ci_and_of_a_soak_run_the_same_program() {
        let seeds = TIERS.iter().find(|tier| tier.name == "seeds").unwrap();
        let starts = |step: &Step| matches!(step.action, Action::Cargo(args, _) if args.starts_with(&SIMULATE));
        assert!(seeds.steps.iter().any(starts));
    }

    #[test]
    fn the_list_can_be_pasted_into_a_shell() {
        let list = list();
        assert!(list.contains("    PALISADE_MODEL=full cargo test --workspace --test model -- --nocapture\n"));
        assert!(list.contains("    RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps\n"));
    }
}
