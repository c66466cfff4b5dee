//! Resolve / call: what the shell has to know to make a method's call. The core decides without it.
//!
//! Promise (I7): a secret is a reference in here, never a value; it is looked up by whoever makes the call, at the last
//! moment. Promise (I4): everything is resolved for one node, so nobody has to choose a machine again further down.

use std::collections::BTreeMap;

use palisade_api::template::{Builtin, Driver, Identity, PodTemplate};

use super::parameters;
use crate::ident::ProviderName;
use crate::time::Span;

/// Stands for a plug where a method has none to name: a BMC is its machine, a storage system knows the node by name.
/// It is never sent.
pub const THE_NODE: &str = "node";

/// How one method is called and read. Whether it cuts off or gives back is said by each call (`DeviceCall::action`), so
/// that both ways share one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who is told.
    pub device: Device,
    /// Who is asked afterwards, where that is somebody else.
    pub read_back: Option<Device>,
}

/// A device or mechanism, for one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Name of its FenceTemplate, for people.
    pub template: String,
    /// What it is.
    pub mechanism: Mechanism,
    /// What it is told besides the action: names as its driver or agent knows them.
    pub parameters: BTreeMap<String, Value>,
    /// Its plug, or [`THE_NODE`].
    pub plug: Box<str>,
    /// How long one call may take.
    pub timeout: Span,
    /// Whether it has to show that it belongs to the node.
    pub identity: Identity,
}

impl Device {
    /// Whether both are the same thing on the same device: what one took, the other gives back.
    pub(super) fn is_same_as(&self, other: &Self) -> bool {
        self.template == other.template && self.plug == other.plug && self.address() == other.address()
    }

    /// Whether a read by `self` goes the very way that `other` acted on. The same driver at another address is another
    /// device, and so another path.
    pub(super) fn is_the_path_of(&self, other: &Self) -> bool {
        let same_address = match (self.address(), other.address()) {
            (Some(own), Some(others)) => own == others,
            (own, others) => own == others && self.parameters == other.parameters,
        };
        self.mechanism == other.mechanism && same_address
    }

    fn address(&self) -> Option<&Value> {
        parameters::find(&self.parameters, "ip")
    }
}

/// What a device or mechanism is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// A driver inside the operator.
    Native(Driver),
    /// A fence agent, by its name; in a Job.
    Agent(String),
    /// Something that the operator does to the Node object.
    Builtin(Builtin),
    /// The user's own pod; in a Job.
    Pod(Box<PodTemplate>),
    /// A storage system.
    Storage(ProviderName),
}

impl Mechanism {
    /// Whether it runs as a Job, which takes time to start.
    pub const fn in_job(&self) -> bool {
        match self {
            Self::Agent(_) | Self::Pod(_) => true,
            Self::Native(_) | Self::Builtin(_) | Self::Storage(_) => false,
        }
    }
}

/// The value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// As it is.
    Text(String),
    /// In a Secret of the operator's namespace.
    Secret {
        /// Name of the Secret.
        name: String,
        /// The key in it.
        key: String,
    },
}
