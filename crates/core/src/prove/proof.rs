//! Prove / proof: a recorded, verified statement that one life of a node cannot write to something.
//!
//! Promise (I2): a proof is made from [`Verified`] evidence and from nothing else, and says whose it is: fence, attempt
//! and incarnation. It never changes but for its end, which is set once. A proof read back from the record of an earlier
//! process is the same statement; whoever releases by it verifies anew after the mark.

use std::collections::BTreeSet;
use std::fmt;

use super::life::LifeSigns;
use super::readback::{ReadPath, Verified};
use crate::fence::Fence;
use crate::ident::{DriverName, Incarnation, ProviderName, Uid, VolumeName};
use crate::planted::{self, Bug};
use crate::reason::prove::ProofEnd;

/// Names a proof within its fence, over all attempts: what was released by an old proof must not stand on a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProofId {
    /// The attempt that made it.
    pub attempt: u32,
    /// Its number in that attempt.
    pub number: u32,
}

impl fmt::Display for ProofId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a{}-{}", self.attempt, self.number)
    }
}

/// What kind of certainty it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The machine is off and its memory is lost.
    Power,
    /// The storage system refuses the node.
    Storage,
    /// The CSI driver unpublished the volume with fence.
    Driver,
    /// The node's link is down.
    Network,
    /// A person vouches.
    Confirmed,
    /// The kernel is dumping, so nothing else runs.
    Kdump,
}

impl Class {
    /// All of them: a test demands golden cases for each.
    pub const ALL: [Self; 6] = [Self::Power, Self::Storage, Self::Driver, Self::Network, Self::Confirmed, Self::Kdump];

    /// Whether a proof of this class covers whatever the node could do.
    pub const fn whole_node(self) -> bool {
        match self {
            Self::Power | Self::Confirmed | Self::Kdump => true,
            Self::Storage | Self::Driver | Self::Network => false,
        }
    }

    /// Whether a sign of life ends it. Storage, driver and network isolation hold for a node that lives.
    pub const fn ended_by_life(self) -> bool {
        self.whole_node()
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Power => "power",
            Self::Storage => "storage",
            Self::Driver => "driver",
            Self::Network => "network",
            Self::Confirmed => "confirmed",
            Self::Kdump => "kdump",
        })
    }
}

/// What the node cannot write to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// Anything at all.
    Node,
    /// The volumes of one storage system.
    Provider(ProviderName),
    /// The volumes of these CSI drivers.
    Drivers(BTreeSet<DriverName>),
    /// One volume.
    Volume(VolumeName),
    /// The network.
    Network,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node => f.write_str("node"),
            Self::Provider(name) => write!(f, "provider:{name}"),
            Self::Drivers(names) => {
                f.write_str("drivers:")?;
                names.iter().try_for_each(|name| write!(f, "{name};"))
            }
            Self::Volume(name) => write!(f, "volume:{name}"),
            Self::Network => f.write_str("network"),
        }
    }
}

/// A proof of isolation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Proof {
    id: ProofId,
    class: Class,
    scope: Scope,
    target: Incarnation,
    fence: Uid,
    attempt: u32,
    path: ReadPath,
    source: Box<str>,
    evidence: Box<str>,
    baseline: LifeSigns,
    ended: Option<ProofEnd>,
}

impl Proof {
    /// States what the evidence shows, for the fence's present attempt and incarnation.
    pub(crate) fn state(
        id: ProofId,
        target: &Incarnation,
        fence: &Fence,
        verified: Verified,
        baseline: LifeSigns,
    ) -> Self {
        let (class, scope, path, source, evidence) = verified.into_parts();
        Self {
            id,
            class,
            scope,
            target: target.clone(),
            fence: fence.uid.clone(),
            attempt: fence.attempt,
            path,
            source,
            evidence,
            baseline,
            ended: None,
        }
    }

    /// A proof that an earlier process recorded. `durable` calls this, and nobody else.
    pub(crate) fn recorded(record: RecordedProof) -> Self {
        let RecordedProof { id, class, scope, target, fence, attempt, path, source, evidence, baseline, ended } =
            record;
        Self { id, class, scope, target, fence, attempt, path, source, evidence, baseline, ended }
    }

    /// Whether it stands, for this fence's attempt and this life of its node.
    pub fn in_force_for(&self, fence: &Fence) -> bool {
        self.ended.is_none()
            && self.fence == fence.uid
            && (self.attempt == fence.attempt || planted::is(Bug::KeepsProofs))
            && fence.target.as_ref() == Some(&self.target)
    }

    /// Ends it. The first reason stays: a proof does not die twice.
    pub(crate) fn end(&mut self, why: ProofEnd) {
        self.ended.get_or_insert(why);
    }

    /// Its name within the fence.
    pub fn id(&self) -> ProofId {
        self.id
    }

    /// Its class.
    pub fn class(&self) -> Class {
        self.class
    }

    /// What it covers.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Whose life it speaks of.
    pub fn target(&self) -> &Incarnation {
        &self.target
    }

    /// The fence that it belongs to.
    pub fn fence(&self) -> &Uid {
        &self.fence
    }

    /// The attempt that it belongs to.
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// By which path the isolation was read back.
    pub fn path(&self) -> ReadPath {
        self.path
    }

    /// Where it comes from: the method, the provider, the person.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// What was seen, for people.
    pub fn evidence(&self) -> &str {
        &self.evidence
    }

    /// The signs of life as they stood when the read-back began.
    pub fn baseline(&self) -> &LifeSigns {
        &self.baseline
    }

    /// Why it ended, if it did.
    pub fn ended(&self) -> Option<&ProofEnd> {
        self.ended.as_ref()
    }
}

/// A proof as the record of an earlier process has it.
pub(crate) struct RecordedProof {
    pub(crate) id: ProofId,
    pub(crate) class: Class,
    pub(crate) scope: Scope,
    pub(crate) target: Incarnation,
    pub(crate) fence: Uid,
    pub(crate) attempt: u32,
    pub(crate) path: ReadPath,
    pub(crate) source: Box<str>,
    pub(crate) evidence: Box<str>,
    pub(crate) baseline: LifeSigns,
    pub(crate) ended: Option<ProofEnd>,
}
