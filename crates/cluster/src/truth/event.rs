//! What can happen, and to whom.

use std::time::Duration;

use super::Name;
use crate::machines::{
    bmc::Command,
    machine::{KubeletState, Link, Power},
    process::Exit,
};

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// When, since the cluster began.
    pub at: Duration,
    /// What.
    pub what: What,
}

/// What can happen in nature.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields say what they are")]
pub enum What {
    /// A machine's power changed.
    Power { node: Name, was: Power, is: Power, boot: Option<Name> },
    /// A kubelet came up, hung, or went away.
    Kubelet { node: Name, is: KubeletState },
    /// A kubelet lists pods from an old revision from now on, or from a fresh one again.
    Lags { node: Name, behind: Option<u64> },
    /// A link was cut or healed.
    Link { node: Name, link: Link, up: bool },
    /// A pod's process began.
    Started { node: Name, pod: Name },
    /// A pod's process ended.
    Ended { node: Name, pod: Name, exit: Exit },
    /// From now on this process can write to the volume.
    CanWrite { volume: Name, writer: Writer },
    /// From now on it cannot.
    CannotWrite { volume: Name, writer: Writer },
    /// A write that was held up since then reached the volume.
    Flushed { volume: Name, writer: Writer, since: Duration },
    /// The storage system lets a node use a volume.
    Published { volume: Name, node: Name },
    /// The storage system no longer lists a node as a volume's user.
    Unpublished { volume: Name, node: Name },
    /// The storage system refuses a node, or one boot of it.
    Fenced { node: Name, boot: Option<Name> },
    /// It no longer does.
    Unfenced { node: Name, boot: Option<Name> },
    /// Somebody told a machine's BMC something.
    Told { node: Name, command: Command },
    /// A daemon of the control plane changed.
    Daemon { daemon: Daemon, is: DaemonState },
    /// An outlet of a PDU was switched.
    Outlet { pdu: Name, outlet: u32, on: bool },
}

impl What {
    /// The node that this is about.
    pub fn node(&self) -> Option<&Name> {
        match self {
            Self::Power { node, .. }
            | Self::Kubelet { node, .. }
            | Self::Link { node, .. }
            | Self::Lags { node, .. }
            | Self::Started { node, .. }
            | Self::Ended { node, .. }
            | Self::Published { node, .. }
            | Self::Unpublished { node, .. }
            | Self::Fenced { node, .. }
            | Self::Unfenced { node, .. }
            | Self::Told { node, .. } => Some(node),
            Self::CanWrite { writer, .. } | Self::CannotWrite { writer, .. } | Self::Flushed { writer, .. } => {
                Some(&writer.node)
            }
            Self::Daemon { .. } | Self::Outlet { .. } => None,
        }
    }
}

/// Somebody who writes, or could.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Writer {
    /// On which node.
    pub node: Name,
    /// In which boot of it.
    pub boot: Name,
    /// The pod's UID.
    pub pod: Name,
}

/// What runs the cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Daemon {
    /// kube-apiserver: while it is away, nobody in the cluster gets through. (An operator's own client has its own faults.)
    ApiServer,
    /// kube-controller-manager: every built-in controller at once.
    ControllerManager,
    /// kube-scheduler.
    Scheduler,
    /// The CSI driver's provisioner and attacher.
    Csi,
}

/// How a daemon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DaemonState {
    /// It works.
    Running,
    /// It stands still and keeps its memory.
    Paused,
    /// It is gone, and its memory with it.
    Down,
}
