//! Context: everything from outside that the operator is given. Nothing else reaches the world.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use palisade_core::ident::NodeName;
use palisade_core::resolve::call;
use palisade_core::snapshot::WitnessWord;
use palisade_devices::{Device, Failure};

use crate::clock::Clock;
use crate::metrics::Metrics;
use futures_util::future::BoxFuture;

/// What the operator is given.
#[derive(Clone)]
pub struct Context {
    /// The way to the API server.
    pub client: kube::Client,
    /// Our own time.
    pub clock: Clock,
    /// Who we are among the replicas.
    pub identity: String,
    /// The namespace that we live in: requests of our detectors, the leader's Lease, Secrets of devices.
    pub namespace: String,
    /// The way to devices.
    pub devices: Arc<dyn Devices>,
    /// The way to nodes.
    pub probe: Arc<dyn Probe>,
    /// What the pods run that call fence agents.
    pub act: Act,
    /// What is counted, for whoever asks.
    pub metrics: Metrics,
    /// How far the API server has come, as far as we know.
    pub reached: Reached,
}

/// How far the API server has come, by its answers to our own writes of fences and Jobs: whoever shows less is behind, and what it
/// does not show may be there all the same.
#[derive(Clone, Debug, Default)]
pub struct Reached(Arc<AtomicU64>);

impl Reached {
    /// It answered with this version.
    pub(crate) fn told(&self, version: Option<&str>) {
        if let Some(version) = version.and_then(|version| version.parse().ok()) {
            self.0.fetch_max(version, Ordering::Relaxed);
        }
    }

    /// Whether a list of this version is from before that. One that does not say how old it is says nothing of now.
    pub(crate) fn is_beyond(&self, version: Option<&str>) -> bool {
        version
            .and_then(|version| version.parse::<u64>().ok())
            .is_none_or(|version| version < self.0.load(Ordering::Relaxed))
    }
}

/// What the pods run that call fence agents: `palisade act`, with the agents beside it.
#[derive(Clone, Debug, Default)]
pub struct Act {
    /// The image; none: no agent can be called.
    pub image: Option<String>,
    /// When it is pulled: Always, IfNotPresent or Never.
    pub pull: String,
}

/// Finds the driver that speaks to a device.
pub trait Devices: Send + Sync {
    /// The driver, or why there is none. `secret` looks up a value that stands in a Secret.
    fn driver(
        &self,
        device: &call::Device,
        secret: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Result<Arc<dyn Device>, Failure>;
}

/// Looks whether a node's kubelet answers.
pub trait Probe: Send + Sync {
    /// Alive, silent, or we could not look. `at`: where the kubelet listens, as its Node says; nothing if it does not.
    fn kubelet(&self, node: &NodeName, at: Option<SocketAddr>) -> BoxFuture<'static, WitnessWord>;
}

/// Looks nowhere.
pub struct NoProbe;

impl Probe for NoProbe {
    fn kubelet(&self, _node: &NodeName, _at: Option<SocketAddr>) -> BoxFuture<'static, WitnessWord> {
        Box::pin(std::future::ready(WitnessWord::Unknown))
    }
}
