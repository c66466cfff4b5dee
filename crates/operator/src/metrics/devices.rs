//! Metrics / devices: how the checks of each node's devices went, and how old the last good one is at the moment of the question.
//!
//! One entry for each node and template, and none for what is gone: thousands of nodes have to cost little.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use palisade_core::ident::NodeName;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::time::Instant;

/// Of one template: its name, the last outcome, and when its devices were last good.
pub(crate) type Seen = (Arc<str>, Option<&'static str>, Option<Instant>);

/// What is known of every node's devices.
#[derive(Clone, Debug, Default)]
pub(super) struct Devices(Arc<Mutex<BTreeMap<NodeName, Vec<Seen>>>>);

impl Devices {
    /// What is known of a node's devices now; nothing: it is gone.
    pub(super) fn set(&self, node: &NodeName, seen: Vec<Seen>) {
        if seen.is_empty() {
            self.lock().remove(node);
        } else {
            self.lock().insert(node.clone(), seen);
        }
    }

    /// Nothing is known any more.
    pub(super) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeName, Vec<Seen>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Collector for Devices {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let all = self.lock();
        let each = || all.iter().flat_map(|(node, seen)| seen.iter().map(move |seen| (node.as_str(), seen)));
        let age = "Seconds since a node's devices of a template were last good in a check; none if they never were";
        let mut ages = encoder.encode_descriptor("device_check_age_seconds", age, None, MetricType::Gauge)?;
        for (node, (template, _, good)) in each() {
            let Some(good) = good else { continue };
            let labels = [("node", node), ("template", &**template)];
            ConstGauge::new(good.elapsed().as_secs_f64()).encode(ages.encode_family(&labels)?)?;
        }
        let help = "Whether the last check of a node's devices of a template failed: 1, or 0; and its outcome";
        let mut failing = encoder.encode_descriptor("device_check_failing", help, None, MetricType::Gauge)?;
        for (node, (template, last, _)) in each() {
            let Some(reason) = last else { continue };
            let labels = [("node", node), ("template", &**template), ("reason", reason)];
            ConstGauge::new(i64::from(*reason != "Good")).encode(failing.encode_family(&labels)?)?;
        }
        Ok(())
    }
}
