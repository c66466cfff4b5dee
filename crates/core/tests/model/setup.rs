//! Model / setup: what a world is made of, how far it may go, and in which way its shell is broken on purpose.

use std::collections::BTreeMap;

use palisade_core::ident::{DriverName, MethodName, ProviderName, VolumeName};
use palisade_core::observe::{Access, Owner, VolumeSeen};
use palisade_core::policy::ReleasePolicy;
use palisade_core::prove::{Class, ReadPath, Scope};
use palisade_core::settings::{Action, Level, Method, Plan, Settings};
use palisade_core::time::Span;

/// One world.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: &'static str,
    /// How the node is fenced.
    pub(crate) how: How,
    /// Who owns the pods.
    pub(crate) owner: Owner,
    /// Which pods use the one volume.
    pub(crate) members: Members,
    /// The volume has a VolumeAttachment; without one the replacement may write as soon as it exists.
    pub(crate) attach: bool,
    /// Which machine answers to the node's name after its Node object was made again.
    pub(crate) successor: Successor,
    /// What else is done while the machine is off.
    pub(crate) besides: Besides,
    /// How far the story is followed.
    pub(crate) until: Until,
    /// How often each thing may happen.
    pub(crate) bounds: Bounds,
    /// What the shell does wrong.
    pub(crate) mutation: Option<Mutation>,
}

/// How the node is fenced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// One BMC, called by the operator itself.
    Power,
    /// One BMC, called through Jobs whose answers both operators see; it cannot tell off from suspended.
    PowerByJob,
    /// The storage system refuses the node.
    Storage,
    /// The storage system refuses the node; where that fails, its switch port goes down.
    StorageElseNetwork,
}

/// Which pods use the volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Members {
    /// One.
    One,
    /// Two, both on the node from the beginning.
    Two,
    /// Two; the second is bound to the node at any later time (the scheduler had not seen the taint).
    SecondJoins,
}

/// Who comes back under the name of a deleted Node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successor {
    SameMachine,
    OtherMachine,
}

/// What is done while the machine is off, besides releasing its pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Besides {
    Nothing,
    /// The policy asks for the out-of-service taint.
    OutOfService,
    /// The config asks for the Node to be deleted.
    DeleteNode,
}

/// How far a story is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Until the machine is on again, or a step has failed: New, Isolating, Isolated, PoweringOn.
    On,
    /// Until the NodeFence is closed, and on to the next one if the bounds allow it.
    Closed,
}

/// How often each thing may happen. These are the limits of the exploration; within them it is exhaustive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Bounds {
    /// Times that the other operator begins to decide while this one is still there (in a state between two leaders).
    pub(crate) handovers: u8,
    /// Operators that crash and start again.
    pub(crate) crashes: u8,
    /// Requests that are lost, replies that are lost, calls that are refused, reads that are not answered.
    pub(crate) faults: u8,
    /// Times that somebody else switches the machine on.
    pub(crate) outside_ons: u8,
    /// Times that the machine resets or is suspended by itself.
    pub(crate) resets: u8,
    /// Times that the network between the node and the API server heals (it is broken in the beginning).
    pub(crate) heals: u8,
    /// Times that it breaks again.
    pub(crate) cuts: u8,
    /// Times that the kubelet posts its status and renews its lease.
    pub(crate) posts: u8,
    /// Times that somebody else lifts the storage fence.
    pub(crate) outside_lifts: u8,
    /// Times that somebody deletes the Node object.
    pub(crate) node_deletions: u8,
    /// Times that somebody else deletes a pod with its grace (an eviction).
    pub(crate) evictions: u8,
    /// NodeFences after the first one.
    pub(crate) more_fences: u8,
    /// Attempts of one fence; beyond them the world is not followed.
    pub(crate) attempts: u8,
    /// Generations of one pod.
    pub(crate) generations: u8,
}

/// A shell that breaks its contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// It says that a pod is marked and has sent nothing.
    NoDeletionMark,
    /// It marks with grace 0, so the object goes at once.
    GraceZero,
    /// It answers the series after a mark with what it had read before.
    ReadBackBeforeMark,
    /// It takes the Job of an earlier attempt for the Job of this one.
    OldJobAdopted,
    /// It leaves out UID and resourceVersion.
    NoPrecondition,
    /// It calls the boot new when it is the old one.
    OldBootCalledNew,
    /// It hides that pods share a claim.
    SharedClaimHidden,
    /// It takes silence for off.
    SilenceTakenForOff,
    /// It sets the out-of-service taint together with the quarantine, before any pod is released.
    OutOfServiceTooEarly,
    /// It shows a node without pods.
    PodsHidden,
}

/// The devices of the worlds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Device {
    Bmc,
    San,
    Port,
}

/// Every method that a world can have, with its device.
pub(crate) const METHODS: [(&str, Device); 6] = [
    ("bmc-off", Device::Bmc),
    ("bmc-on", Device::Bmc),
    ("san-fence", Device::San),
    ("san-lift", Device::San),
    ("port-down", Device::Port),
    ("port-up", Device::Port),
];

/// The place of a method in [`METHODS`].
pub(crate) fn method_index(name: &MethodName) -> usize {
    METHODS.iter().position(|(known, _)| *known == name.as_str()).expect("a method of this model")
}

pub(crate) const PROVIDER: &str = "san";
pub(crate) const DRIVER: &str = "csi.example";
pub(crate) const VOLUME: &str = "vol";
pub(crate) const PLUG: &str = "1";

impl Setup {
    /// How the node is fenced, in the words of `core`. No time passes in the model: a timer has run out, or it has not.
    pub(crate) fn settings(&self, overdue: bool) -> Settings {
        let wait = if overdue { Span::ZERO } else { Span::mins(60) };
        let mut settings = Settings {
            power_after: wait,
            release_timeout: wait,
            recovery_timeout: wait,
            return_hold: Span::ZERO,
            send_window: Span::ZERO,
            longest_window: Span::ZERO,
            fresh: Span::ZERO,
            settle: Span::ZERO,
            backoff: Span::ZERO,
            slowest: Span::ZERO,
            checkpoint: Span::ZERO,
            detach_patience: Span::ZERO,
            delete_node: self.besides == Besides::DeleteNode,
            ..Settings::default()
        };
        let tells = self.how != How::PowerByJob;
        let bmc =
            |name, action, proves| Method { tells_hibernation: tells, ..method(name, action, proves, Scope::Node) };
        let provider = || Scope::Provider(ProviderName::from(PROVIDER));
        match self.how {
            How::Power | How::PowerByJob => {
                settings.isolation = plan(vec![bmc("bmc-off", Action::CutOff, Some(Class::Power))]);
                settings.power_on = plan(vec![bmc("bmc-on", Action::Restore, None)]);
            }
            How::Storage => {
                settings.isolation = plan(vec![method("san-fence", Action::CutOff, Some(Class::Storage), provider())]);
            }
            How::StorageElseNetwork => {
                settings.isolation = plan(vec![
                    method("san-fence", Action::CutOff, Some(Class::Storage), provider()),
                    method("port-down", Action::CutOff, Some(Class::Network), Scope::Network),
                ]);
            }
        }
        settings.undo = BTreeMap::from([
            (MethodName::from("san-fence"), method("san-lift", Action::Restore, None, provider())),
            (MethodName::from("port-down"), method("port-up", Action::Restore, None, Scope::Network)),
        ]);
        settings
    }

    /// How pods are released.
    pub(crate) fn release(&self) -> ReleasePolicy {
        let out_of_service = self.besides == Besides::OutOfService;
        ReleasePolicy { look_again: Span::ZERO, out_of_service, ..ReleasePolicy::default() }
    }

    /// The one volume, by the name of its PersistentVolume.
    pub(crate) fn volumes() -> BTreeMap<Box<str>, VolumeSeen> {
        let volume = VolumeSeen {
            name: VolumeName::from(VOLUME),
            access: Access::Single,
            local: false,
            driver: Some(DriverName::from(DRIVER)),
            driver_fences: false,
            provider: Some(ProviderName::from(PROVIDER)),
            healthy: Some(true),
        };
        BTreeMap::from([(Box::from("pv"), volume)])
    }

    /// Whether something may be done only shortly after a read: then the operators' clocks move.
    pub(crate) fn time_matters(&self) -> bool {
        self.replaces() || self.bounds.node_deletions > 0 || self.members == Members::SecondJoins
    }

    /// Whether pods are replaced while they still terminate.
    pub(crate) fn replaces(&self) -> bool {
        self.owner == Owner::Replaces
    }
}

fn method(name: &str, action: Action, proves: Option<Class>, scope: Scope) -> Method {
    Method {
        name: MethodName::from(name),
        action,
        proves,
        scope,
        plugs: vec![Box::from(PLUG)],
        path: ReadPath::Independent,
        stable_off: Span::ZERO,
        retries: 0,
        tells_hibernation: true,
        in_job: false,
        revokes_sessions: false,
    }
}

/// A step whose methods are alternatives.
fn plan(methods: Vec<Method>) -> Plan {
    Plan { levels: methods.into_iter().map(|method| Level { methods: vec![method] }).collect(), retries: 0 }
}
