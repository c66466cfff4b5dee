//! Release / verify: was everything that a release stands on seen in force, by this process, late enough?
//!
//! Promise (I1, I2): order rests on the numbers of reads, never on clocks; "lately" is so short a time that no machine boots and
//! starts its pods in it, and no other machine takes over a name. It does not grow with slow devices.

use crate::fence::Fence;
use crate::isolate::{method_behind, plugs_behind};
use crate::observe::{Memory, NodeLive, Observations, ReadId};
use crate::prove::{Basis, Class, Judged, PlugRead, Proof, judge_for};
use crate::time::Tick;

/// What a release is verified from.
#[derive(Clone, Copy)]
pub(super) struct Verify<'a> {
    pub(super) fence: &'a Fence,
    pub(super) memory: &'a Memory,
    pub(super) seen: &'a Observations,
    pub(super) node: &'a NodeLive,
    pub(super) now: Tick,
}

/// What is still to be read; nothing: it is verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Missing {
    /// The Node.
    pub(super) look: bool,
    /// The devices or providers.
    pub(super) read_back: bool,
    /// Nothing that could be read would help.
    pub(super) lost: bool,
}

impl Missing {
    pub(super) fn nothing(self) -> bool {
        self == Self::default()
    }
}

impl Verify<'_> {
    /// What is missing of reads numbered `after` or later that show the Node and all that `basis` names as they have to be.
    pub(super) fn since(self, basis: &Basis, after: ReadId) -> Missing {
        self.missing(basis, after, Tick::START)
    }

    /// ... and that are fresh.
    pub(super) fn lately(self, basis: &Basis, after: ReadId) -> Missing {
        let fresh = self.seen.settings.fresh;
        self.missing(basis, after, Tick::START + self.now.since(Tick::START + fresh))
    }

    fn missing(self, basis: &Basis, after: ReadId, since: Tick) -> Missing {
        let looked = self.node.read.is_some_and(|read| read.id >= after && read.began >= since);
        let sampled = self.sampled().is_some_and(|at| at >= since);
        let in_force = |class: Class| match class {
            Class::Power | Class::Storage | Class::Network => sampled && self.read_off(class, after),
            // Somebody vouched until the first sign of life, which the live read of the Node would show. Where that is a pod,
            // its word stands no longer than the policy's, and its node's kubelet is listened for once more.
            Class::Confirmed => !self.is_read(class) || (sampled && self.read_off(class, after)),
            Class::Driver => true,
            Class::Kdump => self.seen.kdump_proves,
        };
        let open: Vec<Class> = classes(self.fence, basis).into_iter().filter(|class| !in_force(*class)).collect();
        Missing {
            look: !looked,
            read_back: open.iter().any(|class| self.is_read(*class)),
            lost: !basis.stands(self.fence) || open.iter().any(|class| !self.is_read(*class)),
        }
    }

    fn read_off(self, class: Class, after: ReadId) -> bool {
        let Some((plugs, stable_off)) = plugs_behind(self.fence, &self.seen.settings, class) else { return false };
        let newest = self.memory.last_read.as_ref().filter(|(id, ..)| *id >= after);
        newest.is_some_and(|(_, reads, _)| judge_for(class, reads, &plugs, stable_off) == Judged::Off)
    }

    /// Whether the machine is said to be off, by its device or its pod, and the newest series heard its kubelet.
    pub(super) fn contradicted(self) -> bool {
        let contradicted = |class: Class| {
            let (plugs, stable_off) = plugs_behind(self.fence, &self.seen.settings, class)?;
            let judged = |reads: &[PlugRead]| judge_for(class, reads, &plugs, stable_off);
            self.memory.last_read.as_ref().map(|(_, reads, _)| judged(reads) == Judged::Contradicted)
        };
        [Class::Power, Class::Confirmed].into_iter().any(|class| contradicted(class) == Some(true))
    }

    /// Whether a class is read back from a device or provider; the others speak through the Node or the driver. Of a confirmed
    /// node a person's word is not read, and a pod's is held against the node's kubelet.
    fn is_read(self, class: Class) -> bool {
        match class {
            Class::Power | Class::Storage | Class::Network => true,
            Class::Confirmed => method_behind(self.fence).is_some(),
            Class::Driver | Class::Kdump => false,
        }
    }

    /// When the newest series was last sampled, by its slowest plug. Its answer may have been seen much later.
    fn sampled(self) -> Option<Tick> {
        let (_, reads, answered) = self.memory.last_read.as_ref()?;
        let sampled = reads.iter().filter_map(|read| read.samples.last()).map(|sample| sample.began).min()?;
        Some(sampled.min(*answered))
    }

    /// Until when something may be sent that rests on what was read: as long as the oldest of these reads is fresh.
    pub(super) fn send_before(self, basis: &Basis) -> Tick {
        let node = self.node.read.map_or(self.now, |read| read.began);
        let read = classes(self.fence, basis).into_iter().any(|class| self.is_read(class));
        let device = self.sampled().filter(|_| read).unwrap_or(node);
        node.min(device) + self.seen.settings.fresh
    }
}

/// The classes of the proofs that a basis names.
pub(super) fn classes(fence: &Fence, basis: &Basis) -> Vec<Class> {
    fence.proofs.iter().filter(|proof| basis.proofs().contains(&proof.id())).map(Proof::class).collect()
}
