//! Embedded / reach: how the operator reaches BMCs and kubelets of the embedded machines.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use futures_util::future::BoxFuture;
use palisade_cluster::machines::bmc::BmcNetwork;
use palisade_cluster::machines::machine::{KubeletState, Link, Power};
use palisade_cluster::truth::Truth;
use palisade_core::ident::NodeName;
use palisade_core::snapshot::WitnessWord;
use palisade_devices::{Request, Response, Transport, Unreachable};
use palisade_operator::Probe;

/// The network of the BMCs, as a transport.
pub(super) struct Bmcs {
    network: BmcNetwork,
}

impl Bmcs {
    pub(super) fn new(network: BmcNetwork) -> Self {
        Self { network }
    }
}

impl Transport for Bmcs {
    fn send(&self, request: Request) -> Pin<Box<dyn Future<Output = Result<Response, Unreachable>> + Send + '_>> {
        let network = self.network.clone();
        Box::pin(async move { network.call(request).await.map_err(|why| Unreachable(why.to_string())) })
    }
}

/// Whether a kubelet's port answers, by the truth.
pub(super) struct Kubelets {
    truth: Truth,
}

impl Kubelets {
    pub(super) fn new(truth: Truth) -> Self {
        Self { truth }
    }
}

impl Probe for Kubelets {
    fn kubelet(&self, node: &NodeName, _at: Option<SocketAddr>) -> BoxFuture<'static, WitnessWord> {
        let (truth, node) = (self.truth.clone(), node.clone());
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            truth.look(|world| {
                let Some(machine) = world.machines.get(node.as_str()) else { return WitnessWord::Unknown };
                let answers = machine.power == Power::On
                    && machine.reaches(Link::Peers)
                    && machine.kubelet == KubeletState::Running;
                if answers { WitnessWord::Alive } else { WitnessWord::Silent }
            })
        })
    }
}
