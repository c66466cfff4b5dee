//! The embedded world: the embedded cluster with Palisade installed in it as on any other.

mod agents;
mod install;
mod network;
mod process;
mod reach;
mod sights;
mod verbs;
mod watchdog;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use palisade_cluster::api::{Server, Wire};
use palisade_cluster::{Cluster, Shape};
use palisade_operator::{Act, Clock, Context, Metrics, Native, Reached};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use self::agents::Agents;
use self::network::Network;
use self::process::{Process, Strings, ahead};
use self::reach::{Bmcs, Kubelets};
use self::sights::Sight;
use self::watchdog::Watchdog;
use crate::world::{Agent, Look, Needs};

/// The image of the pods that call fence agents.
pub const ACT_IMAGE: &str = "palisade.example/palisade";

/// The embedded cluster, and the operators that run in it.
pub struct Embedded {
    /// The cluster.
    pub cluster: Cluster,
    server: Server,
    network: Network,
    watchdog: Watchdog,
    agents: Agents,
    replicas: BTreeMap<String, Replica>,
}

/// One operator process.
struct Replica {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
    strings: Strings,
    /// The node whose fate it shares.
    node: Option<String>,
    metrics: Metrics,
}

impl Embedded {
    /// A running cluster in which everything is installed and no operator runs yet.
    pub async fn up(shape: &Shape) -> Self {
        let cluster = Cluster::up(shape).await;
        install::everything(&cluster, shape.nodes);
        let network = Network::default();
        let server = Server::over(cluster.api().clone(), Arc::new(network.clone()));
        let watchdog = Watchdog::over(&cluster);
        let agents = Agents::new(cluster.truth().clone());
        cluster.set_programs(Arc::new(agents.clone()));
        Self { cluster, server, network, watchdog, agents, replicas: BTreeMap::new() }
    }

    /// A world as a story needs it.
    pub async fn for_story(needs: &Needs, seed: u64) -> Self {
        let (nodes, zones) = (needs.nodes, needs.zones);
        Self::up(&Shape { nodes, zones, seed, ..Shape::default() }).await
    }

    /// The same with something else between the operators and the API server.
    pub async fn over(shape: &Shape, wire: Arc<dyn Wire>) -> Self {
        let mut world = Self::up(shape).await;
        world.server = Server::over(world.cluster.api().clone(), wire);
        world
    }

    /// What an operator process counts.
    pub fn metrics(&self, name: &str) -> Option<Metrics> {
        self.replicas.get(name).map(|replica| replica.metrics.clone())
    }

    /// Starts an operator process of this name.
    pub fn start(&mut self, name: &str) {
        self.start_replica(name, None);
    }

    fn start_replica(&mut self, name: &str, node: Option<&str>) {
        let (cluster_clock, strings) = (self.cluster.clock().clone(), Strings::default());
        let its = strings.clone();
        let bmcs = self.cluster.bmcs();
        let bmcs = if let Some(node) = node { bmcs.seen_from(node) } else { bmcs };
        let context = Context {
            client: self.server.client(name),
            clock: Clock::new(move || its.wall(cluster_clock.now())),
            identity: name.to_owned(),
            namespace: palisade_api::names::SYSTEM_NAMESPACE.to_owned(),
            devices: Arc::new(Native::new(Arc::new(Bmcs::new(bmcs)))),
            probe: Arc::new(Kubelets::new(self.cluster.truth().clone())),
            act: Act { image: Some(ACT_IMAGE.to_owned()), pull: "IfNotPresent".to_owned() },
            metrics: Metrics::default(),
            reached: Reached::default(),
        };
        let metrics = context.metrics.clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let body = palisade_operator::run(context, async move {
            let _ = stopped.await;
        });
        let task = tokio::spawn(Process::new(body, strings.clone()));
        let node = node.map(ToOwned::to_owned);
        self.replicas.insert(name.to_owned(), Replica { stop: Some(stop), task, strings, node, metrics });
    }

    /// Ends an operator process in the middle of whatever it does.
    pub fn crash(&mut self, name: &str) {
        if let Some(replica) = self.replicas.remove(name) {
            // What has arrived is done, what has not is never sent, and nobody hears the answers.
            replica.task.abort();
        }
    }

    /// Stops an operator process where it stands.
    pub fn freeze(&self, name: &str) {
        if let Some(replica) = self.replicas.get(name) {
            replica.strings.stop();
        }
    }

    /// Lets it go on.
    pub fn thaw(&self, name: &str) {
        if let Some(replica) = self.replicas.get(name) {
            replica.strings.go_on();
        }
    }

    /// Sets the wall clock of an operator process ahead by so much, or back.
    pub fn set_clock(&self, name: &str, by: Duration, backwards: bool) {
        if let Some(replica) = self.replicas.get(name) {
            replica.strings.set_clock(ahead(by, backwards));
        }
    }

    /// Asks an operator process to end, and waits until it has.
    pub async fn stop(&mut self, name: &str) {
        if let Some(mut replica) = self.replicas.remove(name) {
            if let Some(stop) = replica.stop.take() {
                let _ = stop.send(());
            }
            let _ = replica.task.await;
        }
    }

    /// Fence agents behave like this from now on.
    pub fn agents_behave(&self, behave: Agent) {
        self.agents.set(behave);
    }

    /// Lets time pass.
    pub async fn run_for(&self, seconds: u64) {
        self.cluster.run_for(Duration::from_secs(seconds)).await;
    }

    /// Lets time pass until something is so; says how long that took, or nothing if it did not come to it in time.
    /// Somebody looks after every write and every event.
    pub async fn look_until(&self, limit: Duration, mut so: impl FnMut(&dyn Look) -> bool) -> Option<Duration> {
        self.cluster.run_until(limit, |cluster| so(&Sight(cluster))).await
    }

    /// The operators that share this node's fate.
    fn replicas_on(&self, node: &str) -> Vec<String> {
        let there = self.replicas.iter().filter(|(_, replica)| replica.node.as_deref() == Some(node));
        there.map(|(name, _)| name.clone()).collect()
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        for replica in self.replicas.values() {
            replica.task.abort();
        }
    }
}
