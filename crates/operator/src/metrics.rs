//! Metrics: what a dashboard counts. A registry of its own for each operator: many of them live in one process of the simulation.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

/// What is counted.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Registry>,
    not_understood: Family<ByKind, Counter>,
    fences: Family<ByPhase, Gauge>,
    holds: Family<ByReason, Counter>,
    leads: Gauge,
    listed: Gauge,
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
        Self { registry: Arc::new(registry), not_understood, fences, holds, leads, listed }
    }
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
    use super::*;

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
