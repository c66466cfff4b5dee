//! The whole cluster, and the verbs in which stories are told.
//!
//! A verb changes the truth and returns; what follows from it takes its time, in [`Cluster::run_for`] and
//! [`Cluster::run_until`]. Whoever wants to look on at everything hangs a hook on [`Cluster::truth`] and an observer on
//! [`Cluster::api`].

mod verbs;

pub use verbs::BmcHandle;

use std::{
    panic,
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::{
    api::{Api, Key, Kind, Object, Settings},
    clock::Clock,
    controllers,
    machines::{
        bmc::{Bmc, BmcNetwork},
        kubelet::{Home, Kubelet},
        machine::{Machine, Power},
        program::{Programs, Shelf},
    },
    nature::Nature,
    objects::{is_ready, text},
    storage::{Storage, StorageSettings},
    truth::{Name, Truth, World, Writer},
    volumes::DRIVER,
    workloads::CLASS,
};

/// What a cluster is made of.
#[derive(Clone, Debug)]
pub struct Shape {
    /// How many nodes; they are called n1, n2 and so on.
    pub nodes: usize,
    /// How many zones they are dealt out to, in turn; they are called z1, z2 and so on.
    pub zones: usize,
    /// The seed of everything that is left to chance.
    pub seed: u64,
    /// How many pods a node takes.
    pub pods_per_node: u32,
    /// How long a machine takes from the boot loader to a kubelet at work, in milliseconds.
    pub boot: (u64, u64),
    /// How often kubelets look at their node's status (`nodeStatusUpdateFrequency`).
    pub kubelet_status: Duration,
    /// How many writes the API remembers.
    pub history: usize,
    /// What the storage system is like.
    pub storage: StorageSettings,
    /// The date on which it begins.
    pub epoch: Timestamp,
    /// How many times faster than tokio's clock it runs.
    pub speed: u32,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            nodes: 3,
            zones: 1,
            seed: 1,
            pods_per_node: 110,
            // A server; a small virtual machine takes a fifth of it.
            boot: (22_000, 45_000),
            kubelet_status: Duration::from_secs(10),
            history: Settings::default().history,
            storage: StorageSettings::default(),
            // 2026-03-01T12:00:00Z: any date will do, as long as it is always the same.
            epoch: Timestamp::constant(1_772_366_400, 0),
            speed: 1,
        }
    }
}

/// A cluster.
#[derive(Clone, Debug)]
pub struct Cluster {
    api: Api,
    truth: Truth,
    clock: Clock,
    clockwork: Arc<Clockwork>,
    shelf: Shelf,
}

/// The task that runs nature; it ends with the last handle to the cluster.
#[derive(Default)]
struct Clockwork {
    waiting: Mutex<Option<Nature>>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Clockwork {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clockwork").finish_non_exhaustive()
    }
}

impl Drop for Clockwork {
    fn drop(&mut self) {
        if let Ok(Some(task)) = self.running.get_mut().map(Option::take) {
            task.abort();
        }
    }
}

impl Cluster {
    /// A cluster whose machines are on and whose clockwork stands still.
    pub fn new(shape: &Shape) -> Self {
        let clock = Clock::starting_at(shape.epoch).at_speed(shape.speed);
        let api = Api::new(clock.clone(), &Settings { seed: shape.seed, history: shape.history });
        let mut world = World::new(shape.seed, Storage::new(shape.storage.clone()), shape.boot);
        for number in 1..=shape.nodes {
            let name = Name::from(format!("n{number}"));
            world.machines.insert(Name::clone(&name), Machine::running(&name, number, shape.seed));
            world.bmcs.insert(Name::clone(&name), Bmc::of(&name));
        }
        let truth = Truth::new(clock.clone(), world);
        let trace = truth.trace();
        api.on_write(Box::new(move |_, change| {
            trace.add(&(change.revision, change.at, change.by.name(), &change.key, &change.new));
        }));
        install_storage(&api.acting_as("cluster-admin"));

        let shelf = Shelf::default();
        let mut nature = Nature::new(api.clone(), truth.clone(), shape.seed, shelf.clone());
        controllers::seat_all(&mut nature);
        for number in 1..=shape.nodes {
            let home = home(shape, number);
            let make = move || -> Box<dyn crate::nature::Actor> { Box::new(Kubelet::new(home.clone())) };
            nature.seat(&Kubelet::name(&format!("n{number}")), None, &Kubelet::HEARS, Box::new(make));
        }
        let clockwork = Clockwork { waiting: Mutex::new(Some(nature)), running: Mutex::default() };
        Self { api: api.acting_as("cluster-admin"), truth, clock, clockwork: Arc::new(clockwork), shelf }
    }

    /// Starts the clockwork on the current runtime. Once is enough.
    pub fn start(&self) {
        let nature = self.clockwork.waiting.lock().ok().and_then(|mut waiting| waiting.take());
        if let (Some(nature), Ok(mut running)) = (nature, self.clockwork.running.lock()) {
            *running = Some(tokio::spawn(nature.run()));
        }
    }

    /// A cluster that runs, with every node ready.
    pub async fn up(shape: &Shape) -> Self {
        let cluster = Self::new(shape);
        cluster.start();
        let all_ready = |cluster: &Self| {
            let nodes = cluster.api.list(Kind::NODE);
            nodes.len() == shape.nodes && nodes.iter().all(|node| is_ready(node))
        };
        cluster.run_until(Duration::from_mins(1), all_ready).await;
        cluster
    }

    /// The API, in the hands of an administrator.
    pub fn api(&self) -> &Api {
        &self.api
    }

    /// The truth.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// The cluster's clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The network on which the BMCs answer.
    pub fn bmcs(&self) -> BmcNetwork {
        BmcNetwork::new(self.truth.clone(), self.clock.clone())
    }

    /// Pods that start from now on run what is in these images.
    pub fn set_programs(&self, programs: Arc<dyn Programs>) {
        self.shelf.fill(programs);
    }

    /// How long it has been running.
    pub fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    /// A hash over everything that happened so far.
    pub fn trace_hash(&self) -> u64 {
        self.truth.trace().hash()
    }

    /// Lets time pass.
    pub async fn run_for(&self, time: Duration) {
        self.clock.sleep(time).await;
        self.check_clockwork();
    }

    /// Lets time pass until something is so; says how long that took, or nothing if it did not come to it in time.
    /// The question is asked again after every write and every event, never in between.
    pub async fn run_until(&self, limit: Duration, mut so: impl FnMut(&Self) -> bool) -> Option<Duration> {
        let begun = self.clock.elapsed();
        let mut writes = self.api.subscribe();
        let happened = self.truth.notify();
        loop {
            let mut event = std::pin::pin!(happened.notified());
            event.as_mut().enable();
            self.check_clockwork();
            if so(self) {
                return Some(self.clock.elapsed().saturating_sub(begun));
            }
            if self.clock.elapsed() >= begun + limit {
                return None;
            }
            tokio::select! {
                biased;
                _ = writes.changed() => {}
                () = event => {}
                () = self.clock.sleep_until(begun + limit) => {}
            }
        }
    }

    /// A panic of the clockwork, such as that of an oracle, is everybody's.
    fn check_clockwork(&self) {
        let Ok(running) = self.clockwork.running.lock() else { return };
        if running.as_ref().is_some_and(JoinHandle::is_finished) {
            drop(running);
            panic::resume_unwind(Box::new("the clockwork was left by a panic; see above"));
        }
    }
}

fn home(shape: &Shape, number: usize) -> Home {
    let node = Name::from(format!("n{number}"));
    let zone = format!("z{}", (number - 1) % shape.zones.max(1) + 1);
    let labels = [
        ("kubernetes.io/hostname", node.to_string()),
        ("kubernetes.io/os", "linux".to_owned()),
        ("topology.kubernetes.io/zone", zone),
    ];
    let labels = labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    let address = format!("10.0.{}.{}", number / 250, number % 250 + 1);
    Home { node, labels, address, pods: shape.pods_per_node, status_look: shape.kubelet_status }
}

fn install_storage(api: &Api) {
    let class = json!({
        "metadata": {"name": CLASS, "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DRIVER,
    });
    // Cannot fail: the cluster is empty.
    drop(api.create(Kind::STORAGE_CLASS, class));
    drop(api.create(Kind::CSI_DRIVER, json!({"metadata": {"name": DRIVER}, "spec": {"attachRequired": true}})));
}

/// What can be seen of it.
impl Cluster {
    /// A Node.
    pub fn node(&self, name: &str) -> Option<Object> {
        self.api.get(&Key::cluster(Kind::NODE, name))
    }

    /// A pod of the namespace `default`.
    pub fn pod(&self, name: &str) -> Option<Object> {
        self.api.get(&Key::new(Kind::POD, "default", name))
    }

    /// Where a pod of the namespace `default` is bound to; empty if nowhere.
    pub fn node_of(&self, pod: &str) -> String {
        self.pod(pod).map(|pod| text(&pod, "/spec/nodeName").to_owned()).unwrap_or_default()
    }

    /// Whether a pod of the namespace `default` is ready.
    pub fn is_ready(&self, pod: &str) -> bool {
        self.pod(pod).is_some_and(|pod| is_ready(&pod))
    }

    /// The volume of a claim of the namespace `default`, by its handle.
    pub fn volume_of(&self, claim: &str) -> Option<Name> {
        let claim = self.api.get(&Key::new(Kind::PERSISTENT_VOLUME_CLAIM, "default", claim))?;
        let pv = self.api.get(&Key::cluster(Kind::PERSISTENT_VOLUME, text(&claim, "/spec/volumeName")))?;
        Some(text(&pv, "/spec/csi/volumeHandle").into())
    }

    /// Who could write to a volume at this instant.
    pub fn writers(&self, volume: &str) -> Vec<Writer> {
        self.truth.look(|world| world.writers(volume))
    }

    /// The power of a machine.
    pub fn power(&self, node: &str) -> Option<Power> {
        self.truth.look(|world| world.machines.get(node).map(|machine| machine.power))
    }

    /// The boot that a machine is in.
    pub fn boot(&self, node: &str) -> Option<Name> {
        self.truth.look(|world| world.machines.get(node).and_then(|machine| machine.boot.clone()))
    }
}
