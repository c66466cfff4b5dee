//! The ground truth: what is, whatever anybody believes. The oracle reads it; the operator never can.
//!
//! Promise: nothing in the [`World`] changes but inside [`Truth::act`], and after each act every [`Hook`] has seen each
//! [`Event`] of it. Who could write to a volume is worked out at the end of the same act, so no instant is missed.
//! Locks: an observer of the API may look at the truth; a hook of the truth must not call the API.

mod event;

pub use event::{Daemon, DaemonState, Event, What, Writer};

use std::{
    collections::BTreeMap,
    fmt,
    hash::{Hash, Hasher},
    panic,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use tokio::sync::Notify;

use crate::{
    clock::Clock,
    dice::Dice,
    machines::{
        bmc::{Bmc, Command},
        machine::Machine,
        pdu::Pdu,
        process::Exit,
        program::{End, Which},
    },
    storage::Storage,
};

/// A name that many hold: of a node, a pod's UID, a boot, a volume's handle.
pub type Name = Arc<str>;

/// Something that is going to happen by itself.
#[derive(Clone, Debug)]
pub(crate) enum Later {
    /// A machine takes its next step, unless its power changed meanwhile.
    Machine { node: Name, epoch: u64, step: crate::machines::machine::Step },
    /// A process ends, unless it is gone.
    Exit { node: Name, pod: Name, exit: Exit },
    /// A process comes to its own end, unless it is gone.
    Program { which: Which, end: End },
    /// A BMC carries a command out.
    Command { node: Name, command: Command },
}

/// Everything that is true.
#[derive(Debug)]
pub struct World {
    /// The time of the last act.
    pub now: Duration,
    /// The machines, by the name of their node.
    pub machines: BTreeMap<Name, Machine>,
    /// The BMCs, by the name of their node.
    pub bmcs: BTreeMap<Name, Bmc>,
    /// The PDUs, by name.
    pub pdus: BTreeMap<Name, Pdu>,
    /// The storage system.
    pub storage: Storage,
    /// Everything that happened, oldest first.
    pub events: Vec<Event>,
    daemons: BTreeMap<Daemon, DaemonState>,
    later: BTreeMap<(Duration, u64), Later>,
    planned: u64,
    /// How many processes there were.
    pub(crate) runs: u64,
    /// Machines whose processes may have gained or lost the power to write in this act.
    pub(crate) touched: std::collections::BTreeSet<Name>,
    pub(crate) dice: Dice,
    /// From the boot loader to a kubelet, in milliseconds.
    pub(crate) boot: (u64, u64),
}

impl World {
    pub(crate) fn new(seed: u64, storage: Storage, boot: (u64, u64)) -> Self {
        Self {
            now: Duration::ZERO,
            machines: BTreeMap::new(),
            bmcs: BTreeMap::new(),
            pdus: BTreeMap::new(),
            storage,
            events: Vec::new(),
            daemons: BTreeMap::new(),
            later: BTreeMap::new(),
            planned: 0,
            runs: 0,
            touched: std::collections::BTreeSet::new(),
            dice: Dice::new(seed, "nature"),
            boot,
        }
    }

    /// How a daemon is.
    pub fn daemon(&self, daemon: Daemon) -> DaemonState {
        self.daemons.get(&daemon).copied().unwrap_or(DaemonState::Running)
    }

    /// Who could write to a volume at this instant.
    pub fn writers(&self, volume: &str) -> Vec<Writer> {
        self.machines.values().flat_map(|machine| machine.writers(volume)).collect()
    }

    /// Volumes that are for one node at a time, and that two nodes could write to at this instant.
    pub fn volumes_with_two_writers(&self) -> Vec<Name> {
        let shared = |volume: &&Name| {
            let mut nodes: Vec<Name> = self.writers(volume).into_iter().map(|writer| writer.node).collect();
            nodes.dedup();
            nodes.len() > 1
        };
        self.storage
            .volumes
            .iter()
            .filter(|(_, volume)| !volume.many_nodes)
            .map(|(name, _)| name)
            .filter(shared)
            .cloned()
            .collect()
    }

    pub(crate) fn set_daemon(&mut self, daemon: Daemon, is: DaemonState) {
        if self.daemon(daemon) != is {
            self.daemons.insert(daemon, is);
            self.happened(What::Daemon { daemon, is });
        }
    }

    pub(crate) fn happened(&mut self, what: What) {
        self.events.push(Event { at: self.now, what });
    }

    pub(crate) fn plan(&mut self, wait: Duration, later: Later) {
        self.planned += 1;
        self.later.insert((self.now + wait, self.planned), later);
    }

    fn pass(&mut self) {
        while let Some(entry) = self.later.first_entry().filter(|entry| entry.key().0 <= self.now) {
            match entry.remove() {
                Later::Machine { node, epoch, step } => self.machine_steps(&node, epoch, step),
                Later::Exit { node, pod, exit } => self.process_exits(&node, &pod, exit),
                Later::Program { which, end } => self.program_ends(&which, end),
                Later::Command { node, command } => self.carry_out(&node, command),
            }
        }
    }
}

/// Called after each event, inside the act: it sees the world as the act left it.
pub type Hook = Box<dyn FnMut(&World, &Event) + Send>;

/// The world, in the hands of nature, of a test or of an oracle.
#[derive(Clone)]
pub struct Truth {
    world: Arc<Mutex<World>>,
    hooks: Arc<Mutex<Vec<Hook>>>,
    happened: Arc<Notify>,
    trace: Trace,
    clock: Clock,
}

impl fmt::Debug for Truth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Truth").finish_non_exhaustive()
    }
}

impl Truth {
    pub(crate) fn new(clock: Clock, world: World) -> Self {
        let world = Arc::new(Mutex::new(world));
        Self { world, hooks: Arc::default(), happened: Arc::default(), trace: Trace::default(), clock }
    }

    /// Looks at the world.
    pub fn look<T>(&self, look: impl FnOnce(&World) -> T) -> T {
        let mut world = self.lock();
        world.now = self.clock.elapsed();
        look(&world)
    }

    /// Changes the world, lets everything happen that follows, and tells everybody.
    pub fn act<T>(&self, act: impl FnOnce(&mut World) -> T) -> T {
        let mut world = self.lock();
        let told = world.events.len();
        world.now = self.clock.elapsed();
        world.pass();
        let outcome = act(&mut world);
        world.settle();
        if world.events.len() > told {
            let mut hooks = self.hooks.lock().unwrap_or_else(|_| panic::resume_unwind(Box::new("a hook panicked")));
            for event in &world.events[told..] {
                self.trace.add(event);
                for hook in hooks.iter_mut() {
                    hook(&world, event);
                }
            }
            self.happened.notify_waiters();
        }
        outcome
    }

    /// Calls the hook after every event from now on.
    pub fn on_event(&self, hook: Hook) {
        self.hooks.lock().unwrap_or_else(|_| panic::resume_unwind(Box::new("a hook panicked"))).push(hook);
    }

    /// A hash over everything that happened, in nature and in the API.
    pub fn trace(&self) -> Trace {
        self.trace.clone()
    }

    pub(crate) fn notify(&self) -> Arc<Notify> {
        Arc::clone(&self.happened)
    }

    /// When the next thing happens by itself.
    pub(crate) fn next_later(&self) -> Option<Duration> {
        self.look(|world| world.later.first_key_value().map(|((due, _), _)| *due))
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        // As with the store: a simulation must not go on over a broken truth.
        self.world.lock().unwrap_or_else(|_| panic::resume_unwind(Box::new("the truth was left by a panic; see above")))
    }
}

/// A running hash (FNV-1a) over a run: two runs with the same hash were the same run.
#[derive(Clone, Debug, Default)]
pub struct Trace(Arc<Mutex<Fnv>>);

impl Trace {
    /// Takes one more thing in.
    pub fn add(&self, what: &impl Hash) {
        if let Ok(mut hash) = self.0.lock() {
            what.hash(&mut *hash);
        }
    }

    /// The hash so far.
    pub fn hash(&self) -> u64 {
        self.0.lock().map(|hash| hash.finish()).unwrap_or_default()
    }
}

#[derive(Debug)]
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
