//! World: what a story may do to a cluster, and what it may look at.
//!
//! Promise: a story that is told in these verbs runs on any cluster whose machines can be switched off and whose network can
//! be cut, embedded or real. No type of a particular world is in any signature.
//! [`Look`] is what everybody with kubectl and a seat in the machine room could see; [`World`] adds what happens.

use std::fmt;
use std::time::Duration;

use serde_json::Value;

pub use crate::look::Look;

/// How a story ends: as told, or not.
pub type Told<T = ()> = Result<T, Broken>;

/// A story did not go as told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken(pub String);

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// What a machine is connected to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// To the API server.
    Api,
    /// To the storage system.
    Storage,
    /// To the other nodes, and from them to its kubelet's port.
    Peers,
    /// To the network of the BMCs, for what runs on the machine. Its own BMC has a link of its own.
    Devices,
}

/// How a BMC behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bmc {
    /// It does what it says.
    Honest,
    /// Honest, but each answer takes so many seconds.
    Slow(u64),
    /// It takes the request, and neither acts nor answers.
    Silent,
    /// Nobody answers the connection.
    Unreachable,
    /// It refuses every switch, and reads honestly.
    Refuses,
    /// It says yes to every switch and does nothing; it reads honestly.
    AcceptsOnly,
    /// It says yes to every switch, does nothing, and says Off whatever is true.
    SaysOff,
    /// It does what it was told after so many seconds, and answers only then.
    Late(u64),
    /// It does what it was told, and nobody hears that it did.
    LosesReply,
    /// It says yes to every switch, does nothing, and for so many milliseconds shows what should be so: a cache.
    ShowsFor(u64),
    /// It switches off, and the machine comes back by itself after so many milliseconds.
    Flaps(u64),
}

/// How fence agents behave, wherever they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agent {
    /// They do what they say.
    Honest,
    /// They say that it was done and do nothing; they read honestly.
    SaysSuccess,
    /// They say that it was done, do nothing, and say off whatever is true.
    LiesWholly,
    /// They do it, and say that they failed.
    FailsAfterSuccess,
    /// They do nothing, say so, and end as if all were well.
    ErrorTextExitZero,
    /// They never come to an end.
    Hangs,
    /// They do it, and the pod is killed before anybody can report.
    KilledBySignal,
    /// Honest, but each call takes so many seconds more.
    Slow(u64),
    /// Somebody else's power cycle is under way: they find the machine off and send nothing, and it comes back two seconds after
    /// they have said so. It happens once; after that they are honest.
    FlapsWithCycle,
    /// They do it, and what the pod leaves is no report.
    WrongReport,
}

/// The power of a machine, as somebody in front of it sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Power {
    /// It runs, or is about to.
    On,
    /// Its memory is lost.
    Off,
    /// It stands still and keeps its memory.
    Sleeps,
}

/// A command that reached a BMC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switched {
    /// On.
    On,
    /// Off.
    Off,
    /// Anything that does both at once, which Palisade never asks for.
    Cycle,
}

/// The kinds of objects that stories speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are called what they are")]
pub enum Kind {
    Node,
    Pod,
    Claim,
    PersistentVolume,
    StatefulSet,
    ReplicaSet,
    DaemonSet,
    Job,
    Event,
    Secret,
    Definition,
    Policy,
    Config,
    Template,
    Remedy,
    Request,
    Fence,
}

impl Kind {
    /// Group and name.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            Self::Node => ("", "Node"),
            Self::Pod => ("", "Pod"),
            Self::Claim => ("", "PersistentVolumeClaim"),
            Self::PersistentVolume => ("", "PersistentVolume"),
            Self::Event => ("", "Event"),
            Self::Secret => ("", "Secret"),
            Self::StatefulSet => ("apps", "StatefulSet"),
            Self::ReplicaSet => ("apps", "ReplicaSet"),
            Self::DaemonSet => ("apps", "DaemonSet"),
            Self::Job => ("batch", "Job"),
            Self::Definition => ("apiextensions.k8s.io", "CustomResourceDefinition"),
            Self::Policy => (palisade_api::names::GROUP, "FencePolicy"),
            Self::Config => (palisade_api::names::GROUP, "FenceConfig"),
            Self::Template => (palisade_api::names::GROUP, "FenceTemplate"),
            Self::Remedy => (palisade_api::names::GROUP, "NodeRemedy"),
            Self::Request => (palisade_api::names::GROUP, "NodeFencingRequest"),
            Self::Fence => (palisade_api::names::GROUP, "NodeFence"),
        }
    }

    /// The namespace in which stories keep this kind; empty if it has none.
    pub const fn home(self) -> &'static str {
        match self {
            Self::Pod | Self::Claim | Self::StatefulSet | Self::ReplicaSet | Self::DaemonSet | Self::Event => "default",
            Self::Request | Self::Job | Self::Secret => palisade_api::names::SYSTEM_NAMESPACE,
            Self::Node
            | Self::PersistentVolume
            | Self::Definition
            | Self::Policy
            | Self::Config
            | Self::Template
            | Self::Remedy
            | Self::Fence => "",
        }
    }
}

/// What a story needs before it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Nodes, called n1, n2 and so on.
    pub nodes: usize,
    /// Zones to which they are dealt out in turn.
    pub zones: usize,
}

/// A cluster with Palisade installed, in which a story happens.
#[allow(async_fn_in_trait, reason = "stories are told by one teller, on one thread")]
pub trait World: Look {
    /// A machine loses its power; its BMC does not.
    async fn power_off(&mut self, node: &str) -> Told;
    /// A machine's feed fails, and its BMC with it.
    async fn cut_feed(&mut self, node: &str) -> Told;
    /// The feed is back.
    async fn restore_feed(&mut self, node: &str) -> Told;
    /// Somebody presses a machine's button, past every BMC.
    async fn outside_on(&mut self, node: &str) -> Told;
    /// A machine writes its memory to disk and switches itself off.
    async fn hibernate(&mut self, node: &str) -> Told;
    /// Cuts a link of a machine.
    async fn cut(&mut self, node: &str, link: Link) -> Told;
    /// Heals a link of a machine.
    async fn heal(&mut self, node: &str, link: Link) -> Told;
    /// A kubelet hangs; its pods go on.
    async fn kubelet_hang(&mut self, node: &str) -> Told;
    /// A kubelet that hung goes on.
    async fn kubelet_resume(&mut self, node: &str) -> Told;
    /// A kubelet starts anew; its pods go on.
    async fn kubelet_restart(&mut self, node: &str) -> Told;
    /// A BMC behaves like this from now on.
    async fn bmc(&mut self, node: &str, behaves: Bmc) -> Told;
    /// Fence agents behave like this from now on.
    async fn agent(&mut self, behaves: Agent) -> Told;
    /// The API server is gone, for everybody.
    async fn api_down(&mut self) -> Told;
    /// The API server is back.
    async fn api_up(&mut self) -> Told;

    /// Starts an operator process, somewhere safe.
    async fn operator_start(&mut self, name: &str) -> Told;
    /// Starts an operator process on a node, whose fate it shares.
    async fn operator_start_on(&mut self, name: &str, node: &str) -> Told;
    /// Ends an operator process in the middle of whatever it does.
    async fn operator_crash(&mut self, name: &str) -> Told;
    /// Asks an operator process to end, and waits until it has.
    async fn operator_stop(&mut self, name: &str) -> Told;

    /// Makes an object, as `kubectl create` does.
    async fn create(&mut self, kind: Kind, object: Value) -> Told;
    /// Lays a patch over an object, as `kubectl patch --type merge` does.
    async fn patch(&mut self, kind: Kind, name: &str, patch: Value) -> Told;
    /// Deletes an object, as `kubectl delete --wait=false` does.
    async fn delete(&mut self, kind: Kind, name: &str) -> Told;
    /// An admin deletes an object and leaves behind what it has made (`kubectl delete --cascade=orphan`).
    async fn delete_alone(&mut self, kind: Kind, name: &str) -> Told;
    /// An admission rule lets no operator delete this object, or does again.
    async fn forbid_deletion(&mut self, kind: Kind, name: &str, forbidden: bool) -> Told;
    /// A DaemonSet with one pod on every node.
    async fn daemon_set(&mut self, name: &str) -> Told;

    /// Lets time pass until every operator has watched long enough to believe what it sees.
    async fn settle(&mut self);
    /// Lets time pass.
    async fn run_for(&mut self, seconds: u64);
    /// Lets time pass until something is so, and says how long that took. `what` says what is waited for.
    async fn run_until(&mut self, seconds: u64, what: &str, so: impl FnMut(&dyn Look) -> bool) -> Told<Duration>;
    /// Lets time pass; something must be so at every instant of it. `what` says what.
    async fn hold_for(&mut self, seconds: u64, what: &str, so: impl FnMut(&dyn Look) -> bool) -> Told;
    /// How many deletions an admission rule has refused so far.
    fn refused_deletions(&self) -> usize;
    /// Every instant so far in which two nodes could write to one volume that is for one node at a time, and every stale
    /// write that reached a volume after another node had it.
    fn two_writers(&self) -> Vec<String>;
}
