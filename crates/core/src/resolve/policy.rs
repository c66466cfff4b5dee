//! Resolve / policy: whether, and how fast, anything may be fenced.

use palisade_api::policy as api;
use palisade_api::{Portion, Span as ApiSpan};

use super::{Problem, span};
use crate::ident::{DriverName, ProviderName, Uid};
use crate::policy::{
    Approval, Budget, DomainBrake, Exclusions, Flap, Kdump, Mode, Policy, Rate, ReleasePolicy, Share, StorageGates,
    Storm, WholeDomain, WitnessRule, WorkloadRule,
};
use crate::request::history::Keep;

/// The policy of a FencePolicy.
pub fn policy(uid: Uid, spec: &api::FencePolicySpec) -> Result<Policy, Problem> {
    let defaults = Policy::default();
    Ok(Policy {
        uid,
        mode: match spec.mode {
            api::Mode::Enforce => Mode::Enforce,
            api::Mode::DryRun => Mode::DryRun,
            api::Mode::Paused => Mode::Paused,
        },
        request_namespaces: spec.request_namespaces.clone(),
        exclusions: Exclusions {
            selectors: spec.exclusions.node_selector.iter().cloned().collect(),
            honour_peers: spec.exclusions.honour_peer_annotations,
        },
        grace: span(spec.grace),
        startup_quiet: span(spec.quiet.startup),
        observer_fresh: span(spec.observer.outage),
        outage_quiet: span(spec.observer.settle),
        storm: storm(&spec.storm),
        budget: Budget {
            max_concurrent: spec.budget.max_concurrent,
            spacing: span(spec.budget.spacing),
            rate: spec.budget.rate.as_ref().map(|rate| Rate { count: rate.count, per: span(rate.per) }),
        },
        protect_quorum: spec.control_plane.protect_quorum,
        storage: StorageGates {
            providers: spec.storage_gates.providers.iter().map(|name| ProviderName::from(name.as_str())).collect(),
            fresh: span(spec.storage_gates.max_age),
            disruption_budgets: spec.storage_gates.machine_disruption_budgets,
            skip_on_outage: spec.storage_outage == api::IgnoreOrSkip::Skip,
            skip_in_use: spec.storage_in_use == api::IgnoreOrSkip::Skip,
        },
        kdump: Kdump {
            enabled: spec.kdump.proves || spec.kdump.wait > ApiSpan::ZERO,
            wait_for_start: span(spec.kdump.wait),
            proves: spec.kdump.proves,
            ..defaults.kdump
        },
        workload: match spec.workload {
            api::Workload::AnyNode => WorkloadRule::AnyNode,
            api::Workload::StatefulOnly => WorkloadRule::StatefulOnly,
        },
        flap: Flap { count: spec.flap.count, window: span(spec.flap.window) },
        witness: WitnessRule { required: spec.witness.required, ..defaults.witness },
        approval: match spec.approval {
            api::Approval::Never => Approval::Never,
            api::Approval::Always => Approval::Always,
        },
        release: release(spec)?,
        history: Keep { age: span(spec.history.age), count: usize::try_from(spec.history.count).unwrap_or(usize::MAX) },
        recheck: defaults.recheck,
    })
}

fn storm(spec: &api::Storm) -> Storm {
    let brake = |domain: &api::Domain| DomainBrake {
        topology_key: domain.topology_key.clone(),
        limit: share(domain.limit),
        whole_domain: match domain.whole_domain {
            api::WholeDomain::Hold => WholeDomain::Hold,
            api::WholeDomain::Fence => WholeDomain::Fence,
        },
    };
    Storm { cluster: share(spec.cluster), domains: spec.domains.iter().map(brake).collect() }
}

fn release(spec: &api::FencePolicySpec) -> Result<ReleasePolicy, Problem> {
    let lane = &spec.release.pod_lane;
    let label = |(index, text): (usize, &String)| {
        let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
        pair.ok_or_else(|| Problem {
            field: format!("release.podLane.optInLabels[{index}]"),
            why: format!("`{text}` is no label with its value; write for example palisade.dev/fenced=true"),
        })
    };
    Ok(ReleasePolicy {
        opt_in: lane.opt_in_labels.iter().enumerate().map(label).collect::<Result<_, _>>()?,
        opt_in_required: lane.require_opt_in,
        pace: spec.release.pace.as_ref().map(|pace| Rate { count: pace.pods, per: span(pace.per) }),
        respect_pdb: spec.release.respect_disruption_budgets,
        out_of_service: spec.release.out_of_service == api::OutOfService::WithPowerProof,
        driver_guard: spec.driver_guard.iter().map(|name| DriverName::from(name.as_str())).collect(),
        look_again: ReleasePolicy::default().look_again,
    })
}

const fn share(portion: Portion) -> Share {
    match portion {
        Portion::Percent(percent) => Share::Percent(percent),
        Portion::Count(count) => Share::Count(count),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn the_defaults_of_the_schema_are_the_defaults_of_the_core() {
        let resolved = policy(Uid::default(), &api::FencePolicySpec::default());
        let zone = DomainBrake {
            topology_key: palisade_api::names::labels::ZONE.to_owned(),
            limit: Share::Percent(40),
            whole_domain: WholeDomain::Hold,
        };
        // The core has no domains by itself: a table of decisions names those that it is about.
        let storm = Storm { domains: vec![zone], ..Policy::default().storm };
        // Without a wait nobody looks for a dump; where one is configured, it says how long.
        let kdump = Kdump { wait_for_start: Span::ZERO, ..Policy::default().kdump };
        assert_eq!(resolved, Ok(Policy { storm, kdump, ..Policy::default() }));
    }

    #[test]
    fn the_wait_for_a_dump_is_for_its_beginning() {
        let kdump = |wait: ApiSpan, proves: bool| {
            let spec = api::FencePolicySpec { kdump: api::Kdump { wait, proves }, ..api::FencePolicySpec::default() };
            policy(Uid::default(), &spec).map(|policy| policy.kdump)
        };
        let running_for = Policy::default().kdump.running_for;
        let wanted = |enabled, wait_for_start, proves| Ok(Kdump { enabled, wait_for_start, running_for, proves });
        assert_eq!(kdump(ApiSpan::ZERO, false), wanted(false, Span::ZERO, false));
        assert_eq!(kdump(ApiSpan::from_mins(2), false), wanted(true, Span::mins(2), false));
        assert_eq!(kdump(ApiSpan::ZERO, true), wanted(true, Span::ZERO, true));
    }

    #[test]
    fn an_opt_in_label_without_a_value_is_refused_by_name() {
        let mut spec = api::FencePolicySpec::default();
        spec.release.pod_lane.opt_in_labels.push("fenced".to_owned());
        let refused = policy(Uid::default(), &spec).map_err(|problem| problem.to_string());
        assert!(refused.is_err_and(|why| why.starts_with("release.podLane.optInLabels[2]: `fenced`")));
    }
}
