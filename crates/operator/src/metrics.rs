//! Metrics: what a dashboard counts. A registry of its own for each operator: many of them live in one process of the simulation.

mod devices;

use std::sync::Arc;

use palisade_core::ident::NodeName;
use palisade_core::time::Span;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use self::devices::{Devices, Seen};

/// What is counted.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    not_understood: Family<ByKind, Counter>,
    fences: Family<ByPhase, Gauge>,
    holds: Family<ByReason, Counter>,
    leads: Gauge,
    listed: Gauge,
    devices: Devices,
    device_checks: Family<ByOutcome, Counter>,
    checks_behind: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByKind {
    kind: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPhase {
    phase: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByOutcome {
    outcome: &'static str,
}

impl Default for Metrics {
    fn default() -> Self {
        let (not_understood, fences, holds) = (Family::default(), Family::default(), Family::default());
        let (leads, listed) = (Gauge::default(), Gauge::default());
        let mut registry = Registry::with_prefix("palisade");
        registry.register(
            "objects_not_understood",
            "Objects that were seen and could not be understood; each says why in an Event",
            not_understood.clone(),
        );
        registry.register("fences", "Fences that are there now, by phase", fences.clone());
        registry.register("holds", "Times that a request was held, by why", holds.clone());
        registry.register("leads", "Whether this replica acts: 1, or 0", leads.clone());
        registry.register(
            "listed",
            "Whether this replica has seen every kind that it watches, and so can decide: 1, or 0",
            listed.clone(),
        );
        let (devices, device_checks, checks_behind) = of_devices(&mut registry);
        Self {
            registry: Arc::new(registry),
            not_understood,
            fences,
            holds,
            leads,
            listed,
            devices,
            device_checks,
            checks_behind,
        }
    }
}

fn of_devices(registry: &mut Registry) -> (Devices, Family<ByOutcome, Counter>, Gauge) {
    let (devices, checks, behind) = (Devices::default(), Family::default(), Gauge::default());
    registry.register_collector(Box::new(devices.clone()));
    registry.register("device_checks", "Checks of devices before they are needed, by outcome", checks.clone());
    registry.register(
        "device_checks_behind_seconds",
        "For how long the first device waits for its check: more Secrets than can be read in the interval, or devices that hang",
        behind.clone(),
    );
    (devices, checks, behind)
}

impl Metrics {
    /// Everything, as Prometheus reads it.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a String never fails.
        let _infallible = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// Whether every kind that is watched has been listed: before, this replica decides nothing.
    pub fn has_listed(&self) -> bool {
        self.listed.get() == 1
    }

    pub(crate) fn listed(&self, all: bool) {
        self.listed.set(i64::from(all));
    }

    pub(crate) fn not_understood(&self, kind: &str) {
        self.not_understood.get_or_create(&ByKind { kind: kind.to_owned() }).inc();
    }

    pub(crate) fn held(&self, reason: &str) {
        self.holds.get_or_create(&ByReason { reason: reason.to_owned() }).inc();
    }

    pub(crate) fn leads(&self, leads: bool) {
        self.leads.set(i64::from(leads));
    }

    /// What is known of the devices of a node, by template; nothing: there are none.
    pub(crate) fn devices(&self, node: &NodeName, seen: Vec<Seen>) {
        self.devices.set(node, seen);
    }

    /// Nothing is known of any device: somebody else looks.
    pub(crate) fn forget_devices(&self) {
        self.devices.clear();
        self.checks_behind.set(0);
    }

    pub(crate) fn device_checked(&self, outcome: &'static str) {
        self.device_checks.get_or_create(&ByOutcome { outcome }).inc();
    }

    pub(crate) fn checks_behind(&self, by: Span) {
        self.checks_behind.set(i64::try_from(by.as_millis() / 1_000).unwrap_or(i64::MAX));
    }

    /// How many fences there are in each of these phases.
    pub(crate) fn fences<'a>(&self, phases: impl Iterator<Item = &'a str>) {
        self.fences.clear();
        for phase in phases {
            self.fences.get_or_create(&ByPhase { phase: phase.to_owned() }).inc();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_device_shows_the_age_of_its_last_good_check_and_what_is_gone_is_not_shown() {
        let metrics = Metrics::default();
        let (one, two) = (NodeName::from("n1"), NodeName::from("n2"));
        metrics.devices(&one, vec![(Arc::from("bmc"), Some("Good"), Some(Instant::now()))]);
        metrics.devices(&two, vec![(Arc::from("bmc"), Some("NoAnswer"), None)]);
        metrics.device_checked("NoAnswer");
        tokio::time::advance(Duration::from_secs(90)).await;
        let text = metrics.text();
        for line in [
            "palisade_device_check_age_seconds{node=\"n1\",template=\"bmc\"} 90.0",
            "palisade_device_check_failing{node=\"n1\",template=\"bmc\",reason=\"Good\"} 0",
            "palisade_device_check_failing{node=\"n2\",template=\"bmc\",reason=\"NoAnswer\"} 1",
            "palisade_device_checks_total{outcome=\"NoAnswer\"} 1",
        ] {
            assert!(text.contains(line), "{line} is not in:\n{text}");
        }
        assert!(!text.contains("palisade_device_check_age_seconds{node=\"n2\""), "it was never good:\n{text}");
        metrics.devices(&two, Vec::new());
        assert!(!metrics.text().contains("n2"));
        metrics.forget_devices();
        assert!(!metrics.text().contains("n1"));
    }

    #[test]
    fn what_was_counted_is_told() {
        let metrics = Metrics::default();
        metrics.not_understood("FenceConfig");
        metrics.held("BudgetFull");
        metrics.leads(true);
        metrics.listed(true);
        metrics.fences(["New", "Isolated", "Isolated"].into_iter());
        let text = metrics.text();
        for line in [
            "palisade_objects_not_understood_total{kind=\"FenceConfig\"} 1",
            "palisade_fences{phase=\"Isolated\"} 2",
            "palisade_holds_total{reason=\"BudgetFull\"} 1",
            "palisade_leads 1",
            "palisade_listed 1",
        ] {
            assert!(text.contains(line), "{line} is not in:\n{text}");
        }
    }
}
